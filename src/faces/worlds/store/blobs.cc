#include "faces/worlds/store/blobs.h"

namespace pawl::worlds {

Bytes encode_blob(Time at, BytesView bytes) {
  Bytes out;
  out.reserve(8 + bytes.size());
  Writer(out).fixed64(static_cast<uint64_t>(at));
  return out.append(bytes);
}

// Hashes the whole blob on every read: a blob that rotted on disk is reported, never handed on.
Result<Blob> decode_blob(BytesView hash, BytesView cell) {
  Reader r(cell);
  const Time at = static_cast<Time>(r.fixed64());
  if (!r.ok() || view(sha256(r.rest())) != hash)
    return fail(Code::corrupt, "store.error",
                "blob " + hash_text(hash) + " is damaged: put its bytes again");
  return Blob{at, Bytes(r.rest())};
}

Result<Bytes> Blobs::put(BytesView bytes) {
  Bytes digest(view(sha256(bytes)));
  const Key where = blob_key(tenant_, digest);
  TRY(Cell cell, turn_.read(where));
  // An existing blob is not compared: its hash is its name, and get() checks it.
  if (!cell.exists()) turn_.write(where, encode_blob(turn_.now(), bytes));
  return digest;
}

// Rewrites the blob only when half of its grace has passed: a blob that is put again and again then
// costs one write per half hour.
Result<Bytes> Blobs::put_anew(BytesView bytes) {
  TRY(Bytes digest, put(bytes));
  TRY(Cell cell, turn_.read(blob_key(tenant_, digest)));
  const Time at = static_cast<Time>(Reader(cell.value()).fixed64());
  if (turn_.now() - at > kBlobGrace / 2)
    turn_.write(blob_key(tenant_, digest), encode_blob(turn_.now(), bytes));
  return digest;
}

Result<Bytes> Blobs::get(BytesView digest) const {
  TRY(Cell cell, turn_.read(blob_key(tenant_, digest)));
  if (!cell.exists())
    return fail(
        Code::not_found, "store.error",
        "missing_cas_dependency: blob " + hash_text(digest) + " is not in the store: put it first");
  TRY(Blob blob, decode_blob(digest, cell.value()));
  return std::move(blob.bytes);
}

IndexStore Blobs::index_store() {
  return {[this](BytesView digest) { return get(digest); },
          [this](BytesView bytes) { return put(bytes); }};
}

Result<bool> Blobs::has(BytesView digest) const {
  TRY(Cell cell, turn_.read(blob_key(tenant_, digest)));
  return cell.exists();
}

}  // namespace pawl::worlds
