#include "wasm/host.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace pawl::wasm {
namespace {

// Size of the output of a call, which is that of the largest cell. More is a fault of the module.
constexpr size_t kOutputBytes = 16u << 20;
// Stack of a module. It fits into the stack of every thread, and it is the same on every machine,
// so that a deep recursion always fails at the same depth.
constexpr size_t kStackBytes = 512u << 10;
// Instances that may exist at the same time in Wasmtime's pool; each shard needs one. With more, a
// call fails.
constexpr uint32_t kInstances = 64;
// Memory of an instance that stays mapped in the pool between two calls.
constexpr size_t kResidentBytes = 1u << 20;
// Compiled modules in memory. When there are more, the one that was not used for longest is
// dropped, and read from its file when it is used again.
constexpr size_t kCachedModules = 256;
// Tables of a module and elements of each. A module that needs more cannot be instantiated.
constexpr int64_t kTables = 16;
constexpr int64_t kTableElements = 100'000;

std::unexpected<Error> module_error(std::string why) {
  return fail(Code::unprocessable, "wasm.error", "wasm runtime error: " + std::move(why));
}

// Journals record these texts, so they must not depend on the version of Wasmtime.
std::string trap_text(uint8_t code) {
  static constexpr std::array<std::string_view, 12> kWords{"stack overflow",
                                                           "memory out of bounds",
                                                           "heap misaligned",
                                                           "table out of bounds",
                                                           "indirect call to null",
                                                           "bad signature",
                                                           "integer overflow",
                                                           "integer division by zero",
                                                           "bad conversion to integer",
                                                           "unreachable code reached",
                                                           "interrupt",
                                                           "out of fuel"};
  return code < kWords.size() ? std::string(kWords[code]) : "code " + std::to_string(code);
}

std::string program_folder() {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  if (n <= 0) return "/nonexistent";
  const std::string full(path, static_cast<size_t>(n));
  return full.substr(0, full.rfind('/'));
}

}  // namespace

std::vector<std::string> usual_libraries() {
  std::vector<std::string> out;
  if (const char* named = std::getenv("PAWL_WASMTIME")) out.emplace_back(named);
  const std::string here = program_folder();
  // Never in the working directory: whoever can write there would run code in the server.
  for (const char* path : {"/.cache/wasmtime", "/../.cache/wasmtime", "/../lib/pawl", "/../lib"})
    out.push_back(here + path + "/libwasmtime.so");
  for (const char* path :
       {"libwasmtime.so", "/usr/local/lib/libwasmtime.so", "/usr/lib/pawl/libwasmtime.so"})
    out.emplace_back(path);
  return out;
}

struct Host::Compiled {
  const api::Library& lib;
  api::Module* module;
  api::InstancePre* pre;
  std::vector<std::string> exports;
  ~Compiled() {
    lib.wasmtime_instance_pre_delete(pre);
    lib.wasmtime_module_delete(module);
  }
  bool has(std::string_view name) const {
    for (const std::string& e : exports)
      if (e == name) return true;
    return false;
  }
};

Host::~Host() {
  modules_.clear();
  if (engine_) lib_.wasm_engine_delete(engine_);
}

// The configuration makes every call deterministic: fuel in place of time, one form of NaN, no
// threads and no relaxed SIMD.
api::Config* Host::make_config() const {
  api::Config* config = lib_.wasm_config_new();
  lib_.wasmtime_config_consume_fuel_set(config, true);
  lib_.wasmtime_config_cranelift_nan_canonicalization_set(config, true);
  lib_.wasmtime_config_wasm_threads_set(config, false);
  lib_.wasmtime_config_wasm_relaxed_simd_set(config, false);
  lib_.wasmtime_config_wasm_memory64_set(config, false);
  lib_.wasmtime_config_wasm_multi_value_set(config, true);
  lib_.wasmtime_config_wasm_reference_types_set(config, true);
  lib_.wasmtime_config_max_wasm_stack_set(config, kStackBytes);
  // One thread compiles a module: otherwise a large module would take every processor.
  lib_.wasmtime_config_parallel_compilation_set(config, false);
  // A pool reserves much address space in advance. Where address space is limited, every instance
  // is allocated on its own.
  rlimit address_space{};
  if (getrlimit(RLIMIT_AS, &address_space) != 0) return config;
  if (address_space.rlim_cur != RLIM_INFINITY) return config;
  api::Pooling* pool = lib_.wasmtime_pooling_allocation_config_new();
  lib_.wasmtime_pooling_allocation_config_total_core_instances_set(pool, kInstances);
  lib_.wasmtime_pooling_allocation_config_total_memories_set(pool, kInstances);
  lib_.wasmtime_pooling_allocation_config_total_tables_set(pool, kInstances);
  lib_.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, kResidentBytes);
  lib_.wasmtime_pooling_allocation_strategy_set(config, pool);
  lib_.wasmtime_pooling_allocation_config_delete(pool);
  return config;
}

Result<void> Host::open() const {
  if (engine_) return {};
  std::string tried;
  for (const std::string& path : options_.libraries) {
    Result<api::Library> library = api::load(path);
    if (!library) {
      tried += (tried.empty() ? "" : "; ") + path + ": " + library.error().message;
      continue;
    }
    lib_ = *library;
    engine_ = lib_.wasm_engine_new_with_config(make_config());
    if (engine_) return {};
    tried += path + ": no engine";
  }
  return fail(
      Code::unavailable, "WASMTIME_MISSING",
      "a WASM module is needed and Wasmtime " + std::string(kWasmtimeVersion) +
          " is not installed: run scripts/setup-wasm, or set PAWL_WASMTIME to libwasmtime.so (" +
          tried + ")");
}

std::string Host::version() const {
  std::lock_guard lock(mutex_);
  return open() ? "wasmtime " + std::string(kWasmtimeVersion) : std::string();
}

// Turns an error of Wasmtime into ours and frees it.
Error Host::fault_error(api::Fault* fault, std::string_view doing) const {
  api::ByteVec text{};
  lib_.wasmtime_error_message(fault, &text);
  Error error{
      Code::unprocessable, "wasm.error",
      "wasm runtime error: " + std::string(doing) + ": " + std::string(text.data, text.size)};
  lib_.wasm_byte_vec_delete(&text);
  lib_.wasmtime_error_delete(fault);
  return error;
}

const Host::Cached* Host::find_cached(BytesView hash) {
  auto it = modules_.find(hash);
  if (it == modules_.end()) return nullptr;
  it->second.used = ++uses_;
  return &it->second;
}

void Host::keep(BytesView hash, Result<std::shared_ptr<const Compiled>> module) {
  if (modules_.size() >= kCachedModules)
    modules_.erase(std::min_element(
        modules_.begin(), modules_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  modules_.insert_or_assign(Bytes(hash), Cached{std::move(module), ++uses_});
}

bool Host::is_ready(BytesView hash) {
  std::lock_guard lock(mutex_);
  return find_cached(hash) || !open();
}

Result<std::shared_ptr<const Host::Compiled>> Host::compiled(BytesView hash, const Fetch& fetch) {
  {
    std::lock_guard lock(mutex_);
    if (const Cached* cached = find_cached(hash)) return cached->module;
    TRY_OK(open());
  }
  // Compiling a large module takes long, so other calls must not wait for the lock meanwhile.
  Result<std::shared_ptr<const Compiled>> ready;
  if (auto module = compile(hash, fetch))
    ready = prepare(*module);
  else
    ready = fail(std::move(module.error()));
  // A fault of the module stays. Others, such as bytes that cannot be read, may go away.
  if (!ready && ready.error().code != Code::unprocessable) return ready;
  std::lock_guard lock(mutex_);
  keep(hash, ready);
  return ready;
}

// Does the work that is needed once for each module: lists its exports, checks that it has no
// imports and prepares its instantiation. Takes ownership of `module`.
Result<std::shared_ptr<const Host::Compiled>> Host::prepare(api::Module* module) const {
  api::ExportVec imports{};
  api::ExportVec exports{};
  lib_.wasmtime_module_imports(module, &imports);
  const size_t import_count = imports.size;
  lib_.wasm_importtype_vec_delete(&imports);
  if (import_count > 0) {
    lib_.wasmtime_module_delete(module);
    return module_error("the module has " + std::to_string(import_count) +
                        " imports; modules of worlds import nothing");
  }
  std::vector<std::string> names;
  lib_.wasmtime_module_exports(module, &exports);
  for (size_t i = 0; i < exports.size; ++i) {
    const api::ByteVec* name = lib_.wasm_exporttype_name(exports.data[i]);
    names.emplace_back(name->data, name->size);
  }
  lib_.wasm_exporttype_vec_delete(&exports);
  api::Linker* linker = lib_.wasmtime_linker_new(engine_);
  api::InstancePre* pre = nullptr;
  api::Fault* fault = lib_.wasmtime_linker_instantiate_pre(linker, module, &pre);
  lib_.wasmtime_linker_delete(linker);
  if (fault) {
    lib_.wasmtime_module_delete(module);
    return fail(fault_error(fault, "link"));
  }
  return std::shared_ptr<const Compiled>(new Compiled{lib_, module, pre, std::move(names)});
}

// One call of a module. It owns a store with the instance, its memory and its fuel.
class Host::Call {
 public:
  Call(const api::Library& lib, api::Engine* engine, const Limits& limits)
      : lib_(lib), limits_(limits) {
    store_ = lib_.wasmtime_store_new(engine, nullptr, nullptr);
    lib_.wasmtime_store_limiter(store_, static_cast<int64_t>(limits.memory_bytes), kTableElements,
                                1, kTables, 1);
    context_ = lib_.wasmtime_store_context(store_);
    if (api::Fault* fault = lib_.wasmtime_context_set_fuel(context_, limits.fuel))
      lib_.wasmtime_error_delete(fault);
  }
  ~Call() { lib_.wasmtime_store_delete(store_); }
  Call(const Call&) = delete;

  Result<Outcome> run(const Compiled& module, std::string_view entrypoint, BytesView input) {
    TRY_OK(instantiate(module));
    TRY(api::Func step, function(entrypoint));
    TRY(api::Func alloc, function("alloc"));
    if (signature(alloc) != Signature{true, 1, 1})
      return module_error("'alloc' is not (i32) -> (i32)");
    api::Extern memory{};
    if (!lib_.wasmtime_instance_export_get(context_, &instance_, "memory", 6, &memory) ||
        memory.kind != api::kMemory)
      return module_error("the module exports no memory named 'memory'");
    memory_ = memory.of.memory;
    const uint32_t input_size = static_cast<uint32_t>(input.size());
    TRY(uint32_t input_at, allocate(alloc, input_size));
    TRY_OK(write(input_at, input));
    TRY(bool returns_pair, returns_pair_of(step, entrypoint));
    Slice out;
    if (returns_pair) {
      TRY(out, call_with_pair(step, {input_at, input_size}));
    } else {
      TRY(out, call_with_pointer(step, alloc, {input_at, input_size}));
    }
    if (out.size > kOutputBytes)
      return module_error("the output of " + std::to_string(out.size) + " bytes is over " +
                          std::to_string(kOutputBytes));
    TRY(Bytes output, read(out.at, out.size));
    return Outcome{std::move(output), used_fuel()};
  }

  uint64_t used_fuel() const {
    uint64_t left = 0;
    if (api::Fault* fault = lib_.wasmtime_context_get_fuel(context_, &left))
      lib_.wasmtime_error_delete(fault);
    return limits_.fuel - std::min(left, limits_.fuel);
  }

 private:
  // A range of bytes in the memory of the module.
  struct Slice {
    uint32_t at = 0;
    uint32_t size = 0;
  };

  // Makes the instance. Its data and element segments are copied and its start function runs, so
  // this traps as a call does.
  Result<void> instantiate(const Compiled& module) {
    api::Trap* trap = nullptr;
    // A statement of its own: `trap` has its value only after the call.
    api::Fault* fault =
        lib_.wasmtime_instance_pre_instantiate(module.pre, context_, &instance_, &trap);
    return checked(fault, trap, "instantiate");
  }

  // Calls a step of the form (at, size) -> (at, size).
  Result<Slice> call_with_pair(const api::Func& step, Slice input) {
    api::Val arguments[2] = {number(input.at), number(input.size)};
    api::Val results[2]{};
    TRY_OK(call(step, arguments, 2, results, 2));
    return Slice{static_cast<uint32_t>(results[0].of.i32),
                 static_cast<uint32_t>(results[1].of.i32)};
  }

  // Calls a step of the form (result, at, size) -> (), which writes the slice of its output at
  // `result`.
  Result<Slice> call_with_pointer(const api::Func& step, const api::Func& alloc, Slice input) {
    TRY(uint32_t result, allocate(alloc, sizeof(Slice)));
    api::Val arguments[3] = {number(result), number(input.at), number(input.size)};
    TRY_OK(call(step, arguments, 3, nullptr, 0));
    TRY(Bytes words, read(result, sizeof(Slice)));
    Slice out;
    std::memcpy(&out, words.data(), sizeof out);
    return out;
  }

  static api::Val number(uint32_t v) {
    api::Val out{};
    out.kind = api::kI32;
    out.of.i32 = static_cast<int32_t>(v);
    return out;
  }

  // Turns a trap or an error of Wasmtime into ours and frees it.
  Result<void> checked(api::Fault* fault, api::Trap* trap, std::string_view doing) {
    if (trap) {
      uint8_t code = 255;
      lib_.wasmtime_trap_code(trap, &code);
      lib_.wasm_trap_delete(trap);
      if (code == api::kTrapOutOfFuel)
        return module_error(std::string(doing) + " used up its fuel of " +
                            std::to_string(limits_.fuel));
      return module_error(std::string(doing) + " trap: " + trap_text(code));
    }
    if (fault) {
      lib_.wasmtime_error_delete(fault);
      return module_error(std::string(doing) +
                          " failed: the module asks for more than the limits of the world allow");
    }
    return {};
  }

  Result<api::Func> function(std::string_view name) {
    api::Extern found{};
    if (!lib_.wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(),
                                           &found) ||
        found.kind != api::kFunc)
      return module_error("the module exports no function named '" + std::string(name) + "'");
    return found.of.func;
  }

  bool all_i32(const api::ValTypeVec* types) const {
    for (size_t i = 0; i < types->size; ++i)
      if (lib_.wasm_valtype_kind(types->data[i]) != api::kI32) return false;
    return true;
  }

  struct Signature {
    bool all_i32;
    size_t parameters, results;
    bool operator==(const Signature&) const = default;
  };
  Signature signature(const api::Func& func) const {
    api::FuncType* type = lib_.wasmtime_func_type(context_, &func);
    const api::ValTypeVec* params = lib_.wasm_functype_params(type);
    const api::ValTypeVec* results = lib_.wasm_functype_results(type);
    const Signature out{all_i32(params) && all_i32(results), params->size, results->size};
    lib_.wasm_functype_delete(type);
    return out;
  }

  // True for (at, size) -> (at, size), false for (result, at, size) -> (); others are an error.
  Result<bool> returns_pair_of(const api::Func& func, std::string_view name) const {
    const Signature found = signature(func);
    if (found == Signature{true, 2, 2}) return true;
    if (found == Signature{true, 3, 0}) return false;
    return module_error("'" + std::string(name) +
                        "' is neither (i32, i32) -> (i32, i32) nor (i32, i32, i32) -> ()");
  }

  Result<void> call(const api::Func& func, const api::Val* arguments, size_t count,
                    api::Val* results, size_t result_count) {
    api::Trap* trap = nullptr;
    api::Fault* fault =
        lib_.wasmtime_func_call(context_, &func, arguments, count, results, result_count, &trap);
    return checked(fault, trap, "step");
  }

  Result<uint32_t> allocate(const api::Func& alloc, size_t size) {
    api::Val argument = number(static_cast<uint32_t>(size));
    api::Val result{};
    TRY_OK(call(alloc, &argument, 1, &result, 1));
    return static_cast<uint32_t>(result.of.i32);
  }

  Result<void> write(uint32_t at, BytesView bytes) {
    const size_t size = lib_.wasmtime_memory_data_size(context_, &memory_);
    if (at > size || bytes.size() > size - at)
      return module_error("alloc gave memory that does not exist");
    if (!bytes.empty())
      std::memcpy(lib_.wasmtime_memory_data(context_, &memory_) + at, bytes.data(), bytes.size());
    return {};
  }

  Result<Bytes> read(uint32_t at, size_t count) {
    const size_t size = lib_.wasmtime_memory_data_size(context_, &memory_);
    if (at > size || count > size - at)
      return module_error("the output lies outside the module's memory");
    return Bytes(reinterpret_cast<const char*>(lib_.wasmtime_memory_data(context_, &memory_)) + at,
                 count);
  }

  const api::Library& lib_;
  Limits limits_;
  api::Store* store_;
  api::Context* context_;
  api::Instance instance_{};
  api::Memory memory_{};
};

Result<Outcome> Host::call(BytesView hash, const Fetch& fetch, std::string_view entrypoint,
                           BytesView input, const Limits& limits, UsedFuel& used) {
  used = {};
  TRY(auto module, compiled(hash, fetch));
  Call call(lib_, engine_, limits);
  auto outcome = call.run(*module, entrypoint, input);
  used.fuel = call.used_fuel();
  return outcome;
}

Result<bool> Host::has_export(BytesView hash, const Fetch& fetch, std::string_view name) {
  TRY(auto module, compiled(hash, fetch));
  return module->has(name);
}

}  // namespace pawl::wasm
