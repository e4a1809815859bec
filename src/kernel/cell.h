#pragma once
// A cell is one keyed, versioned value. Everything durable is a cell.
//
// A key is bytes: the program's name, then what the program likes, parted by key() so that the keys
// of one program, tenant or kind stand together: "processes\0tenant\0instance\0id".

#include <initializer_list>
#include <memory>
#include <string>

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
// it just wrote. The owner program alone knows the type. Shared because readers on other threads may
// hold it while the kernel moves on; never changed once shared.
using Decoded = std::shared_ptr<const void>;

// `version` is the seq of the frame that last wrote the cell; 0 means it was never written or is
// erased. A version therefore also says where in the journal to find the reason.
struct Cell {
  Seq version = 0;
  std::shared_ptr<const Bytes> bytes;  // null when the cell does not exist
  mutable Decoded decoded{};
  bool exists() const { return version != 0; }
  BytesView value() const { return bytes ? BytesView(*bytes) : BytesView(); }
};

}  // namespace pawl
