#pragma once
// How a call of Pawl fails. pawl::Error is the one error type of the client, the worker and the
// compute member; an error of pawl::lifecycle converts to it.

#include <string>
#include <string_view>

namespace pawl {

// Kinds of errors. There are as many as callers act differently on; finer detail is in `reason`.
enum class Code {
  invalid,          // the request can never succeed as written
  unauthenticated,  // the request has no valid credentials
  denied,           // the caller is known and has no permission
  not_found,        // the thing that the request names does not exist
  conflict,         // another request changed the same thing first; read again and retry
  precondition,     // the version that the request names is no longer the newest
  too_large,        // the request is over a size limit
  unprocessable,    // the request is well-formed but contradicts an earlier one
  unsupported,      // this server does not implement the request
  exhausted,        // a limit of rate or number is reached; retry later
  unavailable,      // an external system or the journal did not answer; retry later
  corrupt,          // stored bytes are damaged
  internal,         // a fault of the server
};

std::string_view name_of(Code code);

// The name of a refusal that callers act on. It is declared once, beside the function that refuses,
// and compared with Error::is(): never by its text.
struct Reason {
  std::string_view name;
};

struct Error {
  Code code = Code::internal;
  std::string reason;    // stable and machine-readable: "UNKNOWN_STEP"
  std::string message;   // for people; names the thing and the remedy
  std::string detail{};  // a JSON object whose members join the answer on the wire, or empty
  bool retryable = false;

  bool is(Reason other) const { return reason == other.name; }
};

}  // namespace pawl
