// Counts by `inc`, one cell for each `id`. An inc of 0 deletes the cell.

#include "pawl_world.hpp"

PAWL_STEP(step) {
  const uint64_t inc = in.event().get("inc").number();
  if (inc == 0) return out.erase();
  const uint64_t count = in.state().get("count").number() + inc;
  out.state([&](pawl::Writer& w) { w.map(1).text("count").number(count); });
}
