// Replay: the journal of the vectors byte for byte, and every world from its snapshot and the
// records after it.

#include <gtest/gtest.h>

#include "faces/worlds/snapshot/replay_test.h"

namespace pawl::worlds {
namespace {

TEST_F(ReplayTest, the_journal_of_the_vectors_is_reproduced_byte_for_byte) {
  const json::Value v = vector_file("world_basic.json");
  AuthorOptions options;
  options.artifacts["w/script_wasm@1"] =
      "sha256:251a7d2b75cbb51b7f61db2d81ccbfb6257d303f36127a0c74b7413c0b9488f8";
  auto made = stage.create("w", *v.find("air"), options, false);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->string_or("manifest_hash"),
            v.find("expect_after_journal")->string_or("manifest_hash"));
  RecordedJournal recorded;
  recorded.from = 2;
  const json::Array& journal = v.find("journal")->array();
  for (size_t i = 2; i < journal.size(); ++i)
    recorded.payloads.push_back(*unhex(journal[i].string_or("payload_hex")));
  auto ran = stage.lab([&](Turn& turn) -> Result<Bytes> {
    WorldSession session(turn, {"t", "w"}, stage.program->worlds.runtime());
    TRY_OK(session.turn.open());
    session.turn.recorded = &recorded;
    TRY_OK(session.replay.run(journal.size()));
    session.turn.recorded = nullptr;
    TRY(std::string ref, session.snapshots.take());
    TRY_OK(session.turn.close());
    return hash_text(session.turn.world().roots.at("w/sink@1").cells);
  });
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(*ran, v.find("then_snapshot")->find("cell_index_roots")->string_or("w/sink@1"));
  const json::Value& after = *v.find("expect_after_journal");
  for (const json::Value& expect : after.find("instances")->array()) {
    const std::string id(expect.string_or("id"));
    const size_t colons = id.find("::");
    const Instance i = stage.cell("w", id.substr(0, colons), *unhex(id.substr(colons + 2)));
    if (expect.string_or("status") == "completed") continue;  // the snapshot dropped it
    EXPECT_EQ(name_of(i.status), expect.string_or("status")) << id;
    EXPECT_EQ(hex(i.state.value_or("")), expect.string_or("state_hex")) << id;
    EXPECT_EQ(i.last_seq, expect.find("last_seq")->as_uint64()) << id;
  }
  const auto pending = stage.pending("w");
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(hex(pending[0].intent), after.find("pending")->array()[0].string());
}

// case 32, case 47, case 136, case 137
TEST_F(ReplayTest, intents_and_contexts_have_the_bytes_of_the_vectors) {
  const json::Value intents = vector_file("intent_hash.json");
  for (const json::Value& v : intents.find("vectors")->array()) {
    const json::Value& in = *v.find("input");
    auto text = [&](std::string_view name) { return std::string(in.string_or(name)); };
    const IntentIdentity identity{text("effect"), text("effect_hash"), text("executor_module"),
                                  text("executor_module_hash"), text("executor_entrypoint")};
    EXPECT_EQ(
        hex(intent_hash(identity, *unhex(text("params_hex")), *unhex(text("idempotency_key_hex")))),
        v.find("expect")->string_or("intent_hash"));
  }
  const json::Value events = vector_file("event_hash.json");
  for (const json::Value& v : events.find("vectors")->array()) {
    const json::Value& in = *v.find("input");
    Event event{std::string(in.string_or("schema")), *unhex(in.string_or("value_hex")), {}};
    if (in.find("key_hex")->is_string()) event.key = *unhex(in.string_or("key_hex"));
    EXPECT_EQ(event_hash(event), v.find("expect")->string_or("event_hash"));
  }
  const json::Value abi = vector_file("abi.json");
  const json::Value& keyed = abi.find("vectors")->array()[0];
  Context context{{10, 12, 7, Bytes(64, '\x11'), "sha256:" + std::string(64, '1')},
                  "sha256:" + std::string(64, '0'),
                  "com.acme/w@1",
                  "sha256:" + std::string(64, '2'),
                  Bytes("\x01\x02")};
  EXPECT_EQ(hex(encode_context(context)), keyed.find("expect")->string_or("cbor_hex"));
  context.key.reset();
  context.workflow_hash.clear();
  EXPECT_EQ(hex(encode_context(context)),
            abi.find("vectors")->array()[1].find("expect")->string_or("cbor_hex"));
  EXPECT_EQ(hex(encode_input({{}, {"a/E@1", "\xa0", {}}, {}})),
            abi.find("vectors")->array()[2].find("expect")->string_or("cbor_hex"));
  EXPECT_EQ(hex(encode_input({Bytes("\x01\x02"), {"a/E@1", "\xa0", "aa"}, Bytes("\xf6")})),
            abi.find("vectors")->array()[3].find("expect")->string_or("cbor_hex"));
  StepOutput full{Bytes("\x01"),
                  {{"a/E@1", "\xa0", {}}},
                  {{"sys/timer.set@1", "\xa0", "x", Bytes(32, '\x09')}},
                  {},
                  false};
  EXPECT_EQ(hex(encode_output(full)),
            abi.find("vectors")->array()[4].find("expect")->string_or("cbor_hex"));
  EXPECT_TRUE(decode_output(*unhex("a1657374617465f6")));
  EXPECT_FALSE(decode_output(*unhex("a0")));
  EXPECT_TRUE(decode_output(*unhex("a2657374617465f6617801")));
  EXPECT_EQ(decode_input(*unhex("a16776657273696f6e02")).error().message,
            "ABI version 2 is not supported (expected 1)");
}

// A world with chains, faults, streams, failures, snapshots and governance.
struct BusyWorld : ReplayTest {
  std::vector<std::function<void()>> life() {
    return {
        [this] {
          ASSERT_TRUE(go("a", output({"1"}, {timer(5), timer(6)},
                                     {event_to("t/Tell@1", "x"),
                                      event_to("t/Half@1", "h", output({"h"}, {timer(9)}))})));
        },
        [this] {
          ASSERT_TRUE(go("b", output({"1"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}),
                                              "p", Bytes("k")}})));
        },
        [this] {
          settle_first(Value(cbor::Map{{"delivered_at_ns", 9}}));
        },
        [this] {
          settle_first(Value(cbor::Map{{"bad", 9}}));
        },
        [this] { ASSERT_TRUE(stage.say("snapshot", "w")); },
        [this] { ASSERT_TRUE(stage.send("w", "t/Boom@1", tell("z"))); },
        [this] {
          ASSERT_TRUE(
              go("a", output({"2"}, {{"sys/blob.put@1",
                                      cbor::encode(cbor::Map{{"bytes", cbor::octets("blob")}}),
                                      {},
                                      {}}})));
        },
        [this] { settle_first(Value("no"), "error"); },
        [this] {
          StepOutput gone;
          ASSERT_TRUE(go("a", gone));
        },
        [this] { ASSERT_TRUE(stage.send("w", "t/Lonely@1", Value(cbor::Map{}))); },
        [this] { ASSERT_TRUE(stage.say("snapshot", "w")); },
        [this] {
          ASSERT_TRUE(stage.send("w", "t/Do@1", Value(cbor::Map{{"id", "c"}, {"word", "ctx"}})));
        },
        [this] {
          ASSERT_TRUE(go(
              "e",
              output(
                  {}, {timer(1)},
                  {Event{"t/Do@1", cbor::encode(cbor::Map{{"id", "g"}, {"word", "ctx"}}), {}}})));
        },
        [this] {
          ASSERT_TRUE(
              go("d", output({"d"}, {}, std::vector<Event>(40, event_to("t/Deaf@1", "sink")))));
        },
    };
  }
};

// case 81, case 86, case 90, case 130, case 131
TEST_F(BusyWorld, at_every_record_boundary_snapshot_and_tail_equal_the_live_world) {
  ASSERT_TRUE(stage.create("w", test_air()));
  std::map<uint64_t, Bytes> live;
  auto mark = [&] { live[stage.head("w").height] = stage.dump("w"); };
  mark();
  for (const auto& step : life()) {
    step();
    mark();
  }
  const uint64_t top = stage.head("w").height;
  for (uint64_t height = 2; height <= top; ++height) {
    const std::string id = fork(height);
    const uint64_t reached = stage.head(id).height;
    ASSERT_LE(reached, height);
    ASSERT_TRUE(live.contains(reached)) << reached;
    EXPECT_EQ(stage.dump(id), live[reached]) << "height " << height;
  }
  EXPECT_EQ(stage.verify_all().difference, "");
}

TEST_F(ReplayTest, rows_are_rebuilt_the_same_from_the_journal) {
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(go("a", output({"1"}, {timer(5)}, {event_to("t/Tell@1", "x")})));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  MemoryRows fresh;
  const Program* programs[] = {stage.program.get()};
  ASSERT_TRUE(replay(stage.journal, fresh, programs));
  size_t rows = 0;
  ASSERT_TRUE(fresh.snapshot()->scan("c", "d", [&](BytesView key, BytesView value) {
    EXPECT_EQ(stage.snapshot().read(key.substr(1))->value(), layout::parse_cell(value).value());
    return ++rows > 0;
  }));
  EXPECT_GT(rows, 10u);
}

// case 186
TEST_F(ReplayTest, a_snapshot_writes_what_changed_and_drops_deleted_cells) {
  ASSERT_TRUE(stage.create("w", test_air()));
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(go("c" + std::to_string(i)));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  auto blobs = [&] {
    size_t n = 0;
    CHECK(
        stage.snapshot().scan(blobs_prefix("t"), [&](BytesView, const Cell&) { return ++n > 0; }));
    return n;
  };
  const size_t before = blobs();
  ASSERT_TRUE(go("c1"));
  StepOutput gone;
  ASSERT_TRUE(go("c2", gone));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  EXPECT_LE(blobs() - before, 12u);
  EXPECT_EQ(stage.cell("w", "t/main@1", key_of("c2")).module_version, "");
  EXPECT_EQ(stage.head("w").completed, 0u);
}

// case 176: a snapshot waits for queued work. Its caller is told to retry meanwhile.
TEST_F(ReplayTest, a_snapshot_is_taken_only_after_queued_work_ran) {
  ASSERT_TRUE(stage.create("w", test_air()));
  // 80 events, each of which emits 16 to one cell: more steps than one turn takes.
  const StepOutput inner = output({}, {}, std::vector<Event>(16, event_to("t/Deaf@1", "sink")));
  stage.holds = true;
  ASSERT_TRUE(go("a", output({}, {}, std::vector<Event>(80, event_to("t/Half@1", "mid", inner)))));
  ASSERT_GT(stage.head("w").queued, 0u);
  const Bytes before = stage.dump("w");
  auto early = stage.say("snapshot", "w");
  ASSERT_FALSE(early);
  EXPECT_TRUE(early.error().is(kWorldBusy));
  EXPECT_EQ(stage.dump("w"), before);
  while (!stage.held.empty())
    stage.deliver_next();
  stage.holds = false;
  ASSERT_TRUE(stage.say("snapshot", "w"));
  EXPECT_EQ(stage.kinds("w").back(), "snapshot");
  // The fork begins at the snapshot and runs no record again.
  const std::string id = fork(stage.head("w").height);
  EXPECT_EQ(stage.log(id, "t/deaf@1", key_of("sink")).size(), 1280u);
  EXPECT_EQ(stage.dump(id), stage.dump("w"));
}

// case 180
TEST_F(ReplayTest, equal_worlds_have_equal_snapshots) {
  ASSERT_TRUE(stage.create("w", test_air()));
  for (const char* id : {"b", "a", "c"})
    ASSERT_TRUE(go(id, output({"1"}, {timer(5), timer(6)})));
  const std::string id = fork(stage.head("w").height);
  auto one = stage.say("snapshot", "w"), two = stage.say("snapshot", id);
  EXPECT_EQ(one->string_or("snapshot_ref"), two->string_or("snapshot_ref"));
}

TEST_F(ReplayTest, a_fork_is_detached_and_may_take_stub_receipts) {
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(go("a", output({"1"}, {timer(5)})));
  const uint64_t then = stage.head("w").height;
  const Bytes intent = stage.pending("w")[0].intent;
  ASSERT_TRUE(stage.settle("w", intent, Value(cbor::Map{{"delivered_at_ns", 9}})));
  const size_t open = stage.open.size();
  auto r = stage.http(
      "POST", "/v1/worlds/w/fork",
      R"({"world_id":"past","height":)" + std::to_string(then) + R"(,"receipts":"stub"})");
  ASSERT_EQ(r.status, 201) << r.body;
  EXPECT_EQ(stage.open.size(), open);
  EXPECT_EQ(stage.log("past", "t/main@1", key_of("a")), (std::vector<std::string>{"1", "Receipt"}));
  auto live = stage.http(
      "POST", "/v1/worlds/w/fork",
      R"({"world_id":"live","height":)" + std::to_string(then) + R"(,"effects":"live"})");
  ASSERT_EQ(live.status, 201) << live.body;
  EXPECT_EQ(stage.open.size(), open + 1);
}

// case 168
TEST_F(ReplayTest, a_damaged_blob_is_an_error_and_never_wrong_data) {
  ASSERT_TRUE(stage.create("w", test_air()));
  auto bad = stage.lab([&](Turn& turn) -> Result<Bytes> {
    const Bytes digest(view(sha256("right")));
    turn.write(blob_key("t", digest), encode_blob(1, "wrong"));
    return Blobs(turn, "t").get(digest);
  });
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, "store.error");
}

// case 184
TEST_F(ReplayTest, compaction_drops_a_prefix_and_heights_go_on) {
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(go("a"));
  EXPECT_EQ(stage.http("POST", "/v1/worlds/w/compact", R"({"through":3})").status, 409);
  EXPECT_EQ(stage.http("POST", "/v1/worlds/w/compact", R"({"through":2})").status, 200);
  auto r = json::parse(stage.http("GET", "/v1/worlds/w/journal").body);
  EXPECT_EQ(r->find("entries")->array().front().find("seq")->as_int64(), 3);
  EXPECT_EQ(stage.head("w").height, 5u);
}

// Keeps what is written to it.
struct KeptStream final : wire::Stream {
  bool write(BytesView piece) override {
    std::lock_guard lock(mutex);
    text += piece;
    return true;
  }
  void end() override {}
  size_t buffered() const override { return 0; }
  void on_close(std::function<void()>) override {}
  std::string seen() {
    std::lock_guard lock(mutex);
    return text;
  }
  std::mutex mutex;  // guards text: the followers write on a thread of their own
  std::string text;
};

// A reader that loses its connection right after the gap event goes on from its next_from.
TEST_F(ReplayTest, a_stream_over_a_gap_names_the_first_record_that_follows) {
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(go("a"));
  ASSERT_EQ(stage.http("POST", "/v1/worlds/w/compact", R"({"through":2})").status, 200);
  const auto answer = stage.http("GET", "/v1/worlds/w/journal/stream?from=1");
  ASSERT_TRUE(answer.stream);
  auto stream = std::make_shared<KeptStream>();  // shared with the follower
  answer.stream(stream);
  for (int i = 0; i < 500 && stream->seen().find("world_head") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const std::string seen = stream->seen();
  const size_t gap = seen.find("event: gap");
  ASSERT_NE(gap, std::string::npos) << seen;
  const std::string event = seen.substr(gap, seen.find("\n\n", gap) - gap);
  EXPECT_NE(event.find("\"next_from\":3"), std::string::npos) << event;
  EXPECT_NE(seen.find("\"seq\":3"), std::string::npos) << seen;
}

// Rows that point to the records up to and including `through`, and to later ones.
std::pair<size_t, size_t> pointers(const Stage& stage, uint64_t through) {
  size_t old = 0, kept = 0;
  EXPECT_TRUE(
      stage.snapshot().rows(kProgram, prefix({"x", "t", "w"}), [&](BytesView key, BytesView) {
        ++(read_ordered64(key.substr(key.size() - 8)) <= through ? old : kept);
        return true;
      }));
  return {old, kept};
}

TEST_F(ReplayTest, compaction_removes_the_pointers_to_the_records_it_removed) {
  ASSERT_TRUE(stage.create("w", test_air()));
  for (int i = 0; i < 1500; ++i)
    ASSERT_TRUE(go("a" + std::to_string(i)));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  const uint64_t through = stage.head("w").height - 2;
  ASSERT_TRUE(go("later"));
  const auto before = pointers(stage, through);
  EXPECT_GE(before.first, 3000u) << "more than one turn removes";
  ASSERT_GT(before.second, 0u);
  EXPECT_EQ(
      stage.http("POST", "/v1/worlds/w/compact", R"({"through":)" + std::to_string(through) + "}")
          .status,
      200);
  for (int i = 0; i < 500 && pointers(stage, through).first; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(pointers(stage, through), (std::pair<size_t, size_t>(0, before.second)));
  EXPECT_EQ(stage.verify_all().difference, "");
  // Nobody removes pointers to records that are kept.
  Bytes body;
  Writer w(body);
  w.str("w");
  w.uint(1);
  w.str("e" + ordered64(through + 1));
  EXPECT_EQ(stage.say("unpoint", body).error().code, Code::invalid);
}

}  // namespace
}  // namespace pawl::worlds
