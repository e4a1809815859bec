#pragma once
// The kernel turns inputs into frames. It owns no thread, socket, file or clock: the caller drives
// it, so the server and the simulator run the same code. One thread at a time.
//
//   tick(now) ... run(input, reply) ... take() -> group
//
// The caller makes the group durable (commit.h) while the kernel already runs the next one over the
// changes that it has staged in the cache.

#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "kernel/access.h"
#include "kernel/cache.h"
#include "kernel/group.h"
#include "kernel/program.h"

namespace pawl {

class Kernel final : public CellReader {
 public:
  // Programs are named by name(); none may begin with '~'. `last` is the newest frame in the
  // journal; `look` gives a look that has everything published.
  Kernel(CellCache& cache, std::function<ReadSnapshot()> snapshot,
         std::vector<const Program*> programs, Seq last);
  ~Kernel() override;

  // The time that inputs are stamped with from now on; never goes back.
  void tick(Time now);
  // Runs one input as far as it will go. Dice come with the stamp; its time is set here, unless the
  // stamp already has one (a frame that is run again). Every reply goes into a group.
  void run(Input input, Reply reply);
  // What is finished and not yet taken.
  Group take();
  bool idle() const { return group_.empty(); }
  size_t group_bytes() const { return group_.bytes; }
  size_t group_turns() const { return group_.frames.size() + group_.answers.size(); }

  Seq last() const { return last_; }
  Time now() const { return now_; }
  size_t open_turns() const { return open_.size(); }
  // For a frame that is run again: its turn reads these cells as they were, whatever they are now.
  void pin(std::map<Key, Cell, std::less<>> cells) { pinned_ = std::move(cells); }
  // Ends every open turn with an error: the server is stopping.
  void abandon_all(const Error& why);

  Result<Cell> current(BytesView key) const override;
  Result<void> scan_current(BytesView prefix,
                            const std::function<bool(BytesView, const Cell&)>& visit,
                            BytesView from) const override;

 private:
  struct Strand;    // one input of an open turn that has not been answered yet
  struct OpenTurn;  // a turn, running or waiting for receipts
  class Closing;    // keeps a turn until it is closed, then makes it ready for the next
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <class V>
  using Map = std::unordered_map<std::string, V, Hash, std::equal_to<>>;
  using OpenPtr = std::list<std::unique_ptr<OpenTurn>>::iterator;

  const Program* find(BytesView name) const;
  void begin(const Program& program, Input input, Reply reply, EffectPtr settled);
  void resume(Input input, Reply reply);  // a receipt for something asked
  void join(Input input, Reply reply);    // a command for an open turn
  void step(OpenPtr turn, Strand& strand, Input input);
  void finish(OpenPtr turn, Strand& strand, Result<Bytes> result);
  // Those that joined while the strand waited and are not done when it goes on leave nothing.
  void end_joined(OpenTurn& turn, const Strand& under);
  void forget(OpenTurn& turn, const Strand& strand);  // nobody joins or answers it any more
  OpenPtr fresh_turn(const Program& program, uint64_t token);
  void close(OpenPtr turn, Result<Bytes> result);
  Result<Answer> commit(OpenTurn& turn, Bytes body);
  Result<void> check(OpenTurn& turn);  // limits, and versions when others ran in between
  Result<void> check_reads(OpenTurn& turn);
  void write_frame(OpenTurn& turn, Seq seq);
  void answer(Reply reply, Result<Answer> result);
  void answer_waiting(OpenTurn& turn, const Result<Answer>& result,
                      const std::vector<std::string>& withdrawn);
  std::vector<std::string> withdrawn_by(const OpenTurn& turn) const;  // as far as somebody waits
  bool answered_before(const Input& input, Reply& reply);

  CellCache& cache_;
  std::function<ReadSnapshot()> snapshot_;
  std::vector<const Program*> programs_;
  Seq last_;
  Time now_ = 0;
  Group group_;

  std::list<std::unique_ptr<OpenTurn>> open_, spare_;  // spare ones keep their memory
  std::unordered_map<uint64_t, std::pair<OpenPtr, Strand*>> by_token_;  // whom a command may join
  Map<std::pair<OpenPtr, Strand*>> asked_;  // effect id -> who waits for it
  Map<Reply> later_;                        // effect id -> the caller that waits for it
  std::unordered_set<std::string> running_once_;
  std::map<Key, Cell, std::less<>> pinned_;
  std::pair<Time, Seq> time_row_{0, 0};
  // Of the frame at hand; kept for their memory.
  std::vector<size_t> places_;
  std::vector<Cell> before_, after_;
  std::vector<Change> changes_;
};

// What a frame's cells mean for the rows: shared by the kernel and by replay.
void add_cell_rows(RowBatch& rows, const Frame& frame);
void add_view_rows(RowBatch& rows, const Frame& frame, std::span<const Change> changes,
                   const Program* program);

}  // namespace pawl
