// Cases of the list of behaviours that no other test covers: mailboxes, cells, snapshots, journal.

#include "faces/worlds/cases_test.h"

namespace pawl::worlds {
namespace {

// case 160: the order of steps is seen in the heights of what they emit.
TEST_F(Case, a_flooded_cell_does_not_starve_another) {
  make();
  const StepOutput noisy = output({}, {}, {Event{"t/Lonely@1", "\xa0", {}}});
  std::vector<Event> events;
  for (int i = 0; i < 5; ++i)
    events.push_back(event_to("t/Half@1", "flood", noisy));
  events.push_back(event_to("t/Deaf@1", "one", output({}, {}, {event_to("t/Tell@1", "x")})));
  ASSERT_TRUE(go("a", output({}, {}, events)));
  Words emitted;
  const auto records = stage.records("w");
  for (size_t i = 9; i < records.size(); ++i)
    emitted.emplace_back(records[i].text_or("schema"));
  // Second in line: after one step of the flooded cell, not after five.
  EXPECT_EQ(emitted, (Words{"t/Lonely@1", "t/Tell@1", "t/Lonely@1", "t/Lonely@1", "t/Lonely@1",
                            "t/Lonely@1"}));
}

// case 164
TEST_F(Case, an_event_to_itself_runs_after_queued_events) {
  make();
  auto word = [](const std::string& w) {
    return Event{"t/Half@1", cbor::encode(cbor::Map{{"id", "x"}, {"word", w}}), {}};
  };
  StepOutput first = output({"1"}, {}, {word("own")});
  ASSERT_TRUE(
      go("a",
         output({}, {}, {Event{"t/Half@1", cbor::encode(tell("x", first)), {}}, word("queued")})));
  EXPECT_EQ(log("x", "t/half@1"), (Words{"1", "queued", "own"}));
}

// case 162, case 161: a batch is two inputs at once.
TEST_F(Case, inputs_of_one_group_rerun_in_the_same_order) {
  make();
  const StepOutput noisy = output({"n"}, {timer(5)}, {event_to("t/Tell@1", "x")});
  ASSERT_TRUE(stage.say(
      "events", encode(SendEvents{"w",
                                  {event_to("t/Do@1", "a", noisy), event_to("t/Do@1", "b", noisy),
                                   event_to("t/Do@1", "a")}})));
  ASSERT_EQ(fork("f").status, 201);
  EXPECT_EQ(stage.dump("f"), stage.dump("w"));
}

// case 165, case 166, case 177
TEST_F(Case, the_index_root_changes_at_snapshots_and_reads_at_once) {
  make();
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  auto root = [&] {
    return std::string(json::parse(stage.http("GET", "/v1/worlds/w/state/t/main@1/cells").body)
                           ->string_or("cell_index_root"));
  };
  const std::string first = root();
  EXPECT_FALSE(first.empty());
  const Bytes state = *main("a").state;
  EXPECT_TRUE(stage.read(blob_key("t", view(sha256(state))))->exists());
  ASSERT_TRUE(go("b"));
  EXPECT_EQ(log("b"), Words{"Do"});
  StepOutput gone;
  ASSERT_TRUE(go("a", gone));
  EXPECT_FALSE(main("a").state);  // though the index still has it
  EXPECT_EQ(root(), first);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  EXPECT_NE(root(), first);
  size_t marks = 0;
  ASSERT_TRUE(stage.snapshot().scan(dirty_prefix({"t", "w"}),
                                    [&](BytesView, const Cell&) { return ++marks > 0; }));
  EXPECT_EQ(marks, 0u);
}

// case 172
TEST_F(Case, the_cache_limits_clean_cells_per_workflow) {
  make();
  for (int i = 0; i < 300; ++i)
    ASSERT_TRUE(go("c" + std::to_string(i)));
  EXPECT_EQ(stage.cache.in_families(), 0u);  // the rows do not hold them yet
  CHECK(stage.committer->apply());
  EXPECT_EQ(stage.cache.in_families(), Stage::kWorkflowCells);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(go("c" + std::to_string(i)));
    EXPECT_EQ(log("c" + std::to_string(i)).size(), 2u);
  }
  CHECK(stage.committer->apply());
  EXPECT_EQ(stage.cache.in_families(), Stage::kWorkflowCells);
  EXPECT_TRUE(stage.verify_all().difference.empty());
}

TEST(keys, the_cells_of_a_workflow_of_a_world_are_one_family) {
  const WorldId world_id{std::string("t\0\1", 3), "w"};
  EXPECT_EQ(cell_family(cell_key(world_id, "t/main@1", "k")), cells_prefix(world_id, "t/main@1"));
  EXPECT_EQ(cell_family(cell_key(world_id, "t/main@1", std::string("\0\0", 2))),
            cells_prefix(world_id, "t/main@1"));
  EXPECT_EQ(cell_family(cell_key(world_id, "t/main@1", "")), cells_prefix(world_id, "t/main@1"));
  for (const Key& other : {world_key(world_id), head_key(world_id), air_key(world_id),
                           dirty_key(world_id, 1, "t/main@1", "k"), pending_key(world_id, "i"),
                           blob_key("t", "h"), Key()})
    EXPECT_EQ(cell_family(other), "");
  // All cells of a world are packed, except the blobs and marks of snapshots.
  for (const Key& packed : {world_key(world_id), head_key(world_id),
                            cell_key(world_id, "t/main@1", "k"), pending_key(world_id, "i"), Key()})
    EXPECT_TRUE(is_read_again(packed));
  for (const Key& not_packed :
       {dirty_key(world_id, 1, "t/main@1", "k"), blob_key(world_id.tenant, "h")})
    EXPECT_FALSE(is_read_again(not_packed));
}

// case 167, case 174: the cache is the kernel's and bounded by bytes, too; what falls out is in the
// rows.
TEST_F(Case, evicted_cells_are_read_again) {
  make();
  // Weak pointers show which cells are still in memory.
  std::vector<std::weak_ptr<const Stored>> cells;
  for (int i = 0; i < 600; ++i) {
    const std::string id = "c" + std::to_string(i);
    ASSERT_TRUE(go(id, output({std::string(20'000, 'x')})));
    CHECK(stage.committer->apply());
    cells.push_back(stage.cache.read(cell_key({"t", "w"}, "t/main@1", key_of(id)))->stored);
  }
  size_t held = 0, there = 0;
  for (const auto& cell : cells)
    if (auto stored = cell.lock()) {
      ++there;
      held += stored->bytes.size();
    }
  EXPECT_GT(there, 10u);
  EXPECT_LE(held, Stage::kCacheBytes);
  EXPECT_GT(600 * 20'000u, 2 * Stage::kCacheBytes);
  for (int i = 0; i < 600; i += 37) {
    ASSERT_TRUE(go("c" + std::to_string(i)));
    EXPECT_EQ(log("c" + std::to_string(i)).size(), 2u);
  }
  CHECK(stage.committer->apply());
  stage.cache.clear();
  ASSERT_TRUE(go("c0"));
  EXPECT_EQ(log("c0").size(), 3u);
}

// case 173, case 175
TEST_F(Case, the_largest_state_is_kept_read_and_put_into_a_snapshot) {
  make();
  StepOutput large = output({std::string(kMaxOutputBytes - 20, 'x')});
  ASSERT_TRUE(go("a", large));
  ASSERT_TRUE(main("a").state) << main("a").failure;
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_EQ(fork("f").status, 201);
  EXPECT_EQ(stage.cell("f", "t/main@1", key_of("a")).state, main("a").state);
}

// case 179, case 207
TEST_F(Case, replay_from_a_snapshot_or_the_beginning_gives_the_same_roots) {
  make();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(go("c" + std::to_string(i)));
  ASSERT_EQ(fork("whole").status, 201);  // from the first snapshot
  auto root = [&](const std::string& world) {
    return std::string(
        json::parse(stage.http("GET", "/v1/worlds/" + world + "/state/t/main@1/cells?limit=1").body)
            ->string_or("cell_index_root"));
  };
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_TRUE(stage.say("snapshot", "whole"));
  EXPECT_EQ(root("whole"), root("w"));
  for (int i = 0; i < 100; i += 3)
    ASSERT_TRUE(go("c" + std::to_string(i)));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  ASSERT_EQ(fork("tail").status, 201);
  EXPECT_EQ(root("tail"), root("w"));
  EXPECT_NE(root("whole"), root("w"));
}

// case 181, case 182
TEST_F(Case, an_incomplete_snapshot_is_refused) {
  make();
  ASSERT_TRUE(go("a"));
  auto snapshot = stage.say("snapshot", "w");
  ASSERT_TRUE(snapshot);
  Cell cell = *stage.read(blob_key("t", *parse_hash(snapshot->string_or("snapshot_ref"))));
  const Value blob = *cbor::decode(
      decode_blob(*parse_hash(snapshot->string_or("snapshot_ref")), cell.value())->bytes);
  auto restore = [&](Value changed) {
    return lab([&](Turn& turn) -> Result<Bytes> {
      TRY(Bytes digest, Blobs(turn, "t").put(cbor::encode(changed)));
      WorldSession session(turn, {"t", "other"}, stage.program->worlds.runtime());
      World world;
      world.id = "other";
      TRY_OK(session.turn.begin(world));
      TRY_OK(session.snapshots.restore(hash_text(digest)));
      return Bytes();
    });
  };
  EXPECT_TRUE(restore(blob));
  for (std::string_view field :
       {"root_completeness", "manifest_hash", "workflow_index_roots", "head", "proposals"}) {
    Value without{cbor::Map{}};
    for (const auto& [key, value] : blob.map())
      if (key.text() != field) without.map().emplace_back(key, value);
    auto refused = restore(without);
    EXPECT_EQ(refused.error().reason, "snapshot.decode") << field;
  }
  Value other = blob;
  for (auto& [key, value] : other.map())
    if (key.text() == "manifest_hash") value = cbor::octets(Bytes(32, 'm'));
  EXPECT_EQ(restore(other).error().reason, "snapshot.decode");
}

// case 189
TEST_F(Case, large_payloads_are_in_the_store_and_a_replay_without_them_is_refused) {
  make();
  // A record names the bytes that it keeps in the store.
  auto stored = [&](const Value& record, const std::string& what) -> Bytes {
    EXPECT_TRUE(record.find(what + "_cbor")->bytes().empty());
    const std::string ref(record.text_or(what + "_ref"));
    EXPECT_EQ(record.text_or(what + "_sha256"), ref);
    const Bytes digest = *parse_hash(ref);
    Cell cell = *stage.read(blob_key("t", digest));
    if (!cell.exists()) return {};
    const Bytes bytes = decode_blob(digest, cell.value())->bytes;
    EXPECT_EQ(record.find(what + "_size")->as_uint64(), bytes.size());
    return bytes;
  };
  auto emit = [&](const std::string& effect, cbor::Map params) {
    return go("a", output({"s"}, {{effect, cbor::encode(Value(std::move(params))), {}, {}}}));
  };
  ASSERT_TRUE(emit("sys/blob.put@1", {{"bytes", cbor::octets("hello")}}));
  const Value put = *cbor::decode(stored(last("effect_intent"), "params"));
  EXPECT_EQ(put.find("bytes")->bytes(), "hello");
  // A blob that no step brings: a replay cannot write it again.
  ASSERT_TRUE(stage.say("put_blob", "uploaded"));
  const std::string uploaded = hash_text(sha256("uploaded"));
  ASSERT_TRUE(emit("sys/blob.get@1", {{"blob_ref", uploaded}}));
  const Value got = *cbor::decode(stored(last("effect_receipt"), "payload"));
  EXPECT_EQ(got.find("bytes")->bytes(), "uploaded");
  ASSERT_EQ(fork("whole").status, 201);
  for (const char* bytes : {"hello", "uploaded"})
    ASSERT_TRUE(lab([&](Turn& turn) -> Result<Bytes> {
      turn.erase(blob_key("t", view(sha256(bytes))));
      return Bytes();
    }));
  const wire::Response refused = fork("without");
  EXPECT_GE(refused.status, 400);
  EXPECT_NE(refused.body.find("missing_cas_dependency: blob " + uploaded), std::string::npos)
      << refused.body;
  ASSERT_TRUE(stage.say("put_blob", "uploaded"));
  EXPECT_EQ(fork("again").status, 201);
}

// case 205
TEST_F(Case, a_module_is_tested_without_a_world) {
  struct Row {
    std::optional<Bytes> state;
    const char* word;
    Words then;
  };
  for (const Row& row : {Row{{}, "x", {"x"}}, Row{state_of({"x"}), "y", {"x", "y"}}}) {
    auto out = Scripted().step(
        "step",
        encode_input({row.state,
                      {"t/Do@1", cbor::canonical(cbor::Map{{"id", "a"}, {"word", row.word}}), {}},
                      {}}));
    ASSERT_TRUE(out);
    const StepOutput step = *decode_output(*out);
    EXPECT_EQ(cbor::canonical(*cbor::decode(*step.state)), state_of(row.then));
    EXPECT_TRUE(step.events.empty() && step.effects.empty());
  }
}

}  // namespace
}  // namespace pawl::worlds
