// The executors of this process, on a kernel that refuses receipts and with a clock that the test
// moves.

#include "faces/worlds/executors.h"

#include "faces/worlds/stage_test.h"
#include "net/http_client.h"

namespace pawl::worlds {
namespace {

// Forwards to the stage. While `refusals` is not 0, receipts are refused as a busy world does it.
struct BusyKernel final : KernelAccess {
  explicit BusyKernel(Stage& s) : stage(s) {}
  void submit(Input input, Reply reply) override {
    if (input.verb != "receipt") return stage.submit(std::move(input), std::move(reply));
    ++receipts;
    if (refusals == 0) return stage.submit(std::move(input), std::move(reply));
    --refusals;
    reply(fail(code, "busy", "the world works off its deliveries: retry later"));
  }
  Result<Cell> read(BytesView key) const override { return stage.read(key); }
  ReadSnapshot snapshot() const override { return stage.snapshot(); }
  Seq durable() const override { return stage.durable(); }
  Result<void> frames(Seq from,
                      const std::function<Result<bool>(const Frame&)>& visit) const override {
    return stage.frames(from, visit);
  }
  uint64_t watch(Watcher watcher) override { return stage.watch(std::move(watcher)); }
  void unwatch(uint64_t id) override { stage.unwatch(id); }
  Time now() const override { return stage.now(); }

  Stage& stage;
  Code code = Code::exhausted;
  int refusals = 0;
  int receipts = 0;  // that came here, refused or not
};

// Loops whose steps run when the test says so, on a clock of the test.
struct HandClock final : Background {
  struct Loop final : BackgroundLoop {
    explicit Loop(Step s) : step(std::move(s)) {}
    void wake() override { due = 0; }
    Step step;
    Time due = 0;
  };
  struct Held final : BackgroundLoop {
    explicit Held(std::shared_ptr<Loop> l) : loop(std::move(l)) {}
    void wake() override { loop->wake(); }
    std::shared_ptr<Loop> loop;
  };
  Time steady_now() const override { return now; }
  std::unique_ptr<BackgroundLoop> loop(std::string, Step step) override {
    only = std::make_shared<Loop>(std::move(step));
    return std::make_unique<Held>(only);
  }
  std::unique_ptr<BackgroundPool> pool(std::string, size_t, size_t) override { return nullptr; }
  // Moves the clock and runs the loop as often as it is due.
  void advance(Time by) {
    now += by;
    while (only->due <= now) {
      only->due = BackgroundLoop::kNever;  // a wake() inside the step is kept
      const Time next = only->step();
      only->due = std::min(only->due, next);
    }
  }
  Time now = 100 * kSecond;
  std::shared_ptr<Loop> only;
};

struct Settling : testing::Test {
  Stage stage;
  BusyKernel busy{stage};
  HandClock hand;
  Service service{busy, stage, stage.program->worlds, stage.background, {}};
  Executors executors{service, hand, nullptr};

  void TearDown() override { service.stop(); }
  // One request to a host that is not allowed: its receipt is made at once.
  void send_request() {
    ASSERT_TRUE(stage.create("w", test_air()));
    EmittedEffect request{
        "sys/http.request@1",
        cbor::encode(cbor::Map{
            {"url", "http://x/"}, {"method", "GET"}, {"headers", cbor::Value(cbor::Map{})}}),
        {},
        {}};
    ASSERT_TRUE(stage.send("w", "t/Do@1", tell("a", output({"asked"}, {request}))));
    ASSERT_EQ(stage.open.size(), 1u);
    const EffectPtr effect = stage.open.begin()->second;
    ASSERT_EQ(effect->to, To::member);
    hand.advance(0);
    executors.opened(effect);
  }
};

TEST_F(Settling, a_receipt_that_a_busy_world_refuses_is_tried_after_20_ms_and_then_twice_as_late) {
  busy.refusals = 4;
  send_request();
  ASSERT_EQ(busy.receipts, 1);
  int tries = 1;
  for (Time delay : {20, 40, 80, 160}) {
    hand.advance(delay * kMillisecond - 1);
    EXPECT_EQ(busy.receipts, tries) << "tried before " << delay << " ms";
    hand.advance(1);
    EXPECT_EQ(busy.receipts, ++tries) << "not tried after " << delay << " ms";
  }
  // The fifth try was taken.
  EXPECT_TRUE(stage.open.empty());
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")).back(), "Receipt");
  hand.advance(3600 * kSecond);
  EXPECT_EQ(busy.receipts, 5);
}

TEST_F(Settling, the_delay_of_a_receipt_stops_growing_at_20_seconds) {
  busy.refusals = 40;
  send_request();
  for (int i = 0; i < 12; ++i)
    hand.advance(21 * kSecond);
  const int before = busy.receipts;
  for (int i = 1; i <= 5; ++i) {
    hand.advance(21 * kSecond);
    EXPECT_EQ(busy.receipts, before + i);
  }
}

TEST_F(Settling, a_receipt_that_is_refused_for_another_reason_is_not_repeated) {
  busy.refusals = 1;
  busy.code = Code::not_found;
  send_request();
  hand.advance(3600 * kSecond);
  EXPECT_EQ(busy.receipts, 1);
}

// Answers every request with the same fault.
struct Failing final : HttpClient {
  void send(HttpCall, std::move_only_function<void(Result<HttpReply>)> done) override {
    done(fail(error));
  }
  Error error{Code::unavailable, std::string(net::kUnreachable.name), "nothing listens"};
};

struct Faults : testing::Test {
  Stage stage;
  HandClock hand;
  Failing client;
  Service service{stage, stage, stage.program->worlds, stage.background,
                  FaceOptions{.http_allow = {"example.com"}}};
  Executors executors{service, hand, &client};
  int requests = 0;

  Faults() { CHECK(stage.create("w", test_air())); }
  void TearDown() override {
    service.stop();
    EXPECT_EQ(stage.verify_all().difference, "");
  }
  // Sends one request and returns its receipt's record.
  cbor::Value receipt_of_request(cbor::Map params) {
    EmittedEffect request{
        std::string(kHttpEffect), cbor::encode(cbor::Value(std::move(params))), {}, {}};
    const std::string id = "c" + std::to_string(requests++);
    EXPECT_TRUE(stage.send("w", "t/Do@1", tell(id, output({"asked"}, {request}))));
    const auto open = stage.open;
    EXPECT_EQ(open.size(), 1u);
    for (const auto& [name, effect] : open)
      executors.opened(effect);
    EXPECT_EQ(stage.log("w", "t/main@1", key_of(id)),
              (std::vector<std::string>{"asked", "Receipt"}));
    return stage.records("w").back();
  }
};

TEST_F(Faults, a_request_without_an_answer_has_a_receipt_of_its_schema) {
  const cbor::Value none{cbor::Map{}};
  const std::string hash = hash_text(sha256("nothing"));
  struct Case {
    cbor::Map params;
    Error error;
    const char* status;
    int64_t code;
    const char* reason;
  };
  const Error unreachable = client.error;
  const Error late{Code::unavailable, std::string(net::kTimedOut.name), "no answer within 1 s"};
  const Error certificate{Code::denied, std::string(net::kBadCertificate.name), "not trusted"};
  const Error internal{Code::invalid, std::string(net::kBadMethod.name), "refused by the client"};
  auto get = [&](const char* url) {
    return cbor::Map{{"method", "GET"}, {"url", url}, {"headers", none}};
  };
  const char* here = "https://example.com/";
  for (const Case& c : {
           Case{get(here), unreachable, "error", 599, "UNREACHABLE"},
           Case{get(here), certificate, "error", 599, "BAD_CERTIFICATE"},
           Case{get(here), late, "timeout", 598, "TIMEOUT"},
           Case{get(here), internal, "error", 405, "BAD_METHOD"},
           Case{get("https://elsewhere.com/"), unreachable, "error", 400, "http.denied"},
           Case{get("file:///etc/passwd"), unreachable, "error", 400, "http.denied"},
           Case{{{"method", "get it"}, {"url", here}, {"headers", none}},
                unreachable,
                "error",
                405,
                "http.method"},
           Case{{{"method", "GET"}, {"url", here}, {"headers", cbor::Map{{"Host", "x"}}}},
                unreachable,
                "error",
                400,
                "http.invalid"},
           Case{{{"method", "PUT"}, {"url", here}, {"headers", none}, {"body_ref", hash}},
                unreachable,
                "error",
                400,
                "store.error"},
       }) {
    client.error = c.error;
    const cbor::Value record = receipt_of_request(c.params);
    EXPECT_EQ(record.text_or("status"), c.status) << c.reason;
    const Bytes payload = record.find("payload_cbor")->bytes();
    const auto& schemas = stage.program->worlds.builtins().schemas();
    auto fits = normalize_bytes(payload, std::string("sys/HttpRequestReceipt@1"), schemas);
    ASSERT_TRUE(fits) << c.reason << ": " << fits.error().message;
    const cbor::Value value = *cbor::decode(payload);
    EXPECT_EQ(value.find("status")->as_uint64(), static_cast<uint64_t>(c.code)) << c.reason;
    EXPECT_EQ(value.find("headers")->text_or("pawl-error"), c.reason);
    EXPECT_NE(value.find("headers")->text_or("pawl-error-message"), "");
  }
}

TEST_F(Faults, a_manifest_gives_requests_to_executors_outside) {
  json::Value air = test_air();
  air.array().back().object().set("external_effects", *json::parse(R"(["sys/http.request@1"])"));
  ASSERT_TRUE(stage.create("v", air));
  const EmittedEffect request{
      std::string(kHttpEffect),
      cbor::encode(cbor::Map{
          {"method", "GET"}, {"url", "http://10.0.0.1/"}, {"headers", cbor::Value(cbor::Map{})}}),
      {},
      {}};
  ASSERT_TRUE(stage.send("v", "t/Do@1", tell("a", output({"asked"}, {request}))));
  const json::Value polled = *json::parse(
      stage.http("POST", "/v1/effects/poll", R"({"effects":["sys/http.request@1"]})").body);
  ASSERT_EQ(polled.find("work")->array().size(), 1u);
  const json::Value& work = polled.find("work")->array()[0];
  EXPECT_EQ(work.find("params")->string_or("url"), "http://10.0.0.1/");
  auto settled = stage.http(
      "POST", "/v1/worlds/v/receipts",
      R"({"intent_hash":")" + std::string(work.string_or("intent_hash")) +
          R"(","payload":{"status":201,"headers":{},"timings":{"start_ns":1,"end_ns":2}}})");
  EXPECT_EQ(settled.status, 202) << settled.body;
  EXPECT_EQ(stage.log("v", "t/main@1", key_of("a")),
            (std::vector<std::string>{"asked", "Receipt"}));
}

}  // namespace
}  // namespace pawl::worlds
