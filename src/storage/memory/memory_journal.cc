#include <fmt/format.h>

#include "storage/memory/memory.h"

namespace pawl {

Result<void> MemoryJournal::append(std::span<const BytesView> entries, Seq expected_last) {
  std::lock_guard lock(mutex_);
  if (write_failed_) {
    return fail(
        Code::unavailable, "JOURNAL_WRITE",
        "an earlier append to the memory journal failed; open the journal again before appending");
  }
  Seq last = first_ + entries_.size() - 1;
  if (expected_last != last) return fail(fenced(last, expected_last));
  bool failing = fault_.has_value();
  if (!failing || *fault_ == AppendFault::everything_written) {
    for (BytesView entry : entries) {
      entries_.push_back(std::make_shared<const Bytes>(entry));
      bytes_ += entry.size();
    }
  }
  fault_.reset();
  if (!failing) return {};
  write_failed_ = true;
  return fail(Code::unavailable, "JOURNAL_WRITE",
              fmt::format("an injected fault failed the append after {}; open the journal again",
                          expected_last));
}

Result<void> MemoryJournal::read(Seq from, const Visit& visit) const {
  // The lock is not held while visiting: the visitor may be slow, or may append.
  constexpr size_t kChunkEntries = 64;
  std::vector<Entry> chunk;
  for (Seq at = from;;) {
    chunk.clear();
    {
      std::lock_guard lock(mutex_);
      if (at < first_) return fail(trimmed(at, first_));
      for (Seq i = at - first_; i < entries_.size() && chunk.size() < kChunkEntries; ++i)
        chunk.push_back(entries_[i]);
    }
    if (chunk.empty()) return {};
    for (const Entry& entry : chunk) {
      TRY(bool more, visit(at++, *entry));
      if (!more) return {};
    }
  }
}

Seq MemoryJournal::first() const {
  std::lock_guard lock(mutex_);
  return first_;
}

Seq MemoryJournal::last() const {
  std::lock_guard lock(mutex_);
  return first_ + entries_.size() - 1;
}

Result<void> MemoryJournal::trim(Seq keep_from) {
  std::lock_guard lock(mutex_);
  while (first_ < keep_from && !entries_.empty()) {
    bytes_ -= entries_.front()->size();
    entries_.pop_front();
    ++first_;
  }
  return {};
}

Result<Bytes> MemoryJournal::get(Seq seq) const {
  {
    std::lock_guard lock(mutex_);
    if (seq >= first_ && seq - first_ < entries_.size()) return *entries_[seq - first_];
  }
  return Journal::get(seq);
}

uint64_t MemoryJournal::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void MemoryJournal::fail_next_append(AppendFault fault) {
  std::lock_guard lock(mutex_);
  fault_ = fault;
}

void MemoryJournal::drop_after(Seq seq) {
  std::lock_guard lock(mutex_);
  CHECK(seq + 1 >= first_);
  while (!entries_.empty() && first_ + entries_.size() - 1 > seq) {
    bytes_ -= entries_.back()->size();
    entries_.pop_back();
  }
}

void MemoryJournal::reopen() {
  std::lock_guard lock(mutex_);
  write_failed_ = false;
  fault_.reset();
}

}  // namespace pawl
