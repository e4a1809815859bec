#pragma once
// Normalisation brings a value into the one form that its schema allows: short forms are expanded,
// missing options become null, sets are sorted, numbers and formatted texts are checked. Equal
// values become equal bytes.

#include "faces/worlds/air/type.h"

namespace pawl::worlds {

// Errors: SCHEMA_MISMATCH "value does not conform to schema: ...", SCHEMA_NOT_FOUND, BAD_CBOR.
Result<cbor::Value> normalize(const cbor::Value& value, const Type& type, const Schemas& schemas);
// From any CBOR to canonical CBOR of the type, or of the named schema.
Result<Bytes> normalize_bytes(BytesView cbor, const Type& type, const Schemas& schemas);
Result<Bytes> normalize_bytes(BytesView cbor, std::string_view schema, const Schemas& schemas);
Result<cbor::Value> normalize_named(const cbor::Value& value, std::string_view schema,
                                    const Schemas& schemas);
// True when the bytes are already normal.
bool is_normal(BytesView bytes, const Type& type, const Schemas& schemas);
// The item at a path of record fields in a canonical value, as it is encoded; empty when there is
// none.
BytesView follow(BytesView canonical, const std::vector<std::string>& path);

// Reads JSON by its schema: bytes are base64, and numeric map keys are digits. The result is not
// normalised yet.
Result<cbor::Value> from_json(const json::Value& value, const Type& type, const Schemas& schemas);

// Conversion without a schema. Bytes become base64 in JSON.
cbor::Value to_cbor(const json::Value& value);
using ShowBytes = json::Value (*)(BytesView bytes);
json::Value plain_json(
    const cbor::Value& value,
    ShowBytes show = [](BytesView bytes) { return json::Value(base64(bytes)); });
json::Value octets_json(BytesView bytes);                  // a list of numbers
std::optional<Bytes> octets_of(const cbor::Value& value);  // a byte string, or such a list

// "1.50" -> "1.5", "1e3" -> "1000": equal numbers get equal texts. At most 34 digits.
Result<std::string> normal_decimal(std::string_view text);

}  // namespace pawl::worlds
