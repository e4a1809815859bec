#pragma once
// Errors as this face words them: application/problem+json with an error code.

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
// What a caller is told of an error from anywhere.
Problem problem_of(const Error& error);

// `prefix` is left out of the instance; `verbose` shows the cause of our own failures.
wire::Response problem(const wire::Request& request, const Error& error, std::string_view prefix,
                       bool verbose);

}  // namespace pawl::entities
