#pragma once
// The connected compute members and the open calls to them. Members chooses a member by its tags,
// sends it keepalives and calls, and takes its answers. Every call ends with exactly one
// CallResult: when no answer comes, Members makes one. Members are in memory only: after a restart
// they join again. Thread-safe.

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "faces/entities/flow/call.h"
#include "kernel/access.h"
#include "runtime/background.h"

namespace pawl::entities {

// An event for a member: a type, a JSON payload and attributes.
struct MemberEvent {
  std::string type;
  std::string payload;
  std::vector<std::pair<std::string, std::string>> attributes;
};

// The stream of one member. Both functions may be called from any thread and must not block.
class MemberStream {
 public:
  virtual ~MemberStream() = default;
  virtual void send(MemberEvent event) = 0;
  // Ends the stream of a member that sent no keepalive in time.
  virtual void end_unresponsive() = 0;
};

struct MemberOptions {
  std::chrono::milliseconds keepalive_interval{10'000};
  std::chrono::milliseconds keepalive_timeout{30'000};
  // How long a call waits for a member with its tags to join. 0: the call fails at once.
  std::chrono::milliseconds dispatch_wait{0};
};

class Members final : public Outbox {
 public:
  Members(KernelAccess& kernel, Background& background, MemberOptions options);
  ~Members() override;
  void start();
  void stop();

  // Returns the id of the new member. The stream is shared with its owner until leave().
  std::string join(std::shared_ptr<MemberStream> stream, std::string tenant,
                   std::vector<std::string> tags);
  // The member's open calls end as disconnected, or are retried by their policy. Unknown ids are
  // ignored.
  void leave(const std::string& member);
  // The member sent a sign of life. Answers to calls do not count as one, as in the original.
  void alive(const std::string& member);
  // Takes an answer from the member's stream. An answer to an unknown call, to the call of another
  // member or to a call of another kind is ignored.
  void answered(const std::string& member, const std::string& request, Call::Kind kind,
                CallResult result);

  // The transaction that a callback's token belongs to. Nothing when the token is unknown, its call
  // has ended or it belongs to another tenant.
  struct Joined {
    uint64_t turn;
    std::string tx;
  };
  std::optional<Joined> find_token(std::string_view token, std::string_view tenant) const;

  // From the kernel, after the frame that opened the effect is durable; for asked effects at once.
  // After a restart it is called again for each call that is still open.
  void opened(const EffectPtr& effect) override;
  // The kernel needs the call no more (its turn ended): an answer that comes later is ignored.
  void closed(const Effect& effect) override;

  struct MemberSummary {
    std::string id;
    std::string tenant;
    std::vector<std::string> tags;
    size_t outstanding;  // calls that it has not answered
  };
  std::vector<MemberSummary> list(std::string_view tenant) const;

 private:
  struct Member {
    std::shared_ptr<MemberStream> stream;
    std::string tenant;
    std::set<std::string, std::less<>> tags;
    Time last_alive = 0;
    Time next_keepalive = 0;
    // Calls that it has not answered.
    std::set<std::string> requests;
  };
  struct PendingCall {
    std::string tenant;
    Call call;
    std::vector<std::string> tags;
    std::string member;  // empty while the call waits for a member
    // Attempts that Members made itself; Call::attempt counts those of the machine.
    int attempt = 1;
    bool waits_for_retry = false;
    bool waits_forever = false;  // waits for a member without a limit
    Time deadline = BackgroundLoop::kNever;
  };
  using Calls = std::map<std::string, PendingCall, std::less<>>;

  // Sends, stream ends and results that are carried out after mutex_ is released.
  struct Actions {
    struct Settled {
      std::string request;
      std::string tenant;
      CallResult result;
    };
    std::vector<std::pair<std::shared_ptr<MemberStream>, MemberEvent>> events;
    std::vector<std::shared_ptr<MemberStream>> ended;
    std::vector<Settled> settled;
  };
  void carry_out(Actions actions);
  void settle(const std::string& request, const std::string& tenant, const CallResult& result);

  // The step of the background loop: handles deadlines and keepalives, returns the next due time.
  Time step();

  // These need mutex_.
  void expire_deadlines(Time now, Actions& actions);
  void send_keepalives(Time now, Actions& actions);
  Time next_due() const;
  void assign(Calls::iterator call, Actions& actions);
  void finish_call(Calls::iterator call, CallResult result, Actions& actions);
  void detach(Calls::iterator call);
  void set_deadline(Calls::iterator call, Time at);
  Member* choose_member(const PendingCall& call, std::string& id);
  void wake_loop();
  std::string new_id();

  KernelAccess& kernel_;
  Background& background_;
  const MemberOptions options_;
  const Time began_;  // calls opened before this time are from before a restart
  mutable std::mutex mutex_;
  std::map<std::string, Member> members_;
  Calls calls_;
  std::map<std::string, std::string, std::less<>> tokens_;  // token -> request
  std::set<std::pair<Time, std::string>> deadlines_;        // deadline -> request
  uint64_t id_counter_ = 0;
  size_t next_choice_ = 0;                  // rotates among members that are equally busy
  Time wakes_at_ = BackgroundLoop::kNever;  // when the loop runs by itself
  std::unique_ptr<BackgroundLoop> loop_;    // null before start() and after stop()
};

}  // namespace pawl::entities
