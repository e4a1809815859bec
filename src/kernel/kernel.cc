#include "kernel/kernel.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "kernel/delivery.h"
#include "kernel/once.h"
#include "kernel/open_turn.h"
#include "kernel/overlay_scan.h"
#include "kernel/rows_layout.h"

namespace pawl {

class Kernel::Closing {
 public:
  Closing(Kernel& kernel, OpenPtr turn) : kernel_(kernel) {
    turn_.splice(turn_.begin(), kernel.open_, turn);
  }
  ~Closing() {
    // A large turn is freed: its memory would be kept for nothing.
    if (kernel_.spare_.size() >= kSpare || turn().turn.ops_.size() > kKeptOps ||
        turn().turn.reads_.size() > kKeptOps)
      return;
    turn().reset();
    kernel_.spare_.splice(kernel_.spare_.begin(), turn_);
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  OpenTurn& turn() { return *turn_.front(); }

 private:
  static constexpr size_t kSpare = 16, kKeptOps = 64;
  Kernel& kernel_;
  std::list<std::unique_ptr<OpenTurn>> turn_;
};

static uint64_t token_of(const Stamp& stamp) {
  Dice dice({stamp.dice[1], stamp.dice[0]});
  return dice.next() | 1;
}

Kernel::Kernel(CellCache& cache, std::function<ReadSnapshot()> snapshot,
               std::vector<const Program*> programs, Seq last)
    : cache_(cache), snapshot_(std::move(snapshot)), programs_(std::move(programs)), last_(last) {
  group_.last_before = last;
}

Kernel::~Kernel() = default;

const Program* Kernel::find(BytesView name) const {
  for (const Program* p : programs_)
    if (p->name() == name) return p;
  return nullptr;
}

void Kernel::tick(Time now) { now_ = std::max(now_, now); }

Result<Cell> Kernel::current(BytesView key) const {
  if (!pinned_.empty())
    if (auto it = pinned_.find(key); it != pinned_.end()) return it->second;
  return cache_.current(key);
}

Result<void> Kernel::scan_current(BytesView prefix,
                                  const std::function<bool(BytesView, const Cell&)>& visit,
                                  BytesView from) const {
  std::map<Key, Cell> pending;
  cache_.each_staged([&](BytesView key, const Cell& cell) {
    if (key.starts_with(prefix) && key >= from) pending.emplace(key, cell);
  });
  ReadSnapshot snapshot = snapshot_();
  return scan_with_overlay(
      pending, visit, [&](const VisitCell& stored) { return snapshot.scan(prefix, stored, from); });
}

void Kernel::answer(Reply reply, Result<Answer> result) {
  if (reply) group_.answers.push_back({std::move(reply), std::move(result)});
}

void Kernel::run(Input input, Reply reply) {
  if (input.stamp.now == 0)
    input.stamp.now = now_;
  else
    tick(input.stamp.now);
  if (input.joins) return join(std::move(input), std::move(reply));
  if (!input.settles.empty()) {
    if (asked_.contains(input.settles)) return resume(std::move(input), std::move(reply));
    auto cell = current(effect_key(input.settles));
    if (!cell) return answer(std::move(reply), fail(std::move(cell.error())));
    if (!cell->exists())
      return answer(
          std::move(reply),
          fail(Code::not_found, kEffectNotOpen,
               fmt::format("'{}' is not open: it was settled or withdrawn before, or never opened",
                           input.settles)));
    auto decoded = cell->as<Effect>(decode_effect);
    if (!decoded) return answer(std::move(reply), fail(std::move(decoded.error())));
    EffectPtr effect = std::move(*decoded);
    input.program = effect->program;
    if (effect->to == To::cell && input.verb.empty()) {
      input.verb = effect->queue;
      input.body = effect->body;
    }
    const Program* program = find(input.program);
    if (program) return begin(*program, std::move(input), std::move(reply), std::move(effect));
  }
  if (delivered_before(input, reply) || answered_before(input, reply)) return;
  static const OwnProgram own;
  const Program* program = input.program == kOwnProgram ? &own : find(input.program);
  if (!program)
    return answer(std::move(reply), fail(Code::not_found, "NO_PROGRAM",
                                         fmt::format("no program is named '{}'", input.program)));
  begin(*program, std::move(input), std::move(reply), nullptr);
}

bool Kernel::answered_before(const Input& input, Reply& reply) {
  if (input.once.empty()) return false;
  if (input.once.size() > limits::kIdempotencyKeyBytes) {
    answer(std::move(reply), fail(Code::invalid, "BAD_IDEMPOTENCY_KEY",
                                  fmt::format("an Idempotency-Key has at most {} bytes",
                                              limits::kIdempotencyKeyBytes)));
    return true;
  }
  Key key = once_key(input.caller, input.once);
  if (running_once_.contains(key)) {
    answer(std::move(reply),
           fail(Code::conflict, "IDEMPOTENCY_KEY_RUNNING",
                "the first request with this Idempotency-Key still runs: retry later"));
    return true;
  }
  auto cell = current(key);
  if (!cell || !cell->exists()) return false;
  auto once = decode_once(cell->value());
  if (!once || once->at + limits::kIdempotencySeconds * kSecond < input.stamp.now) return false;
  if (once->hash != once_hash(input)) {
    answer(std::move(reply),
           fail(Code::unprocessable, kIdempotencyKeyReused,
                "this Idempotency-Key was used for another request: use a new key"));
  } else if (once->waits_for.empty()) {
    answer(std::move(reply), Answer{std::move(once->answer), cell->version});
  } else {
    // The first request is still under way: this one gets the same answer.
    auto effect = current(effect_key(once->waits_for));
    if (!effect || !effect->exists()) return false;
    if (reply) later_[once->waits_for].push_back(std::move(reply));
  }
  return true;
}

Kernel::OpenPtr Kernel::fresh_turn(const Program& program, uint64_t token) {
  if (spare_.empty())
    open_.push_front(std::make_unique<OpenTurn>(*this));
  else
    open_.splice(open_.begin(), spare_, spare_.begin());
  OpenTurn& t = *open_.front();
  t.program = &program;
  t.turn.token_ = token;
  return open_.begin();
}

bool Kernel::too_many_waiting(const Input& input) const {
  if (max_open_of_tenant_ == 0 || !input.settles.empty()) return false;
  auto it = waiting_turns_.find(input.caller.tenant);
  return it != waiting_turns_.end() && it->second >= max_open_of_tenant_;
}

void Kernel::count_waiting(OpenTurn& t) {
  if (std::exchange(t.waited, true)) return;
  auto [it, fresh] = waiting_turns_.try_emplace(t.strands.front().caller.tenant, 0);
  ++it->second;
}

void Kernel::uncount_waiting(const OpenTurn& t) {
  if (!t.waited) return;
  auto it = waiting_turns_.find(t.strands.front().caller.tenant);
  CHECK(it != waiting_turns_.end());
  if (--it->second == 0) waiting_turns_.erase(it);
}

void Kernel::begin(const Program& program, Input input, Reply reply, EffectPtr settled) {
  if (open_.size() >= limits::kOpenTurns)
    return answer(
        std::move(reply),
        fail(Code::exhausted, "TOO_MANY_OPEN_TURNS",
             fmt::format("{} turns wait for receipts already; retry later", open_.size())));
  if (too_many_waiting(input)) {
    ++refused_open_turns_;
    return answer(std::move(reply),
                  fail(Code::exhausted, "TENANT_OPEN_TURNS",
                       fmt::format("{} turns of the tenant wait for receipts, its limit "
                                   "(--tenant-max-open-turns); retry later",
                                   max_open_of_tenant_)));
  }
  OpenPtr turn = fresh_turn(program, token_of(input.stamp));
  (*turn)->turn.began_ = last_;
  (*turn)->turn.began_at_ = input.stamp.now;
  (*turn)->settled = settled;
  if (settled) {
    Key key = effect_key(settled->id);
    // Reading the effect makes the commit fail if another turn closes it first.
    (void)(*turn)->turn.original(key).has_value();
    (*turn)->turn.put(std::move(key), nullptr, std::move(settled));
  }
  Strand& main = (*turn)->strands.front();
  main.reply = std::move(reply);
  main.caller = input.caller;
  main.once = input.once;
  if (!input.once.empty()) {
    main.once_hash = once_hash(input);
    main.running = once_key(input.caller, input.once);
  } else if (leaves_mark(input)) {
    main.running = got_key(input.delivery->source, input.delivery->number);
  }
  if (!main.running.empty()) running_once_.insert(main.running);
  step(turn, main, std::move(input));
}

void Kernel::step(OpenPtr turn, Strand& strand, Input input) {
  OpenTurn& t = **turn;
  t.turn.enter(input, strand.scratch, strand.number);
  t.inputs.push_back(std::move(input));
  // run() must not keep the reference: a joined input makes the vector grow.
  Result<Bytes> result = t.program->run(t.turn, t.inputs.back());
  t.inputs.back().decoded.reset();
  if (result && !t.turn.asked_.empty()) {
    count_waiting(t);
    by_token_.emplace(t.turn.token(), std::pair(turn, &strand));
    for (EffectPtr& effect : t.turn.asked_) {
      strand.asked.insert(effect->id);
      asked_.insert_or_assign(effect->id, std::pair(turn, &strand));
      group_.moved.push_back({std::move(effect), true});
    }
    t.turn.asked_.clear();
    return;
  }
  // The input still waits for receipts of other effects that it asked for.
  if (result && !strand.asked.empty()) return;
  finish(turn, strand, std::move(result));
}

void Kernel::resume(Input input, Reply reply) {
  auto it = asked_.find(input.settles);
  auto [turn, strand] = it->second;
  asked_.erase(it);
  strand->asked.erase(input.settles);
  if (strand->asked.empty()) end_joined(**turn, *strand);
  input.program = (*turn)->program->name();
  answer(std::move(reply), Answer{});
  step(turn, *strand, std::move(input));
}

void Kernel::join(Input input, Reply reply) {
  auto it = by_token_.find(input.joins);
  if (it == by_token_.end() ||
      (*it->second.first)->strands.front().caller.tenant != input.caller.tenant)
    return answer(std::move(reply),
                  fail(Code::conflict, "TURN_OVER",
                       "the transaction that this request wants to join is over or unknown"));
  auto [turn, under] = it->second;
  if ((*turn)->program->name() != input.program)
    return answer(std::move(reply),
                  fail(Code::conflict, "TURN_OVER", "the transaction belongs to another face"));
  Strand& strand = (*turn)->strands.emplace_back();
  strand.number = (*turn)->turn.new_strand(under->number);
  strand.reply = std::move(reply);
  strand.mark = (*turn)->turn.mark();
  step(turn, strand, std::move(input));
}

void Kernel::forget(OpenTurn& t, const Strand& strand) {
  by_token_.erase(t.turn.token_for(strand.number));
  t.turn.leave(strand.number);
  for (const std::string& id : strand.asked) {
    asked_.erase(id);
    group_.moved.push_back(
        {std::make_shared<const Effect>(
             Effect{.id = id, .to = To::member, .program = std::string(t.program->name())}),
         false});
  }
}

void Kernel::end_joined(OpenTurn& t, const Strand& under) {
  t.strands.remove_if([&](Strand& strand) {
    if (&strand == &under || !t.turn.descends(strand.number, under.number)) return false;
    forget(t, strand);
    t.turn.undo(strand.number, strand.mark);
    answer(std::move(strand.reply),
           fail(Code::conflict, "TURN_OVER", "the transaction ended before this request did"));
    return true;
  });
}

void Kernel::finish(OpenPtr turn, Strand& strand, Result<Bytes> result) {
  if (strand.main()) return close(turn, std::move(result));
  // A joined command is answered now; its changes commit or fail with the whole turn.
  OpenTurn& t = **turn;
  forget(t, strand);
  if (!result) {
    t.turn.rewind(strand.mark);
    answer(std::move(strand.reply), fail(std::move(result.error())));
  } else if (t.turn.refusal_) {
    answer(std::move(strand.reply), fail(std::move(*t.turn.refusal_)));
  } else {
    answer(std::move(strand.reply), Answer{std::move(*result), 0});
  }
  t.strands.remove_if([&](const Strand& s) { return &s == &strand; });
}

void Kernel::close(OpenPtr turn, Result<Bytes> result) {
  Closing closing(*this, turn);
  OpenTurn* t = &closing.turn();
  Strand& main = t->strands.front();
  uncount_waiting(*t);
  forget(*t, main);
  end_joined(*t, main);
  if (!main.running.empty()) running_once_.erase(main.running);
  if (leaves_mark(t->inputs.front())) return close_delivery(*t, std::move(result));
  if (!result) {
    // The effect stays open, and callers that wait for it keep waiting.
    return answer(std::move(main.reply), fail(std::move(result.error())));
  }
  std::vector<std::string> withdrawn = withdrawn_by(*t);
  Result<Answer> outcome = commit(*t, std::move(*result));
  if (outcome && t->turn.refusal_) outcome = fail(std::move(*t->turn.refusal_));
  if (outcome && !t->turn.answer_with_.empty()) return keep_waiting(*t, outcome->seq);
  answer_waiting(*t, outcome, withdrawn);
  answer(std::move(main.reply), std::move(outcome));
}

std::vector<std::string> Kernel::withdrawn_by(const OpenTurn& t) const {
  std::vector<std::string> out;
  if (later_.empty()) return out;
  for (const Turn::Op& op : t.turn.ops_)
    if (op.effect && !op.value) out.push_back(op.effect->id);
  return out;
}

void Kernel::keep_waiting(OpenTurn& t, Seq seq) {
  Reply& own = t.strands.front().reply;
  if (!t.settled) {
    if (own) later_[t.turn.answer_with_].push_back(std::move(own));
    return;
  }
  // Whoever brought the receipt has done so. The callers go on waiting.
  answer(std::move(own), Answer{{}, seq});
  auto waiting = later_.extract(t.settled->id);
  if (!waiting) return;
  waiting.key() = t.turn.answer_with_;
  later_.insert(std::move(waiting));
}

void Kernel::answer_later(const std::string& effect_id, const Result<Answer>& result) {
  auto waiting = later_.extract(effect_id);
  if (!waiting) return;
  for (Reply& reply : waiting.mapped())
    answer(std::move(reply), result);
}

// Answers callers that Turn::answer_later deferred: this turn settled or withdrew their effect.
void Kernel::answer_waiting(OpenTurn& t, const Result<Answer>& outcome,
                            const std::vector<std::string>& withdrawn) {
  if (later_.empty()) return;
  if (t.settled) answer_later(t.settled->id, outcome);
  if (!outcome) return;
  for (const std::string& id : withdrawn)
    answer_later(id,
                 fail(Code::conflict, "WITHDRAWN", "what this request waited for was called back"));
}

Result<void> Kernel::check(OpenTurn& t) {
  if (t.turn.ops_.size() > limits::kTurnChanges)
    return fail(Code::exhausted, "TURN_TOO_LARGE",
                fmt::format("one request may change {} cells; this one changes {}: split it",
                            limits::kTurnChanges, t.turn.ops_.size()));
  size_t bytes = 0;
  for (const Turn::Op& op : t.turn.ops_) {
    size_t size = op.value ? op.value->bytes.size() : 0;
    bytes += size + op.key.size();
    if (size > limits::kCellBytes)
      return fail(
          Code::too_large, "CELL_TOO_LARGE",
          fmt::format("a value of {} bytes is over the limit of {}: keep large content in a blob",
                      size, limits::kCellBytes));
    if (op.key.size() > limits::kKeyBytes)
      return fail(Code::too_large, "KEY_TOO_LONG",
                  fmt::format("a key of {} bytes is over the limit of {}: use a shorter name",
                              op.key.size(), limits::kKeyBytes));
  }
  if (bytes > limits::kFrameBytes)
    return fail(Code::too_large, "TURN_TOO_LARGE",
                fmt::format("one request may write {} bytes: split it", limits::kFrameBytes));
  if (!t.waited) return {};
  return check_reads(t);
}

Result<void> Kernel::check_reads(OpenTurn& t) {
  // Indexed: accepts_stale_read() may read more cells and make the vector grow.
  for (size_t i = 0; i < t.turn.reads_.size(); ++i) {
    const Turn::Read read = t.turn.reads_[i];
    TRY(Cell now, cache_.current(read.key));
    bool late = t.turn.written_since_begin(read.cell) && t.program->conflicts_after_begin(read.key);
    if (now.version == read.cell.version && !late) continue;
    if (late || t.turn.newest_.find(read.key) != Turn::kNone ||
        !t.program->accepts_stale_read(t.turn, read.key, read.cell, now))
      return fail(Error{Code::conflict,
                        "CONFLICT",
                        "another request changed what this one read: read again and retry",
                        {},
                        true});
    t.stale_reads.push_back({read.key, read.cell.version});
  }
  std::sort(t.stale_reads.begin(), t.stale_reads.end(),
            [](const auto& a, const auto& b) { return a.key < b.key; });
  return {};
}

// Records an answer under the key. If the turn has put its answer off, the effect that it waits for
// gets the key and the record names the effect.
bool Kernel::record_answer(Turn& turn, Key key, Once once) {
  const size_t at = turn.newest_.find(effect_key(turn.answer_with_));
  const bool waits = !turn.answer_with_.empty() && at != Turn::kNone && turn.ops_[at].effect &&
                     turn.ops_[at].value;
  if (waits) {
    Effect effect = *turn.ops_[at].effect;
    effect.once = key;
    turn.open(std::move(effect));
    once.answer.clear();
    once.waits_for = turn.answer_with_;
  }
  turn.write(key, encode(once));
  return waits;
}

Result<void> Kernel::record_answers(OpenTurn& t, const Bytes& body) {
  Turn& turn = t.turn;
  const Strand& main = t.strands.front();
  if (!main.once.empty() && !turn.refusal_) {
    Key key = once_key(main.caller, main.once);
    Once once{main.once_hash, turn.now(), body};
    if (t.inputs.front().records_first_answer)
      turn.write(key, encode(once));
    else
      t.once_waits = record_answer(turn, std::move(key), std::move(once));
  }
  for (size_t i = 0; i < turn.ops_.size(); ++i) {
    const EffectPtr effect = turn.ops_[i].effect;
    if (!effect || effect->once.empty() || turn.ops_[i].value) continue;
    if (turn.newest_.find(turn.ops_[i].key) != i) continue;
    TRY(Cell cell, turn.read(effect->once));
    if (!cell.exists()) continue;
    TRY(Once once, decode_once(cell.value()));
    // After a day the key may have been used again, for another request.
    if (once.waits_for != effect->id) continue;
    const bool settled = t.settled && t.settled->id == effect->id;
    if (settled && !turn.refusal_)
      record_answer(turn, effect->once, Once{std::move(once.hash), turn.now(), body});
    else
      turn.erase(effect->once);
  }
  return {};
}

Result<Answer> Kernel::commit(OpenTurn& t, Bytes body) {
  TRY_OK(check(t));
  TRY_OK(record_answers(t, body));
  TRY_OK(record_mark(t, body));
  TRY_OK(number_effects(t));
  if (t.turn.ops_.empty() && t.turn.notes_.empty()) return Answer{std::move(body), 0};
  TRY_OK(prepare_writes(t));
  write_frame(t, ++last_);
  return Answer{std::move(body), last_};
}

void Kernel::write_frame(OpenTurn& t, Seq seq) {
  Frame frame;
  frame.seq = seq;
  frame.program = t.program->name();
  frame.inputs = std::move(t.inputs);
  frame.notes = t.turn.take_notes();
  frame.stale_reads = std::move(t.stale_reads);
  frame.once_waits = t.once_waits;
  add_writes(t, frame);
  if (time_row_.second && time_row_.first != frame.now())
    group_.rows.put(layout::time_row(time_row_.first), ordered64(time_row_.second));
  time_row_ = {frame.now(), seq};
  add_cell_rows(group_.rows, frame);
  add_view_rows(group_.rows, frame, changes_, t.program);
  group_.entries.push_back(encode_entry(frame));
  group_.bytes += group_.entries.back().size();
  group_.frames.push_back(std::move(frame));
  before_.clear();
  after_.clear();
}

Result<void> Kernel::prepare_writes(OpenTurn& t) {
  places_.clear();
  t.turn.newest_.each([&](size_t place) { places_.push_back(place); });
  std::sort(places_.begin(), places_.end(),
            [&](size_t a, size_t b) { return t.turn.ops_[a].key < t.turn.ops_[b].key; });
  before_.assign(places_.size(), {});
  for (size_t i = 0; i < places_.size(); ++i) {
    TRY(before_[i], version_before(t, t.turn.ops_[places_[i]].key));
  }
  return {};
}

// Moves the writes that prepare_writes() listed into the frame, stages them in the cache, and lists
// in changes_ what the views must see.
void Kernel::add_writes(OpenTurn& t, Frame& frame) {
  after_.assign(places_.size(), {});
  changes_.clear();
  frame.writes.reserve(places_.size());
  for (size_t i = 0; i < places_.size(); ++i) {
    Turn::Op& op = t.turn.ops_[places_[i]];
    if (!before_[i].exists() && !op.value) continue;  // written and erased within the turn
    if (op.value) after_[i] = Cell{frame.seq, op.value};
    const bool own_cell = op.key[0] == '~';
    if (op.effect) group_.moved.push_back({std::move(op.effect), op.value != nullptr});
    cache_.stage(op.key, before_[i], after_[i], frame.seq);
    frame.writes.push_back({std::move(op.key), before_[i].version, std::move(op.value)});
    if (!own_cell) changes_.push_back({frame.writes.back().key, before_[i], after_[i]});
  }
}

// A cell that the turn has read is still at the version it read: no other turn ran in between, or
// check() has compared the versions.
Result<Cell> Kernel::version_before(const OpenTurn& t, BytesView key) const {
  if (size_t at = t.turn.read_at_.find(key); at != Turn::kNone) return t.turn.reads_[at].cell;
  return current(key);
}

Group Kernel::take() {
  if (!group_.frames.empty())
    group_.rows.put(layout::time_row(time_row_.first), ordered64(time_row_.second));
  time_row_ = {0, 0};
  Group out = std::move(group_);
  group_ = Group{};
  group_.last_before = last_;
  return out;
}

void Kernel::abandon_all(const Error& why) {
  while (!open_.empty())
    close(open_.begin(), fail(why));
  for (auto& [id, replies] : later_)
    for (Reply& reply : replies)
      answer(std::move(reply), fail(why));
  later_.clear();
}

}  // namespace pawl
