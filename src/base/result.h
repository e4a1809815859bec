#pragma once
// One way to fail: a function that can fail returns Result<T>. Bugs do not return; they CHECK.
// Error and Result themselves are public: pawl/error.h and pawl/result.h.

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/result.h"

namespace pawl {

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
