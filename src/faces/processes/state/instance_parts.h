#pragma once
// The parts of an instance's cell that came after the first format. Each has a number; an empty
// part is left out, and all of them are left out when every one is empty, as before they existed.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

// Appends the parts that are not empty. Returns without writing when there are none.
void write_parts(Writer& w, const Instance& instance);
bool has_parts(const Instance& instance);
// A part with an unknown number makes the cell unreadable: a newer version wrote it.
bool read_parts(Reader& r, Instance& instance);

}  // namespace pawl::processes
