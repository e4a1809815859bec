#pragma once
// The type language: what a value may be. A type is a JSON object with exactly one key; `$comment`
// may stand beside it and is dropped. There is no float, and no type that holds itself.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cbor/value.h"
#include "json/value.h"

namespace pawl::worlds {

enum class Form : uint8_t {
  boolean,
  integer,
  nat,
  dec128,
  bytes,
  text,
  time,
  duration,
  hash,
  uuid,
  unit,
  record,
  variant,
  list,
  set,
  map,
  option,
  ref,
};
std::string_view name_of(Form form);

struct Type;
using TypePtr =
    std::shared_ptr<const Type>;  // shared: types are read by every turn and never changed
struct Field {
  std::string name;
  TypePtr type;
  std::string encoded{};  // the name as a CBOR text
};

struct Type {
  Form form = Form::unit;
  std::vector<Field> fields{};        // of a record its fields, of a variant its arms, by name
  std::vector<uint32_t> canonical{};  // places in `fields`, in the order of canonical CBOR
  TypePtr key{};                      // of a map
  TypePtr item{};                     // of a list, set, option or map
  std::string ref{};                  // of a ref

  const Field* find(std::string_view name) const;
};

Result<TypePtr> parse_type(const json::Value& type);
// As it is hashed.
cbor::Value to_value(const Type& type);

// Named types, with those of the system below.
class Schemas {
 public:
  explicit Schemas(const Schemas* below = nullptr) : below_(below) {}
  void add(std::string name, TypePtr type) { types_[std::move(name)] = {std::move(type)}; }
  TypePtr find(std::string_view name) const;
  // Follows refs until something else; SCHEMA_NOT_FOUND, or SCHEMA_CYCLE when they go round.
  Result<const Type*> resolve(const Type& type) const;
  // How many schemas deep a named type leads. Refused: one that holds itself, however far away, or
  // leads too deep.
  using Depths = std::map<std::string, size_t, std::less<>>;  // of those that were asked for before
  Result<void> refuse_recursion(std::string_view name, Depths& known) const;
  // Finds out which of the types added here can hold a hash; those below have been asked. Nothing
  // is added afterwards.
  void find_hashes();
  bool can_hold_hash(std::string_view name) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  Result<size_t> depth_of(const Type& type, std::vector<std::string>& path, Depths& known) const;
  using Known = std::map<std::string, bool, std::less<>>;
  bool leads_to_hash(const Type& type, Known& known) const;
  struct NamedType {
    TypePtr type;
    bool hashes = false;  // it can hold one
  };
  std::unordered_map<std::string, NamedType, Hash, std::equal_to<>> types_;
  const Schemas* below_;
};

// Equal after following refs on both sides, all the way down.
bool same_type(const Type& a, const Type& b, const Schemas& schemas);
// Each by its own table: of two manifests.
bool same_type(const Type& a, const Schemas& of_a, const Type& b, const Schemas& of_b);

}  // namespace pawl::worlds
