#pragma once
// A content-addressed index: key hash -> entry, as a tree of blobs. A set of at most 64 entries is
// a leaf, sorted by key hash; a larger one is a branch over the next byte of the key hash. So the
// root is a function of the set alone, whatever the order of changes, and a change rewrites one
// path.

#include <functional>
#include <optional>
#include <vector>

#include "cbor/cbor.h"

namespace pawl::worlds {

struct IndexStore {
  std::function<Result<Bytes>(BytesView digest)> get;
  std::function<Result<Bytes>(BytesView bytes)> put;  // gives the digest
};

// An entry is a CBOR map whose `key_hash` is its place, as canonical() writes it, without the tag.
struct IndexChange {
  Bytes key_hash;                // 32 bytes
  std::optional<Bytes> entry{};  // nothing: removed
};

// The new root; empty when nothing is left. An empty `root` is the empty index.
Result<Bytes> update_index(const IndexStore& store, BytesView root,
                           std::vector<IndexChange> changes);
// The same, but stops when about `most_bytes` of nodes are written: the first `taken` of the
// changes, which are sorted here, are in the new root. One is taken at least.
struct IndexUpdate {
  Bytes root;
  size_t taken = 0, bytes = 0;
};
Result<IndexUpdate> update_index(const IndexStore& store, BytesView root,
                                 std::vector<IndexChange>& changes, size_t max_bytes);
Result<std::optional<cbor::Value>> find_in_index(const IndexStore& store, BytesView root,
                                                 BytesView key_hash);
// All entries by key hash, until `visit` returns false. What lies below a node is passed over when
// `enter` is given and says so.
using VisitEntry = std::function<Result<bool>(const cbor::Value& entry)>;
using EnterNode = std::function<bool(BytesView digest)>;
Result<void> walk_index(const IndexStore& store, BytesView root, const VisitEntry& visit,
                        const EnterNode& enter = {});

// A digest as CBOR writes it here: 32 integers, as the peers do.
cbor::Value digest_array(BytesView digest);
Result<Bytes> parse_digest_array(const cbor::Value* value);

}  // namespace pawl::worlds
