#pragma once
// A group is the output of several finished turns: frames to append with one flush, rows to apply,
// and the answers and effects that may leave after that.

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
  struct Moved {  // an effect that was opened or closed
    EffectPtr effect;
    bool opened;
  };
  Seq last_before = 0;  // seq of the frame before the first one here
  std::vector<Frame> frames;
  std::vector<Bytes> entries;  // the frames, encoded for the journal
  RowBatch rows;
  std::vector<Moved> moved;
  std::vector<Answered> answers;
  size_t bytes = 0;

  // Visits every cell as the frames left it, in frame order; erased cells are absent.
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
