#pragma once
// Dice are 128 bits stamped on an input at the door. A program that needs ids or chance draws them
// from here, so the same frame gives the same ids every time. Nothing here reads a random device.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace pawl {

class Dice {
 public:
  explicit Dice(std::array<uint64_t, 2> seed) : state_(seed) {}
  uint64_t next();              // the next 64 bits
  std::string uuid4();          // lower case, with hyphens
  std::string uuid7(Time now);  // sorts by time
  std::string uuid1(Time now);  // time-based, random node
  std::string ulid(Time now);   // 26 characters, Crockford base 32

 private:
  std::array<uint64_t, 2> state_;
};

// Name-based (SHA-1) within a namespace given as a UUID text.
std::string uuid5(std::string_view space, std::string_view name);
inline constexpr std::string_view kUrlSpace = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";

// True for 8-4-4-4-12 hex digits.
bool is_uuid(std::string_view text);

}  // namespace pawl
