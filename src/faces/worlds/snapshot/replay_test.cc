// Replay or die: the journal of the vectors byte for byte, every world from its snapshot and tail,
// and snapshots that are a function of the state alone.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

struct Replay : testing::Test {
  Stage stage;
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {},
                         const std::string& schema = "t/Do@1") {
    return stage.send("w", schema, tell(id, out));
  }
  void settle_first(const Value& payload, std::string status = "ok") {
    ASSERT_TRUE(stage.settle("w", stage.pending("w")[0].intent, payload, std::move(status)));
  }
  std::string fork(uint64_t height) {
    static int made = 0;
    const std::string id = "f" + std::to_string(made++);
    auto r = stage.http("POST", "/v1/worlds/w/fork",
                        R"({"world_id":")" + id + R"(","height":)" + std::to_string(height) + "}");
    EXPECT_EQ(r.status, 201) << r.body;
    return id;
  }
};

TEST_F(Replay, the_journal_of_the_vectors_comes_out_byte_for_byte) {
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
    if (expect.string_or("status") == "completed") continue;  // the snapshot forgot it
    EXPECT_EQ(name_of(i.status), expect.string_or("status")) << id;
    EXPECT_EQ(hex(i.state.value_or("")), expect.string_or("state_hex")) << id;
    EXPECT_EQ(i.last_seq, expect.find("last_seq")->as_uint64()) << id;
  }
  const auto pending = stage.pending("w");
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(hex(pending[0].intent), after.find("pending")->array()[0].string());
}

// case 32, case 47, case 136, case 137
TEST_F(Replay, intents_and_contexts_have_the_bytes_of_the_vectors) {
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

// A busy life: chains, faults, streams, failures, snapshots, governance.
// case 81, case 86, case 90, case 130, case 131
TEST_F(Replay, at_every_record_boundary_snapshot_and_tail_equal_the_live_world) {
  ASSERT_TRUE(stage.create("w", test_air()));
  std::map<uint64_t, Bytes> live;
  auto mark = [&] { live[stage.head("w").height] = stage.dump("w"); };
  mark();
  const std::vector<std::function<void()>> life{
      [&] {
        ASSERT_TRUE(go("a", output({"1"}, {timer(5), timer(6)},
                                   {event_to("t/Tell@1", "x"),
                                    event_to("t/Half@1", "h", output({"h"}, {timer(9)}))})));
      },
      [&] {
        ASSERT_TRUE(go("b", output({"1"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}),
                                            "p", Bytes("k")}})));
      },
      [&] {
        settle_first(Value(cbor::Map{{"delivered_at_ns", 9}}));
      },
      [&] {
        settle_first(Value(cbor::Map{{"bad", 9}}));
      },
      [&] { ASSERT_TRUE(stage.say("snapshot", "w")); },
      [&] { ASSERT_TRUE(stage.send("w", "t/Boom@1", tell("z"))); },
      [&] {
        ASSERT_TRUE(
            go("a", output({"2"}, {{"sys/blob.put@1",
                                    cbor::encode(cbor::Map{{"bytes", cbor::octets("blob")}}),
                                    {},
                                    {}}})));
      },
      [&] { settle_first(Value("no"), "error"); },
      [&] {
        StepOutput gone;
        ASSERT_TRUE(go("a", gone));
      },
      [&] { ASSERT_TRUE(stage.send("w", "t/Lonely@1", Value(cbor::Map{}))); },
      [&] { ASSERT_TRUE(stage.say("snapshot", "w")); },
      [&] {
        ASSERT_TRUE(stage.send("w", "t/Do@1", Value(cbor::Map{{"id", "c"}, {"word", "ctx"}})));
      },
      [&] {
        ASSERT_TRUE(go(
            "e",
            output({}, {timer(1)},
                   {Event{"t/Do@1", cbor::encode(cbor::Map{{"id", "g"}, {"word", "ctx"}}), {}}})));
      },
      [&] {
        ASSERT_TRUE(
            go("d", output({"d"}, {}, std::vector<Event>(40, event_to("t/Deaf@1", "sink")))));
      },
  };
  for (const auto& step : life) {
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

TEST_F(Replay, rows_thrown_away_come_back_the_same) {
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

struct Store {
  std::map<Bytes, Bytes> blobs;
  size_t puts = 0;
  IndexStore index() {
    return {[this](BytesView d) -> Result<Bytes> {
              auto it = blobs.find(Bytes(d));
              if (it == blobs.end()) return fail(Code::not_found, "store.error", "missing");
              return it->second;
            },
            [this](BytesView b) -> Result<Bytes> {
              ++puts;
              Bytes d(view(sha256(b)));
              blobs[d] = b;
              return d;
            }};
  }
};

IndexChange entry(int i, bool there = true) {
  Bytes at(view(sha256("key" + std::to_string(i))));
  IndexChange out{at, {}};
  if (there)
    out.entry.emplace(),
        cbor::append_canonical(*out.entry, cbor::Map{{"key_hash", digest_array(at)}, {"n", i}});
  return out;
}

// case 169
TEST(cell_index, the_root_is_a_function_of_the_set_alone) {
  Store store;
  const IndexStore index = store.index();
  std::vector<IndexChange> all;
  for (int i = 0; i < 500; ++i)
    all.push_back(entry(i));
  const Bytes once = *update_index(index, {}, all);
  Bytes piecemeal;
  for (int i = 599; i >= 0; --i)
    piecemeal = *update_index(index, piecemeal, {entry(i)});
  EXPECT_NE(piecemeal, once);
  for (int i = 500; i < 600; ++i)
    piecemeal = *update_index(index, piecemeal, {entry(i, false)});
  EXPECT_EQ(piecemeal, once);
  for (int i = 40; i < 500; ++i)
    piecemeal = *update_index(index, piecemeal, {entry(i, false)});
  std::vector<IndexChange> few;
  for (int i = 0; i < 40; ++i)
    few.push_back(entry(i));
  EXPECT_EQ(piecemeal, *update_index(index, {}, few));
  EXPECT_EQ(*update_index(index, *update_index(index, {}, {entry(1)}), {entry(1, false)}), Bytes());
  EXPECT_EQ((*find_in_index(index, once, entry(77).key_hash))->find("n")->as_int64(), 77);
  EXPECT_FALSE(*find_in_index(index, once, entry(700).key_hash));
}

TEST(cell_index, a_change_rewrites_one_path) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 20'000; ++i)
    all.push_back(entry(i));
  const Bytes root = *update_index(store.index(), {}, all);
  store.puts = 0;
  ASSERT_TRUE(update_index(store.index(), root, {entry(20'001)}));
  EXPECT_LE(store.puts, 4u);
}

TEST(cell_index, a_budget_takes_the_first_changes_and_the_rest_gives_the_same) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 5000; ++i)
    all.push_back(entry(i));
  const Bytes before = *update_index(store.index(), {}, all);
  std::vector<IndexChange> changes;
  for (int i = 0; i < 5000; i += 3)
    changes.push_back(entry(i, i % 2 == 0));
  for (int i = 5000; i < 6000; ++i)
    changes.push_back(entry(i));
  const Bytes whole = *update_index(store.index(), before, changes);
  Bytes root = before;
  size_t rounds = 0, max = 0;
  for (; !changes.empty(); ++rounds) {
    auto some = update_index(store.index(), root, changes, 50'000);
    ASSERT_TRUE(some);
    ASSERT_GT(some->taken, 0u);
    root = some->root;
    max = std::max(max, some->bytes);
    changes.erase(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(some->taken));
  }
  EXPECT_EQ(root, whole);
  EXPECT_GT(rounds, 5u);
  EXPECT_LT(max, 100'000u);  // the budget, one leaf, and the path to it
}

// Nodes are made and read without trees of values: they must be what those give.
TEST(cell_index, nodes_are_canonical_cbor) {
  Store store;
  std::vector<IndexChange> all;
  for (int i = 0; i < 200; ++i)
    all.push_back(entry(i));
  const Bytes root = *update_index(store.index(), {}, all);
  for (const auto& [digest, node] : store.blobs)
    EXPECT_EQ(cbor::canonical(*cbor::decode(node)), node);
  EXPECT_EQ(cbor::decode(store.blobs[root])->text_or("t"), "Branch");
  EXPECT_EQ(find_in_index(store.index(), Bytes(view(sha256("no node"))), entry(1).key_hash)
                .error()
                .reason,
            "store.error");
  for (const Bytes& bad :
       {Bytes(), Bytes("x"), store.blobs[root].substr(0, 40), store.blobs[root] + "x"}) {
    const Bytes digest = *store.index().put(bad);
    EXPECT_EQ(find_in_index(store.index(), digest, entry(1).key_hash).error().reason,
              "store.error");
  }
}

// case 186
TEST_F(Replay, a_snapshot_costs_what_changed_and_forgets_cells_that_are_gone) {
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

// case 176, case 180
TEST_F(Replay, equal_worlds_have_equal_snapshots) {
  ASSERT_TRUE(stage.create("w", test_air()));
  for (const char* id : {"b", "a", "c"})
    ASSERT_TRUE(go(id, output({"1"}, {timer(5), timer(6)})));
  const std::string id = fork(stage.head("w").height);
  auto one = stage.say("snapshot", "w"), two = stage.say("snapshot", id);
  EXPECT_EQ(one->string_or("snapshot_ref"), two->string_or("snapshot_ref"));
}

TEST_F(Replay, a_fork_keeps_its_effects_to_itself_and_may_be_answered_from_the_past) {
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
TEST_F(Replay, a_damaged_blob_is_an_error_and_never_wrong_data) {
  ASSERT_TRUE(stage.create("w", test_air()));
  auto bad = stage.lab([&](Turn& turn) -> Result<Bytes> {
    const Bytes digest(view(sha256("right")));
    turn.write(blob_key("t", digest), encode_blob(1, "wrong"));
    return Blobs(turn, "t").get(digest);
  });
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().reason, "store.error");
}

// case 185
TEST_F(Replay, garbage_is_what_nothing_leads_to) {
  ASSERT_TRUE(stage.create("w", test_air()));
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(stage.say("put_blob", "orphan"));
  Bytes none;
  Writer(none).sint(0);
  stage.clock += kSecond;
  auto collected = stage.say("collect", none);
  ASSERT_TRUE(collected) << collected.error().message;
  EXPECT_GE(*collected->find("erased")->as_int64(), 1);
  EXPECT_FALSE(stage.read(blob_key("t", view(sha256("orphan"))))->exists());
  const std::string id = fork(stage.head("w").height);
  EXPECT_EQ(stage.log(id, "t/main@1", key_of("a")), std::vector<std::string>{"Do"});
}

// What records that are kept need is none either: a fork at any height runs them again.
struct Garbage : Replay {
  void SetUp() override { ASSERT_TRUE(stage.create("w", test_air())); }
  void collect() {
    Bytes none;
    Writer(none).sint(0);
    stage.clock += kSecond;
    auto collected = stage.say("collect", none);
    ASSERT_TRUE(collected) << collected.error().message;
  }
  void compact(uint64_t through) {
    EXPECT_EQ(
        stage.http("POST", "/v1/worlds/w/compact", R"({"through":)" + std::to_string(through) + "}")
            .status,
        200);
  }
  std::vector<std::string> log(const std::string& world) {
    return stage.log(world, "t/main@1", key_of("a"));
  }
  bool kept(const std::string& hash) {
    return stage.read(blob_key("t", *parse_hash(hash)))->exists();
  }
  uint64_t height() { return stage.head("w").height; }
};

TEST_F(Garbage, an_older_snapshot_is_kept_while_its_record_is) {
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  const uint64_t then = height();
  const std::string old(stage.say("snapshot", "w")->string_or("snapshot_ref"));
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  collect();
  EXPECT_EQ(log(fork(then)).size(), 1u);
  EXPECT_EQ(log(fork(then + 3)).size(), 3u);
  EXPECT_TRUE(kept(old));
}

TEST_F(Garbage, compaction_gives_old_snapshots_away) {
  ASSERT_TRUE(go("a"));
  const std::string old(stage.say("snapshot", "w")->string_or("snapshot_ref"));
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  compact(height() - 2);
  collect();
  EXPECT_FALSE(kept(old));
  EXPECT_EQ(log(fork(height())).size(), 2u);
}

TEST_F(Garbage, what_an_effect_read_is_kept_while_its_record_is) {
  const std::string blob(stage.say("put_blob", "hello")->string_or("hash"));
  StepOutput get =
      output({"g"}, {{"sys/blob.get@1", cbor::encode(cbor::Map{{"blob_ref", blob}}), {}, {}}});
  ASSERT_TRUE(go("a", get));
  const uint64_t then = height();
  collect();
  fork(then);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  collect();
  fork(then);
  EXPECT_TRUE(kept(blob));
}

// The same world, with pictures: an event and an effect whose schemas lead to a hash.
struct Pictures : Garbage {
  void SetUp() override {
    json::Value air = test_air();
    auto add = [&](std::string_view text) {
      air.array().insert(air.array().begin(), *json::parse(text));
    };
    add(R"({"$kind":"defschema","name":"t/Pic@1","type":{"hash":{}}})");
    add(R"({"$kind":"defschema","name":"t/Pics@1","type":{"record":{"id":{"ref":"t/Id@1"},"out":{"option":{"bytes":{}}},"word":{"option":{"text":{}}},"pics":{"option":{"list":{"ref":"t/Pic@1"}}}}}})");
    add(R"({"$kind":"defschema","name":"t/Show@1","type":{"record":{"named":{"map":{"key":{"text":{}},"value":{"ref":"t/Pic@1"}}}}}})");
    add(R"({"$kind":"defeffect","name":"t/show@1","params":"t/Show@1","receipt":"t/ChargeReceipt@1","impl":{"module":"sys/builtin_effects@1","entrypoint":"show"}})");
    for (json::Value& node : air.array()) {
      if (node.string_or("name") == "t/main@1")
        node.find("effects_emitted")->array().emplace_back("t/show@1");
      if (node.string_or("name") == "t/Event@1")
        node.find("type")->find("variant")->object().add("Pics",
                                                         *json::parse(R"({"ref":"t/Pics@1"})"));
      if (node.string_or("$kind") != "manifest") continue;
      for (auto name : {"t/Pic@1", "t/Pics@1", "t/Show@1"})
        node.find("schemas")->array().push_back(json::object({{"name", name}}));
      node.find("effects")->array().push_back(json::object({{"name", "t/show@1"}}));
      node.find("routing")
          ->find("subscriptions")
          ->array()
          .push_back(
              *json::parse(R"({"event":"t/Pics@1","workflow":"t/main@1","key_field":"id"})"));
    }
    auto made = stage.create("w", air);
    ASSERT_TRUE(made) << made.error().message;
  }
  std::string blob(const std::string& bytes) {
    return std::string(stage.say("put_blob", bytes)->string_or("hash"));
  }
  void send_picture(const std::string& hash) {
    cbor::Value event = tell("a");
    event.map().emplace_back("pics", cbor::Array{Value(hash)});
    ASSERT_TRUE(stage.send("w", "t/Pics@1", event));
  }
  // Whatever the last record spoke of is there for a fork after it.
  void is_kept_while_the_record_is(const std::string& hash) {
    const uint64_t then = height();
    ASSERT_TRUE(go("a"));
    ASSERT_TRUE(stage.say("snapshot", "w"));
    collect();
    EXPECT_TRUE(kept(hash));
    const std::string id = fork(then);
    StepOutput get =
        output({"g"}, {{"sys/blob.get@1", cbor::encode(cbor::Map{{"blob_ref", hash}}), {}, {}}});
    ASSERT_TRUE(stage.send(id, "t/Do@1", tell("a", get)));
    EXPECT_EQ(stage.head(id).receipts_error, 0u);
    EXPECT_TRUE(stage.verify_all().difference.empty()) << stage.verify_all().difference;
  }
};

TEST_F(Pictures, what_an_event_between_two_snapshots_speaks_of_is_kept_while_its_record_is) {
  const std::string pic = blob("picture");
  send_picture(pic);
  is_kept_while_the_record_is(pic);
}
TEST_F(Pictures, and_goes_with_it) {
  const std::string pic = blob("picture");
  send_picture(pic);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  compact(height() - 2);
  collect();
  EXPECT_FALSE(kept(pic));
}
TEST_F(Pictures, so_is_what_a_settled_intent_spoke_of) {
  const std::string pic = blob("picture");
  StepOutput show = output(
      {"s"}, {{"t/show@1", cbor::encode(cbor::Map{{"named", cbor::Map{{"front", pic}}}}), {}, {}}});
  ASSERT_TRUE(go("a", show));
  settle_first(cbor::Map{{"code", 1}});
  is_kept_while_the_record_is(pic);
}
TEST_F(Pictures, so_is_what_a_put_blob_refers_to_but_not_the_blob_itself) {
  const std::string pic = blob("picture"), frame = hash_text(sha256("frame"));
  StepOutput put = output({"p"}, {{"sys/blob.put@1",
                                   cbor::encode(cbor::Map{{"bytes", cbor::octets("frame")},
                                                          {"refs", cbor::Array{Value(pic)}}}),
                                   {},
                                   {}}});
  ASSERT_TRUE(go("a", put));
  is_kept_while_the_record_is(pic);
  EXPECT_TRUE(kept(frame));  // the fork has put it again
}
TEST_F(Pictures, so_is_what_a_frame_points_at) {
  ASSERT_TRUE(
      go("a", output({"c"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 1}}), {}, {}}})));
  const std::string pic = blob("picture");
  const PendingIntent open = stage.pending("w")[0];
  StreamFrame frame{
      open.intent, open.workflow,          {},  open.key, open.identity, open.emitted_at_seq, 1,
      "part",      cbor::encode(Value(1)), pic, {}};
  auto said = stage.say("frame", encode(SendFrame{"w", frame}));
  ASSERT_TRUE(said) << said.error().message;
  settle_first(cbor::Map{{"code", 1}});
  is_kept_while_the_record_is(pic);
}
TEST_F(Pictures, a_schema_without_a_hash_costs_no_look_into_its_values) {
  Builtins builtins;
  Schemas schemas(&builtins.schemas());
  auto add = [&](const std::string& name, std::string_view type) {
    schemas.add(name, *parse_type(*json::parse(type)));
  };
  add("t/None@1",
      R"({"record":{"a":{"text":{}},"b":{"map":{"key":{"text":{}},"value":{"option":{"ref":"t/Nat@1"}}}}}})");
  add("t/Nat@1", R"({"nat":{}})");
  add("t/Deep@1", R"({"variant":{"A":{"ref":"t/Nat@1"},"B":{"list":{"ref":"t/Set@1"}}}})");
  add("t/Set@1", R"({"set":{"hash":{}}})");
  add("t/Key@1", R"({"map":{"key":{"hash":{}},"value":{"unit":{}}}})");
  add("t/Sys@1", R"({"option":{"ref":"sys/BlobGetParams@1"}})");
  add("t/Lost@1", R"({"ref":"t/Nowhere@1"})");
  // Each level leads to the one below twice: found out once, not 2^60 times.
  add("t/L0@1", R"({"unit":{}})");
  for (int i = 1; i <= 60; ++i) {
    std::string below = R"({"ref":"t/L)" + std::to_string(i - 1) + "@1\"}";
    add("t/L" + std::to_string(i) + "@1", R"({"record":{"a":)" + below + R"(,"b":)" + below + "}}");
  }
  schemas.find_hashes();
  for (auto name : {"t/Deep@1", "t/Set@1", "t/Key@1", "t/Sys@1", "sys/BlobGetParams@1"})
    EXPECT_TRUE(schemas.can_hold_hash(name)) << name;
  for (auto name :
       {"t/None@1", "t/Nat@1", "t/Lost@1", "t/L60@1", "t/Nowhere@1", "sys/TimerSetParams@1"})
    EXPECT_FALSE(schemas.can_hold_hash(name)) << name;
}

TEST_F(Garbage, a_blob_that_is_put_again_is_young_again) {
  const std::string blob(stage.say("put_blob", "hello")->string_or("hash"));
  stage.clock += 2 * kBlobGrace;
  ASSERT_TRUE(stage.say("put_blob", "hello"));
  ASSERT_TRUE(stage.say("collect", {}));
  EXPECT_TRUE(kept(blob));
  stage.clock += 2 * kBlobGrace;
  ASSERT_TRUE(stage.say("collect", {}));
  EXPECT_FALSE(kept(blob));
}

// case 184
TEST_F(Replay, compaction_drops_a_prefix_and_heights_go_on) {
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

}  // namespace
}  // namespace pawl::worlds
