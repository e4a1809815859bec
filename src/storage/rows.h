#pragma once
// Rows are an ordered map from bytes to bytes, derived from the journal: they hold nothing that the
// journal cannot give back, so they have no log of their own. Each batch carries the seq up to
// which it brings the rows; after a crash they may stand earlier than the journal, never later,
// never torn.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "storage/journal.h"

namespace pawl {

enum class RowKind : uint8_t { erase, put, put_new };

struct RowChange {
  BytesView key, value;
  RowKind kind;
};

// Changes in order that lie in the memory of somebody else, who keeps it.
class RowChanges {
 public:
  void add(const RowChange& one) {
    all_.push_back(one);
    bytes_ += one.key.size() + one.value.size();
  }
  void clear() { all_.clear(), bytes_ = 0; }
  void reserve(size_t count) { all_.reserve(count); }
  const std::vector<RowChange>& all() const { return all_; }
  size_t count() const { return all_.size(); }
  size_t bytes() const { return bytes_; }  // of keys and values
  // Calls put(key, value) or erase(key) for each change in order.
  template <class Put, class Erase>
  void each(Put&& put, Erase&& erase) const {
    for (const RowChange& one : all_) {
      if (one.kind == RowKind::erase)
        erase(one.key);
      else
        put(one.key, one.value);
    }
  }

 private:
  std::vector<RowChange> all_;
  size_t bytes_ = 0;
};

// Changes in order; of two to one key the later holds. One flat buffer, so that a batch of
// thousands of rows is a handful of allocations.
class RowBatch {
 public:
  using Kind = RowKind;
  // Bytes that may come in two pieces, so that nobody has to join them first.
  struct Parts {
    Parts(BytesView one) : first(one) {}
    Parts(const Bytes& one) : first(one) {}
    Parts(const char* one) : first(one) {}
    Parts(BytesView one, BytesView two) : first(one), second(two) {}
    size_t size() const { return first.size() + second.size(); }
    BytesView first, second{};
  };
  void put(Parts key, Parts value) { add(Kind::put, key, value); }
  // The same, by someone who knows that no row has this key: with a later erase it cancels out.
  void put_new(Parts key, Parts value) { add(Kind::put_new, key, value); }
  void erase(Parts key) { add(Kind::erase, key, BytesView()); }
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return data_.size(); }
  void clear() { data_.clear(), count_ = 0; }
  void reserve(size_t bytes) { data_.reserve(bytes); }
  void append(const RowBatch& other) { data_ += other.data_, count_ += other.count_; }

  // Calls visit(kind, key, value) for each change in order.
  template <class Visit>
  void each_change(Visit&& visit) const {
    const char* p = data_.data();
    const char* end = p + data_.size();
    while (p < end) {
      uint32_t klen, vlen;
      std::memcpy(&klen, p, 4);
      std::memcpy(&vlen, p + 4, 4);
      auto kind = static_cast<Kind>(klen >> 30);
      klen &= 0x3fffffff;
      visit(kind, BytesView(p + 8, klen), BytesView(p + 8 + klen, vlen));
      p += 8 + klen + vlen;
    }
  }
  RowChanges changes() const {
    RowChanges out;
    out.reserve(count_);
    each_change([&](Kind kind, BytesView key, BytesView value) { out.add({key, value, kind}); });
    return out;
  }

 private:
  void add(Kind kind, const Parts& key, const Parts& value) {
    uint32_t head[2] = {static_cast<uint32_t>(key.size()) | static_cast<uint32_t>(kind) << 30,
                        static_cast<uint32_t>(value.size())};
    data_.append(reinterpret_cast<const char*>(head), 8);
    data_.append(key.first).append(key.second);
    data_.append(value.first).append(value.second);
    ++count_;
  }
  Bytes data_;
  size_t count_ = 0;
};

// The rows as they stood at one moment. Cheap to take; hold it no longer than a request lasts.
class RowsSnapshot {
 public:
  virtual ~RowsSnapshot() = default;
  virtual Result<std::optional<Bytes>> get(BytesView key) const = 0;
  // Visits [first, limit) in key order until `visit` returns false; an empty limit means the end.
  using Visit = std::function<bool(BytesView key, BytesView value)>;
  virtual Result<void> scan(BytesView first, BytesView limit, const Visit& visit) const = 0;
  // The same from the end: from the last key before `limit` down to `first`.
  virtual Result<void> scan_back(BytesView first, BytesView limit, const Visit& visit) const = 0;
  virtual Seq applied() const = 0;
};

class Rows {
 public:
  virtual ~Rows() = default;

  // All or none, and visible to every reader on return. Of two changes to one key the later holds.
  // `applied` never goes back.
  virtual Result<void> apply_changes(const RowChanges& changes, Seq applied) = 0;
  // The same for many in key order, each key once: a replay has such.
  virtual Result<void> load(const RowChanges& changes, Seq applied) {
    return apply_changes(changes, applied);
  }
  Result<void> apply(const RowBatch& batch, Seq applied) {
    return apply_changes(batch.changes(), applied);
  }
  virtual Seq applied() const = 0;

  virtual Result<std::optional<Bytes>> get(BytesView key) const = 0;
  virtual std::unique_ptr<RowsSnapshot> snapshot() const = 0;

  // Makes what is applied survive a restart, so that less is replayed.
  virtual Result<void> flush() = 0;
  // A copy of the rows, flushed, in a new folder that open_rows() can open. The folder must not
  // exist.
  virtual Result<void> checkpoint(const std::string& folder) = 0;
  // Forgets every row: applied() is 0 again and the journal is replayed from its beginning.
  virtual Result<void> reset() = 0;
};

}  // namespace pawl
