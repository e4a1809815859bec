#pragma once
// A Call asks a compute member to run a processor, evaluate a criterion or choose the time of a
// scheduled transition. A CallResult is the member's answer, or the reason why there is none.
// A call travels to the member as the body of an effect; its result comes back as the receipt.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kernel/effect.h"

namespace pawl::entities {

struct Call {
  enum Kind : uint8_t { processor, criterion, schedule };
  Kind kind = processor;
  // The call is not sent to a member. Its receipt only starts the second transaction of a
  // COMMIT_BEFORE_DISPATCH processor, and that transaction makes the real call.
  bool starts_transaction = false;
  bool durable = false;      // true: sent again after a restart of the server
  bool redelivered = false;  // sent again after a restart: waits for a member without a limit
  Time opened_at = 0;        // a time before this process started means that a restart came between
  std::string name;          // of the processor or function, for error messages
  std::string tags;          // comma-separated; the member must have all of them
  int64_t timeout_ms = 0;    // 0: the default of 30 s
  std::string retry_policy;
  int attempt = 1;      // counts the attempts that the machine makes inside one transaction
  std::string payload;  // the request as JSON
  std::string user;
  std::string roles;
  // Callbacks send this token to join the transaction. Empty: there is no transaction to join.
  std::string token;
  uint64_t turn = 0;
  std::string tx;
};
// How long to wait after this failed attempt before the next one; nothing when it was the last.
std::optional<std::chrono::milliseconds> retry_delay(std::string_view retry_policy, int attempt);
Bytes encode(const Call& call);
Result<Call> decode_call(BytesView bytes);

struct CallResult {
  enum Kind : uint8_t {
    answered = 1,
    failed,        // the member reported an error
    timed_out,     // the member did not answer in time
    no_member,     // no connected member has all tags
    disconnected,  // the member's stream ended before the answer
    dropped,       // the server was restarted, and the call is not durable
    lost,          // the second transaction conflicted with another write
  };
  Kind kind = answered;
  // The reason of a failure. For a criterion that does not match: the member's explanation.
  std::string message{};
  // Compact JSON with sorted names. For a processor: the new document, or empty to keep the old
  // one. For a schedule: {"result", "resultKind"}.
  std::string data{};
  bool matches = false;      // for a criterion
  bool redelivered = false;  // as in Call, when the call only starts the second transaction
  std::vector<std::string> warnings{};
  bool ok() const { return kind == answered; }
};
Bytes encode(const CallResult& result);
Result<CallResult> decode_call_result(BytesView bytes);

}  // namespace pawl::entities
