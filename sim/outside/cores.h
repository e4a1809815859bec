#pragma once
// Runs tasks on several processes. A simulated world has one thread by design, so more cores need
// more processes. They share nothing but the number of the next task.

#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace pawl::sim {

struct CoreTasks {
  size_t count = 0;
  std::function<Bytes(size_t task)> run;        // in one of the processes
  std::function<void(size_t done)> progress{};  // in this process, after each task
};

// Returns what each task gave, in the order of the tasks. With one process the tasks run in this
// one. Error: a process died.
Result<std::vector<Bytes>> run_on_cores(size_t processes, const CoreTasks& tasks);

// The number of processors of this machine.
size_t core_count();

}  // namespace pawl::sim
