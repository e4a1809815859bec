#pragma once
// A Journal stores the entries of one shard in order and never changes an entry. Entries are bytes:
// the journal does not know frames. They are numbered from seq 1 on. Implementations are
// thread-safe.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>

#include "base/bytes.h"

namespace pawl {

using Seq = uint64_t;

class Journal {
 public:
  virtual ~Journal() = default;

  // Appends the entries after entry `expected_last`, all or none. They are durable on return.
  // FENCED (`conflict`): the last entry is another one, so another owner has this shard now and the
  // caller must stop serving it.
  // JOURNAL_WRITE (`unavailable`): the entries could not be made durable. It is unknown what
  // reached the disk, so every further append fails too until the journal is opened again.
  virtual Result<void> append(std::span<const BytesView> entries, Seq expected_last) = 0;

  // Calls `visit` for each durable entry from `from` on, in order, until it returns false or an
  // error. `from` may be last() + 1, which visits nothing. `visit` may append.
  // TRIMMED (`not_found`): `from` is before first().
  // JOURNAL_CORRUPT (`corrupt`): an entry is damaged; the message names file, offset and remedy.
  using Visit = std::function<Result<bool>(Seq seq, BytesView entry)>;
  virtual Result<void> read(Seq from, const Visit& visit) const = 0;

  virtual Seq first() const = 0;  // the oldest entry; last() + 1 when there is none
  virtual Seq last() const = 0;   // the newest durable entry; 0 when nothing was ever appended

  // Removes entries before `keep_from`. Backends remove whole segments, so older entries may stay.
  virtual Result<void> trim(Seq keep_from) = 0;

  // For a follower, which reads what another process appends. refresh() asks the store and returns
  // the newest entry, which last() knows afterwards. wait() does so until there is an entry after
  // `after`, or for `max`. A journal that one process owns knows its newest entry already.
  virtual Result<Seq> refresh() { return last(); }
  virtual Result<Seq> wait([[maybe_unused]] Seq after,
                           [[maybe_unused]] std::chrono::nanoseconds max) {
    return refresh();
  }
  // Makes calls that wait for the store fail soon: the shard is given up. Safe from any thread.
  virtual void give_up() {}

  // Returns one entry. The default uses read().
  virtual Result<Bytes> get(Seq seq) const;

  virtual uint64_t bytes() const = 0;  // size on disk, for metrics
};

// The last sentence of each error that says that acknowledged entries are missing.
inline constexpr std::string_view kLossRemedy =
    "Restore a backup with `pawl restore`, or keep what is left with `pawl journal accept-loss`";

// Errors that every backend returns in the same words, and their reasons.
inline constexpr Reason kFenced{"FENCED"};
inline constexpr Reason kTrimmed{"TRIMMED"};
Error fenced(Seq last, Seq expected_last);
Error trimmed(Seq from, Seq first);

}  // namespace pawl
