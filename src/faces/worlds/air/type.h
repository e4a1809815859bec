#pragma once
// The type language of AIR. A type is a JSON object with exactly one key; `$comment` may stand
// beside the key and is dropped. There are no floats and no recursive types.

#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cbor/value.h"
#include "json/value.h"

namespace pawl::worlds {

// A value does not fit its schema.
inline constexpr Reason kSchemaMismatch{"SCHEMA_MISMATCH"};
// A schema is not among the named types.
inline constexpr Reason kSchemaNotFound{"SCHEMA_NOT_FOUND"};

// The order is that of `kForms` in type.cc, which names the forms.
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
  std::vector<Field> fields{};        // fields of a record or arms of a variant, by name
  std::vector<uint32_t> canonical{};  // indexes into `fields`, in the order of canonical CBOR
  TypePtr key{};                      // of a map
  TypePtr item{};                     // of a list, set, option or map
  std::string ref{};                  // of a ref

  const Field* find(std::string_view name) const;
};

// Error: manifest.error. References are not followed: the named schemas may come later.
Result<TypePtr> parse_type(const json::Value& type);
// The form that is hashed.
cbor::Value to_value(const Type& type);

// Named types. Names that are not found are looked up in `below`: the built-in types.
class Schemas {
 public:
  explicit Schemas(const Schemas* below = nullptr) : below_(below) {}
  void add(std::string name, TypePtr type) { types_[std::move(name)] = {std::move(type)}; }
  // Null when neither this table nor `below` has the name.
  TypePtr find(std::string_view name) const;
  // Follows references to the type they end in. Fails with SCHEMA_NOT_FOUND, or with SCHEMA_CYCLE
  // when they lead back to themselves.
  Result<const Type*> resolve(const Type& type) const;
  // Refuses a named type that holds itself, directly or not, or that nests too deep. `known` has
  // the depths of the types that were checked before.
  using Depths = std::map<std::string, size_t, std::less<>>;
  Result<void> refuse_recursion(std::string_view name, Depths& known) const;
  // Works out which of the types added here can hold a hash. Call it after the last add().
  void find_hashes();
  // False for an unknown name. Collectors skip values of a type that cannot hold a hash.
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
    bool hashes = false;  // a value of it can hold a hash
  };
  std::unordered_map<std::string, NamedType, Hash, std::equal_to<>> types_;
  // Not owned: the built-ins outlive every manifest.
  const Schemas* below_;
};

// True when both types are equal after all references are followed.
bool same_type(const Type& a, const Type& b, const Schemas& schemas);
// The same for types of two manifests.
bool same_type(const Type& a, const Schemas& of_a, const Type& b, const Schemas& of_b);

}  // namespace pawl::worlds
