#include "faces/worlds/air/hashes.h"

namespace pawl::worlds {

void each_hash(const cbor::Value& value, const Type& type, const Schemas& schemas,
               const std::function<void(const std::string& hash)>& visit) {
  auto resolved = schemas.resolve(type);
  if (!resolved) return;
  const Type& t = **resolved;
  if (t.form == Form::hash && value.is_text()) return visit(value.text());
  if (t.form == Form::option && !value.is_null()) return each_hash(value, *t.item, schemas, visit);
  if (value.is_array() && (t.form == Form::list || t.form == Form::set))
    for (const cbor::Value& item : value.array())
      each_hash(item, *t.item, schemas, visit);
  if (t.form == Form::variant) {
    const Field* arm = t.find(value.text_or("$tag"));
    const cbor::Value* inner = value.find("$value");
    if (arm && inner) each_hash(*inner, *arm->type, schemas, visit);
  }
  if (!value.is_map()) return;
  for (const auto& [key, item] : value.map()) {
    if (t.form == Form::map) {
      // A hash may be the key of a map.
      each_hash(key, *t.key, schemas, visit);
      each_hash(item, *t.item, schemas, visit);
    }
    const Field* field = t.form == Form::record && key.is_text() ? t.find(key.text()) : nullptr;
    if (field) each_hash(item, *field->type, schemas, visit);
  }
}

}  // namespace pawl::worlds
