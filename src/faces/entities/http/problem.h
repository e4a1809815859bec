#pragma once
// Error answers of this face: application/problem+json with an error code.

#include <span>

#include "base/result.h"
#include "wire/message.h"

namespace pawl::entities {

struct ErrorCode {
  std::string_view code;
  int status;
};
std::span<const ErrorCode> error_codes();

struct Problem {
  int status;
  std::string code;
  bool retryable;
};
// The status and code that a caller gets for any error.
Problem problem_of(const Error& error);

// `prefix` is removed from the instance; `verbose` shows the cause of internal errors.
wire::Response problem(const wire::Request& request, const Error& error, std::string_view prefix,
                       bool verbose);

}  // namespace pawl::entities
