// Reads of durable state, declared in kernel/access.h.

#include "kernel/access.h"
#include "kernel/rows_layout.h"

namespace pawl {

Result<Cell> ReadSnapshot::read(BytesView key) const {
  TRY(auto row, rows_->get(layout::cell_row(key)));
  if (!row) return Cell{};
  return layout::parse_cell(*row);
}

Result<void> ReadSnapshot::scan(BytesView prefix, const VisitCell& visit, BytesView from) const {
  Bytes first = layout::cell_row(std::max(prefix, from));
  return rows_->scan(first, after_prefix(layout::cell_row(prefix)),
                     [&](BytesView key, BytesView value) {
                       return visit(key.substr(1), layout::parse_cell(value));
                     });
}

Result<void> ReadSnapshot::scan_bytes(BytesView prefix, const VisitBytes& visit) const {
  Bytes first = layout::cell_row(prefix);
  return rows_->scan(first, after_prefix(first), [&](BytesView key, BytesView row) {
    Reader r(row);
    Seq version = r.fixed64();
    return visit(key.substr(1), version, r.rest());
  });
}

Result<void> ReadSnapshot::rows(BytesView program, BytesView prefix, const VisitRow& visit,
                                BytesView from, bool back) const {
  Bytes head = layout::view_prefix(program);
  auto strip = [&](BytesView key, BytesView value) {
    return visit(key.substr(head.size()), value);
  };
  Bytes first = head + Bytes(prefix), limit = after_prefix(first);
  if (back) return rows_->scan_back(first, from.empty() ? limit : head + Bytes(from), strip);
  return rows_->scan(from > prefix ? head + Bytes(from) : first, limit, strip);
}

Result<std::optional<Bytes>> ReadSnapshot::row(BytesView program, BytesView key) const {
  return rows_->get(layout::view_prefix(program).append(key));
}

static Cell parse_version(BytesView row_key, BytesView value) {
  Reader r(value);
  bool exists = r.u8() != 0;
  Cell cell;
  cell.version = ~read_ordered64(row_key.substr(row_key.size() - 8));
  if (exists) cell.stored = std::make_shared<const Stored>(Bytes(r.rest()));
  return cell;
}

Result<Cell> ReadSnapshot::read_at(BytesView key, Seq seq) const {
  Cell found;
  TRY_OK(rows_->scan(layout::history_row(key, seq), after_prefix(layout::history_prefix(key)),
                     [&](BytesView row, BytesView value) {
                       found = parse_version(row, value);
                       return false;
                     }));
  if (!found.stored) return Cell{};
  return found;
}

Result<void> ReadSnapshot::history(BytesView key, const VisitCell& visit) const {
  Bytes first = layout::history_prefix(key);
  return rows_->scan(first, after_prefix(first), [&](BytesView row, BytesView value) {
    return visit(key, parse_version(row, value));
  });
}

Result<Seq> ReadSnapshot::seq_at(Time t) const {
  Seq found = 0;
  Bytes limit = layout::time_row(t);
  limit.push_back('\0');
  TRY_OK(rows_->scan_back("t", limit, [&](BytesView, BytesView value) {
    found = read_ordered64(value);
    return false;
  }));
  return found;
}

ViewRows::ViewRows(RowBatch& rows, BytesView program)
    : rows_(rows), prefix_(layout::view_prefix(program)) {}

void ViewRows::put(BytesView key, BytesView value) { rows_.put({prefix_, key}, value); }

void ViewRows::erase(BytesView key) { rows_.erase({prefix_, key}); }

void ViewRows::erase_prefix(BytesView prefix) { rows_.erase_prefix({prefix_, prefix}); }

}  // namespace pawl
