#pragma once
// A cell is one keyed, versioned value. Everything durable is a cell.
//
// A key is bytes: the program's name, then what the program likes, parted by key() so that the keys
// of one program, tenant or kind stand together: "processes\0tenant\0instance\0id".

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

// Parts joined by zero bytes. A part that holds a zero byte would run into the next: it is escaped.
Key key(std::initializer_list<std::string_view> parts);
// The same, ending in a zero byte: the prefix of all keys below these parts.
Key prefix(std::initializer_list<std::string_view> parts);
// The parts again.
std::vector<std::string> parts_of(BytesView key);

// The decoded form of a cell's bytes, kept beside them so that a step neither reads nor parses what
// it just wrote. The owner program alone knows the type. Never changed once shared.
using Decoded = std::shared_ptr<const void>;

// Bytes with the place for their decoded form. Shared between the kernel, the cache and readers on
// other threads: whoever decodes first leaves the result for all.
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
  // The decoded form: the one kept beside the bytes, or made by `decode(BytesView) -> Result<T>`
  // and kept. Null pointer when the cell does not exist.
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
