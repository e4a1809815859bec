#include "cli/data_dir.h"

#include <fmt/format.h>

#include <fstream>

#include "json/text.h"
#include "kernel/frame.h"
#include "storage/file/file_journal.h"

namespace pawl::cli {
namespace {

constexpr char kManifestFile[] = "MANIFEST";
constexpr uint64_t kManifestFormat = 1;

// Appends entries to the copy a mebibyte at a time: each append ends with a flush to disk.
class Copy {
 public:
  explicit Copy(FileJournal& to) : to_(to) {}

  Result<void> add(Seq seq, BytesView entry) {
    TRY(Sealed sealed, unseal(entry));
    if (sealed.before != manifest_.link)
      return fail(Code::corrupt, "CHAIN_BROKEN",
                  fmt::format("frame {} does not follow frame {}: the journal was changed; use "
                              "another backup",
                              seq, seq - 1));
    manifest_.link = sealed.own;
    manifest_.last = seq;
    manifest_.bytes += entry.size();
    group_.emplace_back(entry);
    group_bytes_ += entry.size();
    return group_bytes_ >= kGroupBytes ? flush() : Result<void>();
  }

  Result<void> flush() {
    if (group_.empty()) return {};
    std::vector<BytesView> views(group_.begin(), group_.end());
    // The second argument is the last entry before the group; the journal refuses a gap.
    TRY_OK(to_.append(views, manifest_.last - group_.size()));
    group_.clear();
    group_bytes_ = 0;
    return {};
  }

  const Manifest& manifest() const { return manifest_; }

 private:
  static constexpr size_t kGroupBytes = 1 << 20;
  FileJournal& to_;
  std::vector<Bytes> group_;
  size_t group_bytes_ = 0;
  Manifest manifest_;
};

Result<void> write_manifest(const std::string& data, const Manifest& manifest) {
  json::Value v =
      json::object({{"format", json::Value(kManifestFormat)},
                    {"last", json::Value(manifest.last)},
                    {"bytes", json::Value(manifest.bytes)},
                    {"link", hex(BytesView(reinterpret_cast<const char*>(manifest.link.data()),
                                           manifest.link.size()))}});
  Disk disk;
  return replace_file(disk, data, kManifestFile, json::print(v) + "\n");
}

// The journal may grow meanwhile when a running server backs itself up: the copy ends at `last`.
Result<Manifest> copy_journal(const Journal& from, Seq last, const std::string& data,
                              const Progress& progress) {
  FileJournalOptions options;
  options.folder = journal_folder(data);
  TRY(auto to, FileJournal::open(options));
  Copy copy(*to);
  TRY_OK(from.read(1, [&](Seq seq, BytesView entry) -> Result<bool> {
    if (seq > last) return false;
    TRY_OK(copy.add(seq, entry));
    if (progress && seq % 4096 == 0) progress(seq, last);
    return true;
  }));
  TRY_OK(copy.flush());
  to.reset();
  TRY_OK(write_manifest(data, copy.manifest()));
  return copy.manifest();
}

}  // namespace

Result<Copied> copy_journals(const std::vector<const Journal*>& from, const std::string& data,
                             const Progress& progress) {
  const auto shards = static_cast<uint32_t>(from.size());
  for (const Journal* journal : from)
    if (journal->first() > 1)
      return fail(Code::unsupported, "TRIMMED",
                  "the beginning of the journal was removed by retention: back up its checkpoint "
                  "together with the folder instead");
  // All ends are read at once, so that the copies are of about the same moment.
  std::vector<Seq> last;
  for (const Journal* journal : from)
    last.push_back(journal->last());
  TRY_OK(write_format(data, shards));
  Copied out;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    TRY(Manifest copied,
        copy_journal(*from[shard], last[shard], shard_folder(data, shards, shard), progress));
    out.last += copied.last;
    out.bytes += copied.bytes;
  }
  return out;
}

Result<std::optional<Manifest>> read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestFile;
  std::ifstream in(path);
  if (!in) return std::optional<Manifest>();
  auto damaged = [&] {
    return fail(Code::corrupt, "BACKUP_DAMAGED",
                fmt::format("{} is damaged: use another backup", path));
  };
  auto parsed = json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
  if (!parsed || !parsed->is_object()) return damaged();
  auto number = [&](std::string_view name) {
    const json::Value* v = parsed->find(name);
    return v && v->is_number() ? v->as_uint64() : std::nullopt;
  };
  if (number("format") != kManifestFormat || !number("last") || !number("bytes")) return damaged();
  Manifest manifest{*number("last"), *number("bytes"), {}};
  auto link = unhex(parsed->string_or("link"));
  if (!link || link->size() != manifest.link.size()) return damaged();
  std::copy(link->begin(), link->end(), manifest.link.begin());
  return std::optional(manifest);
}

Result<void> check_manifest(const Journal& journal, const Manifest& manifest) {
  auto differs = [&](std::string_view what) {
    return fail(Code::corrupt, "BACKUP_DAMAGED",
                fmt::format("the backup was made with {} frames and {}: use another backup",
                            manifest.last, what));
  };
  if (journal.last() < manifest.last) return differs(fmt::format("has {} now", journal.last()));
  if (manifest.last == 0 || manifest.last < journal.first()) return {};
  TRY(Bytes entry, journal.get(manifest.last));
  TRY(Sealed sealed, unseal(entry));
  if (sealed.own != manifest.link) return differs("its last frame is another one now");
  return {};
}

}  // namespace pawl::cli
