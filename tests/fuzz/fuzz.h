#pragma once
// The fuzzer runs parsers on mutated bytes. A target accepts any bytes. It fails by a CHECK, a
// signal, a sanitizer's report, or by taking too long.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace pawl::fuzz {

inline constexpr Time kNow = 1'794'000'000 * kSecond;  // the time that code under test gets

struct Target {
  std::string_view name;
  void (*run)(BytesView bytes);
  std::vector<std::string> (*seeds)();
};

std::vector<Target> base_targets();   // JSON, CBOR, expressions, conditions, times
std::vector<Target> wire_targets();   // HTTP, WebSocket, tokens, frames, segments
std::vector<Target> face_targets();   // documents that users upload
std::vector<Target> cell_targets();   // cells and commands of the faces
std::vector<Target> world_targets();  // AIR and its values

// The texts of the JSON files at or below tests/vectors/PATH, and of every object and array in them
// down to `depth`. With `member`, only objects that have a member of that name.
std::vector<std::string> vectors(std::string_view path, int depth = 0,
                                 std::string_view member = {});

// Every refusal has a message.
inline void refused(const Error& why) { CHECK(!why.message.empty()); }

// Code that has run since clear(). Only a build with PAWL_FUZZ records it (coverage.cc).
namespace coverage {
void clear();
bool grew();                              // a block ran for the first time, or more often than ever
const std::vector<uint64_t>& compared();  // constants that values were compared with
}  // namespace coverage

}  // namespace pawl::fuzz
