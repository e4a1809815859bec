#pragma once
// The commands that the service sends to the program, as bodies of its inputs. Frequent commands
// are binary; an operator's command is the JSON object that the operator sent.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

namespace verb {
// `upload` is the `deploy` of earlier versions: an old text did not become the active version.
inline constexpr std::string_view upload = "upload", deploy = "deploy",
                                  manage_definition = "manage-definition", start = "start",
                                  complete = "complete", fail = "fail", task = "task",
                                  signal = "signal", cancel = "cancel", operate = "operate",
                                  pause_definition = "pause-definition", pause_type = "pause-type",
                                  timer = "timer", chain = "chain", attempt = "attempt",
                                  publish = "publish", drop_signal = "drop-signal",
                                  forget = "forget", set_retention = "set-retention", call = "call",
                                  child_ended = "child-ended", cancel_child = "cancel-child";
}  // namespace verb

// The end of the answer to a start that returned an instance which has the business key already.
// No other answer ends so: inside texts the quotes are escaped.
inline constexpr std::string_view kExistingEnd = R"(,"existing":true})";

struct UploadCommand {
  json::Value document;
  std::shared_ptr<const Definition> definition;  // validated; null when decoded from bytes
};

struct StartCommand {
  std::string definition_id;
  uint32_t version = 0;  // 0: the latest
  std::string business_key;
  VariablesPtr variables;
  std::string at_step{};      // empty: the first step
  std::string previous_id{};  // the instance that this one continues
  std::string reason{};
  // Without them the definition's expressions decide.
  std::optional<int32_t> priority{};
  std::optional<std::string> fairness_key{};
  // Of a child, which a turn starts; not part of the bytes. See Instance.
  std::string parent_id{};
  uint32_t parent_execution = 0, call_depth = 0;
};
Bytes encode(const StartCommand& c);
Result<StartCommand> decode_start(BytesView bytes);

// The result of a job, a user task or a WAIT.
struct ResultCommand {
  std::string id;    // of the job, or of the instance
  std::string step;  // the user task or WAIT; empty for a job
  std::string worker;
  VariablesPtr variables;
  bool keep = false;  // a signal for a WAIT that is not open yet is kept for it
};
Bytes encode(const ResultCommand& c);
Result<ResultCommand> decode_result(BytesView bytes);

struct FailCommand {
  std::string job_id, worker, message;
  bool retryable = false;
  // The next attempt gets a job id of its own. Commands of earlier versions do not say so.
  bool fenced = false;
};
Bytes encode(const FailCommand& c);
Result<FailCommand> decode_fail(BytesView bytes);

// A signal by name and correlation key.
struct PublishCommand {
  std::string name, key;
  int64_t ttl_ns = 0;  // how long it is kept when nobody waits for it; 0: not at all
  VariablesPtr variables;
};
Bytes encode(const PublishCommand& c);
Result<PublishCommand> decode_publish(BytesView bytes);

// A worker has taken a job whose attempts have a timeout.
struct AttemptCommand {
  std::string job_id, worker;
};
Bytes encode(const AttemptCommand& c);
Result<AttemptCommand> decode_attempt(BytesView bytes);

struct CancelCommand {
  std::string instance_id, reason;
};
Bytes encode(const CancelCommand& c);
Result<CancelCommand> decode_cancel(BytesView bytes);

}  // namespace pawl::processes
