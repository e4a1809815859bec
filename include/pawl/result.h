#pragma once
// A value or a pawl::Error. It is std::expected, except that the compiler warns when a result is
// ignored.

#include <expected>

#include "pawl/error.h"

namespace pawl {

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

}  // namespace pawl
