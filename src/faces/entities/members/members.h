#pragma once
// Compute members and the calls that are out to them. A member is a stream that somebody else
// carries; here it is chosen by its tags, kept alive, given calls and listened to. A call that gets
// no answer is answered here: every call ends in exactly one verdict.

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "faces/entities/flow/call.h"
#include "kernel/access.h"

namespace pawl::entities {

// What goes to a member: a typed event with a JSON payload and string attributes.
struct Outgoing {
  std::string type;
  std::string payload;
  std::vector<std::pair<std::string, std::string>> attributes;
};

// The stream of one member. Both verbs may be called from any thread and must not wait.
class MemberStream {
 public:
  virtual ~MemberStream() = default;
  virtual void send(Outgoing event) = 0;
  virtual void end_silent() = 0;  // it did not prove life in time
};

struct MemberOptions {
  std::chrono::milliseconds keepalive_interval{10'000};
  std::chrono::milliseconds keepalive_timeout{30'000};
  std::chrono::milliseconds dispatch_wait{0};  // for a member with the tags to join
};

class Members final : public Outbox {
 public:
  Members(KernelAccess& kernel, MemberOptions options);
  ~Members() override;
  void start();
  void stop();

  // The stream is shared with its carrier; it is let go of by leave().
  std::string join(std::shared_ptr<MemberStream> stream, std::string tenant,
                   std::vector<std::string> tags);
  void leave(const std::string& member);
  void alive(const std::string& member);
  // An answer on that member's stream. One that nobody waits for, or to a call of another kind, is
  // ignored.
  void answered(const std::string& member, const std::string& request, Call::Kind kind,
                Verdict verdict);

  // The transaction behind a callback's token; nothing when it is unknown, over or another
  // tenant's.
  struct Joined {
    uint64_t turn;
    std::string tx;
  };
  std::optional<Joined> find_token(std::string_view token, std::string_view tenant) const;

  void opened(const EffectPtr& effect) override;
  void closed(const Effect& effect) override;

  struct Seen {
    std::string id, tenant;
    std::vector<std::string> tags;
    size_t outstanding;
  };
  std::vector<Seen> list(std::string_view tenant) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    std::shared_ptr<MemberStream> stream;
    std::string tenant;
    std::set<std::string, std::less<>> tags;
    Clock::time_point proved, next_ping;
    std::set<std::string> requests;
  };
  struct Pending {
    std::string tenant;
    Call call;
    std::vector<std::string> tags;
    std::string member;  // empty while it waits for one
    int attempt = 1;
    bool resting = false;  // between two attempts
    bool patient = false;  // waits for a member however long it takes
    Clock::time_point deadline = Clock::time_point::max();
  };
  using Calls = std::map<std::string, Pending, std::less<>>;

  void loop();
  // With the lock held; what must be said outside is put on `out`.
  struct Out {
    std::vector<std::pair<std::shared_ptr<MemberStream>, Outgoing>> events;
    std::vector<std::shared_ptr<MemberStream>> ended;
    struct Settled {
      std::string request, tenant;
      Verdict verdict;
    };
    std::vector<Settled> settled;
  };
  void place(Calls::iterator call, Out& out);
  void conclude(Calls::iterator call, Verdict verdict, Out& out);
  void detach(Calls::iterator call);
  void set_deadline(Calls::iterator call, Clock::time_point at);
  Member* choose(const Pending& call, std::string& id);
  void say(Out out);
  void settle(const std::string& request, const std::string& tenant, const Verdict& verdict);
  std::string new_id();

  KernelAccess& kernel_;
  MemberOptions options_;
  Time began_;  // calls opened before are from before a restart
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, Member> members_;
  Calls calls_;
  std::map<std::string, std::string, std::less<>> tokens_;  // token -> request
  std::set<std::pair<Clock::time_point, std::string>> deadlines_;
  uint64_t counter_ = 0;
  size_t turn_ = 0;  // fairness among members that could all take a call
  Clock::time_point wakes_ = Clock::time_point::max();  // when the thread looks again by itself
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace pawl::entities
