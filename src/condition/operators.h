#pragma once
// The operators of the condition language, one row each. An operator compares the field `a` with an
// operand that was prepared once; it never fails: what can fail was refused when it was compiled.

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
  std::string text;      // strings as they are, numbers in their shortest form, null as "<nil>"
  std::string lowered;   // text in lower case, for the I operators
  std::string folded;    // text without its case, for IEQUALS
  bool numeric = false;  // a number, or a string that reads as one
  double number = 0;
  double low = 0, high = 0;            // BETWEEN
  std::shared_ptr<const re2::RE2> re;  // LIKE, MATCHES_PATTERN; shared by the copies of a condition
};

enum class OperandKind : uint8_t { value, nothing, range, like, pattern };
// How an index can help: not at all, by one value, from or to a value, by both, by what it begins
// with.
enum class IndexUse : uint8_t { none, equal, above, below, between, prefix };

struct Operator {
  std::string_view name;
  OperandKind operand_kind;
  IndexUse index_use;
  bool (*test)(const Field& a, const Operand& v);
  std::string_view doc;
};

std::span<const Operator> operators();
const Operator* find_operator(std::string_view name);
std::string operator_names();  // "EQUALS, NOT_EQUAL, ...", for messages

Result<Operand> prepare(const Operator& op, const json::Value* value);

bool read_number(std::string_view text, double& out);
std::string shortest(double number);  // 10, 0.5; an exponent only from 1e21 on

}  // namespace pawl::condition
