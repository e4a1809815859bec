#pragma once
// A stage with the verbs that replay and garbage tests share.

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {

using cbor::Value;

struct ReplayTest : testing::Test {
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

}  // namespace pawl::worlds
