#include "sim/mutation.h"

#include "kernel/once.h"
#include "kernel/rows_layout.h"
#include "kernel/turn.h"

namespace pawl::sim {

void MutantOutbox::opened(const EffectPtr& effect) {
  const bool is_clock = workers_ == nullptr;
  if (mutation_ == Mutation::effect_lost_at_start && starting && schedule_.one_in(3)) return;
  if (mutation_ == Mutation::lost_timer && is_clock && schedule_.one_in(3)) return;
  if (mutation_ == Mutation::lost_job && !is_clock && schedule_.one_in(10)) return;
  if (mutation_ == Mutation::early_timer && is_clock) {
    auto early = std::make_shared<Effect>(*effect);
    early->due -= 2 * kSecond;
    return inner_.opened(early);
  }
  inner_.opened(effect);
  if (mutation_ == Mutation::lease_given_twice && !is_clock)
    schedule_.after(static_cast<Time>(schedule_.roll(60)) * kSecond,
                    [id = effect->id, workers = workers_, alive = alive_] {
                      if (*alive) workers->release(id);
                    });
}

void MutantOutbox::closed(const Effect& effect) {
  if (mutation_ == Mutation::settled_job_offered && workers_ && schedule_.one_in(4)) {
    workers_->release(effect.id);
    return;
  }
  inner_.closed(effect);
}

Result<void> WorldRows::apply_changes(const RowChanges& changes, Seq applied) {
  const bool of_views = mutation_ == Mutation::forgotten_view_row;
  const bool of_cells = mutation_ == Mutation::rows_ahead;
  if (!of_views && !of_cells) return rows_.apply_changes(changes, applied);
  RowChanges kept;
  for (const RowChange& change : changes.all()) {
    const bool may_drop =
        change.kind != RowKind::erase && change.key.starts_with(of_views ? "v" : layout::kCell);
    if (may_drop && schedule_.one_in(50)) continue;
    kept.add(change);
  }
  return rows_.apply_changes(kept, applied);
}

std::unique_ptr<RowsSnapshot> WorldRows::snapshot() const {
  if (mutation_ != Mutation::stale_snapshot) return rows_.snapshot();
  std::unique_ptr<RowsSnapshot> now = rows_.snapshot();
  if (old_ && schedule_.chance(30)) return std::exchange(old_, std::move(now));
  if (!old_ || schedule_.chance(30)) old_ = rows_.snapshot();
  return now;
}

Result<void> MutantJournal::append(std::span<const BytesView> entries, Seq expected_last) {
  (void)inner_->append(entries, expected_last).has_value();
  return {};
}

Result<Bytes> MutantProgram::run(Turn& turn, const Input& input) const {
  if (before_turn) before_turn(input);
  const bool tenth = ++runs_ % 10 == 0;
  if (mutation_ == Mutation::lost_receipt && input.verb == "receipt" && tenth)
    return Bytes(R"({"status":"settled","height":1})");
  if (mutation_ == Mutation::event_twice && input.verb == "event" && tenth)
    TRY_OK(inner_.run(turn, input));
  TRY(Bytes answer, inner_.run(turn, input));
  if (mutation_ != Mutation::impure_program) return answer;
  if (runs_ % 7 == 0 && turn.dice().next() % 3 == 0)
    turn.write(key({inner_.name(), "mutant"}), std::to_string(runs_));
  return answer;
}

static void drop_header(wire::Request& request, std::string_view name) {
  std::erase_if(request.headers, [&](const auto& header) { return header.first == name; });
}

void mutate_request(Mutation mutation, Schedule& schedule, wire::Request& request,
                    std::string& before) {
  if (mutation == Mutation::lost_condition && schedule.one_in(3)) drop_header(request, "If-Match");
  if (mutation == Mutation::torn_transaction && schedule.one_in(3))
    drop_header(request, "X-Tx-Token");
  constexpr std::string_view kLimit = R"("limit":{"concurrent":2,"key":"kind"},)";
  if (mutation == Mutation::no_limit)
    if (const size_t at = request.body.find(kLimit); at != std::string::npos)
      request.body.erase(at, kLimit.size());
  if (mutation != Mutation::wrong_caller) return;
  for (auto& [name, value] : request.headers) {
    if (name != "Authorization") continue;
    const std::string own = value;
    if (!before.empty() && schedule.one_in(20)) value = before;
    before = own;
  }
}

void forget_answers(MemoryRows& rows) {
  RowBatch batch;
  const Bytes first = layout::cell_row(Key(once_key({}, {})).substr(0, 5));
  Bytes limit = first;
  ++limit.back();
  (void)rows.snapshot()
      ->scan(first, limit,
             [&](BytesView key, BytesView) {
               batch.erase(key);
               return true;
             })
      .has_value();
  CHECK(rows.apply(batch, rows.applied()));
  CHECK(rows.flush());
}

}  // namespace pawl::sim
