#pragma once
// A compute member answers the processor, criteria and schedule calls of entity workflows over one
// gRPC stream.
//
//   pawl::Member member({.tags = {"approval-service"}});
//   using Call = pawl::Member::Call;
//   member.processor("notify-approval", [](const Call& call) -> pawl::Member::Processed {
//     return with_notice(call.data);
//   });
//   member.run();  // until stop()
//
// JSON goes in and out as text. A durable processor may be called again with the same request id
// after a crash, so what it does outside Pawl must tolerate a repetition.

#include <optional>

#include "pawl/client.h"

namespace pawl {

struct MemberOptions {
  std::string grpc = "127.0.0.1:9090";  // begins with https:// for TLS
  // A workflow's call comes to this member when these tags include all of its calculationNodesTags.
  std::vector<std::string> tags{};
  Token token{};
  int concurrency = 16;  // calls that run at the same time, each on its own thread
  // Receives log lines. When empty, they go to standard error.
  std::function<void(std::string_view)> log{};
};

class Member {
 public:
  struct Call {
    std::string name;  // of the processor, criterion or schedule
    std::string request_id, entity_id, transaction_id, transition;
    std::string parameters;  // the workflow's `context`
    std::string data, meta;  // JSON; empty unless the workflow says attachEntity
    std::string request;     // everything the server sent, as JSON
    std::string tx_token;    // lets ask() join the transaction of the call; empty if it has none
  };
  // The new data of the entity as JSON (empty: unchanged), or why the transition fails: see fail().
  // An exception that a processor throws fails the transition too.
  using Processed = Result<std::string>;
  using Matched = Result<bool>;
  using Processor = std::function<Processed(const Call&)>;
  using Criterion = std::function<Matched(const Call&)>;
  // When a scheduled transition is due, in milliseconds. Set one of fire_at (since 1970) and
  // fire_after, and at most one of expire_at and expire_after (since the time of firing).
  struct Schedule {
    std::optional<int64_t> fire_at{}, fire_after{}, expire_at{}, expire_after{};
  };
  using Scheduled = Result<Schedule>;
  using Scheduler = std::function<Scheduled(const Call&)>;

  explicit Member(MemberOptions options = {});
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Call these before run(). Handlers are called from several threads.
  void processor(std::string name, Processor processor);
  void criterion(std::string name, Criterion criterion);
  void schedule(std::string name, Scheduler scheduler);  // a workflow's `schedule.function`
  // Joins, answers calls, and joins again whenever the stream ends, until stop(). Running calls
  // finish first. Returns early only when the server refuses this member.
  Result<void> run();
  // Safe from any thread and from a signal handler.
  void stop();

  // The failure of a handler.
  static std::unexpected<Error> fail(std::string message) {
    return std::unexpected(Error{Code::internal, "CALL_FAILED", std::move(message)});
  }

  // Sends a request such as "EntityCreateRequest" with its JSON payload. Returns the JSON of the
  // answer: an object, or an array when the answer is several events. With the tx_token of a call,
  // the request is part of the call's transaction: it sees the writes of the transaction and is
  // committed or rolled back with it.
  Result<std::string> ask(std::string_view type, std::string_view payload,
                          std::string_view tx_token = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
