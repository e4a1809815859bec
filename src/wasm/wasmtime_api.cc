#include "wasm/wasmtime_api.h"

#include <dlfcn.h>

namespace pawl::wasm::api {

Result<Library> load(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return fail(Code::unavailable, "WASMTIME_MISSING", why ? why : "cannot be opened");
  }
  Library out;
#define PAWL_FIND(name, type)                                                  \
  out.name = reinterpret_cast<std::add_pointer_t<type>>(dlsym(handle, #name)); \
  if (!out.name)                                                               \
    return fail(Code::unavailable, "WASMTIME_MISSING", path + " lacks " #name ": another version");
  PAWL_WASMTIME(PAWL_FIND)
#undef PAWL_FIND
  return out;
}

}  // namespace pawl::wasm::api
