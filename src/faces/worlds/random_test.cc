// Random worlds from a seed: any mix of events, chains, frames, failures, snapshots, and receipts
// that are good, bad, late or sent twice. Afterwards a rerun of the journal agrees, the counts
// match the cells, and a fork equals the live world.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

class Chance {
 public:
  explicit Chance(uint64_t seed) : dice_({seed, seed ^ 0x9e3779b97f4a7c15u}) {}
  uint64_t below(uint64_t n) { return dice_.next() % n; }
  bool one_in(uint64_t n) { return below(n) == 0; }

 private:
  Dice dice_;
};

std::string some_id(Chance& c) { return "c" + std::to_string(c.below(6)); }

StepOutput some_output(Chance& c, int depth) {
  StepOutput out = output({"w" + std::to_string(c.below(9))});
  if (c.one_in(8)) out.state.reset();
  if (c.one_in(12)) out.completed = true;
  if (c.one_in(15)) out.state = "\x01";  // fits no schema
  for (uint64_t n = c.below(3); n > 0; --n) {
    switch (c.below(5)) {
      case 0: out.effects.push_back(timer(c.below(1000))); break;
      case 1:
        out.effects.push_back(
            {"t/charge@1", cbor::encode(cbor::Map{{"amount", c.below(9)}}), "p", {}});
        break;
      case 2:
        out.effects.push_back(
            {"sys/blob.put@1",
             cbor::encode(cbor::Map{{"bytes", cbor::octets(std::to_string(c.below(4)))}}),
             {},
             {}});
        break;
      case 3: out.effects.push_back({"sys/introspect.journal_head@1", "\xa0", {}, {}}); break;
      default: out.effects.push_back({"t/charge@1", "\xa0", {}, {}});  // bad params
    }
  }
  static constexpr const char* kSchemas[] = {"t/Do@1", "t/Tell@1", "t/Half@1", "t/Deaf@1",
                                             "t/Boom@1"};
  for (uint64_t n = depth > 0 ? c.below(3) : 0; n > 0; --n) {
    const std::string schema = kSchemas[c.below(5)];
    if (schema == "t/Boom@1")
      out.events.push_back({schema, cbor::encode(cbor::Map{{"id", some_id(c)}}), {}});
    else
      out.events.push_back(
          event_to(schema, some_id(c),
                   c.one_in(2) ? std::optional(some_output(c, depth - 1)) : std::nullopt));
  }
  return out;
}

void one_input(Stage& stage, Chance& c) {
  const auto pending = stage.pending("w");
  const uint64_t what = c.below(10);
  if (what < 5 || pending.empty()) {
    (void)stage.send("w", c.one_in(4) ? "t/Half@1" : "t/Do@1", tell(some_id(c), some_output(c, 2)))
        .has_value();
    return;
  }
  const PendingIntent& p = pending[c.below(pending.size())];
  if (what == 5) {
    StreamFrame f;
    f.intent = c.one_in(4) ? Bytes(32, 'x') : p.intent;
    f.origin_module_id = p.workflow;
    f.origin_instance_key = p.key;
    f.identity.effect = p.identity.effect;
    f.emitted_at_seq = p.emitted_at_seq;
    f.seq = c.below(5);
    f.kind = "k";
    f.payload = "\xa0";
    (void)stage.say("frame", encode(SendFrame{"w", f})).has_value();
    return;
  }
  if (what == 6 && p.identity.effect == "sys/timer.set@1") {
    (void)stage.say("timer", {}, effect_id({"t", "w"}, hex(p.intent))).has_value();
    return;
  }
  static constexpr const char* kStatuses[] = {"ok", "ok", "error", "timeout"};
  const Value payload = c.one_in(4) ? Value("junk")
                        : p.identity.effect == "t/charge@1"
                            ? Value(cbor::Map{{"code", 0}})
                            : Value(cbor::Map{{"delivered_at_ns", 5}});
  (void)stage.settle("w", p.intent, payload, kStatuses[c.below(4)]).has_value();
  if (c.one_in(3)) (void)stage.settle("w", p.intent, payload).has_value();  // twice
}

void counts_agree(const Stage& stage) {
  const WorldHead head = stage.head("w");
  uint64_t by_status[4] = {}, inflight = 0;
  ASSERT_TRUE(stage.snapshot().scan(cells_prefix({"t", "w"}), [&](BytesView, const Cell& cell) {
    const Instance i = *decode_instance(cell.value());
    ++by_status[static_cast<size_t>(i.status)];
    inflight += i.inflight.size();
    return true;
  }));
  EXPECT_EQ(head.running, by_status[0]);
  EXPECT_EQ(head.waiting, by_status[1]);
  EXPECT_EQ(head.completed, by_status[2]);
  EXPECT_EQ(head.failed, by_status[3]);
  EXPECT_EQ(head.inflight, inflight);
  const auto pending = stage.pending("w");
  EXPECT_EQ(head.inflight, pending.size());
  uint64_t timers = 0;
  for (const PendingIntent& p : pending) {
    timers += p.identity.effect == "sys/timer.set@1";
    EXPECT_TRUE(stage.open.contains(effect_id({"t", "w"}, hex(p.intent))));
  }
  EXPECT_EQ(head.timers, timers);
  EXPECT_EQ(stage.open.size(), pending.size());
  EXPECT_EQ(stage.records("w").size(), head.height);
}

TEST(random_worlds, random_worlds_agree_with_rerun_and_forks) {
  const char* more = std::getenv("PAWL_SEEDS");  // for a long search
  const uint64_t seeds = more ? std::strtoull(more, nullptr, 10) : 12;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Stage stage;
    Chance c(seed);
    ASSERT_TRUE(stage.create("w", test_air()));
    int forks = 0;
    for (int i = 0; i < 60; ++i) {
      one_input(stage, c);
      if (c.one_in(20)) {
        ASSERT_TRUE(stage.say("snapshot", "w"));
      }
      if (!c.one_in(10)) continue;
      const std::string id = "f" + std::to_string(forks++);
      auto r = stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":")" + id + "\"}");
      ASSERT_EQ(r.status, 201) << r.body;
      ASSERT_EQ(stage.dump(id), stage.dump("w"));
    }
    counts_agree(stage);
    EXPECT_EQ(stage.verify_all().difference, "");
    if (testing::Test::HasFailure()) return;
  }
}

// Bytes that are not a valid input must be refused.
TEST(random_worlds, hostile_bodies_are_refused_and_change_nothing) {
  Stage stage;
  ASSERT_TRUE(stage.create("w", test_air()));
  const Bytes before = stage.dump("w");
  Chance c(7);
  static constexpr const char* kVerbs[] = {"event",  "receipt", "frame",   "create",
                                           "govern", "fork",    "compact", "put_secret"};
  for (int i = 0; i < 400; ++i) {
    Bytes body;
    for (uint64_t n = c.below(40); n > 0; --n)
      body.push_back(static_cast<char>(c.below(256)));
    (void)stage.say(kVerbs[c.below(8)], body).has_value();
  }
  for (int i = 0; i < 400; ++i) {
    Bytes junk;
    for (uint64_t n = c.below(30); n > 0; --n)
      junk.push_back(static_cast<char>(c.below(256)));
    EXPECT_GE(stage
                  .http("POST", "/v1/worlds/w/events",
                        R"({"schema":"t/Do@1","value_b64":")" + base64(junk) + "\"}")
                  .status,
              400);
  }
  EXPECT_EQ(stage.dump("w"), before);
}

}  // namespace
}  // namespace pawl::worlds
