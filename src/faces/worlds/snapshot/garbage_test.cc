// Garbage collection: what is kept, and for how long.

#include <gtest/gtest.h>

#include "faces/worlds/snapshot/replay_test.h"

namespace pawl::worlds {
namespace {

// case 185
TEST_F(ReplayTest, blobs_that_nothing_refers_to_are_collected) {
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

// Blobs that kept records need are not garbage: a fork at any height replays those records.
struct Garbage : ReplayTest {
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

TEST_F(Garbage, compaction_releases_old_snapshots) {
  ASSERT_TRUE(go("a"));
  const std::string old(stage.say("snapshot", "w")->string_or("snapshot_ref"));
  ASSERT_TRUE(go("a"));
  ASSERT_TRUE(stage.say("snapshot", "w"));
  compact(height() - 2);
  collect();
  EXPECT_FALSE(kept(old));
  EXPECT_EQ(log(fork(height())).size(), 2u);
}

TEST_F(Garbage, a_blob_that_an_effect_read_is_kept_while_its_record_is) {
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

// A world with an event and an effect whose schemas hold hashes of pictures.
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
  // A fork after the last record finds every blob that the record names.
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

TEST_F(Pictures, a_blob_that_an_event_names_is_kept_while_its_record_is) {
  const std::string pic = blob("picture");
  send_picture(pic);
  is_kept_while_the_record_is(pic);
}

TEST_F(Pictures, a_blob_that_an_event_names_is_collected_after_its_record) {
  const std::string pic = blob("picture");
  send_picture(pic);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  compact(height() - 2);
  collect();
  EXPECT_FALSE(kept(pic));
}

TEST_F(Pictures, a_blob_that_a_settled_intent_names_is_kept) {
  const std::string pic = blob("picture");
  StepOutput show = output(
      {"s"}, {{"t/show@1", cbor::encode(cbor::Map{{"named", cbor::Map{{"front", pic}}}}), {}, {}}});
  ASSERT_TRUE(go("a", show));
  settle_first(cbor::Map{{"code", 1}});
  is_kept_while_the_record_is(pic);
}

TEST_F(Pictures, the_refs_of_a_put_blob_are_kept_but_not_the_blob) {
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

TEST_F(Pictures, a_blob_that_a_frame_names_is_kept) {
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

TEST_F(Pictures, values_of_schemas_without_hashes_are_not_read) {
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
  // Each level refers to the next one twice: it is checked once, not 2^60 times.
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

TEST_F(Garbage, putting_a_blob_again_renews_its_grace_period) {
  const std::string blob(stage.say("put_blob", "hello")->string_or("hash"));
  stage.clock += 2 * kBlobGrace;
  ASSERT_TRUE(stage.say("put_blob", "hello"));
  ASSERT_TRUE(stage.say("collect", {}));
  EXPECT_TRUE(kept(blob));
  stage.clock += 2 * kBlobGrace;
  ASSERT_TRUE(stage.say("collect", {}));
  EXPECT_FALSE(kept(blob));
}

}  // namespace
}  // namespace pawl::worlds
