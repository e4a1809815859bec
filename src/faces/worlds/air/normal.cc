// Checks in place whether bytes are already in the form that normalize() would give them. Most
// values from modules and clients are, and the check costs a fraction of decoding and encoding them
// again. A `false` is always safe: the caller then normalises. So each function here may be
// stricter than its namesake in normalize.cc, and must never be laxer.

#include "base/dice.h"
#include "base/utf8.h"
#include "cbor/in.h"
#include "faces/worlds/air/name.h"
#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::In;

// CBOR holds a negative number as -1 - n, so `n` has this limit for both signs of an i64.
constexpr uint64_t kInt64Most = INT64_MAX;

bool normal(In& in, const Type& type, const Schemas& schemas);

// Hash, uuid and decimal have one normal spelling each; these three are ASCII, so UTF-8 is implied.
bool is_text_of(BytesView text, Form form) {
  switch (form) {
    case Form::hash: return is_hash(text);
    case Form::uuid: return is_uuid(text) && text.find_first_of("ABCDEF") == BytesView::npos;
    case Form::dec128: {
      auto decimal = normal_decimal(text);
      return decimal && *decimal == text;
    }
    default: return is_utf8(text);
  }
}

bool scalar(In& in, Form form) {
  switch (form) {
    case Form::boolean: return in.take("\xf4") || in.take("\xf5");
    case Form::unit: return in.take_null();
    case Form::bytes: in.run(2); return in.ok();
    case Form::text:
    case Form::hash:
    case Form::uuid:
    case Form::dec128: {
      const BytesView text = in.run(3);
      return in.ok() && is_text_of(text, form);
    }
    default: break;
  }
  const In::Head h = in.head();
  // Major 0 is a number from 0 up, major 1 a negative one. time and duration take any u64, int an
  // i64.
  if (h.major > 1 || (h.major == 1 && (form == Form::nat || h.n > kInt64Most))) return false;
  return form != Form::integer || h.n <= kInt64Most;
}

// Every field is present in normal form (a missing option is null), in canonical order.
bool record(In& in, const Type& type, const Schemas& schemas) {
  if (in.count(5) != type.fields.size()) return false;
  for (uint32_t i : type.canonical) {
    const Field& field = type.fields[i];
    if (!in.take(field.encoded) || !normal(in, *field.type, schemas)) return false;
  }
  return true;
}

// {"$tag": arm} or {"$tag": arm, "$value": ...}; "\x64" and "\x66" are the heads of these texts.
bool variant(In& in, const Type& type, const Schemas& schemas) {
  const uint64_t entries = in.count(5);
  if (!in.take(BytesView("\x64$tag", 5))) return false;
  const Field* arm = type.find(in.run(3));
  if (!arm || entries == 1) return arm && entries == 1;
  return entries == 2 && in.take(BytesView("\x66$value", 7)) && normal(in, *arm->type, schemas);
}

bool items(In& in, const Type& type, const Schemas& schemas) {
  BytesView before;
  for (uint64_t n = in.count(4), i = 0; in.ok() && i < n; ++i) {
    const BytesView from = in.rest();
    if (!normal(in, *type.item, schemas)) return false;
    const BytesView item = from.substr(0, from.size() - in.rest().size());
    // A set is sorted by encoded bytes and holds no element twice.
    if (type.form == Form::set && i > 0 && item <= before) return false;
    before = item;
  }
  return true;
}

bool entries(In& in, const Type& type, const Schemas& schemas) {
  BytesView before;
  for (uint64_t n = in.count(5), i = 0; in.ok() && i < n; ++i) {
    const BytesView from = in.rest();
    if (!normal(in, *type.key, schemas)) return false;
    const BytesView key = from.substr(0, from.size() - in.rest().size());
    if ((i > 0 && !cbor::key_before(before, key)) || !normal(in, *type.item, schemas)) return false;
    before = key;
  }
  return true;
}

bool normal(In& in, const Type& type, const Schemas& schemas) {
  const Type* t = &type;
  if (t->form == Form::ref) {
    auto resolved = schemas.resolve(type);
    if (!resolved) return false;
    t = *resolved;
  }
  switch (t->form) {
    case Form::record: return record(in, *t, schemas) && in.ok();
    case Form::variant: return variant(in, *t, schemas) && in.ok();
    case Form::list:
    case Form::set: return items(in, *t, schemas) && in.ok();
    case Form::map: return entries(in, *t, schemas) && in.ok();
    case Form::option: return in.take_null() || normal(in, *t->item, schemas);
    default: return scalar(in, t->form) && in.ok();
  }
}

}  // namespace

bool is_normal(BytesView bytes, const Type& type, const Schemas& schemas) {
  if (!bytes.starts_with(cbor::kSelfDescribed)) return false;
  In in(bytes.substr(cbor::kSelfDescribed.size()));
  return normal(in, type, schemas) && in.done();
}

// A key that is missing leaves `found` empty; reading an empty In then gives an empty item.
BytesView follow(BytesView canonical, const std::vector<std::string>& path) {
  In in(canonical.substr(std::min(cbor::kSelfDescribed.size(), canonical.size())));
  for (const std::string& part : path) {
    BytesView found;
    for (uint64_t n = in.count(5), i = 0; in.ok() && i < n; ++i) {
      const bool here = in.run(3) == part;
      const BytesView item = in.item();
      if (here) found = item;
    }
    in = In(found);
  }
  return in.item();
}

}  // namespace pawl::worlds
