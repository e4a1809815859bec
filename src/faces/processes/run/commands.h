#pragma once
// What the service asks of the program: the bodies of its inputs. The frequent ones are binary; an
// operator's is the JSON object that the operator sent.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

namespace verb {
inline constexpr std::string_view upload = "upload", start = "start", complete = "complete",
                                  fail = "fail", task = "task", signal = "signal",
                                  cancel = "cancel", operate = "operate",
                                  pause_definition = "pause-definition", pause_type = "pause-type",
                                  timer = "timer", chain = "chain";
}

struct UploadCommand {
  json::Value document;
  std::shared_ptr<const Definition>
      definition;  // already validated; null when only the bytes were at hand
};

struct StartCommand {
  std::string definition_id;
  uint32_t version = 0;  // 0: the latest
  std::string business_key;
  VariablesPtr variables;
  std::string at_step{};      // instead of the first
  std::string previous_id{};  // the instance that this one follows
  std::string reason{};
};
Bytes encode(const StartCommand& c);
Result<StartCommand> decode_start(BytesView bytes);

// A result for a job, a user task or a WAIT.
struct ResultCommand {
  std::string id;    // job id, or instance id
  std::string step;  // of a user task or WAIT
  std::string worker;
  VariablesPtr variables;
};
Bytes encode(const ResultCommand& c);
Result<ResultCommand> decode_result(BytesView bytes);

struct FailCommand {
  std::string job_id, worker, message;
  bool retryable = false;
};
Bytes encode(const FailCommand& c);
Result<FailCommand> decode_fail(BytesView bytes);

struct CancelCommand {
  std::string instance_id, reason;
};
Bytes encode(const CancelCommand& c);
Result<CancelCommand> decode_cancel(BytesView bytes);

}  // namespace pawl::processes
