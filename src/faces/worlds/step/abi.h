#pragma once
// The envelopes that modules receive and return, and the hashes that name events and intents.
// Envelopes are CBOR maps in the order written here; contexts and hashed values are canonical.

#include "cbor/cbor.h"
#include "faces/worlds/air/name.h"

namespace pawl::worlds {

// An event. `value` is canonical CBOR once the event is accepted.
struct Event {
  std::string schema;
  Bytes value;
  std::optional<Bytes> key{};
};
Digest event_digest(const Event& event);
std::string event_hash(const Event& event);

// When and at which height an input came in. It is part of the record, so that a replay sees the
// same.
struct Moment {
  uint64_t now_ns = 0;
  uint64_t logical_now_ns = 0;
  uint64_t height = 0;
  Bytes chance{};  // 64 bytes of entropy, or the 16-byte seed that they are derived from
  std::string manifest_hash{};
};
Bytes entropy_of(const Moment& moment);  // the 64 bytes

struct Context {
  Moment moment;
  std::string event_hash, workflow, workflow_hash;
  std::optional<Bytes> key{};  // present for keyed workflows
};
Bytes encode_context(const Context& context);

struct StepInput {
  std::optional<Bytes> state;
  Event event;
  std::optional<Bytes> context;
};
Bytes encode_input(const std::optional<Bytes>& state, const Event& event,
                   const std::optional<Bytes>& context);
inline Bytes encode_input(const StepInput& input) {
  return encode_input(input.state, input.event, input.context);
}
Result<StepInput> decode_input(
    BytesView bytes);  // for modules in C++; refuses other versions than 1

struct EmittedEffect {
  std::string effect;
  Bytes params;
  std::optional<std::string> issuer_ref{};
  std::optional<Bytes> idempotency_key{};
};
struct StepOutput {
  std::optional<Bytes> state;
  std::vector<Event> events{};
  std::vector<EmittedEffect> effects{};
  std::optional<Bytes> annotations{};
  bool completed = false;
};
Result<StepOutput> decode_output(BytesView bytes);
Bytes encode_output(const StepOutput& output);
// At most 64 effects, 256 events and 1 MiB; the error is workflow.output_invalid.
Result<void> check_limits(const StepOutput& output);
inline constexpr size_t kMaxEffects = 64, kMaxEvents = 256, kMaxOutputBytes = 1'048'576;

// The origin of an effect. It is part of the key that makes the emission unique.
struct Origin {
  std::string workflow, workflow_hash;
  Bytes key;  // empty when unkeyed
  uint64_t emitted_at_seq = 0;
};
Bytes idempotency_key(const Origin& origin, std::string_view effect, std::string_view effect_hash,
                      BytesView requested, uint64_t index);

struct IntentIdentity {
  std::string effect;
  std::string effect_hash{}, executor_module{}, executor_module_hash{},
      executor_entrypoint{};  // empty: left out
};
Bytes intent_hash(const IntentIdentity& identity, BytesView params,
                  BytesView idempotency_key);  // 32 bytes

}  // namespace pawl::worlds
