#include "faces/processes/note.h"

namespace pawl::processes {

namespace {
constexpr uint8_t kFormat = 1;
constexpr std::string_view kExecutionNames[] = {"", "RUNNING", "COMPLETED", "FAILED", "SKIPPED"};
}  // namespace

std::string_view execution_name(Execution status) { return kExecutionNames[static_cast<size_t>(status)]; }

Bytes encode(const Note& n) {
  Bytes out;
  Writer w(out);
  w.u8(kFormat);
  w.str(n.tenant);
  w.str(n.instance_id);
  w.str(n.definition_id);
  w.uint(n.version);
  w.str(n.business_key);
  w.sint(n.started);
  w.u8(n.before);
  w.u8(static_cast<uint8_t>(n.after));
  w.str(n.cause);
  w.str(n.user);
  w.str(n.reason);
  w.uint(n.facts.size());
  for (const Fact& f : n.facts) {
    w.u8(static_cast<uint8_t>(f.kind));
    w.uint(f.ordinal);
    w.str(f.step);
    w.str(f.text);
    if (f.kind == Fact::Kind::event) continue;
    w.u8(static_cast<uint8_t>(f.step_kind));
    w.uint(f.attempt);
    if (f.kind == Fact::Kind::entered) continue;
    w.u8(static_cast<uint8_t>(f.status));
    w.sint(f.entered - n.started);
  }
  return out;
}

namespace {

Note read_head(Reader& r) {
  Note n;
  n.tenant = r.str();
  n.instance_id = r.str();
  n.definition_id = r.str();
  n.version = static_cast<uint32_t>(r.uint());
  n.business_key = r.str();
  n.started = r.sint();
  n.before = r.u8();
  n.after = static_cast<Status>(r.u8());
  n.cause = r.str();
  n.user = r.str();
  n.reason = r.str();
  return n;
}

std::unexpected<Error> unreadable() { return fail(Code::corrupt, "BAD_NOTE", "a note of a frame cannot be read"); }

}  // namespace

Result<Note> decode_note_head(BytesView bytes) {
  Reader r(bytes);
  uint8_t format = r.u8();
  Note n = read_head(r);
  if (!r.ok() || format != kFormat) return unreadable();
  return n;
}

Result<Note> decode_note(BytesView bytes) {
  Reader r(bytes);
  uint8_t format = r.u8();
  Note n = read_head(r);
  for (size_t left = r.count(); left > 0 && r.ok(); --left) {
    Fact f;
    f.kind = static_cast<Fact::Kind>(r.u8());
    f.ordinal = static_cast<uint32_t>(r.uint());
    f.step = r.str();
    f.text = r.str();
    if (f.kind != Fact::Kind::event) {
      f.step_kind = static_cast<Kind>(r.u8());
      f.attempt = static_cast<uint32_t>(r.uint());
      if (f.kind == Fact::Kind::ended) {
        f.status = static_cast<Execution>(r.u8());
        f.entered = n.started + r.sint();
      }
    }
    n.facts.push_back(std::move(f));
  }
  if (!r.done() || format != kFormat) return unreadable();
  return n;
}

}  // namespace pawl::processes
