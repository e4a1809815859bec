#pragma once
// Rows is an ordered map from bytes to bytes that is derived from the journal. It can be rebuilt
// from the journal at any time, so it has no log of its own.
//
// Every batch of changes carries the seq of the last journal entry that it includes. After a crash
// the rows may lack the newest batches, but they are never ahead of the journal and never hold a
// part of a batch.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "storage/journal.h"

namespace pawl {

// Rows are damaged. They are rebuilt from the journal at the next start.
inline constexpr Reason kRowsCorrupt{"ROWS_CORRUPT"};
// The file beside the rows' folder that tells the next start to rebuild them.
inline std::string damage_mark(const std::string& rows_folder) { return rows_folder + ".damaged"; }

// put_new is a put whose caller knows that no row has this key. A later erase in the same batch
// then cancels it, and neither is written. erase_prefix erases every row whose key begins with the
// key of the change, also those that other changes of the batch put: it is applied last.
enum class RowKind : uint8_t { erase, put, put_new, erase_prefix };

struct RowChange {
  BytesView key, value;
  RowKind kind;
};

// A list of changes whose keys and values point into memory that the caller keeps.
class RowChanges {
 public:
  void add(const RowChange& change) {
    if (change.kind == RowKind::erase_prefix)
      erased_prefixes_.push_back(change.key);
    else
      all_.push_back(change);
    bytes_ += change.key.size() + change.value.size();
  }
  void clear() {
    all_.clear();
    erased_prefixes_.clear();
    bytes_ = 0;
  }
  // To be erased after all other changes are made.
  const std::vector<BytesView>& erased_prefixes() const { return erased_prefixes_; }
  void reserve(size_t count) { all_.reserve(count); }
  const std::vector<RowChange>& all() const { return all_; }
  size_t count() const { return all_.size(); }
  size_t bytes() const { return bytes_; }  // size of all keys and values
  // Calls put(key, value) or erase(key) for each change in order.
  template <class Put, class Erase>
  void each(Put&& put, Erase&& erase) const {
    for (const RowChange& change : all_) {
      if (change.kind == RowKind::erase)
        erase(change.key);
      else
        put(change.key, change.value);
    }
  }

 private:
  std::vector<RowChange> all_;
  std::vector<BytesView> erased_prefixes_;
  size_t bytes_ = 0;
};

// A list of changes that owns its keys and values. When a key is changed twice, the later change
// wins. Everything is in one buffer, so a batch of thousands of rows needs few allocations.
class RowBatch {
 public:
  using Kind = RowKind;
  // A key or value in one or two parts. The caller need not concatenate them.
  struct Parts {
    Parts(BytesView whole) : first(whole) {}
    Parts(const Bytes& whole) : first(whole) {}
    Parts(const char* whole) : first(whole) {}
    Parts(BytesView begin, BytesView end) : first(begin), second(end) {}
    size_t size() const { return first.size() + second.size(); }
    BytesView first, second{};
  };
  void put(Parts key, Parts value) { add(Kind::put, key, value); }
  void put_new(Parts key, Parts value) { add(Kind::put_new, key, value); }
  void erase(Parts key) { add(Kind::erase, key, BytesView()); }
  void erase_prefix(Parts prefix) { add(Kind::erase_prefix, prefix, BytesView()); }
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return data_.size(); }
  void clear() {
    data_.clear();
    count_ = 0;
  }
  void reserve(size_t bytes) { data_.reserve(bytes); }
  void append(const RowBatch& other) {
    data_ += other.data_;
    count_ += other.count_;
  }

  // Calls visit(kind, key, value) for each change in order.
  template <class Visit>
  void each_change(Visit&& visit) const {
    const char* p = data_.data();
    const char* end = p + data_.size();
    while (p < end) {
      uint32_t header[2];
      std::memcpy(header, p, sizeof header);
      p += sizeof header;
      auto kind = static_cast<Kind>(header[0] >> kKindShift);
      BytesView key(p, header[0] & kKeySizeMask);
      BytesView value(p + key.size(), header[1]);
      p += key.size() + value.size();
      visit(kind, key, value);
    }
  }
  // The same changes; they point into this batch.
  RowChanges changes() const {
    RowChanges out;
    out.reserve(count_);
    each_change([&](Kind kind, BytesView key, BytesView value) { out.add({key, value, kind}); });
    return out;
  }

 private:
  // A change is stored as a header of two integers, the key and the value. The first integer is the
  // kind in its upper 2 bits and the size of the key, the second the size of the value.
  static constexpr int kKindShift = 30;
  static constexpr uint32_t kKeySizeMask = (1u << kKindShift) - 1;

  void add(Kind kind, const Parts& key, const Parts& value) {
    uint32_t header[2] = {static_cast<uint32_t>(key.size()) | static_cast<uint32_t>(kind)
                                                                  << kKindShift,
                          static_cast<uint32_t>(value.size())};
    data_.append(reinterpret_cast<const char*>(header), sizeof header);
    data_.append(key.first).append(key.second);
    data_.append(value.first).append(value.second);
    ++count_;
  }
  Bytes data_;
  size_t count_ = 0;
};

// A consistent view of the rows at one moment. It is cheap to take. Hold it no longer than one
// request: it keeps old versions of rows alive.
class RowsSnapshot {
 public:
  virtual ~RowsSnapshot() = default;
  virtual Result<std::optional<Bytes>> get(BytesView key) const = 0;
  // Visits the keys in [first, limit) in ascending order until `visit` returns false. An empty
  // limit means the end of the rows.
  using Visit = std::function<bool(BytesView key, BytesView value)>;
  virtual Result<void> scan(BytesView first, BytesView limit, const Visit& visit) const = 0;
  // As scan(), in descending order.
  virtual Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const = 0;
  virtual Seq applied() const = 0;  // the last journal entry that this view includes
};

class Rows {
 public:
  virtual ~Rows() = default;

  // Applies the changes, all or none, and makes them visible to every reader on return. `applied`
  // is the last journal entry that they include; an earlier one than before is refused with
  // APPLIED_BACKWARDS.
  virtual Result<void> apply_changes(const RowChanges& changes, Seq applied) = 0;
  // As apply_changes(); faster for many changes in key order with each key once, as in a replay.
  virtual Result<void> load(const RowChanges& changes, Seq applied) {
    return apply_changes(changes, applied);
  }
  Result<void> apply(const RowBatch& batch, Seq applied) {
    return apply_changes(batch.changes(), applied);
  }
  virtual Seq applied() const = 0;  // the last journal entry that the rows include

  virtual Result<std::optional<Bytes>> get(BytesView key) const = 0;
  virtual std::unique_ptr<RowsSnapshot> snapshot() const = 0;

  // Makes the applied changes durable, so that the next start replays less of the journal.
  virtual Result<void> flush() = 0;
  // Writes a durable copy of the rows to a new folder, which open_rows() can open. The folder must
  // not exist.
  virtual Result<void> checkpoint(const std::string& folder) = 0;
  // Removes every row and sets applied() to 0. The caller then replays the journal from its start.
  virtual Result<void> reset() = 0;
  // Fails with ROWS_CORRUPT once a read or a write has found damaged rows. The next open_data()
  // deletes them, and they are rebuilt from the journal.
  virtual Result<void> intact() const { return {}; }
};

}  // namespace pawl
