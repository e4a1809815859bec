#include "faces/lifecycle/run/refuse.h"

#include "json/text.h"
#include "wire/status.h"

namespace pawl::lifecycle {

static Code code_of(const errc_row& row) {
  // The status of a corrupt value is 500, which alone would read as a fault of the program.
  return row.code == errc::corrupt_value ? Code::corrupt : wire::code_of_http(row.status);
}

Error refusal(errc code, std::string detail) {
  const errc_row& row = row_of(code);
  std::string message = "lifecycle: " + std::string(row.words);
  if (!detail.empty()) message += ": " + detail;
  return Error{code_of(row), std::string(row.name), std::move(message), {}};
}

Result<js::Value> parse_or(errc code, std::string_view text) {
  auto parsed = js::parse(text);
  if (!parsed) return refuse(code, parsed.error().message);
  return parsed;
}

errc errc_of(const Error& error) {
  if (const errc_row* row = find_errc(error.reason)) return row->code;
  return errc::storage;
}

// Declared in the public header: lets the library return its own errors through Result.
error::operator Error() const { return refusal(kind(), detail); }

error to_error(const Error& from) {
  const errc_row* row = find_errc(from.reason);
  if (!row) return error{make_error_code(errc::storage), from.reason + ": " + from.message};
  std::string_view detail = from.message;
  // refusal() put these words in front; the library adds them again from the code.
  std::string head = "lifecycle: " + std::string(row->words);
  if (detail.starts_with(head)) detail.remove_prefix(head.size());
  if (detail.starts_with(": ")) detail.remove_prefix(2);
  return error{make_error_code(row->code), std::string(detail)};
}

}  // namespace pawl::lifecycle
