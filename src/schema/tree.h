#pragma once
// A compiled schema: its subschemas as nodes that name one another by index.

#include <re2/re2.h>

#include <map>
#include <optional>
#include <vector>

#include "json/value.h"

namespace pawl::schema {

inline constexpr uint32_t kNoNode = ~0u;

using Pattern = std::shared_ptr<const re2::RE2>;

struct Node {
  // `true` and `false` as schemas.
  std::optional<bool> always{};
  uint32_t types = 0;                                 // bits of kTypeNames; 0: every type
  std::optional<std::vector<std::string>> allowed{};  // canonical texts of `enum` and `const`
  std::string allowed_text{};                         // for the message
  std::optional<json::Value> multiple_of{}, maximum{}, minimum{}, above{}, below{};
  std::optional<uint64_t> min_length{}, max_length{}, min_items{}, max_items{}, min_contains{},
      max_contains{}, min_properties{}, max_properties{};
  bool unique_items = false;
  Pattern pattern{};
  std::vector<std::string> required{};
  std::vector<std::pair<std::string, std::vector<std::string>>> dependent_required{};
  std::vector<std::pair<std::string, uint32_t>> dependent{};
  std::map<std::string, uint32_t, std::less<>> properties{};
  std::vector<std::pair<Pattern, uint32_t>> pattern_properties{};
  std::vector<uint32_t> prefix_items{}, all_of{}, any_of{}, one_of{};
  uint32_t items = kNoNode, contains = kNoNode, additional = kNoNode, names = kNoNode,
           negated = kNoNode, condition = kNoNode, then = kNoNode, otherwise = kNoNode,
           unevaluated_properties = kNoNode, unevaluated_items = kNoNode;
  std::vector<uint32_t> refs{};
};

struct Tree {
  std::vector<Node> nodes;  // the first is the schema itself
};

// The order is that of the bits of Node::types.
inline constexpr std::string_view kTypeNames[] = {"null",   "boolean", "object", "array",
                                                  "number", "string",  "integer"};
inline constexpr uint32_t kInteger = 1u << 6, kNumber = 1u << 4;

}  // namespace pawl::schema
