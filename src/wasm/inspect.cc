#include "wasm/inspect.h"

namespace pawl::wasm {
namespace {

constexpr BytesView kMagic("\0asm", 4);
constexpr size_t kHeaderBytes = 8;  // the magic and the version

// The numbers of the sections that are counted, by the WASM specification.
enum Section : uint8_t {
  kTypeSection = 1,
  kFunctionSection = 3,
  kGlobalSection = 6,
  kExportSection = 7,
  kStartSection = 8,
  kElementSection = 9,
  kCodeSection = 10,
  kDataSection = 11,
};

// A section that begins with the number of its entries.
struct CountedSection {
  Section section;
  std::string_view entries;
  uint64_t max;
};
constexpr CountedSection kCounted[] = {
    {kTypeSection, "types", kMaxTypes},
    {kFunctionSection, "functions", kMaxFunctions},
    {kGlobalSection, "globals", kMaxGlobals},
    {kExportSection, "exports", kMaxExports},
    {kElementSection, "element segments", kMaxElementSegments},
    {kCodeSection, "functions", kMaxFunctions},
    {kDataSection, "data segments", kMaxDataSegments},
};

// Reads an unsigned LEB128 number and removes it from `in`. Nothing when the bytes are not one.
std::optional<uint64_t> take_number(BytesView& in) {
  uint64_t out = 0;
  for (int shift = 0; shift < 35 && !in.empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    out |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return out;
  }
  return std::nullopt;
}

Result<void> within(std::string_view what, uint64_t found, uint64_t max) {
  if (found <= max) return {};
  return fail(Code::unprocessable, "wasm.error",
              "wasm runtime error: the module has " + std::to_string(found) + " " +
                  std::string(what) + "; at most " + std::to_string(max) +
                  " are compiled: split the module or remove unused code");
}

// The bodies of the code section, each behind its size.
Result<void> inspect_code(BytesView code) {
  TRY_OK(within("bytes of code", code.size(), kMaxCodeBytes));
  std::optional<uint64_t> count = take_number(code);
  for (uint64_t i = 0; count && i < *count; ++i) {
    const std::optional<uint64_t> size = take_number(code);
    if (!size || *size > code.size()) return {};
    TRY_OK(within("bytes in function " + std::to_string(i), *size, kMaxFunctionBytes));
    code.remove_prefix(*size);
  }
  return {};
}

}  // namespace

bool looks_like_module(BytesView bytes) { return bytes.starts_with(kMagic); }

Result<ModuleShape> inspect(BytesView bytes) {
  ModuleShape out;
  if (!looks_like_module(bytes) || bytes.size() < kHeaderBytes) return out;
  bytes.remove_prefix(kHeaderBytes);
  while (!bytes.empty()) {
    const uint8_t id = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    const std::optional<uint64_t> size = take_number(bytes);
    if (!size || *size > bytes.size()) return out;
    const BytesView section = bytes.substr(0, *size);
    bytes.remove_prefix(*size);
    if (id == kStartSection) out.has_start = true;
    if (id == kCodeSection) TRY_OK(inspect_code(section));
    for (const CountedSection& counted : kCounted) {
      if (counted.section != id) continue;
      BytesView left = section;
      const uint64_t count = take_number(left).value_or(0);
      TRY_OK(within(counted.entries, count, counted.max));
    }
  }
  return out;
}

Result<void> check_upload(BytesView bytes) {
  TRY(ModuleShape shape, inspect(bytes));
  if (!shape.has_start) return {};
  return fail(Code::unprocessable, "wasm.error",
              "wasm runtime error: the module has a start function, which would run before every "
              "step; build it as a library without an entry (for example with --no-entry)");
}

}  // namespace pawl::wasm
