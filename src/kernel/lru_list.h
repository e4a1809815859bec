#pragma once
// LruList is an intrusive list in order of last use. It does not own its items.

#include <cstddef>

namespace pawl {

template <class T>
struct Neighbours {
  T *newer = nullptr, *older = nullptr;
};

// T has an array `neighbours`; `which` selects the list, so that an item can be in several.
template <class T, size_t which>
struct LruList {
  T *newest = nullptr, *oldest = nullptr;

  void link(T& thing) {  // as the newest
    thing.neighbours[which] = {nullptr, newest};
    (newest ? newest->neighbours[which].newer : oldest) = &thing;
    newest = &thing;
  }
  void unlink(T& thing) {
    const Neighbours<T>& at = thing.neighbours[which];
    (at.newer ? at.newer->neighbours[which].older : newest) = at.older;
    (at.older ? at.older->neighbours[which].newer : oldest) = at.newer;
  }
  void touch(T& thing) {
    if (newest == &thing) return;
    unlink(thing);
    link(thing);
  }
};

}  // namespace pawl
