#pragma once
// Errors of the lifecycle face. An Error carries the library's error code: its reason is the code's
// name, so routes and the library can get the code back.

#include "base/result.h"
#include "json/value.h"
#include "pawl/lifecycle/error.h"

namespace pawl::lifecycle {

namespace js = pawl::json;  // lifecycle::json is a field kind

Error refusal(errc code, std::string detail);
inline std::unexpected<Error> refuse(errc code, std::string detail) {
  return std::unexpected(refusal(code, std::move(detail)));
}

// Parses a caller's JSON text; malformed text is refused with `code`.
Result<js::Value> parse_or(errc code, std::string_view text);

// The library's code of an error; errors of other parts are `errc::storage`.
errc errc_of(const Error& error);
// The error as the public library returns it.
error to_error(const Error& error);

}  // namespace pawl::lifecycle
