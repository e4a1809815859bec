#include "faces/worlds/air/normalize.h"

#include <algorithm>

#include "base/dice.h"
#include "cbor/cbor.h"
#include "faces/worlds/air/name.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// The texts after the colon are the original's.
std::unexpected<Error> mismatch(std::string what) {
  return fail(Code::invalid, kSchemaMismatch,
              "value does not conform to schema: " + std::move(what));
}

// Accepts what the original accepts, which is why "true" is a bool and a text is bytes, and adds
// the range and spelling checks that the original only promises (contract A2).
Result<Value> scalar(const Value& v, Form form) {
  switch (form) {
    case Form::boolean:
      if (v.is_bool()) return v;
      if (v.is_text() && (v.text() == "true" || v.text() == "false"))
        return Value(v.text() == "true");
      return mismatch("expected bool");
    case Form::integer:
      if (!v.is_int()) return mismatch("expected int");
      if (!v.as_int64()) return mismatch("expected int between -2^63 and 2^63-1");
      return v;
    case Form::nat:
      if (!v.as_uint64()) return mismatch("expected nat");
      return v;
    case Form::dec128: {
      if (!v.is_text()) return mismatch("expected dec128 string");
      TRY(std::string text, normal_decimal(v.text()));
      return Value(std::move(text));
    }
    case Form::bytes:
      if (v.is_bytes()) return v;
      if (v.is_text()) return cbor::octets(v.text());
      return mismatch("expected bytes");
    case Form::text:
      if (!v.is_text()) return mismatch("expected text");
      return v;
    case Form::time:
    case Form::duration:
      // Nanoseconds. From -2^63 to 2^64-1: times before 1970 and the whole range of nat.
      if (!v.is_int() || (v.integer().negative && !v.as_int64()))
        return mismatch(form == Form::time ? "expected time_ns as integer"
                                           : "expected duration_ns as integer");
      return v;
    case Form::hash:
      if (!v.is_text()) return mismatch("expected hash text");
      if (!is_hash(v.text()))
        return mismatch("expected hash text sha256: and 64 lower-case hex digits");
      return v;
    case Form::uuid: {
      if (!v.is_text()) return mismatch("expected uuid text");
      if (!is_uuid(v.text())) return mismatch("expected uuid text 8-4-4-4-12");
      std::string lower = v.text();
      for (char& c : lower)
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
      return Value(std::move(lower));
    }
    default: return Value();  // unit: anything becomes null
  }
}

// Fields come out in the order of the type. A missing field is null if its type is an option, else
// an error; a field that the type does not have is an error.
Result<Value> record(const Value& v, const Type& type, const Schemas& schemas) {
  if (!v.is_map()) return mismatch("expected record/map");
  cbor::Map out;
  out.reserve(type.fields.size());
  for (const Field& f : type.fields) {
    const Value* given = v.find(f.name);
    if (!given) {
      TRY(const Type* resolved, schemas.resolve(*f.type));
      if (resolved->form != Form::option) return mismatch("record missing field '" + f.name + "'");
      out.emplace_back(f.name, Value());
      continue;
    }
    TRY(Value inner, normalize(*given, *f.type, schemas));
    out.emplace_back(f.name, std::move(inner));
  }
  // Keys that are not text are dropped in silence, as the original does.
  for (const auto& [key, item] : v.map())
    if (key.is_text() && !type.find(key.text()))
      return mismatch("unknown record field '" + key.text() + "'");
  return Value(std::move(out));
}

Result<Value> variant(const Value& v, const Type& type, const Schemas& schemas) {
  if (!v.is_map()) return mismatch("expected variant map");
  const Value* tag = v.find("$tag");
  const Value* value = v.find("$value");
  std::string name;
  if (tag) {
    if (!tag->is_text()) return mismatch("variant $tag must be text");
    name = tag->text();
    // The short form {Arm: value}.
  } else if (v.map().size() == 1 && v.map()[0].first.is_text()) {
    name = v.map()[0].first.text();
    value = &v.map()[0].second;
  } else {
    return mismatch("variant missing $tag");
  }
  const Field* arm = type.find(name);
  if (!arm) return mismatch("unknown variant tag '" + name + "'");
  cbor::Map out{{"$tag", Value(name)}};
  // A missing $value stays missing, also for an arm that is not unit: two forms, two hashes.
  if (value) {
    TRY(Value inner, normalize(*value, *arm->type, schemas));
    out.emplace_back("$value", std::move(inner));
  }
  return Value(std::move(out));
}

// Lists keep their order. Sets are sorted by encoded bytes and hold each element once.
Result<Value> items(const Value& v, const Type& type, const Schemas& schemas) {
  if (!v.is_array())
    return mismatch(type.form == Form::set ? "expected set array" : "expected list array");
  cbor::Array out;
  out.reserve(v.array().size());
  for (const Value& item : v.array()) {
    TRY(Value inner, normalize(item, *type.item, schemas));
    out.push_back(std::move(inner));
  }
  if (type.form == Form::list) return Value(std::move(out));
  // A set: sorted by canonical bytes, duplicates dropped.
  std::vector<std::pair<Bytes, size_t>> order;
  for (size_t i = 0; i < out.size(); ++i) {
    Bytes bytes;
    cbor::append_canonical(bytes, out[i]);
    order.emplace_back(std::move(bytes), i);
  }
  std::sort(order.begin(), order.end());
  cbor::Array sorted;
  for (size_t i = 0; i < order.size(); ++i)
    if (i == 0 || order[i].first != order[i - 1].first)
      sorted.push_back(std::move(out[order[i].second]));
  return Value(std::move(sorted));
}

// Two keys can become equal here (uuids in other case). The canonical encoding keeps the last.
Result<Value> entries(const Value& v, const Type& type, const Schemas& schemas) {
  if (!v.is_map()) return mismatch("expected map");
  cbor::Map out;
  out.reserve(v.map().size());
  for (const auto& [key, item] : v.map()) {
    TRY(Value k, normalize(key, *type.key, schemas));
    TRY(Value i, normalize(item, *type.item, schemas));
    out.emplace_back(std::move(k), std::move(i));
  }
  return Value(std::move(out));
}

}  // namespace

Result<Value> normalize(const Value& value, const Type& type, const Schemas& schemas) {
  TRY(const Type* t, schemas.resolve(type));
  switch (t->form) {
    case Form::record: return record(value, *t, schemas);
    case Form::variant: return variant(value, *t, schemas);
    case Form::list:
    case Form::set: return items(value, *t, schemas);
    case Form::map: return entries(value, *t, schemas);
    case Form::option:
      if (value.is_null()) return Value();
      return normalize(value, *t->item, schemas);
    default: return scalar(value, t->form);
  }
}

Result<Value> normalize_named(const Value& value, std::string_view schema, const Schemas& schemas) {
  TypePtr type = schemas.find(schema);
  if (!type)
    return fail(Code::invalid, kSchemaNotFound, "schema '" + std::string(schema) + "' not found");
  return normalize(value, *type, schemas);
}

Result<Bytes> normalize_bytes(BytesView bytes, const Type& type, const Schemas& schemas) {
  if (is_normal(bytes, type, schemas)) return Bytes(bytes);
  TRY(Value value, cbor::decode(bytes));
  TRY(Value normal, normalize(value, type, schemas));
  return cbor::canonical(normal);
}

Result<Bytes> normalize_bytes(BytesView bytes, std::string_view schema, const Schemas& schemas) {
  TypePtr type = schemas.find(schema);
  if (!type)
    return fail(Code::invalid, kSchemaNotFound, "schema '" + std::string(schema) + "' not found");
  return normalize_bytes(bytes, *type, schemas);
}

// digits * 10^exponent, without zeros at either end. IEEE decimal128 has 34 digits, an exponent of
// the last digit from -6176, and of the first digit (`adjusted`) up to 6144.
Result<std::string> normal_decimal(std::string_view text) {
  auto bad = [&] {
    return mismatch("expected dec128 string, a decimal number of at most 34 digits, not '" +
                    std::string(text.substr(0, 80)) + "'");
  };
  size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) at = 1;
  std::string digits;
  int64_t exponent = 0;
  bool point = false, any = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.' && !point) {
      point = true;
      continue;
    }
    if (text[at] < '0' || text[at] > '9') return bad();
    any = true;
    digits.push_back(text[at]);
    if (point) --exponent;
  }
  if (!any) return bad();
  if (at < text.size()) {
    const bool down = at + 1 < text.size() && text[at + 1] == '-';
    at += at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+') ? 2 : 1;
    // Five digits cannot overflow `e`, and no valid exponent has more.
    if (at >= text.size() || text.size() - at > 5) return bad();
    int64_t e = 0;
    for (; at < text.size(); ++at) {
      if (text[at] < '0' || text[at] > '9') return bad();
      e = e * 10 + (text[at] - '0');
    }
    exponent += down ? -e : e;
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++exponent;
  }
  if (digits.empty()) return std::string("0");
  const int64_t size = static_cast<int64_t>(digits.size());
  const int64_t adjusted = exponent + size - 1;
  if (size > 34 || adjusted > 6144 || exponent < -6176) return bad();
  std::string out = negative ? "-" : "";
  // Written out while 34 digits suffice, and down to six zeros after the point; else as 1.5E+40.
  if (exponent >= 0 && size + exponent <= 34)
    return out + digits + std::string(static_cast<size_t>(exponent), '0');
  if (exponent < 0 && adjusted >= 0)
    return out + digits.substr(0, static_cast<size_t>(adjusted + 1)) + "." +
           digits.substr(static_cast<size_t>(adjusted + 1));
  if (exponent < 0 && adjusted >= -6)
    return out + "0." + std::string(static_cast<size_t>(-adjusted - 1), '0') + digits;
  out += digits.substr(0, 1);
  if (size > 1) out += "." + digits.substr(1);
  return out + (adjusted < 0 ? "E" : "E+") + std::to_string(adjusted);
}

}  // namespace pawl::worlds
