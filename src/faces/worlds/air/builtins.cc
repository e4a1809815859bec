#include "faces/worlds/air/builtins.h"

#include "json/text.h"

namespace pawl::worlds {

Builtins::Builtins() {
  for (const char* const* list : {kBuiltinSchemas, kBuiltinDefs}) {
    for (; *list; ++list) {
      auto text = json::parse(*list);
      CHECK(text.has_value());
      auto node = parse_node(*text);
      CHECK(node.has_value());
      Builtin row{std::move(*node), {}, {}};
      row.node_hash = node_hash(row.node);
      row.ref_hash = bare_hash(row.node);
      if (const auto* schema = std::get_if<SchemaDef>(&row.node))
        schemas_.add(schema->name, schema->type);
      std::string name(node_name(row.node));
      all_.emplace(std::move(name), std::move(row));
    }
  }
  // Types refer to types that stand later in the list, so this runs after all are added.
  schemas_.find_hashes();
}

const Builtin* Builtins::find(std::string_view name) const {
  auto it = all_.find(name);
  return it == all_.end() ? nullptr : &it->second;
}

}  // namespace pawl::worlds
