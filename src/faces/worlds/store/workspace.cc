#include "faces/worlds/store/workspace.h"

#include <algorithm>

#include "faces/worlds/step/abi.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

// The only modes there are. They are stored, so that a tree's hash is the original's.
constexpr uint64_t kFileMode = 0644, kRunnableMode = 0755, kDirMode = 0755;
constexpr size_t kPathParts = 64;         // maximum depth of a path
constexpr size_t kTreeEntries = 100'000;  // maximum entries of a listing or a comparison

std::unexpected<Error> wrong(std::string why) {
  return fail(Code::invalid, "query.error", "query error: " + std::move(why));
}

std::unexpected<Error> missing(const std::string& path) {
  return fail(Code::not_found, "query.error", "query error: path not found: " + path);
}

// Characters that need no escape in a URL or a path. "." and ".." would lead out of the tree.
bool is_plain(std::string_view part) {
  return !part.empty() && part != "." && part != ".." &&
         std::all_of(part.begin(), part.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '~' || c == '-';
         });
}

Result<std::vector<std::string>> parts_of(std::string_view path) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    if (!is_plain(part))
      return wrong("invalid path '" + std::string(path) +
                   "': parts are letters, digits and . _ ~ -, joined by /");
    out.emplace_back(part);
    at = slash + 1;
  }
  if (out.size() > kPathParts) return wrong("path is deeper than " + std::to_string(kPathParts));
  return out;
}

// The path in an optional field.
Result<std::vector<std::string>> some_parts(const Value& params, std::string_view field) {
  const std::string_view path = params.text_or(field);
  if (path.empty()) return std::vector<std::string>();
  return parts_of(path);
}

Result<Bytes> root_of(const Value& params, std::string_view field = "root_hash") {
  return parse_hash(params.text_or(field));
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts)
    out += (out.empty() ? "" : "/") + part;
  return out;
}

uint64_t number(const Value& map, std::string_view field) {
  const Value* v = map.find(field);
  return v ? v->as_uint64().value_or(0) : 0;
}

Value root_receipt(const Bytes& root) {
  return Value(cbor::Map{{"new_root_hash", hash_text(root)}});
}

}  // namespace

struct Workspace::Entry {
  bool dir = false;
  Bytes hash;
  uint64_t size = 0, mode = kFileMode;
  std::optional<Bytes> annotations{};
  std::string_view kind() const { return dir ? "dir" : "file"; }
  // Size follows from the hash. The mode is not compared: a diff shows contents.
  bool same(const Entry& o) const {
    return dir == o.dir && hash == o.hash && annotations == o.annotations;
  }
};

struct Workspace::Tree {
  std::map<std::string, Entry> entries{};
  std::optional<Bytes> annotations{};
};

// A tree blob is canonical CBOR: {"entries": [{name, kind: "file" | "dir", hash, size, mode,
// annotations_hash?}], "annotations_hash"?}, sorted by name. The mode of a directory is 0755 and
// its size 0.
Result<Workspace::Tree> Workspace::load(BytesView digest) const {
  TRY(Bytes bytes, store_.get(digest));
  auto damaged = [&](std::string_view why) {
    return wrong(hash_text(digest) + " is no workspace tree: " + std::string(why));
  };
  auto value = cbor::decode(bytes);
  const Value* list = value && value->is_map() ? value->find("entries") : nullptr;
  if (!list || !list->is_array()) return damaged("it has no entries");
  Tree out;
  if (const std::string_view hash = value->text_or("annotations_hash"); !hash.empty()) {
    TRY(out.annotations, parse_hash(hash));
  }
  std::string before;
  for (const Value& item : list->array()) {
    const std::string name(item.text_or("name"));
    const std::string_view kind = item.text_or("kind");
    // Sorted names make one tree one blob. A blob that someone else put may not be a tree at all.
    if (!is_plain(name) || name <= before) return damaged("its names are not plain and in order");
    Entry e{kind == "dir", {}, number(item, "size"), number(item, "mode")};
    TRY(e.hash, parse_hash(item.text_or("hash")));
    if (!e.dir && kind != "file") return damaged("an entry is neither file nor dir");
    if (e.dir ? e.mode != kDirMode || e.size != 0 : e.mode != kFileMode && e.mode != kRunnableMode)
      return damaged("an entry has a mode or size that it cannot have");
    if (const std::string_view hash = item.text_or("annotations_hash"); !hash.empty()) {
      TRY(e.annotations, parse_hash(hash));
    }
    out.entries.emplace_hint(out.entries.end(), name, std::move(e));
    before = name;
  }
  return out;
}

Result<Bytes> Workspace::save(const Tree& tree) const {
  cbor::Array list;
  for (const auto& [name, e] : tree.entries) {
    cbor::Map item{{"name", name},
                   {"kind", e.kind()},
                   {"hash", hash_text(e.hash)},
                   {"size", e.size},
                   {"mode", e.mode}};
    if (e.annotations) item.emplace_back("annotations_hash", hash_text(*e.annotations));
    list.push_back(Value(std::move(item)));
  }
  cbor::Map out{{"entries", Value(std::move(list))}};
  if (tree.annotations) out.emplace_back("annotations_hash", hash_text(*tree.annotations));
  return store_.put(cbor::canonical(Value(std::move(out))));
}

Result<Bytes> Workspace::empty_root() const { return save({}); }

// Nothing when the path leads nowhere, and for the empty path, because the root has no entry. An
// error when a file stands where a directory is needed.
Result<std::optional<Workspace::Entry>> Workspace::find(BytesView root, const Path& path) const {
  Bytes at(root);
  for (size_t i = 0; i < path.size(); ++i) {
    TRY(Tree tree, load(at));
    auto it = tree.entries.find(path[i]);
    if (it == tree.entries.end()) return std::optional<Entry>();
    if (i + 1 == path.size()) return std::optional<Entry>(it->second);
    if (!it->second.dir) return wrong("path is not a directory");
    at = it->second.hash;
  }
  return std::optional<Entry>();
}

Result<void> Workspace::collect(BytesView digest, const std::string& base, bool deep,
                                Entries& out) const {
  TRY(Tree tree, load(digest));
  for (const auto& [name, entry] : tree.entries) {
    const std::string path = base.empty() ? name : base + "/" + name;
    out.emplace(path, entry);
    if (out.size() > kTreeEntries)
      return wrong("more than " + std::to_string(kTreeEntries) + " entries: name a path below");
    if (deep && entry.dir) TRY_OK(collect(entry.hash, path, deep, out));
  }
  return {};
}

// {root_hash, path?, scope?: "dir" | "subtree", cursor?, limit?} -> {entries, next_cursor}
Result<Value> Workspace::list(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, some_parts(params, "path"));
  const std::string_view scope = params.text_or("scope", "dir");
  if (scope != "dir" && scope != "subtree")
    return wrong("invalid scope '" + std::string(scope) + "': dir or subtree");
  if (!path.empty()) {
    TRY(std::optional<Entry> entry, find(root, path));
    if (!entry) return missing(joined(path));
    if (!entry->dir) return wrong("path is not a directory");
    root = entry->hash;
  }
  Entries all;
  TRY_OK(collect(root, joined(path), scope == "subtree", all));
  const std::string cursor(params.text_or("cursor"));
  const uint64_t limit = number(params, "limit");
  cbor::Array entries;
  Value next;
  for (auto it = cursor.empty() ? all.begin() : all.upper_bound(cursor); it != all.end(); ++it) {
    // The cursor is the last path that was listed; the next page starts behind it.
    if (limit != 0 && entries.size() == limit) {
      next = std::prev(it)->first;
      break;
    }
    const Entry& e = it->second;
    entries.push_back(cbor::Map{{"path", it->first},
                                {"kind", e.kind()},
                                {"hash", hash_text(e.hash)},
                                {"size", e.size},
                                {"mode", e.mode}});
  }
  return Value(cbor::Map{{"entries", Value(std::move(entries))}, {"next_cursor", std::move(next)}});
}

// {root_hash, path} -> {kind, hash, size, mode} or null
Result<Value> Workspace::read_ref(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, parts_of(params.text_or("path")));
  TRY(std::optional<Entry> e, find(root, path));
  if (!e) return Value();
  return Value(cbor::Map{
      {"kind", e->kind()}, {"hash", hash_text(e->hash)}, {"size", e->size}, {"mode", e->mode}});
}

// {root_hash, path, range?: {start, end}} -> bytes; `end` is exclusive.
Result<Value> Workspace::read_bytes(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, parts_of(params.text_or("path")));
  TRY(std::optional<Entry> entry, find(root, path));
  if (!entry) return missing(joined(path));
  if (entry->dir) return wrong("path is not a file: " + joined(path));
  TRY(Bytes bytes, store_.get(entry->hash));
  const Value* range = params.find("range");
  if (!range || range->is_null()) return Value(cbor::Octets{std::move(bytes)});
  const uint64_t start = number(*range, "start"), end = number(*range, "end");
  if (start > end) return wrong("invalid range");
  if (end > bytes.size()) return wrong("range exceeds file size " + std::to_string(bytes.size()));
  return cbor::octets(BytesView(bytes).substr(start, end - start));
}

// Copies the path from the root to the changed directory; all other directories are shared by hash.
Result<Bytes> Workspace::change(BytesView root, std::span<const std::string> path, bool make,
                                const Edit& edit) const {
  TRY(Tree tree, load(root));
  if (path.size() == 1) {
    TRY_OK(edit(tree, path[0]));
    return save(tree);
  }
  auto it = tree.entries.find(path[0]);
  if (it == tree.entries.end() && !make) return missing(path[0]);
  if (it == tree.entries.end()) {
    TRY(Bytes empty, empty_root());
    it = tree.entries.emplace(path[0], Entry{true, std::move(empty), 0, kDirMode}).first;
  }
  if (!it->second.dir) return wrong("path is not a directory");
  TRY(it->second.hash, change(it->second.hash, path.subspan(1), make, edit));
  return save(tree);
}

// {root_hash, path, mode?} -> {new_root_hash, blob_hash}. Creates missing directories.
Result<Value> Workspace::write(const Value& params, BytesView blob, uint64_t size) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, parts_of(params.text_or("path")));
  const Value* wanted = params.find("mode");
  const auto mode = wanted && !wanted->is_null()
                        ? std::optional<uint64_t>(wanted->as_uint64().value_or(0))
                        : std::nullopt;
  if (mode && *mode != kFileMode && *mode != kRunnableMode)
    return wrong("invalid file mode: 420 (0644) or 493 (0755)");
  TRY(Bytes next,
      change(root, path, true, [&](Tree& holder, const std::string& name) -> Result<void> {
        auto [it, fresh] = holder.entries.emplace(name, Entry{});
        Entry& e = it->second;
        if (!fresh && e.dir) return wrong("path is a directory");
        e.hash = blob;
        e.size = size;
        // Without a mode a new file is 0644 and an existing one keeps its own.
        e.mode = mode.value_or(e.mode);
        return {};
      }));
  return Value(cbor::Map{{"new_root_hash", hash_text(next)}, {"blob_hash", hash_text(blob)}});
}

Result<Value> Workspace::write_bytes(const Value& params) const {
  const Value* bytes = params.find("bytes");
  if (!bytes || !bytes->is_bytes()) return wrong("write_bytes without bytes");
  TRY(Bytes blob, store_.put(bytes->bytes()));
  return write(params, blob, bytes->bytes().size());
}

Result<Value> Workspace::write_ref(const Value& params) const {
  TRY(Bytes blob, root_of(params, "blob_hash"));
  // Read for its size, which the entry holds, and to be sure that the blob exists.
  TRY(Bytes bytes, store_.get(blob));
  return write(params, blob, bytes.size());
}

// {root_hash, path} -> {new_root_hash}
Result<Value> Workspace::remove(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, parts_of(params.text_or("path")));
  TRY(Bytes next,
      change(root, path, false, [&](Tree& holder, const std::string& name) -> Result<void> {
        auto it = holder.entries.find(name);
        if (it == holder.entries.end()) return missing(joined(path));
        if (it->second.dir) {
          // Only empty directories are removed, as rmdir does.
          TRY(Tree inside, load(it->second.hash));
          if (!inside.entries.empty()) return wrong("directory not empty");
        }
        holder.entries.erase(it);
        return {};
      }));
  return root_receipt(next);
}

// The entries at or below a prefix.
Result<Workspace::Entries> Workspace::below(BytesView root, const Path& prefix, bool& found) const {
  Entries out;
  if (prefix.empty()) {
    found = true;
    TRY_OK(collect(root, {}, true, out));
    return out;
  }
  TRY(std::optional<Entry> entry, find(root, prefix));
  if (!entry) return out;
  found = true;
  if (!entry->dir)
    out.emplace(joined(prefix), *entry);
  else
    TRY_OK(collect(entry->hash, joined(prefix), true, out));
  return out;
}

// {root_a, root_b, prefix?} -> {changes: [{path, kind, old_hash, new_hash}]}; null for an absent
// side. Directories that differ are listed too.
Result<Value> Workspace::diff(const Value& params) const {
  TRY(Bytes root_a, root_of(params, "root_a"));
  TRY(Bytes root_b, root_of(params, "root_b"));
  TRY(Path prefix, some_parts(params, "prefix"));
  bool found = false;
  TRY(Entries old, below(root_a, prefix, found));
  TRY(Entries now, below(root_b, prefix, found));
  if (!found) return missing(joined(prefix));
  // By path: the entry before and after; null where it is not.
  std::map<std::string, std::pair<const Entry*, const Entry*>> both;
  for (const auto& [path, e] : old)
    both[path].first = &e;
  for (const auto& [path, e] : now)
    both[path].second = &e;
  cbor::Array changes;
  auto hash = [](const Entry* e) { return e ? Value(hash_text(e->hash)) : Value(); };
  for (const auto& [path, pair] : both) {
    const auto& [a, b] = pair;
    if (a && b && a->same(*b)) continue;
    changes.push_back(cbor::Map{{"path", path},
                                {"kind", (b ? b : a)->kind()},
                                {"old_hash", hash(a)},
                                {"new_hash", hash(b)}});
  }
  return Value(cbor::Map{{"changes", Value(std::move(changes))}});
}

// {root_hash, path?} -> {annotations: map or null}. Without a path: those of the root.
Result<Value> Workspace::annotations_get(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, some_parts(params, "path"));
  std::optional<Bytes> at;
  if (!path.empty()) {
    TRY(std::optional<Entry> entry, find(root, path));
    if (!entry) return missing(joined(path));
    at = entry->annotations;
    // A directory's annotations are in its own tree, which is loaded below.
    if (entry->dir)
      root = entry->hash;
    else if (!at)
      return Value(cbor::Map{{"annotations", Value()}});
  }
  if (!at) {
    TRY(Tree tree, load(root));
    at = tree.annotations;
  }
  if (!at) return Value(cbor::Map{{"annotations", Value()}});
  TRY(Bytes bytes, store_.get(*at));
  TRY(Value annotations, cbor::decode(bytes));
  return Value(cbor::Map{{"annotations", std::move(annotations)}});
}

Result<Bytes> Workspace::patched(const std::optional<Bytes>& annotations,
                                 const Value& patch) const {
  std::map<std::string, Value> all;
  if (annotations) {
    TRY(Bytes bytes, store_.get(*annotations));
    TRY(Value old, cbor::decode(bytes));
    if (old.is_map())
      for (const auto& [key, value] : old.map())
        if (key.is_text()) all[key.text()] = value;
  }
  if (patch.is_map())
    for (const auto& [key, value] : patch.map()) {
      if (!key.is_text()) continue;
      // A null value removes the annotation.
      if (value.is_null())
        all.erase(key.text());
      else
        all[key.text()] = value;
    }
  cbor::Map out;
  for (auto& [key, value] : all)
    out.emplace_back(key, std::move(value));
  return store_.put(cbor::canonical(Value(std::move(out))));
}

// Annotations of a file are kept in its entry, those of a directory in its own tree.
Result<Value> Workspace::annotations_set(const Value& params) const {
  TRY(Bytes root, root_of(params));
  TRY(Path path, some_parts(params, "path"));
  const Value* patch = params.find("annotations_patch");
  const Value none{};
  Bytes made;
  auto annotate_tree = [&](BytesView digest) -> Result<Bytes> {
    TRY(Tree tree, load(digest));
    TRY(made, patched(tree.annotations, patch ? *patch : none));
    tree.annotations = made;
    return save(tree);
  };
  Bytes next;
  if (path.empty()) {
    TRY(next, annotate_tree(root));
  } else {
    TRY(next, change(root, path, false, [&](Tree& holder, const std::string& name) -> Result<void> {
          auto it = holder.entries.find(name);
          if (it == holder.entries.end()) return missing(joined(path));
          if (it->second.dir) {
            TRY(it->second.hash, annotate_tree(it->second.hash));
            return {};
          }
          TRY(made, patched(it->second.annotations, patch ? *patch : none));
          it->second.annotations = made;
          return {};
        }));
  }
  return Value(
      cbor::Map{{"new_root_hash", hash_text(next)}, {"annotations_hash", hash_text(made)}});
}

Result<void> check_workspace_name(std::string_view name) {
  if (is_plain(name)) return {};
  return wrong("invalid workspace name '" + std::string(name) + "': letters, digits and . _ ~ -");
}

Result<Value> resolve_workspace(const std::optional<Bytes>& history,
                                std::optional<uint64_t> version) {
  const Value absent = cbor::Map{
      {"exists", false}, {"resolved_version", Value()}, {"head", Value()}, {"root_hash", Value()}};
  if (!history) return absent;
  TRY(Value state, cbor::decode(*history));
  const uint64_t head = number(state, "latest"), wanted = version.value_or(head);
  const Value* versions = state.find("versions");
  if (!versions || !versions->is_map()) return absent;
  for (const auto& [key, meta] : versions->map())
    if (key.as_uint64() == wanted)
      return Value(cbor::Map{{"exists", true},
                             {"resolved_version", wanted},
                             {"head", head},
                             {"root_hash", std::string(meta.text_or("root_hash"))}});
  return absent;
}

// The event is a sys/WorkspaceCommit@1 {workspace, expected_head?, meta}; the state is {latest,
// versions: {number: meta}}. It keeps every version.
Result<Bytes> WorkspaceModule::step(std::string_view, BytesView input) const {
  TRY(StepInput in, decode_input(input));
  TRY(Value commit, cbor::decode(in.event.value));
  auto refused = [](std::string why) {
    return fail(Code::unprocessable, "workflow.output_invalid",
                "invalid workflow output: " + std::move(why));
  };
  if (!is_plain(commit.text_or("workspace"))) return refused("invalid workspace name");
  Value state = cbor::Map{{"latest", uint64_t{0}}, {"versions", cbor::Map{}}};
  if (in.state) {
    TRY(state, cbor::decode(*in.state));
  }
  const uint64_t head = number(state, "latest");
  const Value* expected = commit.find("expected_head");
  // The commit was made on another head: refusing it is what makes commits safe against each other.
  if (expected && !expected->is_null() && expected->as_uint64() != head)
    return refused("workspace head mismatch: it stands at " + std::to_string(head));
  // `versions` and `meta` are there: state and event were normalised by their schemas before.
  cbor::Map versions = state.find("versions")->map();
  versions.emplace_back(Value(head + 1), *commit.find("meta"));
  return encode_output(
      {cbor::canonical(cbor::Map{{"latest", head + 1}, {"versions", Value(std::move(versions))}}),
       {},
       {},
       {},
       false});
}

}  // namespace pawl::worlds
