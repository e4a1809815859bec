#include "faces/processes/run/commands.h"

#include "base/codec.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

// The fields of a command. The variables of a command are JSON text in its bytes, which is passed
// as `variables`.
template <class F, FieldsOf<StartCommand> T, class Text>
void fields(F& f, T& c, Text& variables) {
  f(c.definition_id);
  f(c.version);
  f(c.business_key);
  f(variables);
  f(c.at_step);
  f(c.previous_id);
  f(c.reason);
}

template <class F, FieldsOf<ResultCommand> T, class Text>
void fields(F& f, T& c, Text& variables) {
  f(c.id);
  f(c.step);
  f(c.worker);
  f(variables);
}

template <class F, FieldsOf<PublishCommand> T, class Text>
void fields(F& f, T& c, Text& variables) {
  f(c.name);
  f(c.key);
  f(c.ttl_ns);
  f(variables);
}

constexpr std::string_view kWhat = "a recorded command";

template <class Command>
Bytes encode_with_variables(const Command& c) {
  Bytes out;
  out.reserve(96 + c.variables->text.size());
  FieldWriter writer(out);
  fields(writer, c, c.variables->text);
  return out;
}

std::unexpected<Error> unreadable() {
  return fail(Code::corrupt, "BAD_COMMAND", std::string(kWhat) + " cannot be read");
}

void read_later(FieldReader& reader, ResultCommand& c) { reader.later(c.keep); }
void read_later(FieldReader&, PublishCommand&) {}
void read_later(FieldReader& reader, StartCommand& c) {
  reader.later(c.priority);
  reader.later(c.fairness_key);
}

template <class Command>
Result<Command> decode_with_variables(BytesView bytes) {
  FieldReader reader(bytes);
  Command c;
  BytesView text;
  fields(reader, c, text);
  read_later(reader, c);
  if (!reader.complete()) return unreadable();
  TRY(json::Value variables, json::parse(text, {.max_bytes = text.size() + 1}));
  if (!variables.is_object()) return unreadable();
  c.variables = make_variables(std::move(variables.object()));
  return c;
}

}  // namespace

template <class F, FieldsOf<FailCommand> T>
void fields(F& f, T& c) {
  f(c.job_id);
  f(c.worker);
  f(c.message);
  f(c.retryable);
  if constexpr (std::same_as<F, FieldReader>) f.later(c.fenced);
}

template <class F, FieldsOf<AttemptCommand> T>
void fields(F& f, T& c) {
  f(c.job_id);
  f(c.worker);
}

template <class F, FieldsOf<CancelCommand> T>
void fields(F& f, T& c) {
  f(c.instance_id);
  f(c.reason);
}

Bytes encode(const StartCommand& c) {
  Bytes out = encode_with_variables(c);
  // Left out when neither is given, as before they existed.
  if (!c.priority && !c.fairness_key) return out;
  FieldWriter writer(out);
  writer(c.priority);
  writer(c.fairness_key);
  return out;
}
Result<StartCommand> decode_start(BytesView bytes) {
  return decode_with_variables<StartCommand>(bytes);
}

Bytes encode(const ResultCommand& c) {
  Bytes out = encode_with_variables(c);
  // Left out when it is false, as before it existed.
  if (c.keep) FieldWriter{out}(c.keep);
  return out;
}
Result<ResultCommand> decode_result(BytesView bytes) {
  return decode_with_variables<ResultCommand>(bytes);
}

Bytes encode(const FailCommand& c) {
  Bytes out = encode_fields(c);
  // Left out when it is false, as before it existed.
  if (c.fenced) FieldWriter{out}(c.fenced);
  return out;
}
Result<FailCommand> decode_fail(BytesView bytes) {
  return decode_fields<FailCommand>(bytes, kWhat);
}

Bytes encode(const PublishCommand& c) { return encode_with_variables(c); }
Result<PublishCommand> decode_publish(BytesView bytes) {
  return decode_with_variables<PublishCommand>(bytes);
}

Bytes encode(const AttemptCommand& c) { return encode_fields(c); }
Result<AttemptCommand> decode_attempt(BytesView bytes) {
  return decode_fields<AttemptCommand>(bytes, kWhat);
}

Bytes encode(const CancelCommand& c) { return encode_fields(c); }
Result<CancelCommand> decode_cancel(BytesView bytes) {
  return decode_fields<CancelCommand>(bytes, kWhat);
}

}  // namespace pawl::processes
