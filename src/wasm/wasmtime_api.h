#pragma once
// The part of the C API of Wasmtime 50 that we call. The library is loaded at run time and not
// linked, so every function is a pointer, which load() sets. The structs have the layout of those
// in wasmtime.h.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace pawl::wasm::api {

struct Config;
struct Pooling;
struct Engine;
struct Module;
struct Store;
struct Context;
struct Linker;
struct InstancePre;
struct Fault;  // wasmtime_error_t
struct Trap;
struct FuncType;
struct ValType;
struct ExportType;

template <class T>
struct Vec {  // wasm_*_vec_t
  size_t size;
  T* data;
};
using ByteVec = Vec<char>;
using ExportVec = Vec<ExportType*>;
using ValTypeVec = Vec<ValType*>;

struct Func {
  uint64_t store_id;
  void* own;
};
struct Memory {
  uint64_t store_id;
  uint32_t own[4];
};
struct Instance {
  uint64_t store_id;
  size_t own;
};
struct Extern {
  uint8_t kind;
  union Of {
    Func func;
    Memory memory;
    uint64_t room[3];
  } of;
};
struct Val {
  uint8_t kind;
  union Of {
    int32_t i32;
    uint64_t room[3];
  } of;
};
static_assert(sizeof(Func) == 16 && sizeof(Memory) == 24 && sizeof(Instance) == 16 &&
              sizeof(Extern) == 32 && sizeof(Val) == 32);

inline constexpr uint8_t kFunc = 0, kMemory = 3;  // of Extern
inline constexpr uint8_t kI32 = 0;                // of Val and of value types
inline constexpr uint8_t kTrapOutOfFuel = 11;

// The functions: the name in the library and the C type.
#define PAWL_WASMTIME(X)                                                                         \
  X(wasm_config_new, Config*())                                                                  \
  X(wasmtime_config_consume_fuel_set, void(Config*, bool))                                       \
  X(wasmtime_config_cranelift_nan_canonicalization_set, void(Config*, bool))                     \
  X(wasmtime_config_wasm_threads_set, void(Config*, bool))                                       \
  X(wasmtime_config_wasm_relaxed_simd_set, void(Config*, bool))                                  \
  X(wasmtime_config_wasm_multi_value_set, void(Config*, bool))                                   \
  X(wasmtime_config_wasm_reference_types_set, void(Config*, bool))                               \
  X(wasmtime_config_wasm_memory64_set, void(Config*, bool))                                      \
  X(wasmtime_config_max_wasm_stack_set, void(Config*, size_t))                                   \
  X(wasmtime_config_parallel_compilation_set, void(Config*, bool))                               \
  X(wasmtime_pooling_allocation_config_new, Pooling*())                                          \
  X(wasmtime_pooling_allocation_config_delete, void(Pooling*))                                   \
  X(wasmtime_pooling_allocation_config_total_core_instances_set, void(Pooling*, uint32_t))       \
  X(wasmtime_pooling_allocation_config_total_memories_set, void(Pooling*, uint32_t))             \
  X(wasmtime_pooling_allocation_config_total_tables_set, void(Pooling*, uint32_t))               \
  X(wasmtime_pooling_allocation_config_linear_memory_keep_resident_set, void(Pooling*, size_t))  \
  X(wasmtime_pooling_allocation_strategy_set, void(Config*, const Pooling*))                     \
  X(wasm_engine_new_with_config, Engine*(Config*))                                               \
  X(wasm_engine_delete, void(Engine*))                                                           \
  X(wasmtime_module_new, Fault*(Engine*, const uint8_t*, size_t, Module**))                      \
  X(wasmtime_module_delete, void(Module*))                                                       \
  X(wasmtime_module_serialize, Fault*(Module*, ByteVec*))                                        \
  X(wasmtime_module_deserialize, Fault*(Engine*, const uint8_t*, size_t, Module**))              \
  X(wasmtime_module_imports, void(const Module*, ExportVec*))                                    \
  X(wasm_importtype_vec_delete, void(ExportVec*))                                                \
  X(wasmtime_module_exports, void(const Module*, ExportVec*))                                    \
  X(wasm_exporttype_vec_delete, void(ExportVec*))                                                \
  X(wasm_exporttype_name, const ByteVec*(const ExportType*))                                     \
  X(wasmtime_linker_new, Linker*(Engine*))                                                       \
  X(wasmtime_linker_delete, void(Linker*))                                                       \
  X(wasmtime_linker_instantiate_pre, Fault*(const Linker*, const Module*, InstancePre**))        \
  X(wasmtime_instance_pre_instantiate, Fault*(const InstancePre*, Context*, Instance*, Trap**))  \
  X(wasmtime_instance_pre_delete, void(InstancePre*))                                            \
  X(wasmtime_store_new, Store*(Engine*, void*, void (*)(void*)))                                 \
  X(wasmtime_store_context, Context*(Store*))                                                    \
  X(wasmtime_store_limiter, void(Store*, int64_t, int64_t, int64_t, int64_t, int64_t))           \
  X(wasmtime_store_delete, void(Store*))                                                         \
  X(wasmtime_context_set_fuel, Fault*(Context*, uint64_t))                                       \
  X(wasmtime_context_get_fuel, Fault*(const Context*, uint64_t*))                                \
  X(wasmtime_instance_export_get, bool(Context*, const Instance*, const char*, size_t, Extern*)) \
  X(wasmtime_func_call, Fault*(Context*, const Func*, const Val*, size_t, Val*, size_t, Trap**)) \
  X(wasmtime_func_type, FuncType*(const Context*, const Func*))                                  \
  X(wasm_functype_delete, void(FuncType*))                                                       \
  X(wasm_functype_params, const ValTypeVec*(const FuncType*))                                    \
  X(wasm_functype_results, const ValTypeVec*(const FuncType*))                                   \
  X(wasm_valtype_kind, uint8_t(const ValType*))                                                  \
  X(wasmtime_memory_data, uint8_t*(const Context*, const Memory*))                               \
  X(wasmtime_memory_data_size, size_t(const Context*, const Memory*))                            \
  X(wasmtime_error_message, void(const Fault*, ByteVec*))                                        \
  X(wasmtime_error_delete, void(Fault*))                                                         \
  X(wasm_byte_vec_delete, void(ByteVec*))                                                        \
  X(wasmtime_trap_code, bool(const Trap*, uint8_t*))                                             \
  X(wasm_trap_delete, void(Trap*))

struct Library {
#define PAWL_FIELD(name, type) std::add_pointer_t<type> name = nullptr;
  PAWL_WASMTIME(PAWL_FIELD)
#undef PAWL_FIELD
};

// Loads the library and finds every function. The library is never unloaded.
Result<Library> load(const std::string& path);

}  // namespace pawl::wasm::api
