#pragma once
// Result<T> is a value or an Error. Every function that can fail returns one; nothing throws across
// our functions. A bug is not an error: CHECK stops the process.

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

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

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

template <>
class [[nodiscard]] Result<void> : public std::expected<void, Error> {
 public:
  using std::expected<void, Error>::expected;
};

inline std::unexpected<Error> fail(Code code, std::string reason, std::string message,
                                   std::string detail = {}) {
  return std::unexpected(Error{code, std::move(reason), std::move(message), std::move(detail)});
}
inline std::unexpected<Error> fail(Code code, Reason reason, std::string message,
                                   std::string detail = {}) {
  return fail(code, std::string(reason.name), std::move(message), std::move(detail));
}
inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

[[noreturn]] void check_failed(const char* file, int line, const char* what);

}  // namespace pawl

#define PAWL_CAT_(a, b) a##b
#define PAWL_CAT(a, b) PAWL_CAT_(a, b)

// TRY(Cell cell, turn.read(key)); declares `cell`, or returns the error from the current function.
#define TRY(decl, expr)                                                  \
  auto PAWL_CAT(try_, __LINE__) = (expr);                                \
  if (!PAWL_CAT(try_, __LINE__))                                         \
    return std::unexpected(std::move(PAWL_CAT(try_, __LINE__)).error()); \
  decl = *std::move(PAWL_CAT(try_, __LINE__))

// TRY_OK(journal.append(...)); does the same for a Result without a value.
#define TRY_OK(expr)                                                     \
  if (auto PAWL_CAT(try_, __LINE__) = (expr); !PAWL_CAT(try_, __LINE__)) \
  return std::unexpected(std::move(PAWL_CAT(try_, __LINE__)).error())

// Stops the process when a condition that always holds does not. It stays on in release builds:
// stopping is better than writing a wrong frame.
#define CHECK(cond)                                               \
  do {                                                            \
    if (!(cond)) ::pawl::check_failed(__FILE__, __LINE__, #cond); \
  } while (false)
