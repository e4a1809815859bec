#include "cbor/value.h"

namespace pawl::cbor {

// A magnitude with the top bit set does not fit, negative or not, since -1 - magnitude would be
// below -2^63.
std::optional<int64_t> Value::as_int64() const {
  if (!is_int() || integer().magnitude >> 63) return {};
  int64_t m = static_cast<int64_t>(integer().magnitude);
  return integer().negative ? -1 - m : m;
}

std::optional<uint64_t> Value::as_uint64() const {
  if (!is_int() || integer().negative) return {};
  return integer().magnitude;
}

const Value* Value::find(std::string_view name) const {
  if (!is_map()) return nullptr;
  const Map& entries = map();
  for (size_t i = entries.size(); i-- > 0;)
    if (entries[i].first.is_text() && entries[i].first.text() == name) return &entries[i].second;
  return nullptr;
}

std::string_view Value::text_or(std::string_view name, std::string_view default_value) const {
  const Value* v = find(name);
  return v && v->is_text() ? std::string_view(v->text()) : default_value;
}

}  // namespace pawl::cbor
