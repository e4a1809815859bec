#pragma once
// A Journal keeps the entries of one shard in order and never changes one. It knows bytes; it does
// not know frames. The first entry has seq 1.

#include <cstdint>
#include <functional>
#include <span>

#include "base/bytes.h"

namespace pawl {

using Seq = uint64_t;

class Journal {
 public:
  virtual ~Journal() = default;

  // Appends every entry after `expected_last`, all or none; durable on return. Fails `conflict`
  // FENCED when the journal has moved on: another owner has this shard now and the caller must
  // stop. Fails `unavailable` JOURNAL_WRITE when the bytes could not be made durable; the journal
  // then takes no more appends, because what reached the disk is unknown until it is opened again.
  virtual Result<void> append(std::span<const BytesView> entries, Seq expected_last) = 0;

  // Visits durable entries in order from `from` (which may be last() + 1: none) until `visit` gives
  // false or an error. Safe beside append, from any thread. `from` before first(): not_found
  // TRIMMED. An entry that does not check: corrupt, naming file, offset and remedy.
  using Visit = std::function<Result<bool>(Seq seq, BytesView entry)>;
  virtual Result<void> read(Seq from, const Visit& visit) const = 0;

  virtual Seq first() const = 0;  // oldest entry kept; last() + 1 when empty
  virtual Seq last() const = 0;   // newest durable entry; 0 when there never was one

  // Lets go of entries before `keep_from`, by whole segments: what is kept may begin earlier.
  virtual Result<void> trim(Seq keep_from) = 0;

  // One entry. Built on read; backends that can seek are faster.
  virtual Result<Bytes> get(Seq seq) const;

  virtual uint64_t bytes() const = 0;  // on disk, for metrics
};

// The two refusals that every backend words alike.
Error fenced(Seq last, Seq expected_last);
inline constexpr Reason kTrimmed{"TRIMMED"};
Error trimmed(Seq from, Seq first);

}  // namespace pawl
