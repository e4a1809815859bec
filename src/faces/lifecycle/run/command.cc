#include "faces/lifecycle/run/command.h"

#include "base/codec.h"

namespace pawl::lifecycle {

// The order is the recorded format of inputs: `pawl verify` reads those of earlier builds.
template <class F, FieldsOf<Command> T>
void fields(F& f, T& c) {
  f(c.type);
  f(c.id);
  f(c.to);
  f(c.note);
  f(c.record);
  f(c.text);
  f(c.triggered);
  f.fixed64(c.stamp);
  f.fixed64(c.expected_stamp);
  f(c.expected_version);
}

template <class F, FieldsOf<Outcome> T>
void fields(F& f, T& outcome) {
  f(outcome.version);
  f(outcome.phase);
  f(outcome.warning);
  f(outcome.result);
}

Bytes encode(const Command& c) {
  // 48 bytes cover the lengths and numbers, so that the buffer is allocated once.
  return encode_fields(c, 48 + c.type.size() + c.id.size() + c.to.size() + c.note.size() +
                              c.record.size() + c.text.size());
}

Result<Command> decode_command(BytesView bytes) {
  FieldReader reader(bytes);
  Command c;
  fields(reader, c);
  if (!reader.complete()) return refuse(errc::storage, "a command's bytes cannot be read");
  // The byte comes from a caller.
  if (c.triggered > source::component)
    return refuse(errc::invalid_transition,
                  "the source must be framework, rule, operator or component");
  return c;
}

Bytes encode(const Outcome& outcome) { return encode_fields(outcome); }

Result<Outcome> decode_outcome(BytesView bytes) {
  FieldReader reader(bytes);
  Outcome out;
  fields(reader, out);
  if (!reader.complete()) return refuse(errc::storage, "an answer's bytes cannot be read");
  return out;
}

Result<written> decode_written(const Answer& answer) {
  TRY(Outcome outcome, decode_outcome(answer.body));
  return written{outcome.version ? outcome.version : answer.seq, std::move(outcome.phase),
                 std::move(outcome.warning)};
}

Input make_input(std::string verb, const Command& command, Caller caller) {
  Input input;
  input.program = "lifecycle";
  input.verb = std::move(verb);
  input.body = encode(command);
  input.caller = std::move(caller);
  return input;
}

}  // namespace pawl::lifecycle
