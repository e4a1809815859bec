#include "faces/processes/state/instance.h"

#include "faces/processes/limits.h"
#include "faces/processes/state/instance_parts.h"
#include "json/text.h"

namespace pawl::processes {

namespace {
constexpr std::string_view kStatusNames[] = {"",          "ACTIVE", "WAITING",
                                             "COMPLETED", "FAILED", "CANCELLED"};
// Crockford's base 32, the alphabet of ULIDs: no I, L, O, U.
constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr size_t kIdBytes = 26, kOrdinalBytes = 4;
constexpr uint8_t kFormat = 1;
}  // namespace

std::string_view status_name(Status status) { return kStatusNames[static_cast<size_t>(status)]; }

std::optional<Status> find_status(std::string_view name) {
  for (size_t i = 1; i < std::size(kStatusNames); ++i)
    if (kStatusNames[i] == name) return static_cast<Status>(i);
  return std::nullopt;
}

VariablesPtr make_variables(json::Object object) {
  auto out = std::make_shared<Variables>();
  json::Value whole(std::move(object));
  out->text = json::print(whole);
  // The object goes into the value for printing and comes back without a copy.
  out->object = std::move(whole.object());
  return out;
}

// Kept sorted by step, so that equal instances have equal bytes.
uint32_t Instance::enter_count(uint32_t step) {
  auto it = std::lower_bound(entries.begin(), entries.end(), std::pair(step, 0u));
  if (it == entries.end() || it->first != step) it = entries.insert(it, {step, 0});
  return ++it->second;
}

Scope* Instance::scope(uint32_t id) {
  // Ids grow, and scopes are only added at the end.
  auto it = std::lower_bound(scopes.begin(), scopes.end(), id,
                             [](const Scope& s, uint32_t wanted) { return s.id < wanted; });
  return it != scopes.end() && it->id == id ? &*it : nullptr;
}

namespace {

// Times are written relative to the start of the instance, which makes them short.
void write_token(Writer& w, const Token& t, Time base) {
  w.uint(t.step);
  w.u8(static_cast<uint8_t>(t.state));
  w.uint(t.execution);
  w.uint(t.job);
  w.uint(t.tries);
  w.uint(t.attempt);
  w.sint(t.entered - base);
  w.uint(t.scope);
  w.uint(t.branch);
  w.uint(t.timers.size());
  for (const Token::ArmedTimer& a : t.timers) {
    w.uint(a.index);
    w.sint(a.due);
  }
}

Token read_token(Reader& r, Time base) {
  Token t;
  t.step = static_cast<uint32_t>(r.uint());
  t.state = static_cast<TokenState>(r.u8());
  t.execution = static_cast<uint32_t>(r.uint());
  t.job = static_cast<uint32_t>(r.uint());
  t.tries = static_cast<uint32_t>(r.uint());
  t.attempt = static_cast<uint32_t>(r.uint());
  t.entered = time_after(base, r.sint());
  t.scope = static_cast<uint32_t>(r.uint());
  t.branch = static_cast<uint32_t>(r.uint());
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    uint32_t index = static_cast<uint32_t>(r.uint());
    t.timers.push_back({index, r.sint()});
  }
  return t;
}

void write_scope(Writer& w, const Scope& s) {
  w.uint(s.id);
  w.uint(s.gateway);
  w.uint(s.parent);
  w.uint(s.parent_branch);
  w.uint(s.arrived.size());
  for (bool b : s.arrived)
    w.boolean(b);
}

Scope read_scope(Reader& r) {
  Scope s;
  s.id = static_cast<uint32_t>(r.uint());
  s.gateway = static_cast<uint32_t>(r.uint());
  s.parent = static_cast<uint32_t>(r.uint());
  s.parent_branch = static_cast<uint32_t>(r.uint());
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    s.arrived.push_back(r.boolean());
  return s;
}

// Left out when nothing in it is set and no part follows: as before it existed.
void write_fairness(Writer& w, const Instance& i) {
  size_t limited = static_cast<size_t>(std::count_if(
      i.tokens.begin(), i.tokens.end(), [](const Token& t) { return t.limit.has_value(); }));
  if (!limited && !i.priority && i.fairness_key.empty() && !has_parts(i)) return;
  w.sint(i.priority);
  w.str(i.fairness_key);
  w.uint(limited);
  for (size_t at = 0; at < i.tokens.size(); ++at) {
    if (!i.tokens[at].limit) continue;
    const LimitUse& use = *i.tokens[at].limit;
    w.uint(at);
    w.str(use.scope);
    w.str(use.key);
    w.uint(use.concurrent);
    w.sint(use.interval);
    w.uint(use.burst);
  }
}

void read_fairness(Reader& r, Instance& i) {
  i.priority = static_cast<int32_t>(r.sint());
  i.fairness_key = r.str();
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    size_t at = r.uint();
    LimitUse use;
    use.scope = r.str();
    use.key = r.str();
    use.concurrent = static_cast<uint32_t>(r.uint());
    use.interval = r.sint();
    use.burst = static_cast<uint32_t>(r.uint());
    if (at < i.tokens.size()) i.tokens[at].limit = std::move(use);
  }
}

}  // namespace

// Layout: format, the fields in the order below, tokens, scopes, entries, variables as JSON text,
// priority, fairness key and limits, further parts (instance_parts.h).
Bytes encode(const Instance& i) {
  Bytes out;
  out.reserve(128 + i.variables->text.size());
  Writer w(out);
  w.u8(kFormat);
  w.str(i.id);
  w.str(i.definition_id);
  w.uint(i.version);
  w.u8(static_cast<uint8_t>(i.status));
  w.u8(static_cast<uint8_t>(i.paused | i.suspended << 1));
  w.sint(i.started);
  w.sint(i.updated - i.started);
  // One more than the distance, because 0 means not completed.
  w.sint(i.completed ? i.completed - i.started + 1 : 0);
  w.str(i.business_key);
  w.str(i.failure);
  w.str(i.next_id);
  w.str(i.previous_id);
  w.uint(i.ordinals);
  w.uint(i.scope_ids);
  w.uint(i.tokens.size());
  for (const Token& t : i.tokens)
    write_token(w, t, i.started);
  w.uint(i.scopes.size());
  for (const Scope& s : i.scopes)
    write_scope(w, s);
  w.uint(i.entries.size());
  for (const auto& [step, times] : i.entries) {
    w.uint(step);
    w.uint(times);
  }
  w.str(i.variables->text);
  write_fairness(w, i);
  write_parts(w, i);
  return out;
}

Result<Instance> decode_instance(BytesView bytes) {
  Reader r(bytes);
  Instance i;
  uint8_t format = r.u8();
  i.id = r.str();
  i.definition_id = r.str();
  i.version = static_cast<uint32_t>(r.uint());
  i.status = static_cast<Status>(r.u8());
  uint8_t flags = r.u8();
  i.paused = flags & 1;
  i.suspended = flags & 2;
  i.started = r.sint();
  i.updated = time_after(i.started, r.sint());
  int64_t completed = r.sint();
  i.completed = completed ? time_after(time_after(i.started, completed), -1) : 0;
  i.business_key = r.str();
  i.failure = r.str();
  i.next_id = r.str();
  i.previous_id = r.str();
  i.ordinals = static_cast<uint32_t>(r.uint());
  i.scope_ids = static_cast<uint32_t>(r.uint());
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    i.tokens.push_back(read_token(r, i.started));
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    i.scopes.push_back(read_scope(r));
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    uint32_t step = static_cast<uint32_t>(r.uint());
    i.entries.emplace_back(step, static_cast<uint32_t>(r.uint()));
  }
  BytesView text = r.str();
  if (r.ok() && !r.done()) read_fairness(r, i);
  if (!read_parts(r, i) || !r.done() || format != kFormat)
    return fail(Code::corrupt, "BAD_INSTANCE_CELL", "a stored instance cannot be read");
  TRY(json::Value variables, json::parse(text, {.max_bytes = text.size() + 1}));
  auto kept = std::make_shared<Variables>();
  // The stored text is kept as it is: printing the object again would cost as much as parsing it.
  kept->text = text;
  kept->object = std::move(variables.object());
  i.variables = std::move(kept);
  return i;
}

// Four digits of five bits: kMaxOrdinals is 2^20.
std::string ordinal_id(std::string_view instance_id, uint32_t ordinal) {
  std::string out(instance_id);
  for (size_t k = 0; k < kOrdinalBytes; ++k, ordinal >>= 5)
    out[kIdBytes - 1 - k] = kDigits[ordinal & 31];
  return out;
}

// Any id of 26 characters whose last four are digits of base 32. Whether it exists is not known
// here.
std::optional<OrdinalId> parse_ordinal_id(std::string_view id) {
  if (id.size() != kIdBytes) return std::nullopt;
  OrdinalId out{std::string(id), 0};
  for (size_t k = kIdBytes - kOrdinalBytes; k < kIdBytes; ++k) {
    size_t digit = kDigits.find(id[k]);
    if (digit == std::string_view::npos) return std::nullopt;
    out.ordinal = out.ordinal << 5 | static_cast<uint32_t>(digit);
    out.instance_id[k] = '0';
  }
  return out;
}

std::string instance_id_from(std::string ulid) {
  for (size_t k = kIdBytes - kOrdinalBytes; k < kIdBytes; ++k)
    ulid[k] = '0';
  return ulid;
}

std::vector<std::string> current_steps(const Instance& instance, const Definition& definition) {
  std::vector<std::string> out;
  std::vector<uint32_t> seen;
  for (const Token& t : instance.tokens) {
    if (std::find(seen.begin(), seen.end(), t.step) != seen.end()) continue;
    seen.push_back(t.step);
    if (t.step < definition.steps.size()) out.push_back(step_of(instance, definition, t.step).id);
  }
  return out;
}

void append_time(std::string& out, Time t) {
  out += '"';
  out += rfc3339(t, 6);
  out += '"';
}

// Members that are not set are left out; `currentStepIds` and `variables` are always there.
std::string instance_json(const Instance& i, const Definition& d) {
  std::string out;
  out.reserve(256 + i.variables->text.size());
  out += "{\"id\":\"" + i.id + "\",\"definitionId\":\"" + i.definition_id +
         "\",\"definitionVersion\":" + std::to_string(i.version) + ",\"status\":\"";
  out.append(status_name(i.status)) += "\",\"currentStepIds\":[";
  bool first = true;
  for (const std::string& id : current_steps(i, d)) {
    if (!first) out += ',';
    json::append_string(out, id);
    first = false;
  }
  out += "],\"variables\":" + i.variables->text + ",\"startedAt\":";
  append_time(out, i.started);
  if (i.completed) append_time(out += ",\"completedAt\":", i.completed);
  // Also when empty: a cancel without a reason shows "".
  if (i.status == Status::failed || i.status == Status::cancelled)
    json::append_string(out += ",\"failureReason\":", i.failure);
  if (!i.business_key.empty()) json::append_string(out += ",\"businessKey\":", i.business_key);
  if (!i.next_id.empty()) json::append_string(out += ",\"nextInstanceId\":", i.next_id);
  if (!i.previous_id.empty()) json::append_string(out += ",\"previousInstanceId\":", i.previous_id);
  if (!i.parent_id.empty()) json::append_string(out += ",\"parentInstanceId\":", i.parent_id);
  if (i.compensating) out += ",\"compensating\":true";
  if (i.paused) out += ",\"paused\":true";
  if (i.priority) out += ",\"priority\":" + std::to_string(i.priority);
  if (!i.fairness_key.empty()) json::append_string(out += ",\"fairnessKey\":", i.fairness_key);
  return out += '}';
}

}  // namespace pawl::processes
