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

struct Once;

class Kernel final : public CellReader {
 public:
  // No program's name may begin with '~'. `last` is the seq of the journal's newest frame.
  // `snapshot` returns a snapshot that holds everything published.
  Kernel(CellCache& cache, std::function<ReadSnapshot()> snapshot,
         std::vector<const Program*> programs, Seq last);
  ~Kernel() override;

  // Sets the time that inputs are stamped with from now on. A time in the past is ignored.
  void tick(Time now);
  // Runs one input until its turn ends or waits. The stamp brings the dice; its time is set here
  // unless it has one (when `pawl verify` runs a frame again). Replies are collected in the group.
  void run(Input input, Reply reply);
  // Takes the finished turns since the last call.
  Group take();
  bool idle() const { return group_.empty(); }
  size_t group_bytes() const { return group_.bytes; }
  size_t group_turns() const { return group_.frames.size() + group_.answers.size(); }

  Seq last() const { return last_; }
  Time now() const { return now_; }
  size_t open_turns() const { return open_.size(); }
  // Inputs refused because their tenant had too many open turns.
  uint64_t refused_open_turns() const { return refused_open_turns_; }
  // Turns of one tenant that may wait for receipts; 0 for no limit but that of all tenants. Further
  // commands of the tenant are refused with `exhausted`.
  void limit_open_turns(size_t of_tenant) { max_open_of_tenant_ = of_tenant; }
  // For `pawl verify`: the next turn reads these cells instead of the current ones.
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
  class Closing;    // holds a turn while it closes, then recycles its memory
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <class V>
  using Map = std::unordered_map<std::string, V, Hash, std::equal_to<>>;
  using OpenPtr = std::list<std::unique_ptr<OpenTurn>>::iterator;

  const Program* find(BytesView name) const;
  void begin(const Program& program, Input input, Reply reply, EffectPtr settled);
  void resume(Input input, Reply reply);  // a receipt for an ask()
  void join(Input input, Reply reply);    // a command that runs inside an open turn
  void step(OpenPtr turn, Strand& strand, Input input);
  void finish(OpenPtr turn, Strand& strand, Result<Bytes> result);
  // Undoes the inputs that joined while the strand waited and that are still unfinished now that it
  // goes on.
  void end_joined(OpenTurn& turn, const Strand& under);
  void forget(OpenTurn& turn, const Strand& strand);  // removes it from the look-up tables
  OpenPtr fresh_turn(const Program& program, uint64_t token);
  void close(OpenPtr turn, Result<Bytes> result);
  Result<Answer> commit(OpenTurn& turn, Bytes body);
  // Records the answer under the Idempotency-Keys that the turn decides: its own, and those that
  // the effects carry which it settled or withdrew.
  Result<void> record_answers(OpenTurn& turn, const Bytes& body);
  // Whether a mark is left for the input: it delivers an effect of another shard.
  static bool leaves_mark(const Input& input);
  // Answers a delivery that this shard has decided already, or cannot take now.
  bool delivered_before(const Input& input, Reply& reply);
  void close_delivery(OpenTurn& turn, Result<Bytes> result);
  // Writes the mark of the delivery that the turn decides, and forgets old ones.
  Result<void> record_mark(OpenTurn& turn, const Bytes& receipt);
  // Numbers the effects to other shards that the turn opens.
  static Result<void> number_effects(OpenTurn& turn);
  static bool record_answer(Turn& turn, Key key, Once once);  // true: it waits for an effect
  Result<void> check(OpenTurn& turn);  // limits; read versions if the turn has waited
  Result<void> check_reads(OpenTurn& turn);
  // Lists the turn's last write of each key in places_, in key order, and reads into before_ what
  // the cells hold now. Fails when a cell cannot be read; then the turn has changed nothing.
  Result<void> prepare_writes(OpenTurn& turn);
  void write_frame(OpenTurn& turn, Seq seq);
  void add_writes(OpenTurn& turn, Frame& frame);
  Result<Cell> version_before(const OpenTurn& turn, BytesView key) const;
  void answer(Reply reply, Result<Answer> result);
  void answer_later(const std::string& effect_id, const Result<Answer>& result);
  void answer_waiting(OpenTurn& turn, const Result<Answer>& result,
                      const std::vector<std::string>& withdrawn);
  // Moves the callers of this turn to the effect that it waits for now.
  void keep_waiting(OpenTurn& turn, Seq seq);
  std::vector<std::string> withdrawn_by(const OpenTurn& turn) const;  // empty if no caller waits
  bool answered_before(const Input& input, Reply& reply);
  bool too_many_waiting(const Input& input) const;
  void count_waiting(OpenTurn& turn);
  void uncount_waiting(const OpenTurn& turn);

  CellCache& cache_;
  std::function<ReadSnapshot()> snapshot_;
  std::vector<const Program*> programs_;
  Seq last_;
  Time now_ = 0;
  Group group_;

  std::list<std::unique_ptr<OpenTurn>> open_, spare_;  // spare turns keep their memory
  std::unordered_map<uint64_t, std::pair<OpenPtr, Strand*>> by_token_;  // inputs that can be joined
  size_t max_open_of_tenant_ = 0;
  uint64_t refused_open_turns_ = 0;
  Map<size_t> waiting_turns_;               // tenant -> its turns that wait or have waited
  Map<std::pair<OpenPtr, Strand*>> asked_;  // effect id -> the input that waits for it
  Map<std::vector<Reply>> later_;           // effect id -> the callers that wait for it
  // Keys of the answers and marks that open turns will write.
  std::unordered_set<std::string> running_once_;
  std::map<Key, Cell, std::less<>> pinned_;
  std::pair<Time, Seq> time_row_{0, 0};
  // Scratch space for the frame being written; kept to reuse the memory.
  std::vector<size_t> places_;
  std::vector<Cell> before_, after_;
  std::vector<Change> changes_;
};

// Derives rows from a frame. Shared by the kernel and by replay.
void add_cell_rows(RowBatch& rows, const Frame& frame);
void add_view_rows(RowBatch& rows, const Frame& frame, std::span<const Change> changes,
                   const Program* program);

}  // namespace pawl
