#pragma once
// A world "w" with the definitions of test_air(). When the test ends, its journal is verified.

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {

using cbor::Value;
using Words = std::vector<std::string>;

struct WorldTest : testing::Test {
  WorldTest() {
    auto made = stage.create("w", test_air());
    if (!made) ADD_FAILURE() << made.error().message;
  }
  ~WorldTest() override {
    const Verified v = stage.verify_all();
    EXPECT_EQ(v.difference, "");
    EXPECT_GT(v.rerun, 0u);
  }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {},
                         const std::string& schema = "t/Do@1") {
    return stage.send("w", schema, tell(id, out));
  }
  Words log(const std::string& id, const std::string& workflow = "t/main@1") {
    return stage.log("w", workflow, key_of(id));
  }
  Instance main(const std::string& id) { return stage.cell("w", "t/main@1", key_of(id)); }
  cbor::Value last(std::string_view kind) {
    cbor::Value found;
    for (const Value& r : stage.records("w"))
      if (record_kind(r) == kind) found = r;
    return found;
  }
  Stage stage;
};

}  // namespace pawl::worlds
