#include "faces/entities/flow/call.h"

namespace pawl::entities {

namespace {

constexpr int kAttempts = 3;
constexpr std::chrono::milliseconds kRest{100};

struct RetryPolicy {
  std::string_view name;
  std::chrono::milliseconds (*rest)(int attempt);
};
constexpr RetryPolicy kPolicies[] = {
    {"FIXED", [](int) { return kRest; }},
    {"EXPONENTIAL", [](int attempt) { return kRest * (1 << (attempt - 1)); }},
};

}  // namespace

std::optional<std::chrono::milliseconds> rest_after(std::string_view retry_policy, int attempt) {
  for (const RetryPolicy& policy : kPolicies)
    if (policy.name == retry_policy && attempt < kAttempts) return policy.rest(attempt);
  return std::nullopt;
}

Bytes encode(const Call& c) {
  Bytes out;
  Writer w(out);
  w.u8(static_cast<uint8_t>((c.kind == Call::criterion) | c.begins << 1 | c.durable << 2 |
                            c.again << 3 | (c.kind == Call::schedule) << 4 | (c.attempt - 1) << 5));
  w.fixed64(static_cast<uint64_t>(c.opened));
  w.str(c.name);
  w.str(c.tags);
  w.sint(c.timeout_ms);
  w.str(c.retry_policy);
  w.str(c.payload);
  w.str(c.user);
  w.str(c.roles);
  w.str(c.token);
  w.uint(c.turn);
  w.str(c.tx);
  return out;
}

Result<Call> decode_call(BytesView bytes) {
  Reader r(bytes);
  Call c;
  uint8_t bits = r.u8();
  c.kind = bits & 16 ? Call::schedule : bits & 1 ? Call::criterion : Call::processor;
  c.begins = bits & 2;
  c.durable = bits & 4;
  c.again = bits & 8;
  c.attempt = 1 + (bits >> 5);
  c.opened = static_cast<Time>(r.fixed64());
  c.name = r.str();
  c.tags = r.str();
  c.timeout_ms = r.sint();
  c.retry_policy = r.str();
  c.payload = r.str();
  c.user = r.str();
  c.roles = r.str();
  c.token = r.str();
  c.turn = r.uint();
  c.tx = r.str();
  if (!r.ok())
    return fail(Code::corrupt, "BAD_CALL", "a member call cannot be read; run `pawl verify`");
  return c;
}

Bytes encode(const Verdict& v) {
  Bytes out;
  Writer w(out);
  w.u8(v.kind);
  w.str(v.message);
  w.str(v.data);
  w.u8(static_cast<uint8_t>(v.matches | v.again << 1));
  w.uint(v.warnings.size());
  for (const std::string& s : v.warnings)
    w.str(s);
  return out;
}

Result<Verdict> decode_verdict(BytesView bytes) {
  Reader r(bytes);
  Verdict v;
  v.kind = static_cast<Verdict::Kind>(r.u8());
  v.message = r.str();
  v.data = r.str();
  uint8_t bits = r.u8();
  v.matches = bits & 1;
  v.again = bits & 2;
  size_t count = r.count();
  for (size_t i = 0; i < count && r.ok(); ++i)
    v.warnings.emplace_back(r.str());
  if (!r.ok()) return fail(Code::corrupt, "BAD_VERDICT", "a member's answer cannot be read");
  return v;
}

}  // namespace pawl::entities
