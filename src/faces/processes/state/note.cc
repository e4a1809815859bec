#include "faces/processes/state/note.h"

#include <unordered_map>

#include "json/text.h"

namespace pawl::processes {

namespace {

// Format 1 had no undo.
constexpr uint8_t kFormat = 2;
constexpr std::string_view kExecutionNames[] = {"", "RUNNING", "COMPLETED", "FAILED", "SKIPPED"};

// Comparisons of names from which on an index is made.
constexpr size_t kSearched = 4096;

std::unexpected<Error> unreadable() {
  return fail(Code::corrupt, "BAD_NOTE", "a note of a frame cannot be read");
}

void write_fact(Writer& w, const Fact& f, Time started) {
  w.u8(static_cast<uint8_t>(f.kind));
  w.uint(f.ordinal);
  w.str(f.step);
  w.str(f.text);
  if (f.kind == Fact::Kind::event) return;
  w.u8(static_cast<uint8_t>(f.step_kind));
  w.uint(f.attempt);
  if (f.kind == Fact::Kind::entered) return;
  w.u8(static_cast<uint8_t>(f.status));
  w.sint(f.entered - started);
  w.str(f.undo);
}

Fact read_fact(Reader& r, uint8_t format, Time started) {
  Fact f;
  f.kind = static_cast<Fact::Kind>(r.u8());
  f.ordinal = static_cast<uint32_t>(r.uint());
  f.step = r.str();
  f.text = r.str();
  if (f.kind == Fact::Kind::event) return f;
  // Damaged or newer bytes must not index past the tables of names.
  f.step_kind = static_cast<Kind>(std::min<uint8_t>(r.u8(), kKinds - 1));
  f.attempt = static_cast<uint32_t>(r.uint());
  if (f.kind == Fact::Kind::entered) return f;
  f.status = static_cast<Execution>(std::min<uint8_t>(r.u8(), 4));
  f.entered = time_after(started, r.sint());
  if (format > 1) f.undo = r.str();
  return f;
}

// Everything before the facts.
bool read_tail_head(Reader& r, Note& n, uint8_t& format) {
  format = r.u8();
  n.started = r.sint();
  n.before = r.u8();
  n.after = static_cast<Status>(r.u8());
  n.cause = r.str();
  n.user = r.str();
  n.reason = r.str();
  return r.ok() && format >= 1 && format <= kFormat;
}

}  // namespace

std::string_view execution_name(Execution status) {
  return kExecutionNames[static_cast<size_t>(status)];
}

// The text is an array: the members that existed, then the names of those that did not.
std::string undo_of(const json::Object& variables, const json::Object& outputs) {
  json::Object were;
  json::Array absent;
  // Many outputs among many variables need an index: a search for each takes quadratic time.
  const bool many = variables.size() * outputs.size() > kSearched;
  std::unordered_map<std::string_view, const json::Value*> known;
  for (auto v = variables.begin(); many && v != variables.end(); ++v)
    known.try_emplace(v->name, &v->value);
  auto find = [&](const std::string& name) {
    if (!many) return variables.find(name);
    auto it = known.find(name);
    return it == known.end() ? nullptr : it->second;
  };
  for (const json::Member& m : outputs) {
    if (const json::Value* was = find(m.name))
      were.add(m.name, *was);
    else
      absent.emplace_back(m.name);
  }
  return json::print(
      json::Value(json::Array{json::Value(std::move(were)), json::Value(std::move(absent))}));
}

// A text that is not an undo (empty for most steps) changes nothing.
void undo(json::Object& variables, std::string_view text) {
  auto both =
      json::parse(text, {.max_depth = 2 * limits::kJsonDepth, .max_bytes = limits::kFrameBytes});
  if (!both || !both->is_array() || both->array().size() != 2 || !both->array()[0].is_object() ||
      !both->array()[1].is_array())
    return;
  for (json::Member& m : both->array()[0].object())
    variables.set(m.name, std::move(m.value));
  for (const json::Value& name : both->array()[1].array())
    if (name.is_string()) variables.erase(name.string());
}

// Layout: the head as one string (tenant, instance, definition, version, business key, start,
// status before and after), then the tail (format, start, statuses, cause, user, reason, facts).
Bytes encode(const Note& n) {
  Bytes head;
  head.reserve(32 + n.tenant.size() + n.instance_id.size() + n.definition_id.size() +
               n.business_key.size());
  Writer h(head);
  h.str(n.tenant);
  h.str(n.instance_id);
  h.str(n.definition_id);
  h.uint(n.version);
  h.str(n.business_key);
  h.sint(n.started);
  h.u8(n.before);
  h.u8(static_cast<uint8_t>(n.after));
  Bytes out;
  out.reserve(head.size() + n.cause.size() + n.user.size() + n.reason.size() +
              32 * (1 + n.facts.size()));
  Writer w(out);
  w.str(head);
  w.u8(kFormat);
  w.sint(n.started);
  w.u8(n.before);
  w.u8(static_cast<uint8_t>(n.after));
  w.str(n.cause);
  w.str(n.user);
  w.str(n.reason);
  w.uint(n.facts.size());
  for (const Fact& f : n.facts)
    write_fact(w, f, n.started);
  return out;
}

Result<NoteHead> decode_note_head(BytesView bytes) {
  Reader whole(bytes);
  Reader r(whole.str());
  NoteHead n;
  n.tenant = r.str();
  n.instance_id = r.str();
  n.definition_id = r.str();
  n.version = static_cast<uint32_t>(r.uint());
  n.business_key = r.str();
  n.started = r.sint();
  n.before = r.u8();
  n.after = static_cast<Status>(r.u8());
  if (!whole.ok() || !r.done()) return unreadable();
  return n;
}

BytesView note_tail(BytesView bytes) {
  Reader whole(bytes);
  whole.str();
  return whole.rest();
}

Result<Note> decode_note_tail(BytesView tail) {
  Reader r(tail);
  Note n;
  uint8_t format;
  if (!read_tail_head(r, n, format)) return unreadable();
  for (size_t left = r.count(); left > 0 && r.ok(); --left)
    n.facts.push_back(read_fact(r, format, n.started));
  if (!r.done()) return unreadable();
  return n;
}

// Like decode_note_tail(), one fact at a time: the view runs it for every frame.
bool each_fact(BytesView tail, const std::function<void(const Fact&)>& visit) {
  Reader r(tail);
  Note n;
  uint8_t format;
  if (!read_tail_head(r, n, format)) return false;
  for (size_t left = r.count(); left > 0; --left) {
    Fact fact = read_fact(r, format, n.started);
    if (!r.ok()) return false;
    visit(fact);
  }
  return r.done();
}

}  // namespace pawl::processes
