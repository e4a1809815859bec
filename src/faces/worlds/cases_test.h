#pragma once
// A world for the cases of the list of behaviours: tells its cells what to do and reads the
// outcome.

#include <gtest/gtest.h>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {

using cbor::Value;
using Words = std::vector<std::string>;

// Appends each event, as hex, to the log in the state. An event with an output is answered with it.
class Echo final : public NativeModule {
 public:
  Result<Bytes> step(std::string_view entrypoint, BytesView input) const override {
    TRY(StepInput in, decode_input(input));
    TRY(Value event, cbor::decode(in.event.value));
    const Value* inner = event.find("$value");
    const Value* out = (inner ? *inner : event).find("out");
    if (out && out->is_bytes()) return Scripted().step(entrypoint, input);
    cbor::Array log;
    if (in.state) {
      TRY(Value state, cbor::decode(*in.state));
      log = state.find("log")->array();
    }
    log.push_back(Value(hex(in.event.value)));
    return encode_output(
        {cbor::encode(cbor::Map{{"log", Value(std::move(log))}}), {}, {}, {}, false});
  }
};

struct CaseTest : testing::Test {
  ~CaseTest() override {
    if (rerun) {
      EXPECT_EQ(stage.verify_all().difference, "");
    }
  }
  void make(const json::Value& air = test_air()) {
    auto made = stage.create("w", air);
    ASSERT_TRUE(made) << made.error().message;
  }
  Result<json::Value> go(const std::string& id, const std::optional<StepOutput>& out = {},
                         const std::string& schema = "t/Do@1") {
    return stage.send("w", schema, tell(id, out));
  }
  Words log(const std::string& id, const std::string& workflow = "t/main@1") {
    return stage.log("w", workflow, key_of(id));
  }
  Instance main(const std::string& id) { return stage.cell("w", "t/main@1", key_of(id)); }
  Value last(std::string_view kind) {
    Value found;
    for (const Value& r : stage.records("w"))
      if (record_kind(r) == kind) found = r;
    return found;
  }
  Value echoed(const std::string& id) { return *cbor::decode(*unhex(log(id).back())); }
  wire::Response fork(const std::string& id) {
    return stage.http("POST", "/v1/worlds/w/fork", R"({"world_id":")" + id + "\"}");
  }
  EmittedEffect charge(uint64_t amount) {
    return {"t/charge@1", cbor::encode(cbor::Map{{"amount", amount}}), "payments", Bytes("k")};
  }
  const Value fired = cbor::Map{{"delivered_at_ns", 9}};
  // Code of a test that runs inside a turn cannot be run again.
  Result<Bytes> lab(std::function<Result<Bytes>(Turn&)> experiment) {
    rerun = false;
    return stage.lab(std::move(experiment));
  }
  Stage stage;
  bool rerun = true;
};
using Case = CaseTest;

}  // namespace pawl::worlds
