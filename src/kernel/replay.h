#pragma once
// Replay brings the rows up to date with the journal: it puts the cells that the frames hold and
// derives the views again. Replay never runs a program.

#include "base/hash.h"
#include "kernel/program.h"
#include "storage/journal.h"
#include "storage/rows.h"

namespace pawl {

struct Replayed {
  Seq last = 0;          // seq of the journal's newest frame
  Digest link{};         // its link, for the next frame
  Time last_time = 0;    // its time
  size_t frames = 0;     // number of frames replayed
  bool rebuilt = false;  // the rows were deleted first: the version of a view changed
};

// Called now and then with frames done and in total. May be empty.
using Progress = std::function<void(Seq done, Seq total)>;
// Starts a task and returns a function that waits for its end. Lets replay apply one batch of rows
// while it reads the next frames. Empty: batches are applied in line.
using Task = std::function<Result<void>()>;
using Beside = std::function<Task(Task work)>;
Result<Replayed> replay(const Journal& journal, Rows& rows,
                        std::span<const Program* const> programs, const Progress& progress = {},
                        const Beside& beside = {});

}  // namespace pawl
