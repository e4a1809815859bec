#include "runtime/cluster/checkpoints.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "kernel/frame.h"
#include "runtime/cluster/file_pack.h"

namespace pawl {

namespace fs = std::filesystem;

Checkpoints::Checkpoints(Archive& archive, uint32_t shard, std::string work)
    : archive_(archive), shard_(shard), work_(std::move(work)) {}

std::string Checkpoints::prefix() const { return fmt::format("{:04}/checkpoint-", shard_); }

static Result<Digest> link_of(const Journal& journal, Seq seq) {
  if (seq == 0) return Digest{};
  TRY(Bytes entry, journal.get(seq));
  TRY(Sealed sealed, unseal(entry));
  return sealed.own;
}

// A temporary folder or file that goes away with its owner.
namespace {
struct Temporary {
  explicit Temporary(std::string at) : path(std::move(at)) { remove(); }
  ~Temporary() { remove(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void remove() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  const std::string path;
};
}  // namespace

Result<std::optional<Checkpoint>> Checkpoints::store(Shard& shard) {
  std::error_code ec;
  fs::create_directories(work_, ec);
  Temporary rows(fmt::format("{}/checkpoint-{}", work_, shard_));
  Temporary packed(rows.path + ".pack");
  TRY(Seq seq, shard.checkpoint(rows.path));
  Checkpoint out{fmt::format("{}{:020}", prefix(), seq), seq, {}};
  TRY(out.link, link_of(shard.journal(), seq));
  Bytes label;
  Writer w(label);
  w.uint(shard_);
  w.uint(seq);
  w.str(view(out.link));
  TRY_OK(pack_files(rows.path, label, packed.path));
  rows.remove();
  if (auto put = archive_.put(out.name, packed.path); !put) {
    if (put.error().is(kArchived)) return std::optional<Checkpoint>();
    return fail(std::move(put.error()));
  }
  return std::optional(std::move(out));
}

Result<std::vector<Checkpoint>> Checkpoints::list() const {
  TRY(auto names, archive_.list(prefix()));
  std::vector<Checkpoint> out;
  for (std::string& name : names) {
    const std::string digits = name.substr(prefix().size());
    if (digits.size() != 20 || digits.find_first_not_of("0123456789") != std::string::npos)
      continue;
    const Seq seq = std::stoull(digits);
    out.push_back({std::move(name), seq, {}});
  }
  return out;
}

Result<Checkpoint> Checkpoints::fetch(const Checkpoint& checkpoint,
                                      const std::string& folder) const {
  std::error_code ec;
  fs::create_directories(work_, ec);
  Temporary packed(fmt::format("{}/fetched-{}", work_, shard_));
  TRY_OK(archive_.get(checkpoint.name, packed.path));
  TRY(Bytes label, unpack_files(packed.path, folder));
  Reader r(label);
  const uint64_t shard = r.uint(), seq = r.uint();
  const BytesView link = r.str();
  Checkpoint out = checkpoint;
  if (!r.done() || shard != shard_ || seq != checkpoint.seq || link.size() != out.link.size()) {
    fs::remove_all(folder, ec);
    return fail(Code::corrupt, "CHECKPOINT_DAMAGED",
                fmt::format("the checkpoint {} of the archive is of another shard or frame: remove "
                            "it, and an older one is used",
                            checkpoint.name));
  }
  std::memcpy(out.link.data(), link.data(), link.size());
  return out;
}

Result<std::optional<Checkpoint>> Checkpoints::fetch_newest(const std::string& folder) const {
  TRY(auto all, list());
  if (all.empty()) return std::optional<Checkpoint>();
  TRY(Checkpoint fetched, fetch(all.back(), folder));
  return std::optional(std::move(fetched));
}

// The entry of the checkpoint itself stays in the journal: a start compares its link with the rows.
Result<void> Checkpoints::retire(Shard& shard, size_t keep) {
  TRY(auto all, list());
  if (all.empty()) return {};
  const size_t first = all.size() - std::min(all.size(), std::max<size_t>(keep, 1));
  // What cannot be read back must not cost the journal anything.
  Temporary probe(fmt::format("{}/probe-{}", work_, shard_));
  TRY(Checkpoint oldest, fetch(all[first], probe.path));
  if (oldest.seq > shard.durable()) return {};
  if (oldest.seq >= shard.journal().first()) {
    TRY(Digest link, link_of(shard.journal(), oldest.seq));
    if (link != oldest.link)
      return fail(Code::corrupt, "CHECKPOINT_DIFFERS",
                  fmt::format("the checkpoint {} of the archive is of another journal: nothing was "
                              "trimmed; use another archive, or find out which journal is right",
                              oldest.name));
    TRY_OK(shard.trim(oldest.seq));
  }
  for (size_t i = 0; i < first; ++i)
    TRY_OK(archive_.remove(all[i].name));
  return {};
}

}  // namespace pawl
