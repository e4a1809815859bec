#pragma once
// The type checks of the parser. A type is known for literals and for the results of operators and
// functions, and `any` for variables, whose kind is checked during evaluation.

#include "expr/code.h"

namespace pawl::expr {

bool is_ordering(Op op);  // < > <= >=

// Refuses operands whose types never fit the operator, even in a branch that would not be
// evaluated. `left` and `right` are nodes.
Result<void> check_operands(const Compiled& code, Op op, uint32_t at, uint32_t left,
                            uint32_t right);
// Refuses a node that is known not to be a boolean. `where` names the operator for the error.
Result<void> require_boolean(const Compiled& code, uint32_t node, std::string_view where);
// True when the node is known to be a number that may have a fraction.
bool is_fraction(const Compiled& code, uint32_t node);

// The type of the result, as far as the types of the operands determine it.
Type result_type(Op op, Type a, Type b);

}  // namespace pawl::expr
