// Modules are checked when they come: with a new world, with a proposal, or as blobs.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"
#include "wasm/test_module.h"

namespace pawl::worlds {
namespace {

using wasm::echo;
using wasm::hex_bytes;
using wasm::step_and_trap;
using wasm::TestModule;

struct Upload : testing::Test {
  Stage stage{nullptr, false};  // no module is native, and none is run
  wire::Response create(const std::string& id, const Bytes& wasm) {
    return stage.http("POST", "/v1/worlds",
                      R"({"world_id":")" + id + R"(","air":)" + json::print(test_air()) +
                          R"(,"modules":{"t/scripted@1":")" + base64(wasm) + R"("}})");
  }
};

TEST_F(Upload, a_world_gets_no_module_that_its_workflows_cannot_call) {
  TestModule importing = echo();
  importing.sections[2] = hex_bytes("0103656e76036e6f770002");
  struct Case {
    Bytes wasm;
    const char* word;
  };
  for (const Case& c : {Case{"plain text",
                             "module 't/scripted@1': wasm runtime error: the bytes "
                             "are not a WASM module"},
                        Case{importing.bytes(), "imports 'env.now'"},
                        Case{echo().bytes(), "does not export the function 'trap'"}}) {
    const wire::Response refused = create("w", c.wasm);
    EXPECT_EQ(refused.status, 422) << refused.body;
    EXPECT_NE(refused.body.find(c.word), std::string::npos) << refused.body;
    EXPECT_EQ(stage.http("GET", "/v1/worlds/w").status, 404);
  }
  const wire::Response made = create("w", step_and_trap());
  EXPECT_EQ(made.status, 201) << made.body;
}

TEST_F(Upload, a_proposal_gets_no_module_that_its_workflows_cannot_call) {
  ASSERT_EQ(create("w", step_and_trap()).status, 201);
  const Bytes without = echo().bytes();
  ASSERT_LT(stage.http("PUT", "/v1/cas/blobs/" + hash_text(sha256(without)), without).status, 300);
  const std::string base(
      json::parse(stage.http("GET", "/v1/worlds/w/manifest").body)->string_or("manifest_hash"));
  auto propose = [&](const std::string& hash) {
    return stage.http("POST", "/v1/worlds/w/governance/propose",
                      R"({"patch":{"base_manifest_hash":")" + base +
                          R"(","patches":[{"add_def":{"kind":"defmodule","node":{"$kind":
        "defmodule","name":"t/scripted@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module",
        "hash":")" + hash +
                          R"("}}}}}]}})");
  };
  const wire::Response refused = propose(hash_text(sha256(without)));
  EXPECT_EQ(refused.status, 422) << refused.body;
  EXPECT_NE(refused.body.find("does not export the function 'trap'"), std::string::npos)
      << refused.body;
  const json::Value proposals = *json::parse(stage.http("GET", "/v1/worlds/w/governance").body);
  EXPECT_TRUE(proposals.find("proposals")->array().empty());
  EXPECT_EQ(propose(hash_text(sha256(step_and_trap()))).status, 200);
}

TEST_F(Upload, a_blob_that_is_a_module_with_imports_is_not_stored) {
  TestModule importing = echo();
  importing.sections[2] = hex_bytes("0103656e76036e6f770002");
  const wire::Response refused = stage.http("POST", "/v1/cas/blobs", importing.bytes());
  EXPECT_EQ(refused.status, 422) << refused.body;
  EXPECT_EQ(stage.http("POST", "/v1/cas/blobs", "any other bytes").status, 201);
}

}  // namespace
}  // namespace pawl::worlds
