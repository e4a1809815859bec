#pragma once
// Refusals of this face: the library's error codes carried in the house's Error. The reason is the
// code's name, so routes and the library find the code again.

#include "base/result.h"
#include "json/value.h"
#include "pawl/lifecycle/error.h"

namespace pawl::lifecycle {

namespace js = pawl::json;  // lifecycle::json is a field kind

Error refusal(errc code, std::string detail);
inline std::unexpected<Error> refuse(errc code, std::string detail) {
  return std::unexpected(refusal(code, std::move(detail)));
}

// The JSON of a caller's own text; what cannot be read is refused as `code`.
Result<js::Value> parse_or(errc code, std::string_view text);

// The code of an error of ours; anything else is the storage's.
errc errc_of(const Error& error);
// As the library hands it out.
error to_error(const Error& error);

}  // namespace pawl::lifecycle
