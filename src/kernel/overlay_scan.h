#pragma once
// A scan of stored cells with newer versions laid over it, in key order.

#include <functional>
#include <map>

#include "kernel/cell.h"

namespace pawl {

using VisitCell = std::function<bool(BytesView key, const Cell& cell)>;

// Calls `scan(visitor)`, which must visit cells in key order, and passes them on to `visit` until
// it returns false. A cell in `newer` replaces the stored one; an absent cell in `newer` hides it.
template <class Scan>
Result<void> scan_with_overlay(const std::map<Key, Cell>& newer, const VisitCell& visit,
                               const Scan& scan) {
  auto next = newer.begin();
  bool go_on = true;
  const auto visit_next = [&] {
    if (next->second.exists()) go_on = visit(next->first, next->second);
    ++next;
  };
  TRY_OK(scan([&](BytesView key, const Cell& cell) {
    while (go_on && next != newer.end() && next->first < key)
      visit_next();
    if (!go_on) return false;
    if (next != newer.end() && next->first == key)
      visit_next();
    else
      go_on = visit(key, cell);
    return go_on;
  }));
  while (go_on && next != newer.end())
    visit_next();
  return {};
}

}  // namespace pawl
