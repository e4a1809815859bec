// Lists and histories, read from the rows of the view.

#include "base/letters.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/walk.h"
#include "faces/processes/service.h"
#include "kernel/frame.h"

namespace pawl::processes {

namespace {

constexpr Status kStatuses[] = {Status::active, Status::waiting, Status::completed, Status::failed,
                                Status::cancelled};

// The row prefixes of the narrowest index for the filter. A list reads all of them together.
std::vector<Bytes> sources(std::string_view tenant, const InstanceFilter& f,
                           const InstanceCounts& counts) {
  if (!f.business_key.empty()) return {rows::business_prefix(tenant, f.business_key)};
  std::vector<Bytes> out;
  for (const InstanceCounts::DefinitionCounts& line : counts.by_definition(tenant)) {
    if (!f.definition_id.empty() && line.definition_id != f.definition_id) continue;
    for (Status s : kStatuses)
      if ((!f.status || s == *f.status) && line.by_status[static_cast<size_t>(s)])
        out.push_back(rows::definition_prefix(tenant, line.definition_id, s));
  }
  return out;
}

// Up to `limit` row positions before `below`, newest first. An empty `below` begins at the newest.
Result<std::vector<Bytes>> newest_positions(const ReadSnapshot& snapshot,
                                            const std::vector<Bytes>& prefixes, BytesView below,
                                            size_t limit) {
  std::vector<Bytes> out;
  for (const Bytes& prefix : prefixes) {
    size_t taken = 0;
    Bytes from = below.empty() ? Bytes() : prefix + Bytes(below);
    // Each prefix may hold all of the newest rows, so each is read to the limit before they are
    // merged.
    TRY_OK(snapshot.rows(
        kProgram, prefix,
        [&](BytesView key, BytesView) {
          out.emplace_back(rows::position_of(key));
          return ++taken < limit;
        },
        from, true));
  }
  if (prefixes.size() > 1) std::sort(out.begin(), out.end(), std::greater<>());
  if (out.size() > limit) out.resize(limit);
  return out;
}

// "customer.address.city"
const json::Value* find_path(const json::Object& variables, std::string_view path) {
  size_t dot = path.find('.');
  const json::Value* at = variables.find(path.substr(0, dot));
  while (at && dot != std::string_view::npos) {
    path.remove_prefix(dot + 1);
    dot = path.find('.');
    at = at->find(path.substr(0, dot));
  }
  return at;
}

}  // namespace

// Reads all heads of the tenant: their number is that of definitions, not of instances.
Result<std::pair<std::vector<Service::DefinitionSummary>, size_t>> Service::definitions(
    std::string_view tenant, std::string_view keyword, size_t page, size_t size) const {
  std::vector<DefinitionSummary> out;
  size_t total = 0;
  Result<void> decoded;
  // The product cannot overflow.
  size_t skip = page > kMaxVisited ? SIZE_MAX : page * size;
  std::string wanted = lower_case(keyword);
  TRY_OK(kernel_.snapshot().scan(head_prefix(tenant), [&](BytesView key, const Cell& cell) {
    auto head = cell.as<DefinitionHead>(decode_head);
    if (!head) {
      decoded = fail(std::move(head.error()));
      return false;
    }
    std::string id = parts_of(key).back();
    const auto& versions = (*head)->versions;
    if ((*head)->deleted) return true;
    // The active version, or the latest one before it whose name matches. When the id matches,
    // every version does.
    size_t version = (*head)->current();
    if (!lower_case(id).contains(wanted))
      while (version > 0 && !lower_case(versions[version - 1].name).contains(wanted))
        --version;
    if (version == 0) return true;
    if (total++ >= skip && out.size() < size)
      out.push_back({id, versions[version - 1].name, static_cast<uint32_t>(version),
                     versions[version - 1].uploaded});
    return true;
  }));
  TRY_OK(decoded);
  return std::pair(std::move(out), total);
}

bool Service::fits(std::string_view tenant, const Instance& i, const InstanceFilter& f) const {
  if (!f.definition_id.empty() && i.definition_id != f.definition_id) return false;
  if (f.status && i.status != *f.status) return false;
  if (!f.business_key.empty() && i.business_key != f.business_key) return false;
  if (i.started < f.started_from || i.started > f.started_to || i.updated < f.updated_from ||
      i.updated > f.updated_to)
    return false;
  if (f.paused && i.paused != *f.paused) return false;
  if (!f.parent_id.empty() && i.parent_id != f.parent_id) return false;
  for (const auto& [path, want] : f.variables) {
    const json::Value* got = find_path(i.variables->object, path);
    if (!got || !json::equivalent(*got, want)) return false;
  }
  if (f.step.empty()) return true;
  auto definition = this->definition(tenant, i.definition_id, i.version);
  if (!definition) return false;
  std::vector<std::string> steps = current_steps(i, **definition);
  return std::find(steps.begin(), steps.end(), f.step) != steps.end();
}

static std::unexpected<Error> page_too_large() {
  return fail(Code::too_large, "PAGE_TOO_LARGE",
              "the instances of this page have more than " + std::to_string(kListBytes) +
                  " bytes of variables: ask for a smaller pageSize");
}

// By page number, for the public API. Newest first.
Result<InstancePage> Service::instances(std::string_view tenant, const InstanceFilter& filter,
                                        size_t page, size_t size) const {
  InstancePage out;
  // Definition and status have totals in memory; a business key has not.
  bool counted = filter.business_key.empty();
  if (counted) out.total = counts_.total(tenant, filter.definition_id, filter.status);
  size_t skip = page * size;
  if (counted && skip >= out.total) return out;
  ReadSnapshot snapshot = kernel_.snapshot();
  // A business key has few instances: all of them are read and counted.
  TRY(std::vector<Bytes> found, newest_positions(snapshot, sources(tenant, filter, counts_), {},
                                                 counted ? skip + size : kMaxVisited));
  // Nothing is left to test: instances before the page need not be read.
  bool all_fit = counted || (filter.definition_id.empty() && !filter.status);
  if (all_fit && !counted) out.total = found.size();
  size_t seen = 0, bytes = 0;
  for (const Bytes& position : found) {
    bool shown = seen >= skip && out.items.size() < size;
    if (all_fit && !shown) {
      ++seen;
      continue;
    }
    auto one = instance(tenant, rows::instance_of(position));
    // Deleted since the rows were read.
    if (!one && one.error().code == Code::not_found) continue;
    if (!one) return std::unexpected(std::move(one.error()));
    if (!all_fit && !fits(tenant, **one, filter)) continue;
    if (!all_fit) ++out.total;
    if (shown) {
      bytes += (*one)->variables->text.size();
      if (bytes > kListBytes) return page_too_large();
      out.items.push_back(std::move(*one));
    }
    ++seen;
  }
  return out;
}

// By cursor, for operators, with filters that no index serves. Stops after kMaxVisited instances:
// the cursor then goes on from there, and the page may be short.
Result<Service::FoundInstances> Service::find(std::string_view tenant, const InstanceFilter& filter,
                                              std::string_view cursor, size_t limit) const {
  // Rows per read; the filter is tested on each instance.
  constexpr size_t chunk = 512;
  FoundInstances out;
  size_t bytes = 0;
  ReadSnapshot snapshot = kernel_.snapshot();
  std::vector<Bytes> prefixes = sources(tenant, filter, counts_);
  Bytes below(cursor);
  // Rows are ordered by the start, so the scan begins there and ends at started_from.
  if (below.empty() && filter.started_to != INT64_MAX)
    below = ordered64(static_cast<uint64_t>(filter.started_to) + 1);
  for (size_t visited = 0; visited < kMaxVisited;) {
    TRY(std::vector<Bytes> found, newest_positions(snapshot, prefixes, below, chunk));
    for (const Bytes& position : found) {
      if (out.items.size() == limit || bytes > kListBytes) return out;
      ++visited;
      below = position;
      auto one = instance(tenant, rows::instance_of(position));
      if (!one && one.error().code == Code::not_found) continue;
      if (!one) return std::unexpected(std::move(one.error()));
      if ((*one)->started < filter.started_from) {
        out.cursor.clear();
        return out;
      }
      if (fits(tenant, **one, filter)) {
        bytes += (*one)->variables->text.size();
        out.items.push_back(std::move(*one));
      }
      out.cursor = below;
    }
    if (found.size() < chunk) {
      out.cursor.clear();
      return out;
    }
  }
  return out;
}

Result<std::vector<Event>> Service::events(std::string_view tenant,
                                           std::string_view instance_id) const {
  // Tells an unknown instance (404) from one without events.
  TRY_OK(instance(tenant, instance_id));
  std::vector<Event> out;
  Result<void> decoded;
  auto visit = [&](BytesView key, BytesView value) {
    Reader r(value);
    Event e;
    e.seq = rows::history_seq(key);
    e.at = r.sint();
    auto note = decode_note_tail(r.rest());
    if (!note) {
      decoded = fail(std::move(note.error()));
      return false;
    }
    e.note = std::move(*note);
    e.note.instance_id = instance_id;
    out.push_back(std::move(e));
    return true;
  };
  TRY_OK(kernel_.snapshot().rows(kProgram, rows::history_prefix(tenant, instance_id), visit));
  TRY_OK(decoded);
  return out;
}

// Executions in the order in which they began. An end without its beginning is ignored.
Result<std::vector<ExecutionRow>> Service::history(std::string_view tenant,
                                                   std::string_view instance_id) const {
  TRY(std::vector<Event> events, this->events(tenant, instance_id));
  std::vector<ExecutionRow> out;
  std::unordered_map<uint32_t, size_t> by_ordinal;
  for (const Event& e : events)
    for (const Fact& f : e.note.facts) {
      if (f.kind == Fact::Kind::entered) {
        by_ordinal[f.ordinal] = out.size();
        out.push_back({f.ordinal, f.step, f.step_kind, f.attempt, Execution::running, e.at, 0, {}});
      } else if (auto it = by_ordinal.find(f.ordinal);
                 f.kind == Fact::Kind::ended && it != by_ordinal.end()) {
        ExecutionRow& row = out[it->second];
        row.status = f.status;
        row.ended = e.at;
        row.reason = f.text;
      }
    }
  return out;
}

Result<Instance> Service::state_at(std::string_view tenant, std::string_view instance_id,
                                   Seq seq) const {
  Key key = instance_key(tenant, instance_id);
  std::optional<Result<Instance>> found;
  // One frame is visited: the one of this seq.
  TRY_OK(kernel_.frames(seq, [&](const Frame& frame) -> Result<bool> {
    if (frame.seq == seq)
      for (const Frame::Write& w : frame.writes)
        if (w.key == key && w.value) found = decode_instance(w.value->bytes);
    return false;
  }));
  if (!found)
    return fail(
        Code::not_found, "NO_EVENT",
        "instance \"" + std::string(instance_id) + "\" has no event " + std::to_string(seq));
  return std::move(*found);
}

Result<std::vector<UserTask>> Service::tasks(std::string_view tenant, const UserTask& like,
                                             std::string_view cursor, size_t limit,
                                             std::string* next) const {
  std::vector<UserTask> out;
  auto fits = [](const std::string& wanted, const std::string& got) {
    return wanted.empty() || wanted == got;
  };
  Bytes prefix = rows::task_prefix(tenant);
  Bytes from = cursor.empty() ? Bytes() : prefix + Bytes(cursor) + '\0';
  bool more = false;
  TRY_OK(kernel_.snapshot().rows(
      kProgram, prefix,
      [&](BytesView key, BytesView value) {
        auto task = decode_user_task(value);
        if (task && fits(like.definition_id, task->definition_id) &&
            fits(like.business_key, task->business_key) && fits(like.form, task->form)) {
          if (out.size() == limit) {
            more = true;
            return false;
          }
          *next = key.substr(prefix.size());
          out.push_back(std::move(*task));
        }
        return true;
      },
      from));
  if (!more) next->clear();
  return out;
}

Result<std::vector<std::pair<std::string, KeptSignal>>> Service::kept_signals(
    std::string_view tenant, const KeptSignal& like, std::string_view cursor, size_t limit,
    std::string* next) const {
  std::vector<std::pair<std::string, KeptSignal>> out;
  Result<void> decoded;
  size_t visited = 0, bytes = 0;
  auto visit = [&](BytesView key, const Cell& cell) {
    std::string id = parts_of(key).back();
    if (id <= cursor) return true;
    auto signal = decode_kept_signal(cell.value());
    if (!signal) {
      decoded = fail(std::move(signal.error()));
      return false;
    }
    *next = id;
    bytes += signal->variables.size();
    bool fits = (like.name.empty() || like.name == signal->name) &&
                (like.key.empty() || like.key == signal->key);
    if (fits) out.emplace_back(std::move(id), std::move(*signal));
    return ++visited < kMaxVisited && out.size() < limit && bytes < kListBytes;
  };
  Key prefix = kept_signal_prefix(tenant);
  TRY_OK(kernel_.snapshot().scan(prefix, visit, prefix + std::string(cursor)));
  TRY_OK(decoded);
  // The scan came to its end.
  if (visited < kMaxVisited && out.size() < limit && bytes < kListBytes) next->clear();
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> Service::paused_types(
    std::string_view tenant) const {
  std::vector<std::pair<std::string, std::string>> out;
  TRY_OK(kernel_.snapshot().scan(paused_prefix() + std::string(tenant) + std::string(1, 0),
                                 [&](BytesView key, const Cell& cell) {
                                   out.emplace_back(parts_of(key).back(),
                                                    std::string(cell.value()));
                                   return true;
                                 }));
  return out;
}

}  // namespace pawl::processes
