#include "faces/lifecycle/type/values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "json/text.h"

namespace pawl::lifecycle {

// "field 'n' takes a uint8 from 0 to 255, not 300"
static std::unexpected<Error> mismatch(std::string_view field, kind k, std::string_view got) {
  const kind_row& row = row_of(k);
  std::string range =
      row.is_signed || row.is_unsigned ? fmt::format(" from {} to {}", row.min, row.max) : "";
  // The caller's value may be a megabyte.
  std::string shown(got.substr(0, 60));
  return refuse(errc::type_mismatch,
                fmt::format("field '{}' takes a {}{}, not {}", field, row.name, range, shown));
}

value zero(kind k) {
  value out;
  out.k = k;
  switch (record::form_of(k)) {
    case record::f_string: out.v = std::string(); break;
    case record::f_bool: out.v = false; break;
    case record::f_signed: out.v = int64_t{0}; break;
    case record::f_unsigned: out.v = uint64_t{0}; break;
    case record::f_real: out.v = 0.0; break;
    case record::f_list: out.v = std::vector<std::string>(); break;
    case record::f_json: out.v = json{}; break;
  }
  return out;
}

// Zero values of omitempty fields are not shown.
static bool is_zero(const value& v) { return v == zero(v.k); }

static Result<value> coerce_list(std::string_view field, const js::Value& from) {
  if (!from.is_array()) return mismatch(field, kind::string_list, js::print(from));
  std::vector<std::string> list;
  for (const js::Value& one : from.array()) {
    if (!one.is_string()) return mismatch(field, kind::string_list, js::print(from));
    list.push_back(one.string());
  }
  return value(std::move(list));
}

Result<value> coerce(std::string_view field, kind k, const js::Value& from) {
  if (from.is_null()) return zero(k);
  const kind_row& row = row_of(k);
  value out;
  out.k = k;
  if (row.is_signed) {
    auto n = from.is_number() ? from.as_int64() : std::nullopt;
    // `max` is unsigned, because one table serves signed and unsigned kinds.
    if (!n || *n < row.min || (*n > 0 && static_cast<uint64_t>(*n) > row.max))
      return mismatch(field, k, js::print(from));
    out.v = *n;
    return out;
  }
  if (row.is_unsigned) {
    auto n = from.is_number() ? from.as_uint64() : std::nullopt;
    if (!n || *n > row.max) return mismatch(field, k, js::print(from));
    out.v = *n;
    return out;
  }
  switch (k) {
    case kind::boolean:
      if (!from.is_bool()) return mismatch(field, k, js::print(from));
      return value(from.boolean());
    case kind::real:
      if (!from.is_number() || !std::isfinite(from.as_double()))
        return mismatch(field, k, js::print(from));
      return value(from.as_double());
    case kind::string_list: return coerce_list(field, from);
    case kind::json_value: return value(json{js::print(from)});
    default:
      if (!from.is_string()) return mismatch(field, k, js::print(from));
      return value(from.string());
  }
}

Result<value> coerce_text(std::string_view field, kind k, std::string_view text) {
  // Before the parse: match.name=5 on a string field means the text "5".
  if (k == kind::string) return value(text);
  if (text.empty()) return zero(k);
  auto parsed = js::parse(text);
  if (!parsed) return mismatch(field, k, js::quote(text));
  return coerce(field, k, *parsed);
}

js::Value to_json(const value& v) {
  switch (record::form_of(v.k)) {
    case record::f_string: return as_utf8(std::get<std::string>(v.v));
    case record::f_bool: return std::get<bool>(v.v);
    case record::f_signed: return std::get<int64_t>(v.v);
    case record::f_unsigned: return std::get<uint64_t>(v.v);
    case record::f_real: return std::get<double>(v.v);
    case record::f_list: {
      js::Array out;
      for (const std::string& s : std::get<std::vector<std::string>>(v.v))
        out.emplace_back(as_utf8(s));
      return out;
    }
    case record::f_json: {
      auto parsed = js::parse(std::get<json>(v.v).text);
      return parsed ? std::move(*parsed) : js::Value();
    }
  }
  return {};
}

// A value may have been stored by an earlier version of the type, with another kind or range.
std::optional<value> read_entry(const record::walk& at, kind k) {
  if (at.f != record::form_of(k)) return std::nullopt;
  const kind_row& row = row_of(k);
  value out;
  out.k = k;
  switch (at.f) {
    case record::f_string: out.v = std::string(at.as_text()); break;
    case record::f_bool: out.v = at.as_bool(); break;
    case record::f_signed: {
      int64_t n = at.as_signed();
      if (n < row.min || (n > 0 && static_cast<uint64_t>(n) > row.max)) return std::nullopt;
      out.v = n;
      break;
    }
    case record::f_unsigned: {
      uint64_t n = at.as_unsigned();
      if (n > row.max) return std::nullopt;
      out.v = n;
      break;
    }
    case record::f_real: out.v = at.as_real(); break;
    case record::f_list: out.v = at.as_list(); break;
    case record::f_json: out.v = json{std::string(at.as_text())}; break;
  }
  return out;
}

std::optional<value> read_field(std::string_view bytes, const dynamic_type::field_def& f) {
  record::walk at(bytes);
  while (at.next())
    if (at.name == f.name) return read_entry(at, f.k);
  return zero(f.k);
}

std::string_view text_field(std::string_view bytes, std::string_view name) {
  record::walk at(bytes);
  while (at.next())
    if (at.name == name) return at.f == record::f_string ? at.as_text() : std::string_view();
  return {};
}

std::string with_fields(std::string_view bytes, const FieldValues& sets) {
  std::string out;
  out.reserve(bytes.size() + 64);
  std::vector<bool> done(sets.size());
  record::walk at(bytes);
  while (at.next()) {
    size_t i = 0;
    while (i < sets.size() && sets[i].first != at.name)
      ++i;
    if (i == sets.size()) {
      out.append(at.entry);
      continue;
    }
    // A field keeps its place in the record. A repeated entry, which no writer makes, is dropped.
    if (!done[i]) record::put(out, at.name, sets[i].second);
    done[i] = true;
  }
  for (size_t i = 0; i < sets.size(); ++i)
    if (!done[i]) record::put(out, sets[i].first, sets[i].second);
  return out;
}

std::string with_unlisted(std::string_view bytes, std::string_view before,
                          const dynamic_type& def) {
  std::string out(bytes);
  auto has_entry = [&](std::string_view name) {
    record::walk at(bytes);
    while (at.next())
      if (at.name == name) return true;
    return false;
  };
  record::walk at(before);
  for (size_t i = 0; at.next(); ++i) {
    // Records have their fields in the order of the type, so this saves the search for nearly all
    // of them.
    bool in_place = i < def.fields.size() && def.fields[i].name == at.name;
    if (!in_place && !def.find(at.name) && !has_entry(at.name)) out.append(at.entry);
  }
  return out;
}

Result<std::string> record_of(const WorkflowType& type, std::string_view id_text,
                              const js::Value& body) {
  if (!body.is_object()) return refuse(errc::type_mismatch, "the body must be an object of fields");
  for (const auto& [name, member] : body.object())
    if (!type.def.find(name))
      return refuse(errc::unknown_field,
                    fmt::format("'{}' is not a field of {}", name, type.def.name));
  std::string out;
  for (const auto& f : type.def.fields) {
    const js::Value* member = body.find(f.name);
    // A missing member is null, which is the zero value: every field is in the record.
    TRY(value v, coerce(f.name, f.k, member ? *member : js::Value()));
    if (f.name == type.id_field) {
      if (member && !member->is_null() && std::get<std::string>(v.v) != id_text)
        return refuse(errc::bad_id,
                      fmt::format("the body's {} is not the id '{}' of the path", f.name, id_text));
      v = value(id_text);
    }
    record::put(out, f.name, v);
  }
  return out;
}

bool append_state(std::string& out, const dynamic_type& def, std::string_view bytes) {
  // Positions inside `bytes`, one per entry: fields are shown in the order of the type, and are
  // nearly always stored in that order too.
  std::vector<record::walk> entries;
  entries.reserve(def.fields.size());
  record::walk at(bytes);
  while (at.next())
    entries.push_back(at);
  if (at.bad()) return false;
  out.push_back('{');
  bool first = true;
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const auto& f = def.fields[i];
    const record::walk* entry =
        i < entries.size() && entries[i].name == f.name ? &entries[i] : nullptr;
    for (size_t j = 0; !entry && j < entries.size(); ++j)
      if (entries[j].name == f.name) entry = &entries[j];
    std::optional<value> v = entry ? read_entry(*entry, f.k) : zero(f.k);
    if (!v) return false;
    if (has(f.t, omitempty) && is_zero(*v)) continue;
    if (!first) out.push_back(',');
    first = false;
    js::append_string(out, f.name);
    out.push_back(':');
    // A C++ program may have stored bytes that are not UTF-8; append_string makes them valid JSON.
    if (f.k == kind::string)
      js::append_string(out, std::get<std::string>(v->v));
    else
      js::append(out, to_json(*v));
  }
  out.push_back('}');
  return true;
}

}  // namespace pawl::lifecycle
