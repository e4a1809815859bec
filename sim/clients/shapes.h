#pragma once
// Definitions of processes for the simulator: some that are always the same, and random ones that
// are put together from blocks. A shape knows how often an instance enters each of its steps.

#include <map>
#include <string>
#include <vector>

#include "json/value.h"
#include "sim/schedule.h"

namespace pawl::sim {

struct Shape {
  std::string id;
  json::Value definition;
  // How often each step is entered by an instance that completes, for instances whose variable
  // `kind` is "even" and "odd". Empty: not known. A join is not counted.
  std::map<std::string, size_t> even, odd;
};

// How long the user task of `timer` waits before its timer interrupts it.
inline constexpr Time kTimer = 90 * kSecond;
// How long instances of `brief` stay after their end.
inline constexpr Time kStay = 600 * kSecond;

// line, timer, wait, fork, choice; child, brief, undo, chained, tick.
std::vector<Shape> fixed_shapes();
// A chain of random blocks: tasks, loops, decision tables, calls of `child`, forks, waits that end
// by their timer.
Shape random_shape(Schedule& schedule, std::string id);

}  // namespace pawl::sim
