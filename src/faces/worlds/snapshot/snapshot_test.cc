// Snapshots of many changed cells take several bounded turns, write every node about once, and have
// the bytes of a snapshot that was taken in one turn.

#include "faces/worlds/cases_test.h"
#include "kernel/frame.h"

namespace pawl::worlds {
namespace {

struct SnapshotsTest : CaseTest {
  // Changes each of these cells once.
  void touch(int from, int to) {
    for (int i = from; i < to; i += 500) {
      SendEvents batch{"w", {}};
      for (int j = i; j < std::min(i + 500, to); ++j)
        batch.events.push_back(event_to("t/Do@1", "c" + std::to_string(j)));
      auto sent = stage.say("events", encode(batch));
      ASSERT_TRUE(sent) << sent.error().message;
    }
  }
  struct Written {
    size_t turns = 0, blobs = 0, bytes = 0, largest = 0;
  };
  // Counts what the frames after `from` put into the store.
  Written written(Seq from) {
    Written out;
    CHECK(stage.journal.read(from + 1, [&](Seq seq, BytesView entry) -> Result<bool> {
      TRY(Sealed sealed, unseal(entry));
      TRY(Frame frame, decode_frame(seq, sealed.body));
      ++out.turns;
      out.largest = std::max(out.largest, entry.size());
      for (const auto& write : frame.writes) {
        if (!write.key.starts_with(blobs_prefix("t")) || !write.value) continue;
        ++out.blobs;
        out.bytes += write.value->bytes.size();
      }
      return true;
    }));
    return out;
  }
  size_t marks() {
    size_t n = 0;
    CHECK(stage.snapshot().scan(dirty_prefix({"t", "w"}),
                                [&](BytesView, const Cell&) { return ++n > 0; }));
    return n;
  }
  // Counts the nodes of both indexes of the world.
  size_t nodes(const std::string& world) {
    size_t n = 0;
    auto counted = lab([&](Turn& turn) -> Result<Bytes> {
      Blobs blobs(turn, "t");
      const IndexStore store{[&](BytesView digest) { return blobs.get(digest); },
                             [](BytesView) -> Result<Bytes> { return Bytes(); }};
      TRY(auto w, turn.read_as<World>(world_key({"t", world}), decode_world));
      for (const auto& [name, roots] : w->roots)
        for (const Bytes& root : {roots.cells, roots.instances})
          TRY_OK(walk_index(
              store, root, [](const Value&) -> Result<bool> { return true; },
              [&](BytesView) {
                ++n;
                return true;
              }));
      return Bytes();
    });
    CHECK(counted);
    return n;
  }
  void ask_for_snapshot() {
    heard.reset();
    Input input;
    input.program = kProgram;
    input.verb = "snapshot";
    input.body = "w";
    input.caller.tenant = "t";
    stage.submit(std::move(input), [this](Result<Answer> a) { heard.emplace(std::move(a)); });
  }
  std::string ref() const {
    return heard && *heard ? std::string(json::parse((*heard)->body)->string_or("snapshot_ref"))
                           : std::string();
  }
  // The world, restored from its newest snapshot and the records after it.
  void expect_whole() {
    ASSERT_EQ(fork("again").status, 201);
    EXPECT_EQ(stage.dump("again"), stage.dump("w"));
  }
  // More steps than one turn takes.
  Event flood() {
    std::vector<Event> each(5, event_to("t/Deaf@1", "sink")), all;
    for (int i = 0; i < 250; ++i)
      all.push_back(event_to("t/Half@1", "h" + std::to_string(i), output({"h"}, {}, each)));
    return event_to("t/Do@1", "flood", output({"f"}, {}, all));
  }
  std::optional<Result<Answer>> heard;
};

TEST_F(SnapshotsTest, a_large_snapshot_over_several_turns_equals_one_taken_at_once) {
  make();
  const int many = 5 * static_cast<int>(kMaxCellsPerTurn) + 500;
  touch(0, many);
  ASSERT_EQ(fork("f").status, 201);
  const Seq before = stage.journal.last();
  auto snapshot = stage.say("snapshot", "w");
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  const Written all = written(before);
  EXPECT_EQ(all.turns, 6u);
  EXPECT_EQ(marks(), 0u);
  // Every node is canonical: entries are written field by field.
  ASSERT_TRUE(stage.snapshot().scan(blobs_prefix("t"), [&](BytesView at, const Cell& cell) {
    auto blob = decode_blob(at.substr(blobs_prefix("t").size()), cell.value());
    auto value = blob ? cbor::decode(blob->bytes) : Result<Value>(Value());
    if (value && value->is_map() && value->find("t")) {
      EXPECT_EQ(cbor::canonical(*value), blob->bytes);
    }
    return true;
  }));
  // Beside the nodes of the end: two roots and two branches a turn, the state they all share, the
  // snapshot.
  EXPECT_LE(all.blobs, nodes("w") + 4 * all.turns + 2);
  auto same = lab([&](Turn& turn) -> Result<Bytes> {  // in one turn, in the other world
    WorldSession session(turn, {"t", "f"}, stage.program->worlds.runtime());
    TRY_OK(session.turn.open());
    return session.snapshots.take();
  });
  EXPECT_EQ(snapshot->string_or("snapshot_ref"), *same);
}

TEST_F(SnapshotsTest, a_turn_is_bounded_by_bytes_too) {
  make();
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(
        go("c" + std::to_string(i), output({std::string(100'000, 'x'), std::to_string(i)})));
  const Seq before = stage.journal.last();
  ASSERT_TRUE(stage.say("snapshot", "w"));
  const Written all = written(before);
  EXPECT_LE(all.turns, 6u);
  EXPECT_LT(all.largest, kMaxIndexBytesPerTurn);
  EXPECT_EQ(marks(), 0u);
  expect_whole();
}

TEST_F(SnapshotsTest, a_turn_is_bounded_by_index_nodes_too) {
  make();
  touch(0, 12'000);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  for (int i = 0; i < 12'000; i += 100)
    touch(i, i + 10);
  const Seq before = stage.journal.last();
  ASSERT_TRUE(stage.say("snapshot", "w"));
  EXPECT_LT(written(before).largest, kMaxIndexBytesPerTurn);
  expect_whole();
}

TEST_F(SnapshotsTest, changes_during_a_snapshot_are_in_it) {
  make();
  touch(0, 2 * static_cast<int>(kMaxCellsPerTurn) + 100);
  stage.holds = true;
  ask_for_snapshot();
  for (int round = 0; !heard; ++round) {
    ASSERT_LT(round, 10);
    ASSERT_EQ(stage.held.size(), 1u);
    if (round < 2) touch(100 * round, 100 * round + 200);  // some of them are in the index already
    StepOutput gone;
    if (round < 2) {
      ASSERT_TRUE(go("c" + std::to_string(3000 + round), gone));
    }
    if (round == 1) {
      ASSERT_EQ(fork("meanwhile").status, 201);
    }
    stage.deliver_next();
  }
  ASSERT_TRUE(*heard) << heard->error().message;
  EXPECT_EQ(marks(), 0u);
  stage.holds = false;
  expect_whole();
  EXPECT_EQ(stage.cell("again", "t/main@1", key_of("c3000")).module_version, "");
  EXPECT_EQ(stage.dump("meanwhile").size() > 0, true);
}

TEST_F(SnapshotsTest, a_snapshot_ends_however_fast_cells_change) {
  make();
  const int many = static_cast<int>(kMaxCellsPerTurn) + 1000;
  touch(0, many);
  stage.holds = true;
  ask_for_snapshot();
  for (int turn = 0; !heard; ++turn) {
    ASSERT_LT(turn, 12);
    touch(0, many);
    stage.deliver_next();
  }
  ASSERT_TRUE(*heard) << heard->error().message;
  stage.holds = false;
  expect_whole();
}

TEST_F(SnapshotsTest, garbage_collection_keeps_the_nodes_of_an_unfinished_snapshot) {
  make();
  touch(0, 2 * static_cast<int>(kMaxCellsPerTurn) + 100);
  stage.holds = true;
  ask_for_snapshot();
  Bytes no_grace;
  Writer(no_grace).sint(0);
  while (!heard) {
    stage.clock += kSecond;
    ASSERT_TRUE(stage.say("collect", no_grace));
    stage.deliver_next();
  }
  ASSERT_TRUE(*heard) << heard->error().message;
  stage.clock += kSecond;
  auto collected = stage.say("collect", no_grace);
  ASSERT_TRUE(collected);
  EXPECT_LT(*collected->find("erased")->as_int64(),
            10);  // what the last turn left; the rest was collected in between
  stage.holds = false;
  expect_whole();
}

TEST_F(SnapshotsTest, a_snapshot_of_a_busy_world_waits) {
  make();
  touch(0, static_cast<int>(kMaxCellsPerTurn) + 100);
  stage.holds = true;
  ask_for_snapshot();
  ASSERT_EQ(stage.held.size(), 1u);
  ASSERT_TRUE(stage.say("events", encode(SendEvents{"w", {flood()}})));
  ASSERT_GT(stage.head("w").queued, 0u);
  ASSERT_EQ(stage.held.size(), 2u);
  for (int turn = 0; !heard; ++turn) {
    ASSERT_LT(turn, 20);
    ASSERT_FALSE(stage.held.empty());
    stage.deliver_next();
  }
  ASSERT_TRUE(*heard) << heard->error().message;
  EXPECT_EQ(stage.head("w").queued, 0u);
  stage.holds = false;
  while (!stage.held.empty())
    stage.deliver_next();
  expect_whole();
}

TEST_F(SnapshotsTest, a_failed_snapshot_is_reported_and_can_be_retried) {
  make();
  touch(0, static_cast<int>(kMaxCellsPerTurn) + 100);
  stage.holds = true;
  ask_for_snapshot();
  Bytes root, kept;
  ASSERT_TRUE(lab([&](Turn& turn) -> Result<Bytes> {
    TRY(auto world, turn.read_as<World>(world_key({"t", "w"}), decode_world));
    root = world->roots.at("t/main@1").cells;
    TRY(kept, Blobs(turn, "t").get(root));
    turn.erase(blob_key("t", root));
    return Bytes();
  }));
  stage.deliver_next();
  ASSERT_TRUE(heard.has_value());
  ASSERT_FALSE(*heard);
  EXPECT_EQ(heard->error().reason, "store.error");
  EXPECT_TRUE(stage.held.empty());
  stage.holds = false;
  ASSERT_TRUE(stage.say("put_blob", kept));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  expect_whole();
}

TEST_F(SnapshotsTest, an_apply_during_a_snapshot_goes_first) {
  make();
  touch(0, static_cast<int>(kMaxCellsPerTurn) + 100);
  stage.holds = true;
  ask_for_snapshot();
  const std::string manifest(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  const std::string patch = json::print(
      json::object({{"base_manifest_hash", manifest}, {"patches", json::Value(json::Array{})}}));
  auto proposed =
      stage.govern("w", {.world = "w", .command = "1", .action = "propose", .patch = patch});
  ASSERT_TRUE(proposed) << proposed.error().message;
  for (const char* action : {"shadow", "approve", "apply"}) {
    auto done = stage.govern("w", {.world = "w",
                                   .command = action,
                                   .action = action,
                                   .proposal = 0,
                                   .approver = "me",
                                   .strict = false});
    ASSERT_TRUE(done) << action << ": " << done.error().message;
  }
  while (!heard)
    stage.deliver_next();
  ASSERT_TRUE(*heard) << heard->error().message;
  stage.holds = false;
  expect_whole();
}

}  // namespace
}  // namespace pawl::worlds
