#pragma once
// The operators of the condition language, one row each in a table. An operator tests a field
// against an operand that was prepared when the condition was compiled. A test never fails:
// operands that do not fit were refused then.

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "condition/path.h"
#include "json/value.h"

namespace re2 {
class RE2;
}

namespace pawl::condition {

struct Operand {
  bool null = true;
  std::string text;      // a string unchanged, a number in its shortest form, null as "<nil>"
  std::string lowered;   // text in lower case, for ICONTAINS and the like
  std::string folded;    // text with its case folded, for IEQUALS
  bool numeric = false;  // a number, or a string that is the text of a number
  double number = 0;
  double low = 0, high = 0;            // BETWEEN
  std::shared_ptr<const re2::RE2> re;  // LIKE, MATCHES_PATTERN; shared by the copies of a condition
};

enum class OperandKind : uint8_t { value, nothing, range, like, pattern };
// How an index can find the entities: not at all, by equality, by a lower or upper bound, by both,
// or by a prefix.
enum class IndexUse : uint8_t { none, equal, above, below, between, prefix };

struct Operator {
  std::string_view name;
  OperandKind operand_kind;
  IndexUse index_use;
  bool (*test)(const Field& field, const Operand& operand);
  std::string_view doc;
};

std::span<const Operator> operators();
const Operator* find_operator(std::string_view name);
std::string operator_names();  // "EQUALS, NOT_EQUAL, ...", for messages

// Prepares the value of a condition as operand; null when the condition has none.
Result<Operand> prepare(const Operator& op, const json::Value* value);

// Number of instructions of a compiled pattern.
size_t program_size(const re2::RE2& pattern);

// Returns false when the text is not a number.
bool read_number(std::string_view text, double& out);
// The shortest text that reads back as the same number: 10, 0.5. It has an exponent from 1e21 on
// and below 1e-4.
std::string shortest(double number);

}  // namespace pawl::condition
