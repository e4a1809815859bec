#pragma once
// A group is what finished turns leave behind: frames to append with one flush, rows to apply, and
// what may leave once both are done.

#include <vector>

#include "kernel/access.h"
#include "kernel/cache.h"
#include "kernel/frame.h"
#include "storage/rows.h"

namespace pawl {

struct Group {
  struct Answered {
    Reply reply;
    Result<Answer> answer;
  };
  struct Moved {  // an effect that came or went
    EffectPtr effect;
    bool opened;
  };
  Seq last_before = 0;  // seq of the frame before the first one here
  std::vector<Frame> frames;
  std::vector<Bytes> entries;  // of the frames, for the journal
  RowBatch rows;
  std::vector<Moved> moved;
  std::vector<Answered> answers;
  size_t bytes = 0;

  // Every cell as the frames left it, in order; absent ones were erased.
  template <class F>
  void each_cell(F&& visit) const {
    for (const Frame& frame : frames)
      for (const Frame::Write& write : frame.writes)
        visit(write.key, write.value ? Cell{frame.seq, write.value} : Cell{}, frame.seq);
  }

  bool empty() const { return frames.empty() && answers.empty() && moved.empty(); }
  Seq last() const { return last_before + frames.size(); }
};

}  // namespace pawl
