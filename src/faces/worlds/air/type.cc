#include "faces/worlds/air/type.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "cbor/cbor.h"
#include "faces/worlds/air/name.h"

namespace pawl::worlds {
namespace {

// The depth of nested types is limited, so that a document cannot overflow the stack.
constexpr size_t kTypeDepth = 64;

struct Row {
  std::string_view name;
  Form form;
};
// In the order of Form: name_of() indexes it.
constexpr std::array<Row, 18> kForms{{
    {"bool", Form::boolean},
    {"int", Form::integer},
    {"nat", Form::nat},
    {"dec128", Form::dec128},
    {"bytes", Form::bytes},
    {"text", Form::text},
    {"time", Form::time},
    {"duration", Form::duration},
    {"hash", Form::hash},
    {"uuid", Form::uuid},
    {"unit", Form::unit},
    {"record", Form::record},
    {"variant", Form::variant},
    {"list", Form::list},
    {"set", Form::set},
    {"map", Form::map},
    {"option", Form::option},
    {"ref", Form::ref},
}};

std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "manifest.error", "bad type: " + std::move(why));
}

Result<TypePtr> parse(const json::Value& type, size_t depth);

Result<void> parse_fields(Type& out, const json::Value& body, size_t depth) {
  if (!body.is_object())
    return bad(std::string(name_of(out.form)) + " wants an object of names and types");
  for (const auto& [name, value] : body.object()) {
    // A field cannot have this name.
    if (name == "$comment") continue;
    TRY(TypePtr inner, parse(value, depth + 1));
    out.fields.push_back({name, std::move(inner), cbor::encode(cbor::Value(name))});
  }
  // By name, so that find() can search in halves. Canonical CBOR puts shorter names first, which is
  // a second order; it is worked out once here and not for every value.
  std::sort(out.fields.begin(), out.fields.end(),
            [](const Field& a, const Field& b) { return a.name < b.name; });
  out.canonical.resize(out.fields.size());
  std::iota(out.canonical.begin(), out.canonical.end(), 0);
  std::sort(out.canonical.begin(), out.canonical.end(), [&](uint32_t a, uint32_t b) {
    return cbor::key_before(out.fields[a].encoded, out.fields[b].encoded);
  });
  return {};
}

Result<void> parse_map(Type& out, const json::Value& body, size_t depth) {
  const json::Value* key = body.find("key");
  const json::Value* value = body.find("value");
  if (!key || !value) return bad("map wants {\"key\": type, \"value\": type}");
  TRY(out.key, parse(*key, depth + 1));
  TRY(out.item, parse(*value, depth + 1));
  switch (out.key->form) {
    case Form::integer:
    case Form::nat:
    case Form::text:
    case Form::uuid:
    case Form::hash: return {};
    default:
      return bad("a map key is int, nat, text, uuid or hash, not " +
                 std::string(name_of(out.key->form)));
  }
}

// `depth` counts nested objects in this text. References are counted later, by refuse_recursion().
Result<TypePtr> parse(const json::Value& type, size_t depth) {
  if (depth > kTypeDepth) return bad("nested deeper than " + std::to_string(kTypeDepth));
  if (!type.is_object()) return bad("a type is an object with one key");
  const json::Member* only = nullptr;
  for (const json::Member& m : type.object()) {
    if (m.name == "$comment") continue;
    if (only)
      return bad("a type has exactly one key, found '" + only->name + "' and '" + m.name + "'");
    only = &m;
  }
  if (!only) return bad("a type is an object with one key");
  auto row = std::find_if(kForms.begin(), kForms.end(),
                          [&](const Row& r) { return r.name == only->name; });
  if (row == kForms.end())
    return bad("'" + only->name +
               "' is none of bool, int, nat, dec128, bytes, text, time, duration, hash, uuid, "
               "unit, record, variant, list, set, map, option, ref");
  auto out = std::make_shared<Type>();
  out->form = row->form;
  switch (row->form) {
    case Form::record:
    case Form::variant: TRY_OK(parse_fields(*out, only->value, depth)); break;
    case Form::list:
    case Form::set:
    case Form::option: {
      TRY(out->item, parse(only->value, depth + 1));
      break;
    }
    case Form::map: TRY_OK(parse_map(*out, only->value, depth)); break;
    case Form::ref:
      if (!only->value.is_string() || !is_name(only->value.string()))
        return bad("a ref names a schema as ns/Name@1");
      out->ref = only->value.string();
      break;
    default:
      if (!only->value.is_object()) return bad(only->name + " wants {}");
  }
  return TypePtr(std::move(out));
}

}  // namespace

std::string_view name_of(Form form) { return kForms[static_cast<size_t>(form)].name; }

const Field* Type::find(std::string_view name) const {
  auto it = std::lower_bound(fields.begin(), fields.end(), name,
                             [](const Field& f, std::string_view n) { return f.name < n; });
  return it != fields.end() && it->name == name ? &*it : nullptr;
}

Result<TypePtr> parse_type(const json::Value& type) { return parse(type, 0); }

// The inverse of parse(), without comments.
cbor::Value to_value(const Type& type) {
  cbor::Value body{cbor::Map{}};
  switch (type.form) {
    case Form::record:
    case Form::variant:
      for (const Field& f : type.fields)
        body.map().emplace_back(f.name, to_value(*f.type));
      break;
    case Form::list:
    case Form::set:
    case Form::option: body = to_value(*type.item); break;
    case Form::map:
      body = cbor::Map{{"key", to_value(*type.key)}, {"value", to_value(*type.item)}};
      break;
    case Form::ref: body = type.ref; break;
    default: break;
  }
  return cbor::Map{{name_of(type.form), std::move(body)}};
}

TypePtr Schemas::find(std::string_view name) const {
  auto it = types_.find(name);
  if (it != types_.end()) return it->second.type;
  return below_ ? below_->find(name) : nullptr;
}

Result<const Type*> Schemas::resolve(const Type& type) const {
  const Type* at = &type;
  for (size_t hops = 0; at->form == Form::ref; ++hops) {
    // Only a chain of aliases can be long here: refuse_recursion() bounds it for loaded manifests,
    // and this bound serves types that were not checked.
    if (hops > kTypeDepth)
      return fail(Code::invalid, "SCHEMA_CYCLE", "schema '" + type.ref + "' refers to itself");
    TypePtr next = find(at->ref);
    if (!next) return fail(Code::invalid, kSchemaNotFound, "schema '" + at->ref + "' not found");
    at = next.get();  // owned by the table
  }
  return at;
}

Result<void> Schemas::refuse_recursion(std::string_view name, Depths& known) const {
  TypePtr type = find(name);
  if (!type || known.contains(name)) return {};
  std::vector<std::string> path{std::string(name)};
  TRY(size_t depth, depth_of(*type, path, known));
  known.emplace(name, depth);
  return {};
}

// Each named type is visited once, however many paths lead to it.
Result<size_t> Schemas::depth_of(const Type& type, std::vector<std::string>& path,
                                 Depths& known) const {
  if (type.form == Form::ref) {
    if (std::find(path.begin(), path.end(), type.ref) != path.end())
      return fail(Code::invalid, "manifest.validation",
                  "manifest validation error: schema '" + type.ref +
                      "' is recursive: a type may not hold itself");
    // An unknown name ends the walk: what uses the schema reports it with a better message.
    TypePtr next = find(type.ref);
    if (!next) return size_t{0};
    auto before = known.find(type.ref);
    size_t depth = before == known.end() ? 0 : before->second;
    if (path.size() + depth > kTypeDepth)
      return fail(Code::invalid, "manifest.validation",
                  "manifest validation error: schema '" + path.front() + "' refers further than " +
                      std::to_string(kTypeDepth) + " schemas deep");
    if (before != known.end()) return depth + 1;
    path.push_back(type.ref);
    TRY(depth, depth_of(*next, path, known));
    path.pop_back();
    known.emplace(type.ref, depth);
    return depth + 1;
  }
  size_t deepest = 0;
  for (const Field& f : type.fields) {
    TRY(size_t depth, depth_of(*f.type, path, known));
    deepest = std::max(deepest, depth);
  }
  if (type.item) {
    TRY(size_t depth, depth_of(*type.item, path, known));
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

// Each named type is visited once.
bool Schemas::leads_to_hash(const Type& type, Known& known) const {
  if (type.form == Form::hash) return true;
  if (type.form == Form::ref) {
    auto own = types_.find(type.ref);
    if (own == types_.end()) return below_ && below_->can_hold_hash(type.ref);
    // Inserted as false first, so that a type that refers to itself ends the walk.
    auto [seen, fresh] = known.emplace(type.ref, false);
    if (fresh) seen->second = leads_to_hash(*own->second.type, known);
    return seen->second;
  }
  auto leads = [&](const TypePtr& inner) { return inner && leads_to_hash(*inner, known); };
  return leads(type.key) || leads(type.item) ||
         std::any_of(type.fields.begin(), type.fields.end(),
                     [&](const Field& f) { return leads(f.type); });
}

void Schemas::find_hashes() {
  Known known;
  for (auto& [name, one] : types_)
    one.hashes = leads_to_hash(*one.type, known);
}

bool Schemas::can_hold_hash(std::string_view name) const {
  auto it = types_.find(name);
  if (it != types_.end()) return it->second.hashes;
  return below_ && below_->can_hold_hash(name);
}

// `known` holds the pairs that were found equal, because the same pair may come up many times.
using Pairs = std::set<std::pair<const Type*, const Type*>>;
static bool same(const Type& a, const Schemas& of_a, const Type& b, const Schemas& of_b,
                 Pairs& known) {
  auto left = of_a.resolve(a), right = of_b.resolve(b);
  if (!left || !right || (*left)->form != (*right)->form) return false;
  const Type &x = **left, &y = **right;
  // Two manifests may share a type object whose references lead to different types.
  if ((&x == &y && &of_a == &of_b) || known.contains({&x, &y})) return true;
  if (x.fields.size() != y.fields.size()) return false;
  for (size_t i = 0; i < x.fields.size(); ++i)
    if (x.fields[i].name != y.fields[i].name ||
        !same(*x.fields[i].type, of_a, *y.fields[i].type, of_b, known))
      return false;
  if (x.key && !same(*x.key, of_a, *y.key, of_b, known)) return false;
  if (x.item && !same(*x.item, of_a, *y.item, of_b, known)) return false;
  known.insert({&x, &y});
  return true;
}

bool same_type(const Type& a, const Schemas& of_a, const Type& b, const Schemas& of_b) {
  Pairs known;
  return same(a, of_a, b, of_b, known);
}

bool same_type(const Type& a, const Type& b, const Schemas& schemas) {
  return same_type(a, schemas, b, schemas);
}

}  // namespace pawl::worlds
