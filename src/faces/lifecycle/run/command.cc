#include "faces/lifecycle/run/command.h"

namespace pawl::lifecycle {

Bytes encode(const Command& c) {
  Bytes out;
  out.reserve(48 + c.type.size() + c.id.size() + c.to.size() + c.note.size() + c.record.size() +
              c.text.size());
  Writer w(out);
  for (std::string_view part : {c.type, c.id, c.to, c.note, c.record, c.text})
    w.str(part);
  w.u8(static_cast<uint8_t>(c.triggered));
  w.fixed64(c.stamp);
  w.fixed64(c.expected_stamp);
  w.uint(c.expected_version);
  return out;
}

Result<Command> decode_command(BytesView bytes) {
  Reader r(bytes);
  Command c;
  for (std::string_view* part : {&c.type, &c.id, &c.to, &c.note, &c.record, &c.text})
    *part = r.str();
  uint8_t triggered = r.u8();
  c.triggered = static_cast<source>(triggered);
  c.stamp = r.fixed64();
  c.expected_stamp = r.fixed64();
  c.expected_version = r.uint();
  if (!r.done()) return refuse(errc::storage, "a command's bytes cannot be read");
  if (triggered > static_cast<uint8_t>(source::component))
    return refuse(errc::invalid_transition,
                  "the source must be framework, rule, operator or component");
  return c;
}

Bytes encode(const Outcome& outcome) {
  Bytes out;
  Writer w(out);
  w.uint(outcome.version);
  w.str(outcome.phase);
  w.str(outcome.warning);
  w.str(outcome.result);
  return out;
}

Result<Outcome> decode_outcome(BytesView bytes) {
  Reader r(bytes);
  Outcome out;
  out.version = r.uint();
  out.phase = r.str();
  out.warning = r.str();
  out.result = r.str();
  if (!r.done()) return refuse(errc::storage, "an answer's bytes cannot be read");
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
