// JSON to CBOR and back. On the way in the schema decides what a JSON value becomes. A value that
// has the wrong shape for its schema is converted without it: normalize() follows and says what is
// wrong, so this file refuses only what it cannot convert.

#include <charconv>

#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// A CBOR integer when the number is one that fits in 64 bits, else a float.
Value number(const json::Value& v) {
  if (auto n = v.as_uint64()) return Value(*n);
  if (auto n = v.as_int64()) return Value(*n);
  return Value(v.as_double());
}

// Without a schema, a number that is written with a point or an exponent is a float.
Value untyped_number(const json::Value& v) {
  const std::string& text = v.number_text();
  if (text.find_first_of(".eE") != std::string::npos) return Value(v.as_double());
  return number(v);
}

// JSON has text keys only. Keys of text, uuid and hash maps stay text.
Result<Value> map_key(const std::string& name, const Type& type) {
  if (type.form != Form::integer && type.form != Form::nat) return Value(name);
  const bool negative = !name.empty() && name[0] == '-';
  uint64_t n = 0;
  const char* first = name.data() + (negative ? 1 : 0);
  auto [end, bad] = std::from_chars(first, name.data() + name.size(), n);
  if (bad != std::errc() || end != name.data() + name.size() || first == end)
    return fail(Code::invalid, kSchemaMismatch,
                "value does not conform to schema: map key '" + name + "' is no integer");
  if (!negative) return Value(n);
  return n == 0 ? Value(uint64_t{0}) : Value(cbor::Int{true, n - 1});
}

Result<Value> fields_from(const json::Value& value, const Type& t, const Schemas& schemas) {
  cbor::Map out;
  for (const auto& [name, item] : value.object()) {
    const Field* f = t.find(name);
    if (!f) {
      out.emplace_back(name, to_cbor(item));  // normalising refuses it by name
      continue;
    }
    TRY(Value inner, from_json(item, *f->type, schemas));
    out.emplace_back(name, std::move(inner));
  }
  return Value(std::move(out));
}

Result<Value> variant_from(const json::Value& value, const Type& t, const Schemas& schemas) {
  const json::Value* tag = value.find("$tag");
  // The short form {Arm: value}: arms are found like fields.
  if (!tag) return fields_from(value, t, schemas);
  cbor::Map out{{"$tag", to_cbor(*tag)}};
  const Field* arm = tag->is_string() ? t.find(tag->string()) : nullptr;
  if (const json::Value* inner = value.find("$value")) {
    if (!arm) {
      out.emplace_back("$value", to_cbor(*inner));
    } else {
      TRY(Value v, from_json(*inner, *arm->type, schemas));
      out.emplace_back("$value", std::move(v));
    }
  }
  return Value(std::move(out));
}

}  // namespace

Result<Value> from_json(const json::Value& value, const Type& type, const Schemas& schemas) {
  TRY(const Type* t, schemas.resolve(type));
  switch (t->form) {
    case Form::option:
      if (value.is_null()) return Value();
      return from_json(value, *t->item, schemas);
    case Form::bytes: {
      if (!value.is_string()) return to_cbor(value);
      auto bytes = unbase64(value.string());
      if (!bytes)
        return fail(Code::invalid, kSchemaMismatch,
                    "value does not conform to schema: expected bytes as base64");
      return Value(cbor::Octets{std::move(*bytes)});
    }
    case Form::dec128:
      // The digits as they were written: a double would change them.
      if (value.is_number()) return Value(value.number_text());
      return to_cbor(value);
    case Form::integer:
    case Form::nat:
    case Form::time:
    case Form::duration:
      if (value.is_number()) return number(value);
      return to_cbor(value);
    case Form::record:
      if (!value.is_object()) return to_cbor(value);
      return fields_from(value, *t, schemas);
    case Form::variant:
      if (!value.is_object()) return to_cbor(value);
      return variant_from(value, *t, schemas);
    case Form::list:
    case Form::set: {
      if (!value.is_array()) return to_cbor(value);
      cbor::Array out;
      for (const json::Value& item : value.array()) {
        TRY(Value inner, from_json(item, *t->item, schemas));
        out.push_back(std::move(inner));
      }
      return Value(std::move(out));
    }
    case Form::map: {
      if (!value.is_object()) return to_cbor(value);
      cbor::Map out;
      for (const auto& [name, item] : value.object()) {
        TRY(Value key, map_key(name, *t->key));
        TRY(Value inner, from_json(item, *t->item, schemas));
        out.emplace_back(std::move(key), std::move(inner));
      }
      return Value(std::move(out));
    }
    default: return to_cbor(value);
  }
}

Value to_cbor(const json::Value& value) {
  if (value.is_null()) return {};
  if (value.is_bool()) return Value(value.boolean());
  if (value.is_number()) return untyped_number(value);
  if (value.is_string()) return Value(value.string());
  if (value.is_array()) {
    cbor::Array out;
    for (const json::Value& item : value.array())
      out.push_back(to_cbor(item));
    return Value(std::move(out));
  }
  cbor::Map out;
  for (const auto& [name, item] : value.object())
    out.emplace_back(name, to_cbor(item));
  return Value(std::move(out));
}

static json::Value json_int(cbor::Int n) {
  if (!n.negative) return json::Value(n.magnitude);
  if (!(n.magnitude >> 63)) return json::Value(-1 - static_cast<int64_t>(n.magnitude));
  // a negative number that 64 bits do not hold: -1 - magnitude
  if (n.magnitude == ~uint64_t{0}) return json::Value(json::Number{"-18446744073709551616"});
  return json::Value(json::Number{"-" + std::to_string(n.magnitude + 1)});
}

// A key that is neither text nor integer has no JSON form of its own; base64 keeps keys distinct.
static std::string json_key(const Value& key) {
  if (key.is_text()) return key.text();
  if (key.is_int()) return json_int(key.integer()).number_text();
  return base64(cbor::encode(key));
}

json::Value octets_json(BytesView bytes) {
  json::Array out;
  out.reserve(bytes.size());
  for (char c : bytes)
    out.push_back(json::Value(uint64_t{static_cast<unsigned char>(c)}));
  return json::Value(std::move(out));
}

std::optional<Bytes> octets_of(const Value& value) {
  if (value.is_bytes()) return value.bytes();
  if (!value.is_array()) return std::nullopt;
  Bytes out;
  out.reserve(value.array().size());
  for (const Value& item : value.array()) {
    auto octet = item.as_uint64();
    if (!octet || *octet > 255) return std::nullopt;
    out.push_back(static_cast<char>(*octet));
  }
  return out;
}

json::Value plain_json(const Value& value, ShowBytes show) {
  switch (value.kind()) {
    case cbor::Kind::null: return {};
    case cbor::Kind::boolean: return value.boolean();
    case cbor::Kind::integer: return json_int(value.integer());
    case cbor::Kind::real: return value.real();
    case cbor::Kind::bytes: return show(value.bytes());
    case cbor::Kind::text: return value.text();
    case cbor::Kind::array: {
      json::Array out;
      for (const Value& item : value.array())
        out.push_back(plain_json(item, show));
      return json::Value(std::move(out));
    }
    case cbor::Kind::map: {
      json::Object out;
      for (const auto& [key, item] : value.map())
        out.set(json_key(key), plain_json(item, show));
      return json::Value(std::move(out));
    }
  }
  return {};
}

}  // namespace pawl::worlds
