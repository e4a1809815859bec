#include "faces/entities/flow/call.h"

#include "base/codec.h"

namespace pawl::entities {

namespace {

constexpr int kMaxAttempts = 3;
constexpr std::chrono::milliseconds kRetryDelay{100};

struct RetryPolicy {
  std::string_view name;
  std::chrono::milliseconds (*delay)(int attempt);
};
constexpr RetryPolicy kPolicies[] = {
    {"FIXED", [](int) { return kRetryDelay; }},
    {"EXPONENTIAL", [](int attempt) { return kRetryDelay * (1 << (attempt - 1)); }},
};

// The first byte of an encoded call: kind and flags in the low five bits, attempt - 1 above.
enum class CallBits : uint8_t {};

CallBits bits_of(const Call& c) {
  return static_cast<CallBits>((c.kind == Call::criterion) | c.starts_transaction << 1 |
                               c.durable << 2 | c.redelivered << 3 |
                               (c.kind == Call::schedule) << 4 | (c.attempt - 1) << 5);
}

void set_bits(Call& c, CallBits given) {
  const auto bits = static_cast<uint8_t>(given);
  c.kind = bits & 16 ? Call::schedule : bits & 1 ? Call::criterion : Call::processor;
  c.starts_transaction = bits & 2;
  c.durable = bits & 4;
  c.redelivered = bits & 8;
  c.attempt = 1 + (bits >> 5);
}

// The flags of a result, after its data.
enum class ResultBits : uint8_t {};

ResultBits bits_of(const CallResult& r) {
  return static_cast<ResultBits>(r.matches | r.redelivered << 1);
}

void set_bits(CallResult& r, ResultBits given) {
  const auto bits = static_cast<uint8_t>(given);
  r.matches = bits & 1;
  r.redelivered = bits & 2;
}

}  // namespace

template <class F, FieldsOf<Call> T>
void fields(F& f, T& call) {
  CallBits bits = bits_of(call);
  f(bits);
  if constexpr (!std::is_const_v<T>) set_bits(call, bits);
  f.fixed64(call.opened_at);
  f(call.name);
  f(call.tags);
  f(call.timeout_ms);
  f(call.retry_policy);
  f(call.payload);
  f(call.user);
  f(call.roles);
  f(call.token);
  f(call.turn);
  f(call.tx);
}

template <class F, FieldsOf<CallResult> T>
void fields(F& f, T& result) {
  f(result.kind);
  f(result.message);
  f(result.data);
  ResultBits bits = bits_of(result);
  f(bits);
  if constexpr (!std::is_const_v<T>) set_bits(result, bits);
  f(result.warnings);
}

std::optional<std::chrono::milliseconds> retry_delay(std::string_view retry_policy, int attempt) {
  for (const RetryPolicy& policy : kPolicies)
    if (policy.name == retry_policy && attempt < kMaxAttempts) return policy.delay(attempt);
  return std::nullopt;
}

Bytes encode(const Call& call) { return encode_fields(call); }
Result<Call> decode_call(BytesView bytes) { return decode_fields<Call>(bytes, "a member call"); }

Bytes encode(const CallResult& result) { return encode_fields(result); }
Result<CallResult> decode_call_result(BytesView bytes) {
  return decode_fields<CallResult>(bytes, "a member's answer");
}

}  // namespace pawl::entities
