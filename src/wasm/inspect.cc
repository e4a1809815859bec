#include "wasm/inspect.h"

namespace pawl::wasm {
namespace {

constexpr BytesView kMagic("\0asm", 4);
constexpr size_t kHeaderBytes = 8;  // the magic and the version

// The numbers of the sections that are counted, by the WASM specification.
enum Section : uint8_t {
  kTypeSection = 1,
  kImportSection = 2,
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

// A name: its length, then its bytes. Nothing when the bytes are not one.
std::optional<std::string> take_name(BytesView& in) {
  const std::optional<uint64_t> size = take_number(in);
  if (!size || *size > in.size()) return std::nullopt;
  std::string out(in.substr(0, *size));
  in.remove_prefix(*size);
  return out;
}

void inspect_imports(BytesView in, ModuleShape& out) {
  if (take_number(in).value_or(0) == 0) return;
  const std::optional<std::string> module = take_name(in), name = take_name(in);
  out.first_import = module.value_or("?") + "." + name.value_or("?");
}

// Each export is a name, a kind and an index.
void inspect_exports(BytesView in, ModuleShape& out) {
  constexpr uint8_t kFunction = 0, kMemory = 2;
  const uint64_t count = take_number(in).value_or(0);
  for (uint64_t i = 0; i < count; ++i) {
    std::optional<std::string> name = take_name(in);
    if (!name || in.empty()) return;
    const uint8_t kind = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    if (!take_number(in)) return;
    if (kind == kFunction) out.functions.insert(*std::move(name));
    if (kind == kMemory) out.memories.insert(*std::move(name));
  }
}

std::unexpected<Error> refused(std::string why) {
  return fail(Code::unprocessable, "wasm.error", "wasm runtime error: " + std::move(why));
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
    if (id == kImportSection) inspect_imports(section, out);
    if (id == kCodeSection) TRY_OK(inspect_code(section));
    for (const CountedSection& counted : kCounted) {
      if (counted.section != id) continue;
      BytesView left = section;
      const uint64_t count = take_number(left).value_or(0);
      TRY_OK(within(counted.entries, count, counted.max));
    }
    if (id == kExportSection) inspect_exports(section, out);
  }
  return out;
}

Result<void> check_upload(BytesView bytes) {
  TRY(ModuleShape shape, inspect(bytes));
  if (shape.has_start)
    return refused(
        "the module has a start function, which would run before every step; build it as a library "
        "without an entry (for example with --no-entry)");
  if (!shape.first_import.empty())
    return refused("the module imports '" + shape.first_import +
                   "'; a module of a world may import nothing: build it without WASI and without "
                   "undefined functions");
  return {};
}

Result<void> check_module(BytesView bytes, const std::set<std::string>& entrypoints) {
  if (!looks_like_module(bytes) || bytes.size() < kHeaderBytes)
    return refused("the bytes are not a WASM module: it begins with 00 61 73 6d");
  TRY_OK(check_upload(bytes));
  TRY(ModuleShape shape, inspect(bytes));
  std::string missing;
  auto want = [&](const std::string& what, bool there) {
    if (!there) missing += (missing.empty() ? "" : ", ") + what;
  };
  want("the memory 'memory'", shape.memories.contains("memory"));
  want("the function 'alloc'", shape.functions.contains("alloc"));
  for (const std::string& entrypoint : entrypoints)
    want("the function '" + entrypoint + "'", shape.functions.contains(entrypoint));
  if (missing.empty()) return {};
  return refused("the module does not export " + missing);
}

}  // namespace pawl::wasm
