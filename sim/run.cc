#include "sim/run.h"

#include <fmt/format.h>

#include "kernel/verify.h"
#include "sim/ledger.h"
#include "sim/world.h"

namespace pawl::sim {

namespace {

// One run: random steps, then the promises. Each step is a command, a receipt, a stage of the
// pipeline, a jump of the clock or a crash, so that stages interleave in every order.
class Life {
 public:
  explicit Life(uint64_t seed) : world_(seed, {&ledger_}) {}

  // Ends early when a promise is broken: the first one is the useful one.
  Outcome live(size_t steps) {
    for (size_t i = 0; i < steps && world_.broken.empty(); ++i)
      step();
    world_.settle_all();
    check_acknowledged();
    check_replay();
    check_money();
    check_settled_once();
    check_verify();
    out_.broken = world_.broken;
    out_.frames = world_.journal.last();
    out_.crashes = world_.crashes();
    return out_;
  }

 private:
  // A crash comes about once in a hundred steps.
  void step() {
    if (!world_.alive()) return world_.restart();
    switch (world_.roll(16)) {
      case 0:
      case 1:
      case 2:
      case 3: return command();
      case 4:
      case 5: return receipt();
      case 6: world_.now += static_cast<Time>(world_.roll(3600)) * kSecond; return;
      case 7:
      case 8: return world_.drive();
      case 9:
      case 10: return world_.append();
      case 11:
      case 12: return world_.apply();
      case 13:
      case 14: return world_.release_group();
      default:
        if (world_.chance(15))
          world_.crash();
        else if (world_.chance(5))
          check_replay();
    }
  }

  std::string some_account() { return "acc" + std::to_string(world_.roll(6)); }

  void command() {
    static constexpr std::string_view verbs[] = {
        "move", "move",  "move", "fail", "savepoint",   "ask",       "ask",
        "read", "timer", "job",  "send", "timer-later", "job-later", "withdraw"};
    Input input;
    input.program = "ledger";
    input.verb = verbs[world_.roll(std::size(verbs))];
    input.caller = {"t", "u", ""};
    std::string from = some_account();
    if (input.verb == "withdraw") {
      if (world_.outside().empty()) return;
      from = world_.outside()[world_.roll(world_.outside().size())].id;
    }
    Writer w(input.body);
    w.str(from);
    w.str(some_account());
    w.sint(static_cast<int64_t>(world_.roll(50)));
    // Few keys, so that Idempotency-Keys repeat.
    if (world_.chance(20)) input.once = "key" + std::to_string(world_.roll(40));
    if (world_.chance(15)) join_some_turn(input);
    say(std::move(input));
  }

  // A command that carries the token of a waiting turn joins it.
  void join_some_turn(Input& input) {
    for (const Effect& effect : world_.outside())
      if (effect.to == To::member && world_.chance(30)) {
        input.joins = std::stoull(effect.body);
        // The kernel does not use the Idempotency-Key of a command that joins a turn.
        input.once.clear();
        return;
      }
  }

  // Answers a random open effect. The answer may be lost, duplicated, or sent again later, because
  // the effect sometimes stays in the list.
  void receipt() {
    auto& outside = world_.outside();
    if (outside.empty()) return;
    size_t at = world_.roll(outside.size());
    if (world_.chance(10)) {  // lost
      // Only a member loses a call for good. Timers and jobs are offered again.
      if (outside[at].to == To::member) outside.erase(outside.begin() + static_cast<ptrdiff_t>(at));
      return;
    }
    Effect effect = outside[at];
    if (effect.to == To::clock && effect.due > world_.now) return;
    size_t copies = world_.chance(15) ? 2 : 1;  // duplicated; it may also be sent again later
    for (size_t i = 0; i < copies; ++i) {
      Input input;
      input.settles = effect.id;
      input.caller = {"t", "outside", ""};
      input.verb = "receipt";
      input.body = world_.chance(10) ? "fail" : world_.chance(10) ? "refuse" : "ok";
      say(std::move(input));
    }
    if (world_.chance(60))
      std::erase_if(outside, [&](const Effect& e) { return e.id == effect.id; });
  }

  // Remembers each acknowledged frame with its hash. Joined commands are answered before their turn
  // commits, and answers with seq 0 wrote no frame, so neither is an acknowledgement.
  void say(Input input) {
    bool settles = !input.settles.empty();
    bool joined = input.joins != 0;
    world_.submit(std::move(input), [this, settles, joined](Result<Answer> answer) {
      if (!answer) {
        if (answer.error().reason == "CONFLICT") ++out_.conflicts;
        return;
      }
      if (joined || answer->seq == 0) return;
      ++out_.acknowledged;
      if (settles) ++out_.settled;
      world_.expect(answer->seq <= world_.journal.last(),
                    fmt::format("frame {} was acknowledged before it was durable", answer->seq));
      told_.push_back(answer->seq);
      auto entry = world_.journal.get(answer->seq);
      links_[answer->seq] = entry ? sha256(*entry) : Digest{};
    });
  }

  void check_acknowledged() {
    for (Seq seq : told_) {
      auto entry = world_.journal.get(seq);
      world_.expect(entry && sha256(*entry) == links_[seq],
                    fmt::format("frame {} was acknowledged and is gone or changed", seq));
    }
  }

  // All rows but "mviews", which records the version of the views and not the state.
  static std::map<Bytes, Bytes> all(const Rows& rows) {
    std::map<Bytes, Bytes> out;
    (void)rows.snapshot()
        ->scan("", "",
               [&](BytesView k, BytesView v) {
                 out.emplace(k, v);
                 return true;
               })
        .has_value();
    out.erase("mviews");
    return out;
  }

  // Everything is settled first, so that the rows of the run are complete. The link of the last
  // replay is the result of the seed.
  void check_replay() {
    if (!world_.alive()) return;
    world_.settle_all();
    MemoryRows fresh;
    auto replayed = replay(world_.journal, fresh, world_.programs);
    world_.expect(bool(replayed), "replay failed");
    world_.expect(all(fresh) == all(world_.rows), "replay gave other rows than life");
    if (replayed) out_.link = replayed->link;
  }

  // An account holds kOpening when a transfer first touches it, and transfers keep the sum.
  void check_money() {
    int64_t sum = 0, accounts = 0;
    ReadSnapshot snapshot(world_.rows.snapshot());
    (void)snapshot
        .scan(prefix({"ledger", "account"}),
              [&](BytesView, const Cell& cell) {
                sum += std::stoll(std::string(cell.value()));
                ++accounts;
                return true;
              })
        .has_value();
    world_.expect(sum == accounts * kOpening,
                  fmt::format("{} accounts hold {}: a transfer was half done", accounts, sum));
  }

  void check_settled_once() {
    ReadSnapshot snapshot(world_.rows.snapshot());
    (void)snapshot
        .scan(prefix({"ledger", "settled"}),
              [&](BytesView key, const Cell& cell) {
                world_.expect(cell.value() == "1", fmt::format("effect {} was settled {} times",
                                                               parts_of(key).back(), cell.value()));
                return true;
              })
        .has_value();
  }

  void check_verify() {
    MemoryRows scratch;
    auto verified = verify(world_.journal, scratch, world_.programs);
    world_.expect(verified && verified->difference.empty(),
                  verified ? verified->difference : verified.error().message);
  }

  Ledger ledger_;
  World world_;
  Outcome out_;
  std::vector<Seq> told_;        // acknowledged frames: they must exist, unchanged, ever after
  std::map<Seq, Digest> links_;  // their links at that time
};

}  // namespace

Outcome run(uint64_t seed, size_t steps) { return Life(seed).live(steps); }

}  // namespace pawl::sim
