#pragma once
// Keys of the rows that hold cells, versions, times and views. Described in docs/formats/frame.md,
// section "Rows".

#include <optional>

#include "base/hash.h"
#include "kernel/cell.h"
#include "storage/rows.h"

namespace pawl::layout {

// Row key: "c" and the cell's key. Row value: the version and the cell's bytes.
inline constexpr std::string_view kCell = "c";
inline Bytes cell_row(BytesView key) { return Bytes(kCell).append(key); }
inline Bytes cell_head(Seq version) {
  Bytes out;
  Writer(out).fixed64(version);
  return out;
}
inline Cell parse_cell(BytesView row) {
  Reader r(row);
  Seq version = r.fixed64();
  return Cell{version, std::make_shared<const Stored>(Bytes(r.rest()))};
}

inline Bytes history_prefix(BytesView key) {
  Bytes out = "h";
  out.push_back(static_cast<char>(key.size() >> 8));
  out.push_back(static_cast<char>(key.size() & 0xff));
  return out.append(key);
}
inline Bytes history_row(BytesView key, Seq seq) { return history_prefix(key) + ordered64(~seq); }

inline Bytes time_row(Time t) { return "t" + ordered64(static_cast<uint64_t>(t) ^ 1ull << 63); }
// The time of the newest frame that the rows hold; 0 when they hold none.
inline Result<Time> newest_time(const RowsSnapshot& rows) {
  Time newest = 0;
  TRY_OK(rows.scan_back("t", "u", [&](BytesView key, BytesView) {
    newest = static_cast<Time>(read_ordered64(key.substr(1)) ^ 1ull << 63);
    return false;
  }));
  return newest;
}

// One row: the seq that the rows have applied, and the link of that frame. Rows of another journal
// are told apart by it.
inline constexpr std::string_view kLink = "mlink";
inline Bytes link_value(Seq seq, const Digest& link) { return ordered64(seq).append(view(link)); }
// The link, if the row is of the frame `seq`. A binary from before this row does not keep it up.
inline std::optional<Digest> parse_link(BytesView row, Seq seq) {
  Digest link;
  if (row.size() != 8 + link.size() || read_ordered64(row) != seq) return {};
  std::memcpy(link.data(), row.data() + 8, link.size());
  return link;
}

inline Bytes view_prefix(BytesView program) { return Bytes("v").append(program).append(1, '\0'); }

}  // namespace pawl::layout
