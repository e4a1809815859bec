#pragma once
// Keys of the cells of worlds, and ids of their effects. All keys of one world share a prefix.

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "kernel/cell.h"

namespace pawl::worlds {

inline constexpr std::string_view kProgram = "worlds";

// Identifies one world.
struct WorldId {
  std::string tenant, world;
};

inline Key world_key(const WorldId& p) { return key({kProgram, p.tenant, "world", p.world}); }
inline Key worlds_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "world"}); }
inline Key air_key(const WorldId& p) { return key({kProgram, p.tenant, "at", p.world, "air"}); }
inline Key head_key(const WorldId& p) { return key({kProgram, p.tenant, "at", p.world, "head"}); }

// Binary parts stand unescaped at the end of a key, so that keys sort like their bytes.
inline Key cells_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "c"});
}
inline Key cells_prefix(const WorldId& p, std::string_view workflow) {
  return prefix({kProgram, p.tenant, "at", p.world, "c", workflow});
}
inline Key cell_key(const WorldId& p, std::string_view workflow, BytesView k) {
  return cells_prefix(p, workflow).append(k);
}
// The beginning of a key that has these parts, as prefix() makes it. An empty part stands for any.
// Returns an empty view when the key does not match.
inline BytesView lead_of(BytesView key, std::initializer_list<std::string_view> parts) {
  size_t at = 0;
  for (std::string_view part : parts) {
    const size_t end = key.find('\0', at);
    if (end == BytesView::npos || (!part.empty() && key.substr(at, end - at) != part)) return {};
    at = end + 1;
  }
  return key.substr(0, at);
}
// The part of a cell's key before `k`; empty for other keys.
inline BytesView cell_family(BytesView key) {
  return lead_of(key, {kProgram, "", "at", "", "c", ""});
}
// Marks of changed cells, by epoch. A snapshot takes the marks of epochs that have ended and never
// scans again where it erased them. Within an epoch the marks stand in the order of the index, by
// the hash of the key, so that cells taken together lie together in the index. Eight bytes of the
// hash are enough for that.
inline Key dirty_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "d"});
}
inline Key dirty_prefix(const WorldId& p, uint64_t epoch) {
  return dirty_prefix(p).append(ordered64(epoch));
}
inline constexpr size_t kMarkLead = 8;
inline Key dirty_key(const WorldId& p, uint64_t epoch, std::string_view workflow, BytesView k) {
  return dirty_prefix(p, epoch)
      .append(prefix({workflow}))
      .append(view(sha256(k)).substr(0, kMarkLead))
      .append(k);
}
// The oldest epoch that may have marks.
inline Key epoch_key(const WorldId& p) { return key({kProgram, p.tenant, "at", p.world, "epoch"}); }
inline Key pending_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "p"});
}
inline Key pending_key(const WorldId& p, BytesView intent) {
  return pending_prefix(p).append(intent);
}
inline Key queued_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "q"});
}
inline Key queued_key(const WorldId& p, uint64_t n) {
  return queued_prefix(p).append(ordered64(n));
}
// Snapshots whose records are kept, by height: their digests.
inline Key snapshots_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "s"});
}
inline Key snapshot_key(const WorldId& p, uint64_t height) {
  return snapshots_prefix(p).append(ordered64(height));
}
// Digests of the blobs that the record at a height refers to, one after the other.
inline Key reads_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "r"});
}
inline Key reads_key(const WorldId& p, uint64_t height) {
  return reads_prefix(p).append(ordered64(height));
}
inline Key proposals_prefix(const WorldId& p) {
  return prefix({kProgram, p.tenant, "at", p.world, "g"});
}
inline Key proposal_key(const WorldId& p, uint64_t id) {
  return proposals_prefix(p).append(ordered64(id));
}

// The cell of a key under cells_prefix(), or of a mark.
struct CellAt {
  std::string workflow;
  Bytes key;
};
inline CellAt parse_cell_at(BytesView named) {
  // `named` is the workflow, a zero byte and the binary key, which may hold zero bytes itself.
  const size_t zero = std::min(named.find('\0'), named.size() - 1);
  return {std::string(named.substr(0, zero)), Bytes(named.substr(zero + 1))};
}
inline CellAt cell_at(const WorldId& p, BytesView at) {
  return parse_cell_at(at.substr(cells_prefix(p).size()));
}
// Epochs have a fixed width, so any epoch gives the length of the prefix.
inline CellAt marked_at(const WorldId& p, BytesView at) {
  CellAt out = parse_cell_at(at.substr(dirty_prefix(p, 0).size()));
  out.key.erase(0, kMarkLead);
  return out;
}

inline Key command_key(const WorldId& p, std::string_view id) {
  return key({kProgram, p.tenant, "at", p.world, "k", id});
}
inline Key blobs_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "cas"}); }
inline Key blob_key(std::string_view tenant, BytesView hash) {
  return blobs_prefix(tenant).append(hash);
}
// False for blobs and marks: a snapshot writes millions of them, and they are hardly ever read.
inline bool is_read_again(BytesView key) {
  return lead_of(key, {kProgram, "", "cas"}).empty() &&
         lead_of(key, {kProgram, "", "at", "", "d"}).empty();
}
inline Key secret_key(std::string_view tenant, std::string_view binding) {
  return key({kProgram, tenant, "secret", binding});
}
inline Key secrets_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "secret"}); }

// Effect ids are unique across all worlds: "worlds|tenant|world|hex". Equal worlds make equal
// intents, so the hash of the intent alone would not do.
inline std::string effect_id(const WorldId& p, std::string_view what) {
  return std::string(kProgram) + "|" + p.tenant + "|" + p.world + "|" + std::string(what);
}
struct EffectName {
  WorldId world_id;
  std::string what;
};
inline std::optional<EffectName> parse_effect_id(std::string_view id) {
  const std::string lead = std::string(kProgram) + "|";
  // Read from the end: the tenant may contain '|', world ids and hex cannot.
  const size_t last = id.rfind('|');
  if (!id.starts_with(lead) || last == std::string_view::npos) return {};
  const size_t middle = id.rfind('|', last - 1);
  if (middle == std::string_view::npos || middle < lead.size()) return {};
  return EffectName{{std::string(id.substr(lead.size(), middle - lead.size())),
                     std::string(id.substr(middle + 1, last - middle - 1))},
                    std::string(id.substr(last + 1))};
}

// View rows: the world's journal and what points into it.
inline Bytes records_prefix(const WorldId& p) { return prefix({"j", p.tenant, p.world}); }
inline Bytes record_row(const WorldId& p, uint64_t seq) {
  return records_prefix(p).append(ordered64(seq));
}
// Rows that point from a thing to the records about it. `kind` is e (event, by the lead of its
// digest), i (intent), c (cell), or s (snapshot, with an empty `what`). The row's key ends with the
// seq in eight bytes; a row whose key is longer belongs to a longer `what` with this beginning.
inline Bytes index_prefix(const WorldId& p, std::string_view kind, BytesView what) {
  return prefix({"x", p.tenant, p.world, kind}).append(what);
}
// Eight bytes of an event's digest. Two events may share them, so a reader compares the whole
// digest in the record that it finds.
inline BytesView digest_lead(BytesView digest) { return digest.substr(0, 8); }
inline Bytes cell_name(std::string_view workflow, BytesView key) {
  return Bytes(workflow).append(1, '\0').append(key);
}

}  // namespace pawl::worlds
