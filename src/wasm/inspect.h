#pragma once
// Reads the sections of a WASM module without compiling it, and refuses modules whose compilation
// would take too long or too much memory. Compilation costs per function as well as per byte: a
// module of one MiB may have 900,000 empty functions.

#include <set>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace pawl::wasm {

// The limits of a module. A module that exceeds one is refused with `unprocessable`, and the error
// names the limit.
inline constexpr uint64_t kMaxFunctions = 20'000;
inline constexpr uint64_t kMaxFunctionBytes = 256 * 1024;   // body of one function
inline constexpr uint64_t kMaxCodeBytes = 4 * 1024 * 1024;  // bodies of all functions
inline constexpr uint64_t kMaxTypes = 10'000;
inline constexpr uint64_t kMaxGlobals = 10'000;
inline constexpr uint64_t kMaxExports = 10'000;
inline constexpr uint64_t kMaxElementSegments = 10'000;
inline constexpr uint64_t kMaxDataSegments = 10'000;

// What inspect() found in a module.
struct ModuleShape {
  bool has_start = false;  // a start function would run before the first step
  // The name of the first import, "module.name"; empty when there is none.
  std::string first_import{};
  std::set<std::string, std::less<>> functions{}, memories{};  // that are exported, by name
};

// True for bytes that begin as every WASM module does.
bool looks_like_module(BytesView bytes);

// Reads the sections up to the first byte that is not valid. Whether the module is valid is left to
// the compiler: this only bounds its work. `unprocessable` when a limit is exceeded.
Result<ModuleShape> inspect(BytesView bytes);

// Refuses a module that somebody brings now: one over a limit, with a start function, or with an
// import. Modules with a start function that are stored already still run. Bytes that are no module
// pass.
Result<void> check_upload(BytesView bytes);

// Refuses bytes that cannot be the module of workflows with these entrypoints: those that are no
// WASM, that check_upload() refuses, or that lack an export. The error names all that is missing.
Result<void> check_module(BytesView bytes, const std::set<std::string>& entrypoints);

}  // namespace pawl::wasm
