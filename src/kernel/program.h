#pragma once
// A program says what one input does. It is a pure function of the turn: no clock, no dice of its
// own, no files, no threads, no members that change. Run it twice on the same frame and it must
// write the same bytes; `pawl verify` does exactly that.

#include <span>

#include "kernel/turn.h"
#include "storage/rows.h"

namespace pawl {

// One cell that a frame changed, before and after.
struct Change {
  BytesView key;
  const Cell& before;  // version 0: was not there
  const Cell& after;   // version 0: is not there any more
};

// A committed turn as views see it.
struct Committed {
  Seq seq;
  Time now;
  const Caller& caller;
  std::span<const Change> changes;  // cells of this program; never effect cells
  std::span<const Bytes> notes;
};

// Where a program puts its view rows. Keys are the program's own; they cannot meet another's.
class ViewRows {
 public:
  ViewRows(RowBatch& rows, BytesView program);
  void put(BytesView key, BytesView value);
  void erase(BytesView key);

 private:
  RowBatch& rows_;
  Bytes prefix_;
};

class Program {
 public:
  virtual ~Program() = default;
  virtual std::string_view name() const = 0;  // also the first part of all its cells' keys

  // Returns the answer for the caller. An error abandons the turn: nothing is written, nothing
  // leaves, and a receipt's effect stays open (use turn.refuse() to settle it all the same). If the
  // program asked for something the turn waits, the answer is dropped, and run() is called again,
  // in the same turn, with the receipt as input.
  virtual Result<Bytes> run(Turn& turn, const Input& input) const = 0;

  // Rows derived from a frame. Called in frame order, live and again whenever rows are rebuilt, so
  // it may depend on nothing but its arguments.
  virtual void view(const Committed& frame, ViewRows& rows) const { (void)frame, (void)rows; }
  // Change this number when view() or keeps_history() changes: rows are then rebuilt at start.
  virtual uint32_t view_version() const { return 1; }
  // A turn that waited has read a cell as `read`; others have made it `now` since. True when it may
  // stand on what it read all the same: the frame says so, and `pawl verify` runs it with that. It
  // may add what `now` asks of its writes. Not asked for a cell that the turn has written.
  virtual bool accepts_stale_read(Turn& turn, BytesView key, const Cell& read,
                                  const Cell& now) const {
    return (void)turn, (void)key, (void)read, (void)now, false;
  }
  // True for cells that a turn which waits has as they were when it began: what others have written
  // since is a conflict although it was read only then.
  virtual bool conflicts_after_begin(BytesView key) const { return (void)key, false; }
  // True for cells whose old versions must be quick to read: each gets a row a version.
  virtual bool keeps_history(BytesView key) const { return (void)key, false; }
  // The lead of the key that names the cell's family, if it has one: only so many clean cells of a
  // family stay in memory. Nothing that a turn does may depend on it.
  virtual BytesView family(BytesView key) const { return (void)key, BytesView(); }
  // False for cells that hardly anybody reads once they are in the rows: they are not packed.
  virtual bool worth_packing(BytesView key) const { return (void)key, true; }
};

}  // namespace pawl
