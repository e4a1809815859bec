#pragma once
// A content-addressed index from key hash to entry, as a tree of blobs. A set of at most 64 entries
// is a leaf, sorted by key hash; a larger set is a branch over the next byte of the key hash. The
// root therefore depends on the set alone and not on the order of changes, and a change rewrites
// one path.

#include <functional>
#include <optional>
#include <vector>

#include "cbor/cbor.h"

namespace pawl::worlds {

// Where nodes lie: `get` fails for an unknown digest, `put` is idempotent. Both may be called many
// times per update.
struct IndexStore {
  std::function<Result<Bytes>(BytesView digest)> get;
  std::function<Result<Bytes>(BytesView bytes)> put;  // returns the digest
};

// An entry is a CBOR map whose `key_hash` is its place, as canonical() writes it, without the tag.
struct IndexChange {
  Bytes key_hash;                // 32 bytes
  std::optional<Bytes> entry{};  // nothing: the entry is removed
};

// Returns the new root; empty when no entry is left. An empty `root` is the empty index.
Result<Bytes> update_index(const IndexStore& store, BytesView root,
                           std::vector<IndexChange> changes);
// The same, but stops when about `max_bytes` of nodes are written. The changes are sorted, and the
// first `taken` of them are in the new root; at least one is.
struct IndexUpdate {
  Bytes root;
  size_t taken = 0, bytes = 0;
};
Result<IndexUpdate> update_index(const IndexStore& store, BytesView root,
                                 std::vector<IndexChange>& changes, size_t max_bytes);
// Nothing when the index has no such entry. Reads one node per level.
Result<std::optional<cbor::Value>> find_in_index(const IndexStore& store, BytesView root,
                                                 BytesView key_hash);
// Visits all entries by key hash, until `visit` returns false. A node is skipped when `enter` is
// given and returns false for it.
using VisitEntry = std::function<Result<bool>(const cbor::Value& entry)>;
using EnterNode = std::function<bool(BytesView digest)>;
Result<void> walk_index(const IndexStore& store, BytesView root, const VisitEntry& visit,
                        const EnterNode& enter = {});

// A digest as an array of 32 integers, which is how the peers write it.
cbor::Value digest_array(BytesView digest);
Result<Bytes> parse_digest_array(const cbor::Value* value);

}  // namespace pawl::worlds
