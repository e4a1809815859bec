#pragma once
// A call asks a compute member to run a processor, judge a criterion or say when a transition is
// due; a verdict is its answer, or why there is none. Between the two stands an effect to a member.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "kernel/effect.h"

namespace pawl::entities {

struct Call {
  enum Kind : uint8_t { processor, criterion, schedule };
  Kind kind = processor;
  // Not sent to anybody: its receipt begins the second transaction, which then asks for itself.
  bool begins = false;
  bool durable = false;  // offered again after a restart
  bool again = false;    // this is after one: wait for a member however long it takes
  Time opened = 0;       // when; a call from before this process began is from before a restart
  std::string name;      // of the processor or criterion, for messages
  std::string tags;      // comma-separated; all are needed
  int64_t timeout_ms = 0;
  std::string retry_policy;
  int attempt = 1;      // of a call inside a transaction, whose machine repeats it
  std::string payload;  // the request as JSON
  std::string user, roles;
  // What a callback must show to join the transaction; empty when there is none to join.
  std::string token;
  uint64_t turn = 0;
  std::string tx;
};
// How long to rest after the attempt that failed; nothing when it was the last.
std::optional<std::chrono::milliseconds> rest_after(std::string_view retry_policy, int attempt);
Bytes encode(const Call& call);
Result<Call> decode_call(BytesView bytes);

struct Verdict {
  enum Kind : uint8_t { answered = 1, failed, timed_out, no_member, disconnected, dropped, lost };
  Kind kind = answered;
  std::string
      message{};  // of a failure; of a criterion that does not match, why, if the member told
  // Compact JSON with sorted names. Of a processor the document, empty: unchanged; of a schedule
  // {"result", "resultKind"}.
  std::string data{};
  bool matches = false;
  bool again = false;  // of a call that only begins the second transaction: after a restart
  std::vector<std::string> warnings{};
  bool ok() const { return kind == answered; }
};
Bytes encode(const Verdict& verdict);
Result<Verdict> decode_verdict(BytesView bytes);

}  // namespace pawl::entities
