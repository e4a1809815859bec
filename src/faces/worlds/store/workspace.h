#pragma once
// A workspace is a versioned tree of files. A tree is a blob that lists its entries by name; files
// are blobs and directories are trees. A write never changes a tree: it returns a new root. A
// commit to the workflow sys/Workspace@1 makes a root a version.

#include "faces/worlds/snapshot/cell_index.h"
#include "faces/worlds/step/modules.h"

namespace pawl::worlds {

// Errors: query.error for a bad path, store.error for a blob that is not in the store.
class Workspace {
 public:
  // `store` must outlive it. Trees and files are put through it and hashed there.
  explicit Workspace(const IndexStore& store) : store_(store) {}

  // The digest of a tree without entries, which it puts into the store.
  Result<Bytes> empty_root() const;
  // Params are normalised values of the effects' schemas; the results are their receipts.
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
  // Adds the entries of a tree to `out`, with `deep` those of its directories too. Paths begin with
  // `base`. At most kTreeEntries.
  Result<void> collect(BytesView tree, const std::string& base, bool deep, Entries& out) const;
  // Sets `found` when the root has the prefix, and leaves it alone when not.
  Result<Entries> below(BytesView root, const Path& prefix, bool& found) const;
  // The new root after `edit` has changed the directory that holds the last part of the path. With
  // `make`, missing directories on the way are created.
  using Edit = std::function<Result<void>(Tree& holder, const std::string& name)>;
  Result<Bytes> change(BytesView root, std::span<const std::string> path, bool make,
                       const Edit& edit) const;
  Result<cbor::Value> write(const cbor::Value& params, BytesView blob, uint64_t size) const;
  Result<Bytes> patched(const std::optional<Bytes>& annotations, const cbor::Value& patch) const;

  const IndexStore& store_;
};

inline constexpr std::string_view kWorkspaceWorkflow = "sys/Workspace@1";
// {exists, resolved_version, head, root_hash} from the history that sys/Workspace@1 keeps as its
// state. Without a version it resolves the newest. An unknown version is `exists: false`, not an
// error.
Result<cbor::Value> resolve_workspace(const std::optional<Bytes>& history,
                                      std::optional<uint64_t> version);
Result<void> check_workspace_name(std::string_view name);

// The module sys/builtin_workspaces@1: takes commits and keeps the history.
class WorkspaceModule final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override;
};

}  // namespace pawl::worlds
