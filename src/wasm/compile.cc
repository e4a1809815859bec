// Compiles modules and caches the result in files. A cache file begins with the SHA-256 of the
// rest, because Wasmtime does not check compiled code that it loads.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/hash.h"
#include "wasm/host.h"
#include "wasm/inspect.h"

namespace pawl::wasm {

Result<api::Module*> Host::compile(BytesView hash, const Fetch& fetch) {
  std::string path;
  if (!options_.cache_folder.empty()) {
    mkdir(options_.cache_folder.c_str(), 0755);
    path = options_.cache_folder + "/" + hex(hash) + "-" + std::string(kWasmtimeVersion) + ".cwasm";
    if (api::Module* module = read_cache(path)) return module;
  }
  TRY(Bytes bytes, fetch());
  if (view(sha256(bytes)) != hash)
    return fail(Code::corrupt, "store.error",
                "the module's bytes are not those that its hash names");
  TRY_OK(inspect(bytes));
  api::Module* module = nullptr;
  api::Fault* fault = lib_.wasmtime_module_new(
      engine_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), &module);
  if (fault) {
    lib_.wasmtime_error_delete(fault);
    return fail(Code::unprocessable, "wasm.error",
                "wasm runtime error: sha256:" + hex(hash) + " is no valid WASM module");
  }
  if (!path.empty()) write_cache(path, module);
  return module;
}

// Null when there is no valid file.
api::Module* Host::read_cache(const std::string& path) const {
  std::ifstream in(path, std::ios::binary);
  if (!in) return nullptr;
  std::stringstream all;
  all << in.rdbuf();
  const std::string bytes = std::move(all).str();
  constexpr size_t kHashBytes = sizeof(Digest);
  if (bytes.size() < kHashBytes) return nullptr;
  const BytesView hash = BytesView(bytes).substr(0, kHashBytes);
  const BytesView code = BytesView(bytes).substr(kHashBytes);
  if (view(sha256(code)) != hash) return nullptr;
  api::Module* module = nullptr;
  api::Fault* fault = lib_.wasmtime_module_deserialize(
      engine_, reinterpret_cast<const uint8_t*>(code.data()), code.size(), &module);
  if (!fault) return module;
  lib_.wasmtime_error_delete(fault);
  return nullptr;
}

// The file is written under another name and renamed, so readers see a complete file or none. When
// it cannot be written, the next process compiles the module again.
void Host::write_cache(const std::string& path, api::Module* module) const {
  api::ByteVec bytes{};
  if (api::Fault* fault = lib_.wasmtime_module_serialize(module, &bytes))
    return lib_.wasmtime_error_delete(fault);
  const BytesView code(bytes.data, bytes.size);
  const std::string temporary = path + "." + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << view(sha256(code)) << code;
  out.close();
  if (!out || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
  lib_.wasm_byte_vec_delete(&bytes);
}

}  // namespace pawl::wasm
