#include "wire/status.h"

namespace pawl::wire {

// When two codes share a status, the first row is what a client reads it as.
static constexpr CodeStatus kCodes[] = {
    {Code::invalid, 400, 3},           // INVALID_ARGUMENT
    {Code::unauthenticated, 401, 16},  // UNAUTHENTICATED
    {Code::denied, 403, 7},            // PERMISSION_DENIED
    {Code::not_found, 404, 5},         // NOT_FOUND
    {Code::conflict, 409, 9},          // FAILED_PRECONDITION
    {Code::precondition, 412, 9},      // FAILED_PRECONDITION
    {Code::too_large, 413, 8},         // RESOURCE_EXHAUSTED
    {Code::unprocessable, 422, 9},     // FAILED_PRECONDITION
    {Code::unsupported, 501, 12},      // UNIMPLEMENTED
    {Code::exhausted, 429, 8},         // RESOURCE_EXHAUSTED
    {Code::unavailable, 503, 14},      // UNAVAILABLE
    {Code::internal, 500, 13},         // INTERNAL
    {Code::corrupt, 500, 15},          // DATA_LOSS
};

// The table has one row for each code, so the search always succeeds.
const CodeStatus& code_status(Code code) {
  for (const CodeStatus& row : kCodes)
    if (row.code == code) return row;
  CHECK(false);  // every code has a row
}

Code code_of_http(int status) {
  if (status == 410) return Code::not_found;                     // it was there once
  if (status == 502 || status == 504) return Code::unavailable;  // a proxy, or a deadline
  for (const CodeStatus& row : kCodes)
    if (row.http == status) return row.code;
  return status >= 500 ? Code::internal : Code::invalid;
}

}  // namespace pawl::wire
