#pragma once
// A program says what one input does. It is a pure function of the turn: no clock, no dice of its
// own, no files, no threads, no members that change. Run it twice on the same frame and it must
// write the same bytes; `pawl verify` does exactly that.

#include <span>

#include "kernel/turn.h"
#include "storage/rows.h"

namespace pawl {

// One cell that a frame changed.
struct Change {
  BytesView key;
  const Cell& before;  // version 0: the cell did not exist
  const Cell& after;   // version 0: the frame erased the cell
};

// A committed turn, as Program::view gets it.
struct Committed {
  Seq seq;
  Time now;
  const Caller& caller;
  std::span<const Change> changes;  // cells of this program; never effect cells
  std::span<const Bytes> notes;
};

// ViewRows collects the view rows of one program. Keys are private to the program: two programs
// may use the same key.
class ViewRows {
 public:
  ViewRows(RowBatch& rows, BytesView program);
  void put(BytesView key, BytesView value);
  void erase(BytesView key);
  // Erases all rows below the prefix. No frame may put a row there afterwards.
  void erase_prefix(BytesView prefix);

 private:
  RowBatch& rows_;
  Bytes prefix_;
};

class Program {
 public:
  virtual ~Program() = default;
  virtual std::string_view name() const = 0;  // also the first part of the keys of its cells

  // Returns the answer for the caller. An error abandons the turn: nothing is written, no effect
  // leaves, and if the input was a receipt its effect stays open (turn.refuse() settles the effect
  // and still answers with an error). If the program called turn.ask(), the turn waits: this answer
  // is dropped, and run() is called again in the same turn with the receipt as its input.
  virtual Result<Bytes> run(Turn& turn, const Input& input) const = 0;

  // Derives view rows from a frame. Called in frame order, when the frame commits and again
  // whenever rows are rebuilt, so the result may depend on nothing but the arguments.
  virtual void view([[maybe_unused]] const Committed& frame,
                    [[maybe_unused]] ViewRows& rows) const {}
  // Increase this number when view() or keeps_history() changes: the next start rebuilds the rows.
  virtual uint32_t view_version() const { return 1; }
  // Called at commit for each cell that a waiting turn read and another turn has changed since.
  // Return true to accept the stale read: the turn commits, and its frame records the version it
  // read so that `pawl verify` can repeat it. Return false (the default) to fail the turn with
  // `conflict`. The program may adjust its own writes to the current version. Never called for
  // cells that the turn wrote.
  virtual bool accepts_stale_read([[maybe_unused]] Turn& turn, [[maybe_unused]] BytesView key,
                                  [[maybe_unused]] const Cell& read,
                                  [[maybe_unused]] const Cell& current) const {
    return false;
  }
  // Returns true for cells of which a waiting turn must not see changes made after it began: when
  // another turn wrote the cell since then, reading it is a conflict at commit.
  virtual bool conflicts_after_begin([[maybe_unused]] BytesView key) const { return false; }
  // Returns true for cells whose old versions must be fast to read: each version gets a row.
  virtual bool keeps_history([[maybe_unused]] BytesView key) const { return false; }
  // Returns the key prefix that names the cell's family, or an empty view. The cache limits how
  // many clean cells of one family it keeps. A turn's result must not depend on families.
  virtual BytesView family([[maybe_unused]] BytesView key) const { return {}; }
  // Returns false for cells that are rarely read once they are in the rows: the cache drops them
  // instead of packing them.
  virtual bool worth_packing([[maybe_unused]] BytesView key) const { return true; }
};

}  // namespace pawl
