#pragma once
// A workspace is a versioned tree of files. A tree is a blob that lists its entries by name: files
// are blobs, directories are trees. Nothing is changed in place: a write gives a new root, and a
// commit to the workflow sys/Workspace@1 makes that root a version.

#include "faces/worlds/snapshot/cell_index.h"
#include "faces/worlds/step/modules.h"

namespace pawl::worlds {

// Errors: query.error, with what is wrong with the path; store.error for what is not in the store.
class Workspace {
 public:
  explicit Workspace(const IndexStore& store) : store_(store) {}

  Result<Bytes> empty_root() const;
  // The values are those of the effects' schemas, normalised; answers are their receipts.
  Result<cbor::Value> list(const cbor::Value& params) const;
  Result<cbor::Value> read_ref(const cbor::Value& params) const;  // null: nothing there
  Result<cbor::Value> read_bytes(const cbor::Value& params) const;
  Result<cbor::Value> write_bytes(const cbor::Value& params) const;
  Result<cbor::Value> write_ref(const cbor::Value& params) const;
  Result<cbor::Value> remove(const cbor::Value& params) const;
  Result<cbor::Value> diff(const cbor::Value& params) const;
  Result<cbor::Value> annotations_get(const cbor::Value& params) const;
  Result<cbor::Value> annotations_set(const cbor::Value& params) const;

 private:
  struct Entry;
  struct Tree;
  using Path = std::vector<std::string>;
  using Entries = std::map<std::string, Entry>;  // by path
  Result<Tree> load(BytesView digest) const;
  Result<Bytes> save(const Tree& tree) const;
  Result<std::optional<Entry>> find(BytesView root, const Path& path) const;
  Result<void> collect(BytesView tree, const std::string& base, bool deep, Entries& out) const;
  Result<Entries> below(BytesView root, const Path& prefix, bool& found) const;
  // The root with what `edit` does to the directory that holds the last part of the path;
  // directories on the way are made when `make` says so.
  using Edit = std::function<Result<void>(Tree& holder, const std::string& name)>;
  Result<Bytes> change(BytesView root, std::span<const std::string> path, bool make,
                       const Edit& edit) const;
  Result<cbor::Value> write(const cbor::Value& params, BytesView blob, uint64_t size) const;
  Result<Bytes> patched(const std::optional<Bytes>& annotations, const cbor::Value& patch) const;

  const IndexStore& store_;
};

inline constexpr std::string_view kWorkspaceWorkflow = "sys/Workspace@1";
// What sys/Workspace@1 remembers: {exists, resolved_version, head, root_hash}.
Result<cbor::Value> resolve_workspace(const std::optional<Bytes>& history,
                                      std::optional<uint64_t> version);
Result<void> check_workspace_name(std::string_view name);

// sys/builtin_workspaces@1: takes commits, keeps the history.
class WorkspaceModule final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override;
};

}  // namespace pawl::worlds
