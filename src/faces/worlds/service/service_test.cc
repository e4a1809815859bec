// The service's own rules, beneath the routes.

#include "faces/worlds/service/service.h"

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

// Forwards to the stage; `after_snapshot` runs between a snapshot and everything that is read next.
struct SlowReader final : KernelAccess {
  explicit SlowReader(Stage& s) : stage(s) {}
  void submit(Input input, Reply reply) override {
    stage.submit(std::move(input), std::move(reply));
  }
  Result<Cell> read(BytesView key) const override { return stage.read(key); }
  ReadSnapshot snapshot() const override {
    ReadSnapshot made = stage.snapshot();
    if (after_snapshot) std::exchange(after_snapshot, {})();
    return made;
  }
  Seq durable() const override { return stage.durable(); }
  Result<void> frames(Seq, const std::function<Result<bool>(const Frame&)>&) const override {
    return {};
  }
  uint64_t watch(Watcher) override { return 0; }
  void unwatch(uint64_t) override {}
  Time now() const override { return stage.now(); }
  Stage& stage;
  mutable std::function<void()> after_snapshot;
};

TEST(WorldSnapshot, has_the_manifest_of_its_own_time) {
  Stage stage;
  ASSERT_TRUE(stage.create("w", test_air()));
  SlowReader reader(stage);
  Service service(reader, stage, stage.program->worlds, stage.background, {});
  const std::string old = service.open_snapshot({"t", "w"})->loaded->hash;
  // Another manifest is written after the snapshot was taken.
  reader.after_snapshot = [&] {
    json::Value air = test_air();
    air.array().back().find("schemas")->array().push_back(
        json::object({{"name", "sys/BlobPutParams@1"}}));
    ASSERT_TRUE(stage.lab([&](Turn& turn) -> Result<Bytes> {
      TRY(Authored authored, author(air, stage.program->worlds.builtins(), {}));
      turn.write(air_key({"t", "w"}), encode_bundle(authored.manifest, authored.nodes));
      return Bytes();
    }));
  };
  auto during = service.open_snapshot({"t", "w"});
  ASSERT_TRUE(during) << during.error().message;
  EXPECT_EQ(during->loaded->hash, old);
  EXPECT_NE(service.open_snapshot({"t", "w"})->loaded->hash, old);
  service.stop();
}

}  // namespace
}  // namespace pawl::worlds
