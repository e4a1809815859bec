#pragma once
// Dice is a random generator with a seed of 128 bits that is stamped on every input. Programs draw
// ids and random numbers from it, so running the same frame again gives the same ids. Nothing here
// reads a random device.

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

// A UUID derived from a name (version 5, SHA-1) within a namespace, which is itself a UUID.
std::string uuid5(std::string_view space, std::string_view name);
inline constexpr std::string_view kUrlSpace = "6ba7b811-9dad-11d1-80b4-00c04fd430c8";

// True for 8-4-4-4-12 hex digits.
bool is_uuid(std::string_view text);

}  // namespace pawl
