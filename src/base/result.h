#pragma once
// One way to fail: a function that can fail returns Result<T>. Bugs do not return; they CHECK.

#include <cstdio>
#include <cstdlib>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace pawl {

// What a caller can do about it, and nothing finer. Finer detail goes in `reason`.
enum class Code {
  invalid,          // the request can never succeed as written
  unauthenticated,  // say who you are
  denied,           // the caller may not
  not_found,        // the thing named does not exist
  conflict,         // someone else was first; read again and retry
  precondition,     // the caller named a version that is no longer the newest
  too_large,        // a declared size limit was passed
  unprocessable,    // understood, but contradicts what was said before
  unsupported,      // this server does not do that
  exhausted,        // a declared rate or count was reached; retry later
  unavailable,      // an outside party or the journal did not answer; retry later
  corrupt,          // stored bytes are not what we wrote
  internal,         // our fault
};

std::string_view name_of(Code code);

// The name of a refusal that callers act on. It is declared once, beside the function that refuses,
// and compared with Error::is(): never by its text.
struct Reason {
  std::string_view name;
};

struct Error {
  Code code = Code::internal;
  std::string reason;    // stable, machine-readable: "UNKNOWN_STEP"
  std::string message;   // for people; names the thing and what to do
  std::string detail{};  // a JSON object with further members for the wire, or empty
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

// TRY(auto cell, turn.read(key));   binds the value, or returns the error to our caller.
#define TRY(decl, expr)                                                  \
  auto PAWL_CAT(try_, __LINE__) = (expr);                                \
  if (!PAWL_CAT(try_, __LINE__))                                         \
    return std::unexpected(std::move(PAWL_CAT(try_, __LINE__)).error()); \
  decl = *std::move(PAWL_CAT(try_, __LINE__))

// TRY_OK(journal.append(...));        the same, where there is no value.
#define TRY_OK(expr)                                                     \
  if (auto PAWL_CAT(try_, __LINE__) = (expr); !PAWL_CAT(try_, __LINE__)) \
  return std::unexpected(std::move(PAWL_CAT(try_, __LINE__)).error())

// CHECK stays on in release builds: stopping is better than writing a wrong frame.
#define CHECK(cond)                                               \
  do {                                                            \
    if (!(cond)) ::pawl::check_failed(__FILE__, __LINE__, #cond); \
  } while (false)
