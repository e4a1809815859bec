#pragma once
// A model is a named, versioned schema of one tenant. Entities are written only under a locked one.

#include <optional>
#include <string>
#include <vector>

#include "condition/path.h"
#include "faces/entities/model/schema.h"
#include "kernel/turn.h"

namespace pawl::entities {

// A field that search may find entities by without reading the others.
struct Index {
  std::string path;    // "$.a.b"
  bool ready = false;  // false while older entities are still being entered
  Time since =
      0;  // when it was declared: whoever fills it names it, so that another's end is not its own
};

// Fields whose values together no two entities of the model may share.
struct UniqueKey {
  std::string name;
  std::vector<std::string> paths;
};

struct Model {
  std::string name;
  int32_t version = 0;
  Shape shape;
  bool locked = false;
  Level level = Level::none;
  Time updated = 0;
  std::vector<Index> indexes;
  std::vector<UniqueKey> unique_keys;

  std::string id() const;
  std::string_view state() const { return locked ? "LOCKED" : "UNLOCKED"; }
};

// Every document that fitted still fits, and is compared by the same unique keys: what else a write
// goes by, the change level and the indexes, may differ.
bool only_grew(const Model& before, const Model& after);

Bytes encode(const Model& model);
Result<Model> decode_model(BytesView bytes);

using ModelPtr = std::shared_ptr<const Model>;  // shared with the cell's cache
Result<ModelPtr> find_model(Turn& turn, std::string_view tenant, std::string_view name,
                            int32_t version);  // null when there is none
void write_model(Turn& turn, std::string_view tenant, Model model);
Error model_not_found(std::string_view name, int32_t version, bool with_properties = true);

// An order-preserving form of a field's value for index rows: numbers by amount, then texts by
// bytes.
Bytes index_number(double number);
Bytes index_text(std::string_view text);
// The entries of a document under an index's path: none for null, one each for the elements of an
// array.
std::vector<Bytes> index_values(const condition::Path& path, std::string_view data);

}  // namespace pawl::entities
