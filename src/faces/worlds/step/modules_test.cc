// The sample worlds with their modules built from source, in C++ and in Rust, on the WASM host.
// Skipped where there is no compiler (scripts/setup test) or no engine (scripts/setup-wasm).

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

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

// Built once per run; empty when there is no compiler. A module that does not compile fails the
// test.
Bytes built(const std::string& source) {
  static std::map<std::string, Bytes> all;
  auto [it, fresh] = all.emplace(source, Bytes());
  if (!fresh) return it->second;
  const std::string out = testing::TempDir() + "pawl-" + source + "-" + std::to_string(getpid());
  const int status = std::system(
      ("sdk/wasm/build examples/worlds/" + source + " -o " + out + ".wasm 2> " + out + ".log")
          .c_str());
  const Bytes said = slurp(out + ".log");
  if (status == 0)
    it->second = slurp(out + ".wasm");
  else if (said.find("apt install") == Bytes::npos)
    ADD_FAILURE() << source << ": " << said;
  for (const char* end : {".wasm", ".log"})
    std::filesystem::remove(out + end);
  return it->second;
}

struct Sample : testing::Test {
  void SetUp() override {
    if (host.version().empty()) GTEST_SKIP() << "no WASM engine: run scripts/setup-wasm";
    if (built("order" + language).empty())
      GTEST_SKIP() << "no compiler for *" << language << " to WASM: run scripts/setup test";
  }
  void make(const std::string& air, const std::string& module, const std::string& source) {
    const Bytes wasm = source.ends_with(".wasm") ? slurp("tests/vectors/worlds/modules/" + source)
                                                 : built(source + language);
    const std::string body = R"({"world_id":"w","air":)" +
                             json::print(vector_file("worlds/" + air + ".air.json")) +
                             R"(,"modules":{")" + module + R"(":")" + base64(wasm) + "\"}}";
    auto r = stage().http("POST", "/v1/worlds", body);
    ASSERT_EQ(r.status, 201) << r.body;
  }
  Stage& stage() {
    if (!stage_) stage_ = std::make_unique<Stage>(&host);
    return *stage_;
  }
  void send(const std::string& schema, const std::string& value) {
    auto r = stage().http("POST", "/v1/worlds/w/events",
                          R"({"schema":")" + schema + R"(","value":)" + value + "}");
    ASSERT_EQ(r.status, 202) << r.body;
  }
  std::string state(const std::string& workflow, const std::string& id = {}) {
    const std::string key =
        id.empty() ? "" : "?key_b64=" + wire::percent_encode(base64(key_of(id)));
    auto r = json::parse(stage().http("GET", "/v1/worlds/w/state/" + workflow + key).body);
    return json::print(*r->find("state"));
  }
  void settle(const std::string& payload, const std::string& status = "ok") {
    auto r = stage().http("POST", "/v1/worlds/w/receipts",
                          R"({"intent_hash":")" + hash_text(stage().pending("w").back().intent) +
                              R"(","status":")" + status + R"(","payload":)" + payload + "}");
    ASSERT_EQ(r.status, 202) << r.body;
  }
  std::string language = ".cc";
  wasm::Host host{wasm::HostOptions{wasm::usual_libraries(), {}}};
  std::unique_ptr<Stage> stage_;
};

// The same tests for each language.
struct Module : Sample, testing::WithParamInterface<const char*> {
  Module() { language = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Languages, Module, testing::Values(".cc", ".rs"),
                         [](const auto& p) { return std::string(p.param + 1); });

// case 203, case 204, case 206
TEST_P(Module, an_order_is_charged_retried_with_backoff_and_closed) {
  make("order", "shop/order_wasm@1", "order");
  const std::string w = "shop/order.step@1";
  send("shop/OrderCreated@1", R"({"order_id":"o1","amount_cents":500})");
  EXPECT_EQ(
      state(w, "o1"),
      R"({"pc":{"$tag":"AwaitingCharge"},"attempts":1,"last_status":null,"amount_cents":500})");
  PendingIntent charge = stage().pending("w")[0];
  EXPECT_EQ(charge.requested_key, "charge:o1:1");
  EXPECT_EQ(charge.issuer_ref, "payments");
  settle(R"({"code":7})", "error");
  EXPECT_NE(state(w, "o1").find("Backoff"), std::string::npos);
  settle(R"({"delivered_at_ns":1})");
  EXPECT_NE(state(w, "o1").find(R"("attempts":2)"), std::string::npos);
  settle(R"({"code":0,"charge_id":"c"})");
  EXPECT_NE(state(w, "o1").find("Done"), std::string::npos);
  EXPECT_EQ(stage().kinds("w").back(), "domain_event");
  send("shop/OrderCreated@1",
       R"({"order_id":"o1","amount_cents":900})");  // a second order under the same id is ignored
  EXPECT_NE(state(w, "o1").find("500"), std::string::npos);
  send("shop/OrderCancelled@1", R"({"order_id":"o1"})");
  EXPECT_EQ(state(w, "o1"), "null");
  send("shop/OrderCreated@1", R"({"order_id":"o2","amount_cents":0})");
  EXPECT_NE(state(w, "o2").find("Done"), std::string::npos);
  EXPECT_EQ(stage().verify_all().difference, "");
}

TEST_P(Module, an_order_fails_after_three_attempts_or_a_fault) {
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

TEST_P(Module, notes_keep_revisions_unite_tags_and_are_archived) {
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

TEST_P(Module, one_event_reaches_three_workflows_and_emitted_ones_come_after) {
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

// The parts of a world that its module decides: cells, open intents and records.
std::string made_of(Stage& stage, const std::string& workflow) {
  std::string all;
  auto cells =
      json::parse(stage.http("GET", "/v1/worlds/w/state/" + workflow + "/cells?limit=1000").body);
  for (const json::Value& cell : cells->find("cells")->array())
    all += json::print(cell) + " " +
           *stage.cell("w", workflow, *unbase64(cell.string_or("key_b64"))).state + "\n";
  for (const PendingIntent& p : stage.pending("w"))
    all += p.identity.effect + " " + p.issuer_ref.value_or("-") + " " + hex(p.params) + " " +
           hex(p.requested_key) + "\n";
  for (const std::string& kind : stage.kinds("w"))
    all += kind + " ";
  return all;
}

TEST_F(Sample, modules_in_cpp_and_rust_leave_the_same_world) {
  if (built("order.rs").empty())
    GTEST_SKIP() << "no compiler for *.rs to WASM: run scripts/setup test";
  std::map<std::string, std::string> worlds;
  for (const char* each : {".cc", ".rs"}) {
    language = each;
    stage_.reset();
    make("order", "shop/order_wasm@1", "order");
    std::mt19937 dice(7);
    auto any = [&](std::vector<std::string> of) { return of[dice() % of.size()]; };
    for (int i = 0; i < 400; ++i) {
      const std::string order =
          R"({"order_id":")" +
          any({"", "a", "b", "an order whose id is longer than others", "\u00e9\u6f22"}) + "\"";
      const std::string what = any({"create", "cancel", "settle", "settle", "settle"});
      if (what == "create")
        send("shop/OrderCreated@1", order + R"(,"amount_cents":)" +
                                        any({"0", "23", "24", "65536", "18446744073709551615"}) +
                                        "}");
      if (what == "cancel") send("shop/OrderCancelled@1", order + "}");
      const bool timer = !stage().pending("w").empty() &&
                         stage().pending("w").back().identity.effect == "sys/timer.set@1";
      if (what == "settle" && timer)
        settle(R"({"delivered_at_ns":1})");
      else if (what == "settle" && !stage().pending("w").empty())
        settle(any({R"({"code":0,"charge_id":"c"})", R"({"code":0})", R"({"code":-7})",
                    R"({"code":3})", "null"}),
               any({"ok", "error", "timeout"}));
      if (i % 10 == 0) worlds[each] += made_of(stage(), "shop/order.step@1") + "\n";
    }
    EXPECT_EQ(stage().verify_all().difference, "");
  }
  for (const char* seen : {"Done", "Failed", "Backoff", "shop/charge@1", "domain_event"})
    EXPECT_NE(worlds[".cc"].find(seen), std::string::npos) << seen;
  EXPECT_EQ(worlds[".cc"], worlds[".rs"]);
}

TEST(RustHelper, passes_its_own_tests) {
  if (std::system("command -v rustc > /dev/null") != 0)
    GTEST_SKIP() << "no rustc: run scripts/setup test";
  const std::string out = testing::TempDir() + "pawl-world-rs-" + std::to_string(getpid());
  EXPECT_EQ(std::system(("rustc --edition 2021 --test sdk/wasm/pawl_world.rs -o " + out + " && " +
                         out + " -q")
                            .c_str()),
            0);
  std::filesystem::remove(out);
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
  // This turn is not one of the service, which would wait for the compiler.
  wasm_stage.program->worlds.runtime().modules.warm(script);
  RecordedJournal recorded;
  recorded.from = 2;
  const json::Array& journal = v.find("journal")->array();
  for (size_t i = 2; i < journal.size(); ++i)
    recorded.payloads.push_back(*unhex(journal[i].string_or("payload_hex")));
  auto ran = wasm_stage.lab([&](Turn& turn) -> Result<Bytes> {
    WorldSession session(turn, {"t", "w"}, wasm_stage.program->worlds.runtime());
    TRY_OK(session.turn.open());
    session.turn.recorded = &recorded;
    TRY_OK(session.replay.run(journal.size()));
    TRY_OK(session.turn.close());
    return session.turn.loaded().hash;
  });
  ASSERT_TRUE(ran) << ran.error().message;
  const Instance a = wasm_stage.cell("w", "w/main@1", *unhex("d9d9f76161"));
  EXPECT_EQ(*a.state, "A0;Receipt;");
  EXPECT_EQ(a.module_version,
            "sha256:251a7d2b75cbb51b7f61db2d81ccbfb6257d303f36127a0c74b7413c0b9488f8");
}

TEST_F(Sample, a_module_whose_bytes_are_missing_fails_its_step) {
  make("notes", "notes/wasm@1", "notes");
  send("notes/Created@1", R"({"note_id":"n","title":"t","body":"b"})");
  Stage other(&host);  // the same host, another store
  AuthorOptions options;
  options.artifacts["notes/wasm@1"] = hash_text(sha256(built("notes.cc")));
  ASSERT_TRUE(other.create("w", vector_file("worlds/notes.air.json"), options));
  auto r =
      other.http("POST", "/v1/worlds/w/events",
                 R"({"schema":"notes/Created@1","value":{"note_id":"n","title":"t","body":"b"}})");
  ASSERT_EQ(r.status, 202) << r.body;
  EXPECT_NE(other.cell("w", "notes/note@1", key_of("n")).failure.find("missing_cas_dependency"),
            std::string::npos);
  EXPECT_EQ(other.verify_all().difference, "");
}

TEST_F(Sample, a_module_that_loops_fails_its_step_and_the_world_goes_on) {
  json::Value air = vector_file("worlds/notes.air.json");
  const Bytes loop = slurp("tests/vectors/worlds/modules/loop.wasm");
  auto r = stage().http("POST", "/v1/worlds",
                        R"({"world_id":"w","limits":{"fuel":100000},"air":)" + json::print(air) +
                            R"(,"modules":{"notes/wasm@1":")" + base64(loop) + "\"}}");
  ASSERT_EQ(r.status, 201) << r.body;
  send("notes/Created@1", R"({"note_id":"n","title":"t","body":"b"})");
  EXPECT_EQ(stage().cell("w", "notes/note@1", key_of("n")).status, InstanceStatus::failed);
  EXPECT_NE(
      stage().cell("w", "notes/note@1", key_of("n")).failure.find("used up its fuel of 100000"),
      std::string::npos);
  EXPECT_EQ(stage().verify_all().difference, "");
}

}  // namespace
}  // namespace pawl::worlds
