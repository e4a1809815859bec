#pragma once
// Replay brings rows up to the journal: it puts the cells that frames hold and derives the views
// again. It never runs a program.

#include "base/hash.h"
#include "kernel/program.h"
#include "storage/journal.h"
#include "storage/rows.h"

namespace pawl {

struct Replayed {
  Seq last = 0;          // newest frame of the journal
  Digest link{};         // its link, for the next frame
  size_t frames = 0;     // how many were replayed
  bool rebuilt = false;  // rows were thrown away first: views changed, or rows were ahead
};

// `progress(done, total)` may be empty; called now and then.
using Progress = std::function<void(Seq done, Seq total)>;
// Begins some work and gives the function that waits for its end: applying a batch of rows may go
// on beside the reading of the next frames. Empty: one after the other.
using Task = std::function<Result<void>()>;
using Beside = std::function<Task(Task work)>;
Result<Replayed> replay(const Journal& journal, Rows& rows,
                        std::span<const Program* const> programs, const Progress& progress = {},
                        const Beside& beside = {});

}  // namespace pawl
