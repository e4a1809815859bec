#include "faces/worlds/snapshot/cell_index.h"

#include <algorithm>
#include <map>
#include <span>

#include "cbor/in.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// Part of the format: another number gives other roots for equal worlds.
constexpr size_t kLeafEntries = 64;
// Canonical order puts "c" before "t", so a node ends with its type, which is known before it is
// read.
constexpr BytesView kLeafEnd =
                        "\x61t\x64"
                        "Leaf",
                    kBranchEnd =
                        "\x61t\x66"
                        "Branch";  // "t" and its value
struct Entry {
  Bytes at;  // key hash
  Bytes raw;
};
using Entries = std::vector<Entry>;  // by key hash
using Span = std::span<IndexChange>;

std::unexpected<Error> damaged(BytesView digest) {
  return fail(Code::corrupt, "store.error",
              "cell index node sha256:" + hex(digest) + " is damaged");
}

// The key hash of an entry; empty, and `entry` not ok, when it has none.
Bytes world_of(cbor::In entry) {
  for (uint64_t n = entry.count(5); n > 0 && entry.ok(); --n) {
    if (entry.run(3) == "key_hash") return entry.bytes_of_array(32);
    entry.item();
  }
  entry.refuse();
  return Bytes();
}

struct IndexNode {
  bool leaf = true;
  Entries entries;                    // of a leaf
  std::map<uint8_t, Bytes> children;  // of a branch
};

class Tree {
 public:
  // An update stops entering further children once it has written `max_bytes`.
  explicit Tree(const IndexStore& store, size_t max_bytes = SIZE_MAX)
      : store_(store), most_bytes_(max_bytes) {}
  size_t taken() const { return taken_; }
  size_t written() const { return written_; }

  // {"c": [...], "t": "Leaf" or "Branch"}. It is read in place and in one pass, because most of a
  // node stays as it is.
  Result<IndexNode> read(BytesView digest) const {
    IndexNode node;
    if (digest.empty()) return node;
    TRY(Bytes bytes, store_.get(digest));
    node.leaf = bytes.ends_with(kLeafEnd);
    if (!node.leaf && !bytes.ends_with(kBranchEnd)) return damaged(digest);
    cbor::In items(
        BytesView(bytes).substr(0, bytes.size() - (node.leaf ? kLeafEnd : kBranchEnd).size()));
    if (!items.take(cbor::kSelfDescribed) || items.count(5) != 2 || items.run(3) != "c")
      return damaged(digest);
    for (uint64_t n = items.count(4); n > 0 && items.ok(); --n) {
      if (node.leaf) {
        const BytesView raw = items.item();
        Bytes at = world_of(cbor::In(raw));
        if (at.size() != 32) return damaged(digest);
        node.entries.push_back({std::move(at), Bytes(raw)});
        continue;
      }
      if (items.count(4) != 2) return damaged(digest);
      const auto byte = items.head();
      if (byte.major != 0 || byte.n > 255) return damaged(digest);
      node.children.emplace_hint(node.children.end(), static_cast<uint8_t>(byte.n),
                                 items.bytes_of_array(32));
    }
    if (!items.done()) return damaged(digest);
    return node;
  }

  Result<Bytes> write_leaf(std::span<const Entry> entries) {
    Bytes node(cbor::kSelfDescribed);
    cbor::Out out(node);
    out.map(2).text("c").array(entries.size());
    for (const Entry& entry : entries)
      out.raw(entry.raw);
    return write(node += kLeafEnd);
  }

  // Writes the node of a set at this depth.
  Result<Bytes> build(std::span<const Entry> entries, size_t depth) {
    if (entries.empty()) return Bytes();
    // A key hash has 32 bytes, so there is no byte left to branch on at depth 32.
    if (entries.size() <= kLeafEntries || depth >= 32) return write_leaf(entries);
    std::map<uint8_t, Bytes> children;
    for (size_t from = 0; from < entries.size();) {
      const char byte = entries[from].at[depth];
      size_t to = from;
      while (to < entries.size() && entries[to].at[depth] == byte)
        ++to;
      TRY(children[static_cast<uint8_t>(byte)], build(entries.subspan(from, to - from), depth + 1));
      from = to;
    }
    return write_branch(children);
  }

  Result<Bytes> write_branch(const std::map<uint8_t, Bytes>& children) {
    Bytes node(cbor::kSelfDescribed);
    cbor::Out out(node);
    out.map(2).text("c").array(children.size());
    for (const auto& [byte, child] : children)
      out.array(2).uint(byte).digest_array(child);
    return write(node += kBranchEnd);
  }

  // Both lists are sorted. Of two changes with one key hash the later one holds.
  static Entries changed(Entries entries, Span changes) {
    Entries out;
    out.reserve(entries.size() + changes.size());
    auto old = entries.begin();
    for (IndexChange& change : changes) {
      for (; old != entries.end() && old->at < change.key_hash; ++old)
        out.push_back(std::move(*old));
      if (old != entries.end() && old->at == change.key_hash) ++old;
      if (!out.empty() && out.back().at == change.key_hash) out.pop_back();
      if (change.entry) out.push_back({change.key_hash, std::move(*change.entry)});
    }
    std::move(old, entries.end(), std::back_inserter(out));
    return out;
  }

  // `changes` are sorted and share the first `depth` bytes of their key hashes.
  Result<Bytes> update(BytesView root, Span changes, size_t depth) {
    TRY(IndexNode node, read(root));
    if (node.leaf) {
      taken_ += changes.size();
      return build(changed(std::move(node.entries), changes), depth);
    }
    bool removed = false;
    // One run of changes per child. Whole runs are taken, so the changes taken are the first ones.
    for (size_t from = 0; from < changes.size() && written_ < most_bytes_;) {
      const char byte = changes[from].key_hash[depth];
      size_t to = from;
      for (; to < changes.size() && changes[to].key_hash[depth] == byte; ++to)
        removed = removed || !changes[to].entry;
      Bytes& child = node.children[static_cast<uint8_t>(byte)];
      TRY(child, update(child, changes.subspan(from, to - from), depth + 1));
      if (child.empty()) node.children.erase(static_cast<uint8_t>(byte));
      from = to;
    }
    // Only a removal can make a set small enough for a leaf.
    if (removed) return merge(node);
    return write_branch(node.children);
  }

  // A branch with no more entries than a leaf may have becomes a leaf.
  Result<Bytes> merge(const IndexNode& node) {
    Entries all;
    for (const auto& [byte, digest] : node.children) {
      TRY(IndexNode child, read(digest));
      if (!child.leaf || all.size() + child.entries.size() > kLeafEntries)
        return write_branch(node.children);
      std::move(child.entries.begin(), child.entries.end(), std::back_inserter(all));
    }
    if (all.empty()) return Bytes();
    return write_leaf(all);
  }

  Result<bool> walk(BytesView root, const VisitEntry& visit, const EnterNode& enter) const {
    if (enter && !enter(root)) return true;
    TRY(IndexNode node, read(root));
    for (const Entry& entry : node.entries) {
      TRY(Value value, cbor::decode(entry.raw));
      TRY(bool more, visit(value));
      if (!more) return false;
    }
    for (const auto& [byte, child] : node.children) {
      TRY(bool more, walk(child, visit, enter));
      if (!more) return false;
    }
    return true;
  }

 private:
  Result<Bytes> write(BytesView node) {
    written_ += node.size();
    return store_.put(node);
  }

  const IndexStore& store_;
  size_t most_bytes_;
  size_t taken_ = 0, written_ = 0;
};

}  // namespace

Value digest_array(BytesView digest) {
  cbor::Array out;
  out.reserve(digest.size());
  for (char c : digest)
    out.push_back(Value(uint64_t{static_cast<uint8_t>(c)}));
  return Value(std::move(out));
}

Result<Bytes> parse_digest_array(const Value* value) {
  if (!value || !value->is_array() || value->array().size() != 32)
    return fail(Code::corrupt, "store.error", "a digest is not 32 bytes");
  Bytes out;
  for (const Value& item : value->array())
    out.push_back(static_cast<char>(item.as_uint64().value_or(0)));
  return out;
}

Result<IndexUpdate> update_index(const IndexStore& store, BytesView root,
                                 std::vector<IndexChange>& changes, size_t max_bytes) {
  if (changes.empty()) return IndexUpdate{Bytes(root)};
  std::stable_sort(changes.begin(), changes.end(), [](const IndexChange& a, const IndexChange& b) {
    return a.key_hash < b.key_hash;
  });
  // At least 1, so that the first run of changes is always taken and a snapshot makes progress.
  Tree tree(store, std::max<size_t>(max_bytes, 1));
  TRY(Bytes next, tree.update(root, changes, 0));
  return IndexUpdate{std::move(next), tree.taken(), tree.written()};
}

Result<Bytes> update_index(const IndexStore& store, BytesView root,
                           std::vector<IndexChange> changes) {
  TRY(IndexUpdate updated, update_index(store, root, changes, SIZE_MAX));
  return std::move(updated.root);
}

Result<std::optional<Value>> find_in_index(const IndexStore& store, BytesView root,
                                           BytesView key_hash) {
  Tree tree(store);
  Bytes at(root);
  // 32 levels of branches and a leaf: a damaged tree with a cycle ends here.
  for (size_t depth = 0; !at.empty() && depth < 33; ++depth) {
    TRY(IndexNode node, tree.read(at));
    if (node.leaf) {
      auto it = std::lower_bound(node.entries.begin(), node.entries.end(), key_hash,
                                 [](const Entry& e, BytesView at) { return e.at < at; });
      if (it == node.entries.end() || it->at != key_hash) break;
      TRY(Value entry, cbor::decode(it->raw));
      return std::optional<Value>(std::move(entry));
    }
    auto child = node.children.find(static_cast<uint8_t>(key_hash[depth]));
    at = child == node.children.end() ? Bytes() : child->second;
  }
  return std::optional<Value>();
}

Result<void> walk_index(const IndexStore& store, BytesView root, const VisitEntry& visit,
                        const EnterNode& enter) {
  if (root.empty()) return {};
  TRY(bool unused, Tree(store).walk(root, visit, enter));
  (void)unused;
  return {};
}

}  // namespace pawl::worlds
