#pragma once
// The content-addressed store, as a turn sees it: bytes under their own hash, stored once per
// tenant and checked on every read.

#include "faces/worlds/air/name.h"
#include "faces/worlds/snapshot/cell_index.h"
#include "faces/worlds/store/keys.h"
#include "kernel/turn.h"

namespace pawl::worlds {

inline constexpr Time kBlobGrace = 3600 * kSecond;  // a blob just put may not be referred to yet

// A blob's cell: when it was put, and the bytes.
Bytes encode_blob(Time at, BytesView bytes);
struct Blob {
  Time at;
  Bytes bytes;
};
// `corrupt` store.error when the bytes are not those that the hash names.
Result<Blob> decode_blob(BytesView hash, BytesView cell);

class Blobs {
 public:
  Blobs(Turn& turn, std::string tenant) : turn_(turn), tenant_(std::move(tenant)) {}
  Result<Bytes> put(BytesView bytes);  // returns the digest
  // The same for a blob that nothing refers to yet. When the blob exists already, its grace period
  // before garbage collection starts anew.
  Result<Bytes> put_anew(BytesView bytes);
  // not_found with "missing_cas_dependency" in the text, which is the original's word for it.
  Result<Bytes> get(BytesView digest) const;
  Result<bool> has(BytesView digest) const;
  IndexStore index_store();  // refers to these blobs

 private:
  Turn& turn_;
  std::string tenant_;
};

}  // namespace pawl::worlds
