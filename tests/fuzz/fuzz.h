#pragma once
// Parsers given bytes that nobody meant. A target takes any bytes; it fails by a CHECK, a signal, a
// sanitizer's report, or by taking too long.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace pawl::fuzz {

inline constexpr Time kNow = 1'794'000'000 * kSecond;  // whenever code under test asks

struct Target {
  std::string_view name;
  void (*run)(BytesView bytes);
  std::vector<std::string> (*seeds)();
};

std::vector<Target> base_targets();   // JSON, CBOR, expressions, conditions, times
std::vector<Target> wire_targets();   // HTTP, WebSocket, tokens, frames, segments
std::vector<Target> face_targets();   // what users upload
std::vector<Target> cell_targets();   // what the faces keep
std::vector<Target> world_targets();  // AIR and its values

// JSON files at or below tests/vectors/PATH, and every object and array within them down to
// `depth`; with `member` only objects that have one of that name.
std::vector<std::string> vectors(std::string_view path, int depth = 0,
                                 std::string_view member = {});

// Whoever refuses says why.
inline void refused(const Error& why) { CHECK(!why.message.empty()); }

// Blocks of code that have run since clear(), where the build counts them; see coverage.cc.
namespace coverage {
void clear();
bool grew();                              // something ran that never ran before
const std::vector<uint64_t>& compared();  // constants that the input was compared with
}  // namespace coverage

}  // namespace pawl::fuzz
