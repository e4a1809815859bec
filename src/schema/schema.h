#pragma once
// A JSON Schema (draft 2020-12) that was compiled once and checks many values. `format` and other
// annotations are not checked. References stay inside the schema; patterns are RE2.

#include <memory>
#include <string>

#include "base/result.h"
#include "json/value.h"

namespace pawl::schema {

struct Tree;

class Schema {
 public:
  // Error: invalid BAD_SCHEMA, which names the place in the schema.
  static Result<Schema> compile(const json::Value& document);

  // Error: invalid SCHEMA_MISMATCH. The message names up to kMaxMismatches places in the value, as
  // JSON pointers: "at '/amount': got string, want number". The cost is added to `work`; above
  // `max_work` the check ends with invalid SCHEMA_WORK.
  Result<void> check(const json::Value& value, size_t& work, size_t max_work) const;

 private:
  explicit Schema(std::shared_ptr<const Tree> tree) : tree_(std::move(tree)) {}
  // Shared by the copies of a definition; never changed after compile().
  std::shared_ptr<const Tree> tree_;
};

// Mismatches that one message names.
inline constexpr size_t kMaxMismatches = 5;
// Subschemas of one schema: a larger one was generated, not written.
inline constexpr size_t kMaxNodes = 2'000;
// Subschemas around one value. A schema that refers to itself without end is stopped here.
inline constexpr size_t kMaxDepth = 600;

}  // namespace pawl::schema
