#pragma once
// A model is a named, versioned schema of one tenant. It must be locked before entities are
// created.

#include <optional>
#include <string>
#include <vector>

#include "condition/path.h"
#include "faces/entities/model/schema.h"
#include "kernel/turn.h"

namespace pawl::entities {

// A field by which a search finds entities without reading all of them.
struct Index {
  std::string path;    // "$.a.b"
  bool ready = false;  // false while older entities are still being indexed
  // When the index was declared. The task that fills it names this time, so that it does not mark a
  // newer index with the same path as ready.
  Time since = 0;
};

// Fields whose combined values must differ between all entities of the model.
struct UniqueKey {
  std::string name;
  std::vector<std::string> paths;
};

struct Model {
  std::string name;
  int32_t version = 0;
  Shape shape;
  bool locked = false;
  ChangeLevel level = ChangeLevel::none;
  Time updated = 0;
  std::vector<Index> indexes;
  std::vector<UniqueKey> unique_keys;
  size_t fields = 0;  // count_fields(shape) of a stored model; not encoded

  // A UUIDv5 of name and version: the same in every tenant and on every server.
  std::string id() const;
  std::string_view state() const { return locked ? "LOCKED" : "UNLOCKED"; }
};

// True when every document that fitted the model still fits and the unique keys are the same. The
// change level and the indexes may differ.
bool only_grew(const Model& before, const Model& after);

Bytes encode(const Model& model);
// Error: corrupt BAD_MODEL.
Result<Model> decode_model(BytesView bytes);

using ModelPtr = std::shared_ptr<const Model>;  // shared with the cell's cache
// Null when there is no such model.
Result<ModelPtr> find_model(Turn& turn, std::string_view tenant, std::string_view name,
                            int32_t version);
// Sets `updated` to the time of the turn.
void write_model(Turn& turn, std::string_view tenant, Model model);
// `with_properties` is false on a create, whose 404 has no entityName and entityVersion in the
// original.
Error model_not_found(std::string_view name, int32_t version, bool with_properties = true);

// The value of a field in index rows. Rows sort numbers by amount, then texts by their bytes.
Bytes index_number(double number);
Bytes index_text(std::string_view text);
// The index values of a document at a path: none for null, several for an array.
std::vector<Bytes> index_values(const condition::Path& path, std::string_view data);

}  // namespace pawl::entities
