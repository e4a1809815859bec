#pragma once
// A compute member answers the processor, criteria and schedule calls of entity workflows over one
// gRPC stream.
//
//   pawl::Member member({.tags = {"approval-service"}});
//   member.processor("notify-approval", [](const pawl::Member::Call& call) ->
//   pawl::Member::Processed {
//     return with_notice(call.data);
//   });
//   member.run();  // until stop()
//
// JSON goes in and out as text. A durable processor may be called again with the same request id
// after a crash: what it does outside should bear a repetition.

#include <optional>

#include "pawl/client.h"

namespace pawl {

struct MemberOptions {
  std::string grpc = "127.0.0.1:9090";  // https:// before it for TLS
  std::vector<std::string>
      tags{};  // those of a workflow's calculationNodesTags must all be among them
  Token token{};
  int concurrency = 16;  // calls at once, each on a thread of its own
  // Gets a line whenever something is worth knowing. Empty: lines go to standard error.
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
    std::string tx_token;    // lets ask() join the call's transaction; empty: it has none
  };
  // The entity's new data as JSON, empty to leave it; or why the transition fails. An exception
  // that a processor throws fails it too.
  using Processed = std::expected<std::string, std::string>;
  using Matched = std::expected<bool, std::string>;
  using Processor = std::function<Processed(const Call&)>;
  using Criterion = std::function<Matched(const Call&)>;
  // When a scheduled transition is due, in milliseconds: one of fire_at (since 1970) and
  // fire_after, and at most one of expire_at and expire_after (since the time of firing).
  struct Schedule {
    std::optional<int64_t> fire_at{}, fire_after{}, expire_at{}, expire_after{};
  };
  using Scheduled = std::expected<Schedule, std::string>;
  using Scheduler = std::function<Scheduled(const Call&)>;

  explicit Member(MemberOptions options = {});
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Before run(). Called from several threads.
  void processor(std::string name, Processor processor);
  void criterion(std::string name, Criterion criterion);
  void schedule(std::string name, Scheduler scheduler);  // a workflow's `schedule.function`
  // Joins, answers, and joins again whenever the stream ends; until stop(), which lets the running
  // calls finish first. Returns early only when the server refuses this member.
  Reply<void> run();
  // Safe from any thread and from a signal handler.
  void stop();

  // A request such as "EntityCreateRequest" with its JSON payload. The answer's JSON: an object, or
  // an array where several events come. With a call's tx_token it is part of that call's
  // transaction: it sees its writes and is committed or rolled back with it.
  Reply<std::string> ask(std::string_view type, std::string_view payload,
                         std::string_view tx_token = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
