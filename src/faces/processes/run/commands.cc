#include "faces/processes/run/commands.h"

#include "json/text.h"

namespace pawl::processes {

namespace {

std::unexpected<Error> unreadable() {
  return fail(Code::corrupt, "BAD_COMMAND", "a recorded command cannot be read");
}

Result<VariablesPtr> read_variables(BytesView text) {
  TRY(json::Value value, json::parse(text, {.max_bytes = text.size() + 1}));
  if (!value.is_object()) return unreadable();
  return make_variables(std::move(value.object()));
}

}  // namespace

Bytes encode(const StartCommand& c) {
  Bytes out;
  out.reserve(96 + c.variables->text.size());
  Writer w(out);
  w.str(c.definition_id);
  w.uint(c.version);
  w.str(c.business_key);
  w.str(c.variables->text);
  w.str(c.at_step);
  w.str(c.previous_id);
  w.str(c.reason);
  return out;
}

Result<StartCommand> decode_start(BytesView bytes) {
  Reader r(bytes);
  StartCommand c;
  c.definition_id = r.str();
  c.version = static_cast<uint32_t>(r.uint());
  c.business_key = r.str();
  BytesView variables = r.str();
  c.at_step = r.str();
  c.previous_id = r.str();
  c.reason = r.str();
  if (!r.done()) return unreadable();
  TRY(c.variables, read_variables(variables));
  return c;
}

Bytes encode(const ResultCommand& c) {
  Bytes out;
  out.reserve(64 + c.variables->text.size());
  Writer w(out);
  w.str(c.id);
  w.str(c.step);
  w.str(c.worker);
  w.str(c.variables->text);
  return out;
}

Result<ResultCommand> decode_result(BytesView bytes) {
  Reader r(bytes);
  ResultCommand c;
  c.id = r.str();
  c.step = r.str();
  c.worker = r.str();
  BytesView variables = r.str();
  if (!r.done()) return unreadable();
  TRY(c.variables, read_variables(variables));
  return c;
}

Bytes encode(const FailCommand& c) {
  Bytes out;
  Writer w(out);
  w.str(c.job_id);
  w.str(c.worker);
  w.str(c.message);
  w.boolean(c.retryable);
  return out;
}

Result<FailCommand> decode_fail(BytesView bytes) {
  Reader r(bytes);
  FailCommand c;
  c.job_id = r.str();
  c.worker = r.str();
  c.message = r.str();
  c.retryable = r.boolean();
  if (!r.done()) return unreadable();
  return c;
}

Bytes encode(const CancelCommand& c) {
  Bytes out;
  Writer w(out);
  w.str(c.instance_id);
  w.str(c.reason);
  return out;
}

Result<CancelCommand> decode_cancel(BytesView bytes) {
  Reader r(bytes);
  CancelCommand c;
  c.instance_id = r.str();
  c.reason = r.str();
  if (!r.done()) return unreadable();
  return c;
}

}  // namespace pawl::processes
