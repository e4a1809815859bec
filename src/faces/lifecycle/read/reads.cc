#include "faces/lifecycle/read/reads.h"

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "json/text.h"

namespace pawl::lifecycle {

static constexpr std::string_view kProgram = "lifecycle";

Result<WorkflowTypePtr> Reads::type(std::string_view tenant, std::string_view name) const {
  TRY(WorkflowTypePtr type, read_as<WorkflowType>(kernel_, type_key(tenant, name), decode_type));
  if (!type) return refuse(errc::workflow_not_registered, fmt::format("'{}'", name));
  return type;
}

Result<std::vector<WorkflowTypePtr>> Reads::types(std::string_view tenant) const {
  std::vector<WorkflowTypePtr> out;
  Result<void> decoded;
  TRY_OK(kernel_.snapshot().scan(type_prefix(tenant), [&](BytesView, const Cell& cell) {
    auto type = cell.as<WorkflowType>(decode_type);
    if (!type) {
      decoded = fail(std::move(type.error()));
      return false;
    }
    out.push_back(std::move(*type));
    return true;
  }));
  TRY_OK(decoded);
  std::sort(out.begin(), out.end(), [](const WorkflowTypePtr& a, const WorkflowTypePtr& b) {
    return a->def.name < b->def.name;
  });
  return out;
}

Result<FoundInstance> Reads::get(std::string_view tenant, std::string_view type,
                                 std::string_view id_text) const {
  TRY_OK(check_id(id_text));
  TRY(Cell cell, kernel_.read(instance_key(tenant, type, id_text)));
  if (!cell.exists()) return refuse(errc::entity_not_found, fmt::format("{} '{}'", type, id_text));
  FoundInstance out{cell.stored, std::string(id_text), cell.version, {}};
  TRY(out.stored, decode_instance(cell.value()));
  return out;
}

Result<void> check_match(const WorkflowType& type, const any_query& query) {
  if (query.match.size() > limits::kMatches)
    return refuse(errc::type_mismatch,
                  fmt::format("a list takes at most {} matches", limits::kMatches));
  for (const auto& [name, unused] : query.match)
    if (!type.def.find(name))
      return refuse(errc::unknown_field,
                    fmt::format("'{}' is not a field of {}", name, type.def.name));
  return {};
}

// `possible` is false for a value of another kind: int 3 does not match a uint32 field.
Filter::Filter(const WorkflowType& type, const any_query& query) : type_(type), query_(query) {
  for (const auto& [name, v] : query.match) {
    const auto* f = type.def.find(name);
    Match& match =
        matches_.emplace_back(Match{name, &v, f && v == lifecycle::zero(f->k), f && f->k == v.k});
    if (!match.possible || f->k != kind::json_value) continue;
    auto parsed = js::parse(std::get<json>(v.v).text);
    if (!parsed) continue;
    match.zero = parsed->is_null();
    match.tree = *std::move(parsed);
  }
  // One search over the bytes of a record rejects most of them without reading entry by entry. It
  // may hit by chance inside another value; the entries decide then.
  for (const Match& match : matches_)
    if (!match.zero && match.possible && !match.tree) {
      record::put(needle_, match.name, *match.v);
      break;
    }
  if (query.updated_after)
    after_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                 query.updated_after->time_since_epoch())
                 .count();
}

bool Filter::holds(const record::walk& at, const Match& match) {
  if (record::holds(at, *match.v)) return true;
  if (!match.tree || at.f != record::f_json) return false;
  auto stored = js::parse(at.as_text());
  return stored && js::equivalent(*stored, *match.tree);
}

Filter::Verdict Filter::test(BytesView bytes, StoredInstance& out) const {
  auto stored = decode_instance(bytes);
  if (!stored) return Verdict::unreadable;
  out = *stored;
  if (!query_.phase.empty() && out.phase != query_.phase) return Verdict::no;
  if (query_.active && type_.def.is_terminal(out.phase)) return Verdict::no;
  if (query_.updated_after && out.updated <= after_) return Verdict::no;
  if (matches_.empty()) return Verdict::yes;
  if (!needle_.empty() &&
      !memmem(out.record.data(), out.record.size(), needle_.data(), needle_.size()))
    return Verdict::no;
  // One bit per match: hence the limit of 64.
  uint64_t seen = 0;
  record::walk at(out.record);
  while (at.next())
    for (size_t i = 0; i < matches_.size(); ++i)
      if (at.name == matches_[i].name) {
        if (!matches_[i].possible || !holds(at, matches_[i])) return Verdict::no;
        seen |= uint64_t{1} << i;
      }
  if (at.bad()) return Verdict::unreadable;
  for (size_t i = 0; i < matches_.size(); ++i)
    // A field that the record lacks has its zero value.
    if (!(seen >> i & 1) && !matches_[i].zero) return Verdict::no;
  return Verdict::yes;
}

namespace {

// The rows that a list reads: those below `prefix`.
struct ScanPlan {
  Bytes prefix;
  bool holds_cells = false;  // the rows hold the cells, so no second read is needed
};

ScanPlan plan_of(std::string_view tenant, const WorkflowType& type, const any_query& query) {
  for (const auto& [name, v] : query.match) {
    const auto* f = type.def.find(name);
    bool complete = std::find(type.indexed.begin(), type.indexed.end(), name) != type.indexed.end();
    if (complete && f->k == v.k && f->k != kind::json_value)
      return {index_prefix(tenant, type.def.name, name, v)};
  }
  // The rows of a phase need a second read each. They are worth it only when the limit keeps the
  // list short; few phases are rare enough to beat a full scan.
  if (!query.phase.empty() && query.limit > 0)
    return {phase_prefix(tenant, type.def.name, query.phase)};
  return {list_prefix(tenant, type.def.name), true};
}

// Collects one page of a list from the rows of its plan.
class PageScan {
 public:
  PageScan(const ReadSnapshot& snapshot, std::string_view tenant, const WorkflowType& type,
           const any_query& query, const ScanPlan& plan)
      : snapshot_(snapshot),
        tenant_(tenant),
        type_(type),
        plan_(plan),
        filter_(type, query),
        offset_(std::max<int64_t>(0, query.offset)),
        limit_(std::max<int64_t>(0, query.limit)) {}

  // Looks at one row. Returns false when the page is full or a read has failed.
  bool visit(BytesView key, BytesView value) {
    BytesView position = key.substr(plan_.prefix.size());
    auto read = read_candidate(position, value);
    if (!read) {
      failed_ = fail(std::move(read.error()));
      return false;
    }
    if (read->bytes.empty()) return true;  // the instance was removed
    FoundInstance found;
    switch (filter_.test(read->bytes, found.stored)) {
      case Filter::Verdict::unreadable: ++page_.skipped; return true;
      case Filter::Verdict::no: return true;
      case Filter::Verdict::yes: break;
    }
    // The row's bytes are gone after this call, so a matching instance is copied. Others are not.
    if (!read->owner) {
      read->owner = std::make_shared<const Stored>(Bytes(read->bytes));
      auto stored = decode_instance(read->owner->bytes);
      CHECK(stored);
      found.stored = *stored;
    }
    found.keep = read->owner;
    found.version = read->version;
    found.id = unescaped(id_of(position));
    return add(std::move(found), position);
  }

  Result<InstanceList> finish() {
    TRY_OK(failed_);
    if (more_) page_.cursor = hex(last_);
    return std::move(page_);
  }

 private:
  struct Candidate {
    Seq version = 0;
    BytesView bytes;    // empty: there is no instance
    StoredPtr owner{};  // of the bytes; null when they belong to the row
  };

  // Behind the eight bytes of the creation time; still escaped.
  static std::string_view id_of(BytesView position) { return position.substr(8); }

  Result<Candidate> read_candidate(BytesView position, BytesView value) const {
    if (plan_.holds_cells) {
      Reader r(value);
      Seq version = r.fixed64();
      return Candidate{version, r.rest()};
    }
    TRY(Cell cell,
        snapshot_.read(instance_key(tenant_, type_.def.name, unescaped(id_of(position)))));
    if (!cell.exists()) return Candidate{};
    return Candidate{cell.version, cell.stored->bytes, cell.stored};
  }

  bool add(FoundInstance found, BytesView position) {
    if (offset_ > 0) {
      --offset_;
      return true;
    }
    if (limit_ > 0 && static_cast<int64_t>(page_.items.size()) >= limit_) {
      more_ = true;
      return false;
    }
    page_.items.push_back(std::move(found));
    last_ = position;
    return true;
  }

  const ReadSnapshot& snapshot_;
  const std::string_view tenant_;
  const WorkflowType& type_;
  const ScanPlan& plan_;
  const Filter filter_;
  int64_t offset_, limit_;
  InstanceList page_;
  Bytes last_;         // position of the last item
  bool more_ = false;  // a matching instance follows the page
  Result<void> failed_;
};

}  // namespace

Result<InstanceList> Reads::list(std::string_view tenant, const WorkflowType& type,
                                 const any_query& query) const {
  TRY_OK(check_match(type, query));
  ScanPlan plan = plan_of(tenant, type, query);
  Bytes from;
  if (!query.cursor.empty()) {
    auto position = unhex(query.cursor);
    // Eight bytes of creation time and at least one of an id. All indexes end with this position,
    // so a cursor stays valid when the filter changes.
    if (!position || position->size() < 9)
      return refuse(errc::type_mismatch, "the cursor is not one that a page gave");
    // The smallest key behind the last item of the former page.
    from = plan.prefix + *position + '\0';
  }
  ReadSnapshot snapshot = kernel_.snapshot();
  PageScan scan(snapshot, tenant, type, query, plan);
  TRY_OK(snapshot.rows(
      kProgram, plan.prefix, [&](BytesView key, BytesView value) { return scan.visit(key, value); },
      from));
  TRY(InstanceList page, scan.finish());
  // Instances that cannot be decoded have no list rows. The first page counts them.
  if (query.cursor.empty()) {
    TRY_OK(snapshot.rows(kProgram, unreadable_prefix(tenant, type.def.name),
                         [&](BytesView, BytesView) {
                           ++page.skipped;
                           return true;
                         }));
  }
  return page;
}

}  // namespace pawl::lifecycle
