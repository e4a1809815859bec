#include "wasm/host.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace pawl::wasm {
namespace {

// Output larger than this is the module's fault: no envelope may be.
constexpr size_t kOutputBytes = 16u << 20;
// Stack of a module: within what threads have, and the same everywhere.
constexpr size_t kStackBytes = 512u << 10;
// Instances alive at once: one a shard, with some to spare.
constexpr uint32_t kInstances = 64;
constexpr size_t kResidentBytes = 1u << 20;
// Compiled modules in memory; one that is let go comes back from its file.
constexpr size_t kKeptModules = 256;
constexpr int64_t kTables = 16, kTableElements = 100'000;

std::unexpected<Error> faulty(std::string why) {
  return fail(Code::unprocessable, "wasm.error", "wasm runtime error: " + std::move(why));
}

// The words are ours, so that a recorded failure does not depend on the library's.
std::string trap_words(uint8_t code) {
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
  if (n <= 0) return ".";
  const std::string full(path, static_cast<size_t>(n));
  return full.substr(0, full.rfind('/'));
}

}  // namespace

std::vector<std::string> usual_libraries() {
  std::vector<std::string> out;
  if (const char* named = std::getenv("PAWL_WASMTIME")) out.emplace_back(named);
  const std::string here = program_folder();
  for (const std::string& folder : {here, here + "/..", std::string(".")})
    out.push_back(folder + "/.cache/wasmtime/libwasmtime.so");
  out.emplace_back("libwasmtime.so");
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

Result<void> Host::open() const {
  if (engine_) return {};
  std::string tried;
  for (const std::string& path : options_.libraries) {
    auto lib = api::load(path);
    if (!lib) {
      tried += (tried.empty() ? "" : "; ") + path + ": " + lib.error().message;
      continue;
    }
    lib_ = *lib;
    api::Config* config = lib_.wasm_config_new();
    lib_.wasmtime_config_consume_fuel_set(config, true);
    lib_.wasmtime_config_cranelift_nan_canonicalization_set(config, true);
    lib_.wasmtime_config_wasm_threads_set(config, false);
    lib_.wasmtime_config_wasm_relaxed_simd_set(config, false);
    lib_.wasmtime_config_wasm_memory64_set(config, false);
    lib_.wasmtime_config_wasm_multi_value_set(config, true);
    lib_.wasmtime_config_wasm_reference_types_set(config, true);
    lib_.wasmtime_config_max_wasm_stack_set(config, kStackBytes);
    // A pool reserves address space ahead; where that is rationed, instances are made one by one.
    rlimit space{};
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY) {
      api::Pooling* pool = lib_.wasmtime_pooling_allocation_config_new();
      lib_.wasmtime_pooling_allocation_config_total_core_instances_set(pool, kInstances);
      lib_.wasmtime_pooling_allocation_config_total_memories_set(pool, kInstances);
      lib_.wasmtime_pooling_allocation_config_total_tables_set(pool, kInstances);
      lib_.wasmtime_pooling_allocation_config_linear_memory_keep_resident_set(pool, kResidentBytes);
      lib_.wasmtime_pooling_allocation_strategy_set(config, pool);
      lib_.wasmtime_pooling_allocation_config_delete(pool);
    }
    engine_ = lib_.wasm_engine_new_with_config(config);
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

Error Host::own_fault(api::Fault* fault, std::string_view doing) const {
  api::ByteVec text{};
  lib_.wasmtime_error_message(fault, &text);
  Error error{
      Code::unprocessable, "wasm.error",
      "wasm runtime error: " + std::string(doing) + ": " + std::string(text.data, text.size)};
  lib_.wasm_byte_vec_delete(&text);
  lib_.wasmtime_error_delete(fault);
  return error;
}

Result<std::shared_ptr<const Host::Compiled>> Host::compiled(BytesView hash, const Fetch& fetch) {
  {
    std::lock_guard lock(mutex_);
    if (auto it = modules_.find(hash); it != modules_.end()) return it->second;
    TRY_OK(open());
  }
  // Without the lock: a large module takes a while, and others must not wait for it.
  TRY(api::Module * module, compile(hash, fetch));
  TRY(auto ready, prepare(module));
  std::lock_guard lock(mutex_);
  if (modules_.size() >= kKeptModules) modules_.erase(modules_.begin());
  return modules_.emplace(Bytes(hash), std::move(ready)).first->second;
}

// Everything that can be found out once: its exports, that it imports nothing, how to instantiate
// it.
Result<std::shared_ptr<const Host::Compiled>> Host::prepare(api::Module* module) const {
  api::ExportVec imports{}, exports{};
  lib_.wasmtime_module_imports(module, &imports);
  const size_t wants = imports.size;
  lib_.wasm_importtype_vec_delete(&imports);
  if (wants > 0) {
    lib_.wasmtime_module_delete(module);
    return faulty("the module has " + std::to_string(wants) +
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
    return fail(own_fault(fault, "link"));
  }
  return std::shared_ptr<const Compiled>(new Compiled{lib_, module, pre, std::move(names)});
}

// One call: a store, fuel, a memory limit, an instance; all gone at its end.
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
    api::Trap* trap = nullptr;
    TRY_OK(checked(lib_.wasmtime_instance_pre_instantiate(module.pre, context_, &instance_, &trap),
                   trap, "instantiate"));
    TRY(api::Func step, function(entrypoint));
    TRY(api::Func alloc, function("alloc"));
    if (shape(alloc) != Shape{true, 1, 1}) return faulty("'alloc' is not (i32) -> (i32)");
    api::Extern memory{};
    if (!lib_.wasmtime_instance_export_get(context_, &instance_, "memory", 6, &memory) ||
        memory.kind != api::kMemory)
      return faulty("the module exports no memory named 'memory'");
    memory_ = memory.of.memory;
    TRY(uint32_t at, allocate(alloc, input.size()));
    TRY_OK(write(at, input));
    TRY(bool pair, gives_pair(step, entrypoint));
    uint32_t out_at = 0, out_size = 0;
    if (pair) {
      api::Val arguments[2] = {number(at), number(static_cast<uint32_t>(input.size()))},
               results[2]{};
      TRY_OK(call(step, arguments, 2, results, 2));
      out_at = static_cast<uint32_t>(results[0].of.i32),
      out_size = static_cast<uint32_t>(results[1].of.i32);
    } else {
      TRY(uint32_t ret, allocate(alloc, 8));
      api::Val arguments[3] = {number(ret), number(at),
                               number(static_cast<uint32_t>(input.size()))};
      TRY_OK(call(step, arguments, 3, nullptr, 0));
      TRY(Bytes words, read(ret, 8));
      std::memcpy(&out_at, words.data(), 4);
      std::memcpy(&out_size, words.data() + 4, 4);
    }
    if (out_size > kOutputBytes)
      return faulty("the output of " + std::to_string(out_size) + " bytes is over " +
                    std::to_string(kOutputBytes));
    TRY(Bytes output, read(out_at, out_size));
    uint64_t left = 0;
    if (api::Fault* fault = lib_.wasmtime_context_get_fuel(context_, &left))
      lib_.wasmtime_error_delete(fault);
    return Outcome{std::move(output), limits_.fuel - std::min(left, limits_.fuel)};
  }

 private:
  static api::Val number(uint32_t v) {
    api::Val out{};
    out.kind = api::kI32;
    out.of.i32 = static_cast<int32_t>(v);
    return out;
  }

  Result<void> checked(api::Fault* fault, api::Trap* trap, std::string_view doing) {
    if (trap) {
      uint8_t code = 255;
      lib_.wasmtime_trap_code(trap, &code);
      lib_.wasm_trap_delete(trap);
      if (code == api::kTrapOutOfFuel)
        return faulty(std::string(doing) + " used up its fuel of " + std::to_string(limits_.fuel));
      return faulty(std::string(doing) + " trap: " + trap_words(code));
    }
    if (fault) {
      lib_.wasmtime_error_delete(fault);
      return faulty(std::string(doing) +
                    " failed: the module asks for more than the limits of the world allow");
    }
    return {};
  }

  Result<api::Func> function(std::string_view name) {
    api::Extern found{};
    if (!lib_.wasmtime_instance_export_get(context_, &instance_, name.data(), name.size(),
                                           &found) ||
        found.kind != api::kFunc)
      return faulty("the module exports no function named '" + std::string(name) + "'");
    return found.of.func;
  }

  bool all_i32(const api::ValTypeVec* types) const {
    for (size_t i = 0; i < types->size; ++i)
      if (lib_.wasm_valtype_kind(types->data[i]) != api::kI32) return false;
    return true;
  }

  struct Shape {
    bool ints;
    size_t takes, gives;
    bool operator==(const Shape&) const = default;
  };
  Shape shape(const api::Func& func) const {
    api::FuncType* type = lib_.wasmtime_func_type(context_, &func);
    const api::ValTypeVec* params = lib_.wasm_functype_params(type);
    const api::ValTypeVec* results = lib_.wasm_functype_results(type);
    const Shape out{all_i32(params) && all_i32(results), params->size, results->size};
    lib_.wasm_functype_delete(type);
    return out;
  }

  // (ptr, len) -> (ptr, len), or (ret, ptr, len) -> () with the pair written at ret.
  Result<bool> gives_pair(const api::Func& func, std::string_view name) const {
    const Shape found = shape(func);
    if (found == Shape{true, 2, 2}) return true;
    if (found == Shape{true, 3, 0}) return false;
    return faulty("'" + std::string(name) +
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
    api::Val argument = number(static_cast<uint32_t>(size)), result{};
    TRY_OK(call(alloc, &argument, 1, &result, 1));
    return static_cast<uint32_t>(result.of.i32);
  }

  Result<void> write(uint32_t at, BytesView bytes) {
    const size_t size = lib_.wasmtime_memory_data_size(context_, &memory_);
    if (at > size || bytes.size() > size - at)
      return faulty("alloc gave memory that does not exist");
    if (!bytes.empty())
      std::memcpy(lib_.wasmtime_memory_data(context_, &memory_) + at, bytes.data(), bytes.size());
    return {};
  }

  Result<Bytes> read(uint32_t at, size_t count) {
    const size_t size = lib_.wasmtime_memory_data_size(context_, &memory_);
    if (at > size || count > size - at)
      return faulty("the output lies outside the module's memory");
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
                           BytesView input, const Limits& limits) {
  TRY(auto module, compiled(hash, fetch));
  return Call(lib_, engine_, limits).run(*module, entrypoint, input);
}

Result<bool> Host::has_export(BytesView hash, const Fetch& fetch, std::string_view name) {
  TRY(auto module, compiled(hash, fetch));
  return module->has(name);
}

}  // namespace pawl::wasm
