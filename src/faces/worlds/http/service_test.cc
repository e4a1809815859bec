// The HTTP routes, as a client sees them.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

using cbor::Value;
using Words = std::vector<std::string>;

using Http = Served;

TEST_F(Http, a_world_is_created_listed_and_read) {
  make();
  EXPECT_EQ(get("/v1/worlds").array().size(), 1u);
  EXPECT_EQ(get("/v1/worlds/w").find("height")->as_int64(), 2);
  EXPECT_EQ(get("/v1/worlds/none", 404).string_or("code"), "not_found");
  EXPECT_EQ(post("/v1/worlds", R"({"world_id":"w","air":)" + json::print(test_air()) + "}", 409)
                .string_or("code"),
            "conflict");
  EXPECT_EQ(post("/v1/worlds", R"({"world_id":"x"})", 400).string_or("code"), "invalid_request");
  EXPECT_EQ(post("/v1/worlds", "nonsense", 400).string_or("code"), "invalid_request");
  for (const char* id : {".", "..", "a/b", "a b"})
    EXPECT_EQ(
        post("/v1/worlds",
             R"({"world_id":")" + std::string(id) + R"(","air":)" + json::print(test_air()) + "}",
             400)
            .string_or("code"),
        "invalid_request");
  EXPECT_EQ(get("/v1/health").string_or("status"), "ok");
  EXPECT_FALSE(get("/v1/worlds/w/defs?kinds=defworkflow&prefix=t/m").find("defs")->array().empty());
  EXPECT_EQ(get("/v1/worlds/w/defs/defworkflow/t/main@1").find("def")->string_or("state"),
            "t/State@1");
  EXPECT_EQ(get("/v1/worlds/w/defs/defschema/sys%2FTimerFired@1").string_or("kind"), "defschema");
}

TEST_F(Http, modules_must_match_the_manifest) {
  json::Value air = test_air();
  auto made = [&](const std::string& name, int status) {
    return post("/v1/worlds",
                R"({"world_id":"w","air":)" + json::print(air) + R"(,"modules":{")" + name +
                    R"(":"d2FzbQ=="}})",
                status);
  };
  EXPECT_EQ(made("t/typo@1", 400).string_or("message"),
            "modules names 't/typo@1', which the manifest does not list");
  for (json::Value& node : air.array())
    if (node.string_or("$kind") == "defmodule")
      node.find("runtime")->find("artifact")->object().set("hash", hash_text(sha256("other")));
  EXPECT_TRUE(made("t/scripted@1", 400)
                  .string_or("message")
                  .ends_with("and its definition says " + hash_text(sha256("other"))));
  get("/v1/worlds/w", 404);
  air = test_air();
  made("t/scripted@1", 201);
}

TEST_F(Http, a_world_is_created_by_manifest_hash) {
  make();
  const std::string hash(get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  post("/v1/worlds", R"({"world_id":"v","manifest_hash":")" + hash + "\"}", 201);
  EXPECT_EQ(get("/v1/worlds/v/manifest").string_or("manifest_hash"), hash);
  EXPECT_EQ(post("/v1/worlds", R"({"manifest_hash":")" + kNoHash + "\"}", 404).string_or("code"),
            "manifest.error");
  post("/v1/worlds",
       R"({"world_id":"u","source":{"kind":"manifest","manifest_hash":")" + hash + "\"}}", 201);
}

TEST_F(Http, an_event_in_json_reaches_its_cell) {
  make();
  auto sent = event("a", R"(,"word":"hi")");
  EXPECT_EQ(sent.find("seq")->as_int64(), 2);
  const std::string key = base64(key_of("a"));
  auto state = get("/v1/worlds/w/state/t%2Fmain@1?key_b64=" + wire::percent_encode(key));
  EXPECT_EQ(json::print(*state.find("state")), R"({"log":["hi"]})");
  EXPECT_EQ(state.string_or("status"), "running");
  EXPECT_EQ(state.find("meta")->find("journal_height")->as_int64(), 3);
  EXPECT_FALSE(get("/v1/worlds/w/state/t/main@1?key_b64=AAAA").find("exists")->boolean());
  EXPECT_EQ(get("/v1/worlds/w/state/t/none@1", 404).string_or("code"), "not_found");
  EXPECT_EQ(get("/v1/worlds/w/state/t/main@1?consistency=at_least:99", 409).string_or("code"),
            "query.error");
  EXPECT_EQ(get("/v1/worlds/w/state/t/main@1?consistency=sometimes", 400).string_or("code"),
            "invalid_request");
}

TEST_F(Http, cells_are_listed_by_key_with_prefix_and_pages) {
  make();
  for (const char* id : {"b", "a", "c", "d"})
    event(id);
  auto page = get("/v1/worlds/w/state/t/main@1/cells?limit=3");
  ASSERT_EQ(page.find("cells")->array().size(), 3u);
  EXPECT_EQ(page.find("cells")->array()[0].string_or("key"), "a");
  auto rest = get("/v1/worlds/w/state/t/main@1/cells?after_b64=" +
                  wire::percent_encode(page.string_or("next_after_b64")));
  ASSERT_EQ(rest.find("cells")->array().size(), 1u);
  EXPECT_EQ(rest.find("cells")->array()[0].string_or("key"), "d");
  EXPECT_EQ(get("/v1/worlds/w/state/t/main@1/cells?prefix_b64=" +
                wire::percent_encode(base64(key_of("c"))))
                .find("cells")
                ->array()
                .size(),
            1u);
}

// case 170
TEST_F(Http, cells_of_the_snapshot_are_overlaid_with_later_changes) {
  make();
  for (const char* id : {"bb", "a", "c", "d"})
    event(id);
  ASSERT_TRUE(stage.say("snapshot", "w"));
  event("c");                     // changed since
  event("aaa");                   // new
  event("b");                     // new
  event_with("d", StepOutput{});  // deleted
  Words listed;
  const json::Value page = get("/v1/worlds/w/state/t/main@1/cells");
  for (const json::Value& cell : page.find("cells")->array()) {
    const std::string id(cell.string_or("key"));
    const Bytes state = *stage.cell("w", "t/main@1", key_of(id)).state;
    EXPECT_EQ(cell.string_or("state_hash"), hash_text(sha256(state))) << id;
    listed.push_back(id + " " + std::to_string(stage.log("w", "t/main@1", key_of(id)).size()));
  }
  // By the bytes of the key, in which a short text comes before a long one.
  EXPECT_EQ(listed, (Words{"a 1", "b 1", "c 2", "bb 1", "aaa 1"}));
}

TEST_F(Http, bad_events_are_refused_and_leave_no_record) {
  make();
  EXPECT_EQ(
      post("/v1/worlds/w/events", R"({"schema":"t/Do@1","value":{"no":1}})", 400).string_or("code"),
      "manifest.error");
  EXPECT_EQ(
      post("/v1/worlds/w/events", R"({"schema":"t/None@1","value":{}})", 400).string_or("code"),
      "manifest.error");
  EXPECT_EQ(post("/v1/worlds/w/events", R"({"schema":"t/Do@1","value_b64":"/w=="})", 400)
                .string_or("code"),
            "manifest.error");
  EXPECT_EQ(
      post("/v1/worlds/w/events", R"({"schema":"t/Do@1","value":{"id":"a","out":"***"}})", 400)
          .string_or("code"),
      "manifest.error");
  EXPECT_EQ(post("/v1/worlds/w/events", R"({"value":1})", 400).string_or("code"),
            "invalid_request");
  EXPECT_EQ(post("/v1/worlds/w/events",
                 R"({"schema":"t/Do@1","value":{"id":"a"},"expected_world_epoch":9})", 409)
                .string_or("code"),
            "conflict");
  EXPECT_EQ(get("/v1/worlds/w/journal/head").find("journal_head")->as_int64(), 2);
}

TEST_F(Http, a_member_of_the_wrong_type_is_refused) {
  make();
  event_with("a", output({"s"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 7}}), {}, {}}}));
  const std::string hash(get("/v1/worlds/w/manifest").string_or("manifest_hash")),
      intent = hash_text(stage.pending("w")[0].intent);
  post("/v1/worlds/w/governance/propose",
       R"({"patch":{"base_manifest_hash":")" + hash + R"(","patches":[]}})", 200);
  const std::string air = json::print(test_air()),
                    settle = R"({"intent_hash":")" + intent + R"(","payload":{"code":0},)";
  const std::string send = R"({"schema":"t/Do@1","value":{"id":"a"},)";
  const std::pair<std::string, std::string> wrong[] = {
      {"/v1/worlds", R"({"world_id":5,"air":)" + air + "}"},
      {"/v1/worlds", R"({"modules":[],"air":)" + air + "}"},
      {"/v1/worlds", R"({"limits":5,"air":)" + air + "}"},
      {"/v1/worlds", R"({"check_state":"no","air":)" + air + "}"},
      {"/v1/worlds/w/events", send + R"("expected_world_epoch":"x"})"},
      {"/v1/worlds/w/events", send + R"("submission_id":5})"},
      {"/v1/worlds/w/events", send + R"("correlation_id":[]})"},
      {"/v1/worlds/w/events", R"({"schema":"t/Do@1","value_b64":5})"},
      {"/v1/worlds/w/receipts", settle + R"("status":5})"},
      {"/v1/worlds/w/receipts", settle + R"("cost_cents":-1})"},
      {"/v1/worlds/w/receipts", settle + R"("cost_cents":"1"})"},
      {"/v1/worlds/w/frames", settle + R"("kind":"p"})"},
      {"/v1/worlds/w/frames", settle + R"("seq":"1"})"},
      {"/v1/worlds/w/frames", settle + R"("seq":1,"payload_ref":"zz"})"},
      {"/v1/worlds/w/governance/shadow", "{}"},
      {"/v1/worlds/w/governance/shadow", R"({"proposal_id":"0"})"},
      {"/v1/worlds/w/governance/shadow", R"({"proposal_id":0,"seed_events":{}})"},
      {"/v1/worlds/w/governance/approve", R"({"proposal_id":0,"decision":"maybe"})"},
      {"/v1/worlds/w/governance/apply?mode=soon", R"({"proposal_id":0})"},
      {"/v1/worlds/w/fork", R"({"world_id":"f","height":"2"})"},
      {"/v1/worlds/w/fork", R"({"world_id":"f","effects":"some"})"},
      {"/v1/worlds/w/fork", R"({"world_id":"f","receipts":"some"})"},
      {"/v1/cas/gc", R"({"grace_seconds":"x"})"},
      {"/v1/cas/gc", R"({"grace_seconds":-1})"},
      {"/v1/secrets/bindings/b/versions", "{}"},
      {"/v1/secrets/bindings/b/versions", R"({"plaintext":5})"},
      {"/v1/workspace/roots/zz/apply", R"({"operations":[]})"},
      {"/v1/effects/poll", R"({"effects":["t/charge@1"],"limit":"x"})"},
      {"/v1/effects/poll", R"({"effects":["t/charge@1",5]})"},
  };
  for (const auto& [path, body] : wrong)
    EXPECT_EQ(post(path, body, 400).string_or("code"), "invalid_request") << path << " " << body;
  EXPECT_EQ(get("/v1/worlds/w/journal/head").find("journal_head")->as_int64(), 5);
  EXPECT_EQ(get("/v1/worlds").array().size(), 1u);
}

TEST_F(Http, an_error_receipt_needs_no_payload) {
  make();
  event_with("a", output({"s"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 7}}), {}, {}}}));
  const std::string intent = R"({"intent_hash":")" + hash_text(stage.pending("w")[0].intent) + "\"";
  post("/v1/worlds/w/receipts", intent + "}", 400);
  post("/v1/worlds/w/receipts", intent + R"(,"status":"timeout"})", 202);
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), (std::vector<std::string>{"s", "Receipt"}));
  post("/v1/worlds/w/events", R"({"schema":"t/Do@1","value":{"id":"a"},"submission_id":"s"})", 202);
  EXPECT_EQ(post("/v1/worlds/w/events",
                 R"({"schema":"t/Do@1","value":{"id":"b"},"submission_id":"s"})", 409)
                .string_or("code"),
            "conflict");
}

TEST_F(Http, the_trace_of_a_cell_ends_in_the_state_of_that_cell) {
  make();
  event("a");
  event_with("b", output({"s"}, {timer(5)}));
  auto state = [&](const char* id) {
    return std::string(get("/v1/worlds/w/trace?workflow=t/main@1&key_b64=" +
                           wire::percent_encode(base64(key_of(id))))
                           .string_or("terminal_state"));
  };
  EXPECT_EQ(state("a"), "waiting_event");
  const auto trace = get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=b");
  EXPECT_EQ(trace.find("query")->string_or("value"), "b");
  EXPECT_TRUE(trace.find("query")->find("event_hash")->is_null());
  EXPECT_EQ(trace.find("query")->find("window_limit")->as_int64(), 400);
  EXPECT_EQ(trace.find("root")->string_or("schema"), "t/Do@1");
  EXPECT_EQ(trace.find("root")->find("value")->string_or("id"), "b");
  EXPECT_EQ(trace.find("root")->find("seq")->as_int64(), 3);
  EXPECT_EQ(trace.find("meta")->find("journal_height")->as_int64(), 5);
  EXPECT_EQ(trace.find("live_wait")
                ->find("strict_quiescence")
                ->find("open_streaming_intents")
                ->array()
                .at(0)
                .find("last_stream_seq")
                ->as_int64(),
            0);
  EXPECT_EQ(state("b"), "waiting_receipt");
  EXPECT_EQ(get("/v1/worlds/w/diagnose?workflow=t/main@1&key_b64=" +
                wire::percent_encode(base64(key_of("a"))))
                .string_or("cause"),
            "waiting_event");
  EXPECT_EQ(
      get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=a").string_or("terminal_state"),
      "waiting_receipt");
}

TEST_F(Http, seed_events_are_read_by_the_proposals_schemas) {
  make();
  const std::string hash(get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  const std::string type = R"({"record":{"raw":{"bytes":{}}}})";
  post(
      "/v1/worlds/w/governance/propose",
      R"({"patch":{"base_manifest_hash":")" + hash +
          R"(","patches":[{"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"t/Raw@1","type":)" +
          type + "}}}]}}",
      200);
  EXPECT_EQ(
      post("/v1/worlds/w/governance/shadow",
           R"({"proposal_id":0,"seed_events":[{"schema":"t/Raw@1","value":{"raw":"***"}}]})", 400)
          .string_or("code"),
      "manifest.error");
  auto shadowed =
      post("/v1/worlds/w/governance/shadow",
           R"({"proposal_id":0,"seed_events":[{"schema":"t/Raw@1","value":{"raw":"aGk="}}]})", 200);
  EXPECT_EQ(shadowed.find("result")->find("seed_errors"), nullptr);
}

TEST_F(Http, a_batch_of_events_is_all_or_nothing) {
  make();
  auto sent = post(
      "/v1/worlds/w/events",
      R"({"events":[{"schema":"t/Do@1","value":{"id":"a","word":"1"}},{"schema":"t/Do@1","value":{"id":"a","word":"2"}}]})",
      202);
  EXPECT_EQ(sent.find("events")->array().size(), 2u);
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")), (std::vector<std::string>{"1", "2"}));
  auto bad = post(
      "/v1/worlds/w/events",
      R"({"events":[{"schema":"t/Do@1","value":{"id":"a"}},{"schema":"t/None@1","value":{}}]})",
      400);
  EXPECT_EQ(bad.string_or("message").find("event 1 of the batch"), 0u);
  EXPECT_EQ(get("/v1/worlds/w/journal/head").find("journal_head")->as_int64(), 4);
}

TEST_F(Http, a_submission_runs_once) {
  make();
  const std::string body =
      R"({"schema":"t/Do@1","value":{"id":"a"},"submission_id":"s1","correlation_id":"c1"})";
  auto one = post("/v1/worlds/w/events", body, 202), two = post("/v1/worlds/w/events", body, 202);
  EXPECT_EQ(one, two);
  EXPECT_EQ(one.string_or("correlation_id"), "c1");
  EXPECT_EQ(get("/v1/worlds/w/journal/head").find("journal_head")->as_int64(), 3);
}

// Found by the simulator: a repeated command ran again, and its outcome replaced the first one.
TEST_F(Http, a_command_with_an_id_of_its_caller_runs_once) {
  make();
  const std::string propose = "/v1/worlds/w/governance/propose";
  const std::string hash(get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  const std::string patch =
      R"("patch":{"version":"2","base_manifest_hash":")" + hash + R"(","patches":[]})";
  auto one = post(propose, R"({"command_id":"c1",)" + patch + "}", 200);
  EXPECT_EQ(one.string_or("status"), "succeeded");
  EXPECT_EQ(post(propose, R"({"command_id":"c1",)" + patch + "}", 200), one);
  EXPECT_EQ(get("/v1/worlds/w/commands/c1"), one);
  EXPECT_EQ(get("/v1/worlds/w/governance").find("proposals")->array().size(), 1u);
  EXPECT_EQ(post("/v1/worlds/w/governance/shadow", R"({"command_id":"c1","proposal_id":0})", 409)
                .string_or("code"),
            "conflict");
  // Without an id each request is a command of its own.
  post(propose, "{" + patch + "}", 200);
  post(propose, "{" + patch + "}", 200);
  EXPECT_EQ(get("/v1/worlds/w/governance").find("proposals")->array().size(), 3u);
}

// case 202
TEST_F(Http, an_executor_polls_sends_a_frame_and_settles_once) {
  make();
  event_with("a", output({"s"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 7}}), "pay",
                                  Bytes("order-1")}}));
  auto polled = post("/v1/effects/poll", R"({"effects":["t/charge@1"],"limit":5})", 200);
  const json::Value& work = polled.find("work")->array().at(0);
  EXPECT_EQ(work.find("params")->find("amount")->as_int64(), 7);
  EXPECT_EQ(*unbase64(work.string_or("requested_idempotency_key_b64")), "order-1");
  json::Value frame = work;
  frame.object().set("seq", 1);
  frame.object().set("kind", "progress");
  frame.object().set("payload", json::Value(json::Object{}));
  for (const char* name : {"kind", "effect", "origin_module_id", "payload_ref"}) {
    json::Value wrong = frame;
    wrong.object().set(name, 5);
    EXPECT_EQ(post("/v1/worlds/w/frames", json::print(wrong), 400).string_or("message"),
              "'" + std::string(name) + "' is text");
  }
  EXPECT_EQ(post("/v1/worlds/w/frames", json::print(frame), 202).string_or("status"), "accepted");
  const std::string intent(work.string_or("intent_hash"));
  EXPECT_EQ(post("/v1/worlds/w/receipts",
                 R"({"intent_hash":")" + intent +
                     R"(","status":"ok","payload":{"code":0},"cost_cents":3})",
                 202)
                .string_or("status"),
            "settled");
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")),
            (std::vector<std::string>{"s", "Frame", "Receipt"}));
  EXPECT_EQ(post("/v1/worlds/w/receipts",
                 R"({"intent_hash":")" + intent + R"(","payload":{"code":0}})", 200)
                .string_or("status"),
            "ignored");
  EXPECT_EQ(
      post("/v1/worlds/w/receipts", R"({"intent_hash":")" + kNoHash + R"(","payload":{}})", 404)
          .string_or("code"),
      "receipt.unknown");
  EXPECT_EQ(post("/v1/worlds/w/receipts", R"({"intent_hash":"x"})", 400).string_or("code"),
            "invalid_request");
}

// case 190, case 191, case 192, case 193, case 201
TEST_F(Http, the_journal_is_paged_and_traced) {
  make();
  auto sent = event_with("a", output({"s"}, {timer(5)}));
  event("b");
  auto journal = get("/v1/worlds/w/journal?from=2&limit=2");
  EXPECT_EQ(journal.find("entries")->array().size(), 2u);
  EXPECT_EQ(journal.find("entries")->array()[0].string_or("kind"), "domain_event");
  EXPECT_EQ(journal.find("next_seq")->as_int64(), 4);
  auto trace =
      get("/v1/worlds/w/trace?event_hash=" + wire::percent_encode(sent.string_or("event_hash")));
  EXPECT_EQ(trace.string_or("terminal_state"), "waiting_receipt");
  // A hash with the same beginning is another event.
  std::string other(sent.string_or("event_hash"));
  other.back() = other.back() == '0' ? '1' : '0';
  EXPECT_EQ(
      get("/v1/worlds/w/trace?event_hash=" + wire::percent_encode(other), 404).string_or("code"),
      "not_found");
  EXPECT_EQ(trace.find("live_wait")
                ->find("pending_workflow_receipts")
                ->array()[0]
                .find("age_events")
                ->as_int64(),
            3);
  EXPECT_EQ(get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=b")
                .find("journal_window")
                ->find("from_seq")
                ->as_int64(),
            4);
  auto cell = get("/v1/worlds/w/trace?workflow=t/main@1&key_b64=" +
                  wire::percent_encode(base64(key_of("a"))));
  EXPECT_EQ(cell.find("journal_window")->find("entries")->array().size(), 2u);
  EXPECT_EQ(get("/v1/worlds/w/diagnose?schema=t/Do@1&correlate_by=id&value=a").string_or("cause"),
            "waiting_receipt");
  EXPECT_EQ(get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=zz", 404).string_or("code"),
            "not_found");
  EXPECT_EQ(get("/v1/worlds/w/trace", 400).string_or("code"), "invalid_request");
  for (const char* bad : {"journal?from=-1", "journal?limit=abc",
                          "journal?from=99999999999999999999", "trace-summary?recent_limit=x",
                          "state/t/main@1/cells?limit=1.5", "state/t/main@1?consistency=exact:x"})
    EXPECT_EQ(get("/v1/worlds/w/" + std::string(bad), 400).string_or("code"), "invalid_request")
        << bad;
  EXPECT_TRUE(get("/v1/worlds/w/journal?from=1000").find("entries")->array().empty());
  post("/v1/worlds/w/receipts",
       R"({"intent_hash":")" + hash_text(stage.pending("w")[0].intent) +
           R"(","status":"error","payload":"no"})",
       202);
  EXPECT_EQ(
      get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=a").string_or("terminal_state"),
      "failed");
  EXPECT_EQ(get("/v1/worlds/w/diagnose?schema=t/Do@1&correlate_by=id&value=a").string_or("cause"),
            "adapter_error");
  EXPECT_EQ(get("/v1/worlds/w/trace-summary")
                .find("totals")
                ->find("effects")
                ->find("intents")
                ->as_int64(),
            1);
  EXPECT_EQ(get("/v1/worlds/w/runtime").find("workflows")->find("running")->as_int64(), 2);
}

TEST_F(Http, the_trace_of_a_cell_shows_its_newest_records) {
  make();
  for (int i = 0; i < 6; ++i)
    event("a");
  auto timeline = [&](const std::string& more, int status = 200) {
    return get("/v1/worlds/w/trace?workflow=t/main@1&key_b64=" +
                   wire::percent_encode(base64(key_of("a"))) + more,
               status);
  };
  auto seqs = [](const json::Value& trace) {
    std::vector<int64_t> out;
    for (const json::Value& entry : trace.find("journal_window")->find("entries")->array())
      out.push_back(*entry.find("seq")->as_int64());
    return out;
  };
  EXPECT_EQ(seqs(timeline("&window_limit=2")), (std::vector<int64_t>{6, 7}));
  post("/v1/worlds/w/checkpoint", "{}", 200);
  post("/v1/worlds/w/compact", R"({"through":7})", 200);
  EXPECT_EQ(timeline("", 404).string_or("code"), "not_found");
  event("a");
  EXPECT_EQ(seqs(timeline("&window_limit=3")), std::vector<int64_t>{9});
  EXPECT_EQ(timeline("").find("root")->find("seq")->as_int64(), 9);
}

// case 194
TEST_F(Http, states_are_read_at_the_height_of_a_snapshot) {
  make();
  event("a");
  post("/v1/worlds/w/checkpoint", "", 200);
  event("a");
  const std::string key = wire::percent_encode(base64(key_of("a")));
  EXPECT_EQ(json::print(*get("/v1/worlds/w/state/t/main@1?key_b64=" + key + "&consistency=exact:3")
                             .find("state")),
            R"({"log":["Do"]})");
  EXPECT_EQ(json::print(*get("/v1/worlds/w/state/t/main@1?key_b64=" + key + "&consistency=exact:5")
                             .find("state")),
            R"({"log":["Do","Do"]})");
  EXPECT_EQ(get("/v1/worlds/w/state/t/main@1?key_b64=" + key + "&consistency=exact:4", 400)
                .string_or("code"),
            "query.error");
}

TEST_F(Http, governance_is_a_command_whose_outcome_can_be_polled) {
  make();
  const std::string hash(get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  auto proposed = post(
      "/v1/worlds/w/governance/propose",
      R"({"patch":{"base_manifest_hash":")" + hash + R"(","patches":[]},"description":"d"})", 200);
  EXPECT_EQ(proposed.string_or("status"), "succeeded");
  EXPECT_EQ(get(std::string(proposed.string_or("poll_url"))), proposed);
  auto early = post("/v1/worlds/w/governance/apply", R"({"proposal_id":0})", 200);
  EXPECT_EQ(early.string_or("status"), "failed");
  EXPECT_EQ(early.find("error")->string_or("code"), "governance.proposal_state");
  EXPECT_EQ(get("/v1/worlds/w/governance").find("proposals")->array().size(), 1u);
  EXPECT_EQ(post("/v1/worlds/w/governance/dance", "{}", 404).string_or("code"), "not_found");
}

TEST_F(Http, blobs_are_stored_under_their_hash_and_nothing_else) {
  auto put = call("POST", "/v1/cas/blobs", "hello", 201);
  const std::string hash(put.string_or("hash"));
  EXPECT_EQ(stage.http("GET", "/v1/cas/blobs/" + hash).body, "hello");
  EXPECT_EQ(stage.http("GET", "/v1/cas/blobs/" + hash.substr(7)).body, "hello");
  EXPECT_EQ(call("PUT", "/v1/cas/blobs/" + hash, "other", 400)
                .string_or("message")
                .find("the bytes have hash"),
            0u);
  EXPECT_EQ(get("/v1/cas/blobs/" + kNoHash, 404).string_or("code"), "not_found");
  EXPECT_EQ(get("/v1/cas/blobs/zz", 400).string_or("code"), "invalid_request");
}

TEST_F(Http, invalid_utf8_is_replaced_in_errors) {
  EXPECT_EQ(get("/v1/worlds/%ff", 404).string_or("message").find("world '\xef\xbf\xbd'"), 0u);
  EXPECT_EQ(call("PUT", "/v1/secrets/bindings/%ff", "{}", 400).string_or("code"),
            "invalid_request");
}

TEST_F(Http, secrets_are_sealed_and_only_executors_see_them) {
  EXPECT_EQ(call("POST", "/v1/secrets/bindings/db/versions", R"({"plaintext":"s3cret"})", 503)
                .string_or("code"),
            "secret.resolver_missing");
  stage.face = std::make_unique<Face>(
      stage, stage, stage.program->worlds, stage.background,
      FaceOptions{.secret_key = Bytes(32, 'k'),
                  .environment = [](const std::string& tenant, const std::string& n) {
                    return tenant == "t" && n == "TOKEN" ? std::optional<std::string>("t0ken")
                                                         : std::nullopt;
                  }});
  EXPECT_EQ(call("POST", "/v1/secrets/bindings/db/versions", R"({"plaintext":"s3cret"})", 200)
                .find("version")
                ->as_int64(),
            1);
  EXPECT_EQ(get("/v1/secrets/bindings/db").find("latest_version")->as_int64(), 1);
  ASSERT_TRUE(stage.snapshot().scan("", [&](BytesView, const Cell& cell) {
    EXPECT_EQ(cell.value().find("s3cret"), BytesView::npos);
    return true;
  }));
  EXPECT_EQ(*stage.face->service().reveal("t", {"a/b@1", "db", {}}, 0), "s3cret");
  EXPECT_EQ(*stage.face->service().reveal("t", {"a/b@1", "env:TOKEN", {}}, 0), "t0ken");
  EXPECT_FALSE(stage.face->service().reveal("t", {"a/b@1", "env:OTHER", {}}, 0));
  EXPECT_FALSE(stage.face->service().reveal("thief", {"a/b@1", "env:TOKEN", {}}, 0));
  EXPECT_FALSE(stage.face->service().reveal("t", {"a/b@1", "db", kNoHash}, 0));
  make();
  auto loaded = *stage.face->service().loaded({"t", "w"});
  LoadedManifest with(stage.program->worlds.builtins());
  with.secrets["a/b@1"] = {"a/b@1", "db", {}};
  const Value params =
      cbor::Map{{"auth", cbor::Map{{"$tag", "secret"},
                                   {"$value", cbor::Map{{"alias", "a/b"}, {"version", 1}}}}}};
  EXPECT_EQ(stage.face->service().inject_secrets({"t", "w"}, with, params)->text_or("auth"),
            "s3cret");
  EXPECT_FALSE(stage.face->service().inject_secrets({"t", "w"}, *loaded, params));
  EXPECT_EQ(call("DELETE", "/v1/secrets/bindings/db", "", 200).string_or("binding_id"), "db");
  EXPECT_EQ(call("DELETE", "/v1/secrets/bindings/db", "", 404).string_or("code"), "not_found");
}

}  // namespace
}  // namespace pawl::worlds
