#include "faces/worlds/cell_index.h"

#include <algorithm>
#include <map>

namespace pawl::worlds {
namespace {

using cbor::Value;

constexpr size_t kLeafEntries = 64;
using Entries = std::map<Bytes, Value>;  // by key hash

std::unexpected<Error> damaged(BytesView digest) {
  return fail(Code::corrupt, "store.error", "cell index node sha256:" + hex(digest) + " is damaged");
}

struct IndexNode {
  bool leaf = true;
  Entries entries;                   // of a leaf
  std::map<uint8_t, Bytes> children; // of a branch
};

class Tree {
 public:
  explicit Tree(const IndexStore& store) : store_(store) {}

  Result<IndexNode> read(BytesView digest) const {
    IndexNode node;
    if (digest.empty()) return node;
    TRY(Bytes bytes, store_.get(digest));
    auto decoded = cbor::decode(bytes);
    const Value* list = decoded ? decoded->find("c") : nullptr;
    if (!list || !list->is_array()) return damaged(digest);
    node.leaf = decoded->text_or("t") == "Leaf";
    for (const Value& item : list->array()) {
      if (node.leaf) {
        TRY(Bytes at, parse_digest_array(item.find("key_hash")));
        node.entries.emplace(std::move(at), item);
        continue;
      }
      if (!item.is_array() || item.array().size() != 2 || !item.array()[0].as_uint64()) return damaged(digest);
      TRY(Bytes child, parse_digest_array(&item.array()[1]));
      node.children.emplace(static_cast<uint8_t>(*item.array()[0].as_uint64()), std::move(child));
    }
    return node;
  }

  Result<Bytes> write_leaf(const Entries& entries) const {
    cbor::Array list;
    for (const auto& [at, entry] : entries) list.push_back(entry);
    return store_.put(cbor::canonical(cbor::Map{{"t", "Leaf"}, {"c", Value(std::move(list))}}));
  }

  // The node of a set that stands at this depth.
  Result<Bytes> build(const Entries& entries, size_t depth) const {
    if (entries.empty()) return Bytes();
    if (entries.size() <= kLeafEntries || depth >= 32) return write_leaf(entries);
    std::map<uint8_t, Entries> parts;
    for (const auto& [at, entry] : entries) parts[static_cast<uint8_t>(at[depth])].emplace(at, entry);
    std::map<uint8_t, Bytes> children;
    for (const auto& [byte, part] : parts) {
      TRY(Bytes child, build(part, depth + 1));
      children.emplace(byte, std::move(child));
    }
    return write_branch(children);
  }

  Result<Bytes> write_branch(const std::map<uint8_t, Bytes>& children) const {
    cbor::Array list;
    for (const auto& [byte, child] : children) list.push_back(Value(cbor::Array{Value(uint64_t{byte}), digest_array(child)}));
    return store_.put(cbor::canonical(cbor::Map{{"t", "Branch"}, {"c", Value(std::move(list))}}));
  }

  using Span = std::pair<std::vector<IndexChange>::iterator, std::vector<IndexChange>::iterator>;
  Result<Bytes> update(BytesView root, Span changes, size_t depth) const {
    TRY(IndexNode node, read(root));
    if (node.leaf) {
      for (auto it = changes.first; it != changes.second; ++it) {
        if (it->entry) node.entries.insert_or_assign(it->key_hash, std::move(*it->entry));
        else node.entries.erase(it->key_hash);
      }
      return build(node.entries, depth);
    }
    bool removed = false;
    for (auto it = changes.first; it != changes.second;) {
      const uint8_t byte = static_cast<uint8_t>(it->key_hash[depth]);
      auto end = std::find_if(it, changes.second, [&](const IndexChange& c) { return static_cast<uint8_t>(c.key_hash[depth]) != byte; });
      removed = removed || std::any_of(it, end, [](const IndexChange& c) { return !c.entry; });
      auto child = node.children.find(byte);
      TRY(Bytes next, update(child == node.children.end() ? BytesView() : BytesView(child->second), {it, end}, depth + 1));
      if (next.empty()) node.children.erase(byte);
      else node.children[byte] = std::move(next);
      it = end;
    }
    if (removed) return merge(node);
    return write_branch(node.children);
  }

  // A branch that holds no more than a leaf may is a leaf.
  Result<Bytes> merge(const IndexNode& node) const {
    Entries all;
    for (const auto& [byte, digest] : node.children) {
      TRY(IndexNode child, read(digest));
      if (!child.leaf) return write_branch(node.children);
      all.merge(child.entries);
      if (all.size() > kLeafEntries) return write_branch(node.children);
    }
    if (all.empty()) return Bytes();
    return write_leaf(all);
  }

  Result<bool> walk(BytesView root, const std::function<Result<bool>(const Value&)>& visit) const {
    TRY(IndexNode node, read(root));
    for (const auto& [at, entry] : node.entries) {
      TRY(bool more, visit(entry));
      if (!more) return false;
    }
    for (const auto& [byte, child] : node.children) {
      TRY(bool more, walk(child, visit));
      if (!more) return false;
    }
    return true;
  }

  Result<void> nodes(BytesView root, const std::function<void(BytesView)>& visit) const {
    visit(root);
    TRY(IndexNode node, read(root));
    for (const auto& [byte, child] : node.children) TRY_OK(nodes(child, visit));
    return {};
  }

 private:
  const IndexStore& store_;
};

}  // namespace

Value digest_array(BytesView digest) {
  cbor::Array out;
  out.reserve(digest.size());
  for (char c : digest) out.push_back(Value(uint64_t{static_cast<uint8_t>(c)}));
  return Value(std::move(out));
}

Result<Bytes> parse_digest_array(const Value* value) {
  if (!value || !value->is_array() || value->array().size() != 32) return fail(Code::corrupt, "store.error", "a digest is not 32 bytes");
  Bytes out;
  for (const Value& item : value->array()) out.push_back(static_cast<char>(item.as_uint64().value_or(0)));
  return out;
}

Result<Bytes> update_index(const IndexStore& store, BytesView root, std::vector<IndexChange> changes) {
  if (changes.empty()) return Bytes(root);
  std::stable_sort(changes.begin(), changes.end(), [](const IndexChange& a, const IndexChange& b) { return a.key_hash < b.key_hash; });
  return Tree(store).update(root, {changes.begin(), changes.end()}, 0);
}

Result<std::optional<Value>> find_in_index(const IndexStore& store, BytesView root, BytesView key_hash) {
  Tree tree(store);
  Bytes at(root);
  for (size_t depth = 0; !at.empty() && depth < 33; ++depth) {
    TRY(IndexNode node, tree.read(at));
    if (node.leaf) {
      auto it = node.entries.find(Bytes(key_hash));
      if (it == node.entries.end()) break;
      return std::optional<Value>(std::move(it->second));
    }
    auto child = node.children.find(static_cast<uint8_t>(key_hash[depth]));
    at = child == node.children.end() ? Bytes() : child->second;
  }
  return std::optional<Value>();
}

Result<void> walk_index(const IndexStore& store, BytesView root, const std::function<Result<bool>(const Value& entry)>& visit) {
  if (root.empty()) return {};
  TRY(bool unused, Tree(store).walk(root, visit));
  (void)unused;
  return {};
}

Result<void> walk_nodes(const IndexStore& store, BytesView root, const std::function<void(BytesView digest)>& visit) {
  if (root.empty()) return {};
  return Tree(store).nodes(root, visit);
}

}  // namespace pawl::worlds
