#pragma once
// A cell is one keyed, versioned value. Everything durable is a cell.
//
// A key is a byte string: the program's name, then parts that the program chooses, joined by key()
// so that the keys of one program, tenant or kind are neighbours:
// "processes\0tenant\0instance\0id".

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"
#include "storage/journal.h"

namespace pawl {

using Key = std::string;

// Joins parts with zero bytes. Zero bytes inside a part are escaped.
Key key(std::initializer_list<std::string_view> parts);
// The same with a zero byte at the end: the prefix of all keys below these parts.
Key prefix(std::initializer_list<std::string_view> parts);
// Splits a key into its parts.
std::vector<std::string> parts_of(BytesView key);

// The decoded form of a cell's bytes, cached beside them so that a turn does not parse what the
// previous turn wrote. Only the owning program knows the type. Immutable once shared.
using Decoded = std::shared_ptr<const void>;

// Bytes with a slot for their decoded form. Shared by the kernel, the cache and readers on other
// threads: the first one that decodes fills the slot for all.
class Stored {
 public:
  explicit Stored(Bytes value, Decoded decoded = {})
      : bytes(std::move(value)), has_decoded_(decoded != nullptr), decoded_(std::move(decoded)) {}
  const Bytes bytes;
  Decoded decoded() const { return decoded_.load(std::memory_order_acquire); }
  void keep(Decoded decoded) const {
    decoded_.store(std::move(decoded), std::memory_order_release);
    has_decoded_.store(true, std::memory_order_relaxed);
  }
  bool has_decoded() const { return has_decoded_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> has_decoded_;
  mutable std::atomic<Decoded> decoded_;
};
using StoredPtr = std::shared_ptr<const Stored>;

// `version` is the seq of the frame that last wrote the cell; 0 means it was never written or is
// erased. A version therefore also says where in the journal to find the reason.
struct Cell {
  Seq version = 0;
  StoredPtr stored{};  // null when the cell does not exist
  bool exists() const { return version != 0; }
  BytesView value() const { return stored ? BytesView(stored->bytes) : BytesView(); }
  // Returns the cached decoded form, or makes and caches it with `decode(BytesView) -> Result<T>`.
  // Null when the cell does not exist.
  template <class T, class Decode>
  Result<std::shared_ptr<const T>> as(Decode&& decode) const {
    if (!exists()) return std::shared_ptr<const T>();
    if (Decoded d = stored->decoded()) return std::static_pointer_cast<const T>(d);
    Result<T> value = decode(this->value());
    if (!value) return fail(std::move(value.error()));
    auto shared = std::make_shared<const T>(std::move(*value));
    stored->keep(shared);
    return shared;
  }
};

}  // namespace pawl
