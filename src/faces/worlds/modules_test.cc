// The sample worlds with their modules built from source, on the WASM host. Skipped where there is no
// clang or no engine: run scripts/setup-wasm.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "faces/worlds/stage_test.h"
#include "wasm/host.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

Bytes slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Built once a run.
Bytes built(const std::string& name) {
  static std::map<std::string, Bytes> all;
  auto [it, fresh] = all.emplace(name, Bytes());
  if (!fresh) return it->second;
  const std::string out = testing::TempDir() + "pawl-" + name + "-" + std::to_string(getpid()) + ".wasm";
  if (std::system(("sdk/wasm/build examples/worlds/" + name + ".cc -o " + out + " 2>/dev/null").c_str()) == 0) it->second = slurp(out);
  std::filesystem::remove(out);
  return it->second;
}

struct Sample : testing::Test {
  void SetUp() override {
    if (host.version().empty()) GTEST_SKIP() << "no WASM engine: run scripts/setup-wasm";
    if (built("order").empty()) GTEST_SKIP() << "no clang with the wasm32 target";
  }
  void make(const std::string& air, const std::string& module, const std::string& source) {
    const Bytes wasm = source.ends_with(".wasm") ? slurp("tests/vectors/worlds/modules/" + source) : built(source);
    const std::string body = R"({"world_id":"w","air":)" + json::print(vector_file("worlds/" + air + ".air.json")) + R"(,"modules":{")" + module + R"(":")" + base64(wasm) + "\"}}";
    auto r = stage().http("POST", "/v1/worlds", body);
    ASSERT_EQ(r.status, 201) << r.body;
  }
  Stage& stage() {
    if (!stage_) stage_ = std::make_unique<Stage>(&host);
    return *stage_;
  }
  void send(const std::string& schema, const std::string& value) {
    auto r = stage().http("POST", "/v1/worlds/w/events", R"({"schema":")" + schema + R"(","value":)" + value + "}");
    ASSERT_EQ(r.status, 202) << r.body;
  }
  std::string state(const std::string& workflow, const std::string& id = {}) {
    const std::string key = id.empty() ? "" : "?key_b64=" + wire::percent_encode(base64(key_of(id)));
    auto r = json::parse(stage().http("GET", "/v1/worlds/w/state/" + workflow + key).body);
    return json::print(*r->find("state"));
  }
  void settle(const std::string& payload, const std::string& status = "ok") {
    auto r = stage().http("POST", "/v1/worlds/w/receipts", R"({"intent_hash":")" + hash_text(stage().pending("w").back().intent) + R"(","status":")" + status + R"(","payload":)" + payload + "}");
    ASSERT_EQ(r.status, 202) << r.body;
  }
  wasm::Host host{wasm::HostOptions{wasm::usual_libraries(), {}}};
  std::unique_ptr<Stage> stage_;
};

// case 203, case 204, case 206
TEST_F(Sample, an_order_is_charged_retried_with_backoff_and_closed) {
  make("order", "shop/order_wasm@1", "order");
  const std::string w = "shop/order.step@1";
  send("shop/OrderCreated@1", R"({"order_id":"o1","amount_cents":500})");
  EXPECT_EQ(state(w, "o1"), R"({"pc":{"$tag":"AwaitingCharge"},"attempts":1,"last_status":null,"amount_cents":500})");
  Pending charge = stage().pending("w")[0];
  EXPECT_EQ(charge.requested_key, "charge:o1:1");
  EXPECT_EQ(charge.issuer_ref, "payments");
  settle(R"({"code":7})", "error");
  EXPECT_NE(state(w, "o1").find("Backoff"), std::string::npos);
  settle(R"({"delivered_at_ns":1})");
  EXPECT_NE(state(w, "o1").find(R"("attempts":2)"), std::string::npos);
  settle(R"({"code":0,"charge_id":"c"})");
  EXPECT_NE(state(w, "o1").find("Done"), std::string::npos);
  EXPECT_EQ(stage().kinds("w").back(), "domain_event");
  send("shop/OrderCreated@1", R"({"order_id":"o1","amount_cents":900})");  // the fence
  EXPECT_NE(state(w, "o1").find("500"), std::string::npos);
  send("shop/OrderCancelled@1", R"({"order_id":"o1"})");
  EXPECT_EQ(state(w, "o1"), "null");
  send("shop/OrderCreated@1", R"({"order_id":"o2","amount_cents":0})");
  EXPECT_NE(state(w, "o2").find("Done"), std::string::npos);
  EXPECT_EQ(stage().verify_all().difference, "");
}

TEST_F(Sample, an_order_fails_after_three_attempts_or_a_fault) {
  make("order", "shop/order_wasm@1", "order");
  const std::string w = "shop/order.step@1";
  send("shop/OrderCreated@1", R"({"order_id":"o1","amount_cents":5})");
  for (int i = 0; i < 2; ++i) {
    settle("null", "timeout");
    settle(R"({"delivered_at_ns":1})");
  }
  settle("null", "error");
  EXPECT_NE(state(w, "o1").find("Failed"), std::string::npos);
  send("shop/OrderCreated@1", R"({"order_id":"o2","amount_cents":5})");
  settle(R"({"nonsense":true})");
  EXPECT_NE(state(w, "o2").find("Failed"), std::string::npos);
  EXPECT_EQ(stage().verify_all().difference, "");
}

TEST_F(Sample, notes_keep_revisions_unite_tags_and_are_archived) {
  make("notes", "notes/wasm@1", "notes");
  const std::string w = "notes/note@1";
  send("notes/Created@1", R"({"note_id":"n","title":"t","body":"b"})");
  send("notes/Created@1", R"({"note_id":"n","title":"x","body":"y"})");
  send("notes/Edited@1", R"({"note_id":"n","body":"b2","expect_revision":7})");
  send("notes/Edited@1", R"({"note_id":"n","body":"b3","expect_revision":1})");
  send("notes/Tagged@1", R"({"note_id":"n","tags":["z","a","a"]})");
  send("notes/Tagged@1", R"({"note_id":"n","tags":["m","a"]})");
  EXPECT_EQ(state(w, "n"), R"({"body":"b3","tags":["a","m","z"],"title":"t","revision":2})");
  send("notes/Archived@1", R"({"note_id":"n"})");
  EXPECT_EQ(state(w, "n"), "null");
}

// case 141
TEST_F(Sample, one_event_fans_out_in_manifest_order_and_emitted_ones_come_after) {
  make("fanout", "fan/wasm@1", "fanout");
  send("fan/Placed@1", R"({"order":"o1","sku":"s","qty":8})");
  EXPECT_EQ(state("fan/audit@1"), R"({"last":"o1","seen":1})");
  EXPECT_EQ(state("fan/stock@1", "s"), R"({"on_hand":2})");
  EXPECT_EQ(state("fan/mail@1"), R"({"open":2,"sent":0})");
  const auto pending = stage().pending("w");
  ASSERT_EQ(pending.size(), 2u);
  EXPECT_EQ(cbor::decode(pending[0].params)->text_or("url"), "https://mail.example/placed");
  EXPECT_EQ(cbor::decode(pending[1].params)->text_or("url"), "https://mail.example/low");
  auto r = stage().http("POST", "/v1/worlds/w/fork", R"({"world_id":"f"})");
  ASSERT_EQ(r.status, 201) << r.body;
  EXPECT_EQ(stage().dump("f"), stage().dump("w"));
}

// case 89
TEST_F(Sample, the_world_of_the_vectors_runs_on_its_own_module) {
  const json::Value v = vector_file("world_basic.json");
  const Bytes script = slurp("tests/vectors/worlds/modules/script.wasm");
  Stage wasm_stage(&host, false);
  AuthorOptions options;
  options.artifacts["w/script_wasm@1"] = hash_text(sha256(script));
  ASSERT_TRUE(wasm_stage.say("put_blob", script));
  ASSERT_TRUE(wasm_stage.create("w", *v.find("air"), options, false));
  Recorded recorded;
  recorded.from = 2;
  const json::Array& journal = v.find("journal")->array();
  for (size_t i = 2; i < journal.size(); ++i) recorded.payloads.push_back(*unhex(journal[i].string_or("payload_hex")));
  auto ran = wasm_stage.lab([&](Turn& turn) -> Result<Bytes> {
    Engine engine(turn, {"t", "w"}, wasm_stage.program->worlds.runtime());
    TRY_OK(engine.open());
    engine.retrace(&recorded);
    TRY_OK(engine.replay(journal.size()));
    TRY_OK(engine.close());
    return engine.loaded().hash;
  });
  ASSERT_TRUE(ran) << ran.error().message;
  const Instance a = wasm_stage.cell("w", "w/main@1", *unhex("d9d9f76161"));
  EXPECT_EQ(*a.state, "A0;Receipt;");
  EXPECT_EQ(a.module_version, "sha256:251a7d2b75cbb51b7f61db2d81ccbfb6257d303f36127a0c74b7413c0b9488f8");
}

TEST_F(Sample, a_module_whose_bytes_are_missing_fails_its_step_even_when_it_was_compiled_before) {
  make("notes", "notes/wasm@1", "notes");
  send("notes/Created@1", R"({"note_id":"n","title":"t","body":"b"})");
  Stage other(&host);  // the same host, another store
  AuthorOptions options;
  options.artifacts["notes/wasm@1"] = hash_text(sha256(built("notes")));
  ASSERT_TRUE(other.create("w", vector_file("worlds/notes.air.json"), options));
  auto r = other.http("POST", "/v1/worlds/w/events", R"({"schema":"notes/Created@1","value":{"note_id":"n","title":"t","body":"b"}})");
  ASSERT_EQ(r.status, 202) << r.body;
  EXPECT_NE(other.cell("w", "notes/note@1", key_of("n")).failure.find("missing_cas_dependency"), std::string::npos);
  EXPECT_EQ(other.verify_all().difference, "");
}

TEST_F(Sample, a_module_that_loops_fails_its_step_and_the_world_goes_on) {
  json::Value air = vector_file("worlds/notes.air.json");
  const Bytes loop = slurp("tests/vectors/worlds/modules/loop.wasm");
  auto r = stage().http("POST", "/v1/worlds", R"({"world_id":"w","limits":{"fuel":100000},"air":)" + json::print(air) + R"(,"modules":{"notes/wasm@1":")" + base64(loop) + "\"}}");
  ASSERT_EQ(r.status, 201) << r.body;
  send("notes/Created@1", R"({"note_id":"n","title":"t","body":"b"})");
  EXPECT_EQ(stage().cell("w", "notes/note@1", key_of("n")).status, Status::failed);
  EXPECT_NE(stage().cell("w", "notes/note@1", key_of("n")).failure.find("used up its fuel of 100000"), std::string::npos);
  EXPECT_EQ(stage().verify_all().difference, "");
}

}  // namespace
}  // namespace pawl::worlds
