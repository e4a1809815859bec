// From bytes to a compiled module: from memory, from the cache folder, or by compiling. A file in
// the cache begins with the hash of what follows, because the library trusts what it loads.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "wasm/host.h"

namespace pawl::wasm {

Result<api::Module*> Host::compile(BytesView hash, const Fetch& fetch) {
  std::string path;
  if (!options_.cache_folder.empty()) {
    mkdir(options_.cache_folder.c_str(), 0755);
    path = options_.cache_folder + "/" + hex(hash) + "-" + std::string(kWasmtimeVersion) + ".cwasm";
    if (api::Module* module = from_file(path)) return module;
  }
  TRY(Bytes bytes, fetch());
  if (view(sha256(bytes)) != hash)
    return fail(Code::corrupt, "store.error",
                "the module's bytes are not those that its hash names");
  api::Module* module = nullptr;
  api::Fault* fault = lib_.wasmtime_module_new(
      engine_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &module);
  if (fault) {
    lib_.wasmtime_error_delete(fault);
    return fail(Code::unprocessable, "wasm.error",
                "wasm runtime error: sha256:" + hex(hash) + " is no valid WASM module");
  }
  if (!path.empty()) to_file(path, module);
  return module;
}

api::Module* Host::from_file(const std::string& path) const {
  std::ifstream in(path, std::ios::binary);
  if (!in) return nullptr;
  std::stringstream all;
  all << in.rdbuf();
  const std::string bytes = std::move(all).str();
  if (bytes.size() < 32 ||
      view(sha256(BytesView(bytes).substr(32))) != BytesView(bytes).substr(0, 32))
    return nullptr;
  api::Module* module = nullptr;
  api::Fault* fault = lib_.wasmtime_module_deserialize(
      engine_, reinterpret_cast<const uint8_t*>(bytes.data()) + 32, bytes.size() - 32, &module);
  if (!fault) return module;
  lib_.wasmtime_error_delete(fault);
  return nullptr;
}

// Written aside and renamed: a reader sees a whole file or none. Failing to write costs a
// compilation.
void Host::to_file(const std::string& path, api::Module* module) const {
  api::ByteVec bytes{};
  if (api::Fault* fault = lib_.wasmtime_module_serialize(module, &bytes))
    return lib_.wasmtime_error_delete(fault);
  const BytesView body(bytes.data, bytes.size);
  const std::string aside = path + "." + std::to_string(getpid());
  std::ofstream out(aside, std::ios::binary | std::ios::trunc);
  out << view(sha256(body)) << body;
  out.close();
  if (!out || rename(aside.c_str(), path.c_str()) != 0) unlink(aside.c_str());
  lib_.wasm_byte_vec_delete(&bytes);
}

}  // namespace pawl::wasm
