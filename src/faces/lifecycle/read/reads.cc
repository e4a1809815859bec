#include "faces/lifecycle/read/reads.h"

#include <fmt/format.h>

#include "faces/lifecycle/limits.h"
#include "json/text.h"

namespace pawl::lifecycle {

static constexpr std::string_view kProgram = "lifecycle";

Result<TypePtr> Reads::type(std::string_view tenant, std::string_view name) const {
  TRY(TypePtr type, read_as<Type>(kernel_, type_key(tenant, name), decode_type));
  if (!type) return refuse(errc::workflow_not_registered, fmt::format("'{}'", name));
  return type;
}

Result<std::vector<TypePtr>> Reads::types(std::string_view tenant) const {
  std::vector<TypePtr> out;
  Result<void> decoded;
  TRY_OK(kernel_.snapshot().scan(type_prefix(tenant), [&](BytesView, const Cell& cell) {
    auto type = cell.as<Type>(decode_type);
    if (!type) return decoded = fail(std::move(type.error())), false;
    out.push_back(std::move(*type));
    return true;
  }));
  TRY_OK(decoded);
  std::sort(out.begin(), out.end(),
            [](const TypePtr& a, const TypePtr& b) { return a->def.name < b->def.name; });
  return out;
}

Result<Found> Reads::get(std::string_view tenant, std::string_view type,
                         std::string_view id_text) const {
  TRY_OK(check_id(id_text));
  TRY(Cell cell, kernel_.read(instance_key(tenant, type, id_text)));
  if (!cell.exists()) return refuse(errc::entity_not_found, fmt::format("{} '{}'", type, id_text));
  Found out{cell.stored, std::string(id_text), cell.version, {}};
  TRY(out.held, parse_held(cell.value()));
  return out;
}

Result<void> check_match(const Type& type, const any_query& query) {
  if (query.match.size() > limits::kMatches)
    return refuse(errc::type_mismatch,
                  fmt::format("a list takes at most {} matches", limits::kMatches));
  for (const auto& [name, unused] : query.match)
    if (!type.def.find(name))
      return refuse(errc::unknown_field,
                    fmt::format("'{}' is not a field of {}", name, type.def.name));
  return {};
}

Filter::Filter(const Type& type, const any_query& query) : type_(type), query_(query) {
  for (const auto& [name, v] : query.match) {
    const auto* f = type.def.find(name);
    wants_.push_back({name, &v, f && v == lifecycle::zero(f->k), f && f->k == v.k});
    if (!wants_.back().possible || f->k != kind::json_value) continue;
    auto parsed = js::parse(std::get<json>(v.v).text);
    if (!parsed) continue;
    wants_.back().zero = parsed->is_null();
    wants_.back().tree = *std::move(parsed);
  }
  for (const Want& want : wants_)
    if (!want.zero && want.possible && !want.tree) {
      record::put(needle_, want.name, *want.v);
      break;
    }
  if (query.updated_after)
    after_ = std::chrono::duration_cast<std::chrono::nanoseconds>(
                 query.updated_after->time_since_epoch())
                 .count();
}

bool Filter::holds(const record::walk& at, const Want& want) {
  if (record::holds(at, *want.v)) return true;
  if (!want.tree || at.f != record::f_json) return false;
  auto stored = js::parse(at.as_text());
  return stored && js::equivalent(*stored, *want.tree);
}

Filter::Verdict Filter::test(BytesView bytes, Held& out) const {
  auto held = parse_held(bytes);
  if (!held) return Verdict::unreadable;
  out = *held;
  if (!query_.phase.empty() && out.phase != query_.phase) return Verdict::no;
  if (query_.active && type_.def.is_terminal(out.phase)) return Verdict::no;
  if (query_.updated_after && out.updated <= after_) return Verdict::no;
  if (wants_.empty()) return Verdict::yes;
  if (!needle_.empty() &&
      !memmem(out.record.data(), out.record.size(), needle_.data(), needle_.size()))
    return Verdict::no;
  uint64_t seen = 0;
  record::walk at(out.record);
  while (at.next())
    for (size_t i = 0; i < wants_.size(); ++i)
      if (at.name == wants_[i].name) {
        if (!wants_[i].possible || !holds(at, wants_[i])) return Verdict::no;
        seen |= uint64_t{1} << i;
      }
  if (at.bad()) return Verdict::unreadable;
  for (size_t i = 0; i < wants_.size(); ++i)
    if (!(seen >> i & 1) && !wants_[i].zero) return Verdict::no;
  return Verdict::yes;
}

namespace {

// Where a list begins to look: rows below `prefix`; `whole` when they hold the cells themselves.
struct Plan {
  Bytes prefix;
  bool whole = false;
};

Plan plan_of(std::string_view tenant, const Type& type, const any_query& query) {
  for (const auto& [name, v] : query.match) {
    const auto* f = type.def.find(name);
    bool trusted = std::find(type.indexed.begin(), type.indexed.end(), name) != type.indexed.end();
    if (trusted && f->k == v.k && f->k != kind::json_value)
      return {index_prefix(tenant, type.def.name, name, v)};
  }
  // Few phases are rare enough to beat a scan, and a scan needs no second read a row.
  if (!query.phase.empty() && query.limit > 0)
    return {phase_prefix(tenant, type.def.name, query.phase)};
  return {list_prefix(tenant, type.def.name), true};
}

// Counts offset and limit down over what passed the filter.
class Paging {
 public:
  explicit Paging(const any_query& query)
      : offset_(std::max<int64_t>(0, query.offset)), limit_(std::max<int64_t>(0, query.limit)) {}
  // False: the page is full and `more` says that something came after it.
  bool add(Listed& out, Found found) {
    if (offset_ > 0) return --offset_, true;
    if (limit_ > 0 && static_cast<int64_t>(out.items.size()) >= limit_) return more = true, false;
    out.items.push_back(std::move(found));
    return true;
  }
  bool more = false;

 private:
  int64_t offset_, limit_;
};

}  // namespace

Result<Listed> Reads::list(std::string_view tenant, const Type& type,
                           const any_query& query) const {
  TRY_OK(check_match(type, query));
  Plan plan = plan_of(tenant, type, query);
  Bytes from;
  if (!query.cursor.empty()) {
    auto place_bytes = unhex(query.cursor);
    if (!place_bytes || place_bytes->size() < 9)
      return refuse(errc::type_mismatch, "the cursor is not one that a page gave");
    from = plan.prefix + *place_bytes + '\0';
  }
  Filter filter(type, query);
  Paging paging(query);
  Listed out;
  Bytes last;
  ReadSnapshot snapshot = kernel_.snapshot();
  Result<void> failed;
  TRY_OK(snapshot.rows(
      kProgram, plan.prefix,
      [&](BytesView key, BytesView value) {
        BytesView place_bytes = key.substr(plan.prefix.size());
        std::string_view escaped = place_bytes.substr(8);
        Found found;
        StoredPtr stored;
        if (!plan.whole) {
          auto cell = snapshot.read(instance_key(tenant, type.def.name, unescaped(escaped)));
          if (!cell) return failed = fail(std::move(cell.error())), false;
          if (!cell->exists()) return true;
          found.version = cell->version;
          stored = cell->stored;
          value = stored->bytes;
        } else {
          Reader r(value);
          found.version = r.fixed64();
          value = r.rest();
        }
        auto verdict = filter.test(value, found.held);
        if (verdict == Filter::Verdict::unreadable) return ++out.skipped, true;
        if (verdict == Filter::Verdict::no) return true;
        if (!stored) {
          stored = std::make_shared<const Stored>(Bytes(value));
          auto held = parse_held(stored->bytes);
          CHECK(held);
          found.held = *held;
        }
        found.keep = stored;
        found.id = unescaped(escaped);
        size_t before = out.items.size();
        bool go = paging.add(out, std::move(found));
        if (out.items.size() > before) last = place_bytes;
        return go;
      },
      from));
  TRY_OK(failed);
  if (paging.more) out.cursor = hex(last);
  if (query.cursor.empty()) {
    TRY_OK(snapshot.rows(kProgram, unreadable_prefix(tenant, type.def.name),
                         [&](BytesView, BytesView) { return ++out.skipped, true; }));
  }
  return out;
}

}  // namespace pawl::lifecycle
