// The content-addressed store: blobs and workspace trees.

#include "faces/worlds/service/service.h"
#include "json/text.h"
#include "wasm/inspect.h"

namespace pawl::worlds {

void Service::put_blob(const Caller& caller, Bytes bytes, Reply done) {
  if (!wasm::looks_like_module(bytes))
    return submit(caller, "put_blob", std::move(bytes), std::move(done));
  if (auto accepted = wasm::check_upload(bytes); !accepted)
    return done(fail(std::move(accepted.error())));
  const size_t size = bytes.size();
  compile_then(caller.tenant, size, std::move(done),
               [this, caller, bytes = std::move(bytes)](Reply answer) mutable {
                 program_.runtime().modules.warm(bytes);
                 submit(caller, "put_blob", std::move(bytes), std::move(answer));
               });
}

Result<Bytes> Service::blob(const std::string& tenant, BytesView digest) const {
  TRY(Cell cell, kernel_.read(blob_key(tenant, digest)));
  if (!cell.exists())
    return fail(
        Code::not_found, "not_found",
        "blob " + hash_text(digest) + " is not in the store: PUT it to /v1/cas/blobs first");
  TRY(Blob blob, decode_blob(digest, cell.value()));
  return std::move(blob.bytes);
}

// The same read as blob(), with the reasons of the store instead of those of the HTTP routes.
IndexStore Service::read_store(const std::string& tenant) const {
  return {[this, tenant](BytesView digest) -> Result<Bytes> {
            TRY(Cell cell, kernel_.read(blob_key(tenant, digest)));
            if (!cell.exists())
              return fail(Code::not_found, "store.error",
                          "blob " + hash_text(digest) + " is not in the store");
            TRY(Blob blob, decode_blob(digest, cell.value()));
            return std::move(blob.bytes);
          },
          [](BytesView) -> Result<Bytes> {
            return fail(Code::internal, "store.error", "this store is read only");
          }};
}

void Service::collect_garbage(const Caller& caller, std::optional<Time> grace, Reply done) {
  Bytes body;
  // An empty body stands for the default grace.
  if (grace) Writer(body).sint(*grace);
  submit(caller, "collect", std::move(body), std::move(done));
}

void Service::edit_workspace(const Caller& caller, const json::Value& order, Reply done) {
  submit(caller, "workspace", json::print(order), std::move(done));
}

}  // namespace pawl::worlds
