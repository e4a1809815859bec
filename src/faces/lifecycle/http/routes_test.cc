// The operator API, request by request, on a router in this process.

#include <limits>
#include <thread>

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/routes_test.h"

namespace pawl::lifecycle {

TEST_F(routes, a_type_is_created_once_and_never_replaced) {
  std::string same = js::print(type_json(describe<Mission>()));
  EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/types/drone-survey", same).status, 200);
  EXPECT_EQ(
      say("PUT", "/pawl/v1/lifecycle/types/drone-survey",
          R"({"bucket":"B","fields":[{"name":"i","type":"string","tags":["id"]},{"name":"p","type":"string","tags":["phase"]}],"transitions":{"a":[]}})")
          .status,
      409);
  auto bad = say("PUT", "/pawl/v1/lifecycle/types/x",
                 R"({"bucket":"B","fields":[],"transitions":{"a":[]}})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_NE(bad.body.find("missing_id_field"), std::string::npos) << bad.body;
  EXPECT_EQ(say("GET", "/pawl/v1/lifecycle/types/drone-survey").status, 200);
  EXPECT_EQ(say("GET", "/pawl/v1/lifecycle/types/ghost").status, 404);
  for (auto body : {"", "[]", "{", "null", R"({"bucket":7})", R"({"surprise":1})"})
    EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/types/x", body).status, 400) << body;
}
TEST_F(routes, creation_errors_have_their_status) {
  EXPECT_EQ(
      say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m1", R"({"phase":"planning"})").status,
      409);
  EXPECT_EQ(
      say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m2", R"({"phase":"exploded"})").status,
      400);
  EXPECT_EQ(say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m2",
                R"({"phase":"planning","surprise":1})")
                .status,
            400);
  EXPECT_EQ(say("POST", "/pawl/v1/lifecycle/instances/ghost/m2", R"({"phase":"planning"})").status,
            404);
  EXPECT_EQ(
      say("POST", "/pawl/v1/lifecycle/instances/drone-survey/bad%20id", R"({"phase":"planning"})")
          .status,
      400);
  EXPECT_EQ(say("POST", "/pawl/v1/lifecycle/instances/drone-survey/" + std::string(10'000, 'x'),
                R"({"phase":"planning"})")
                .status,
            400);
  EXPECT_EQ(say("DELETE", "/pawl/v1/lifecycle/instances/drone-survey/nobody").status, 404);
}
TEST_F(routes, stored_bytes_that_are_not_utf8_leave_as_valid_json) {
  Mission odd{.entity_id = "m7",
              .battery = std::numeric_limits<double>::quiet_NaN(),
              .labels = {"\xff"},
              .note = "caf\xe9 \"x\"\n"};
  std::string bytes = to_record(odd), shown;
  ASSERT_TRUE(append_state(shown, describe<Mission>(), bytes));
  auto parsed = js::parse(shown);
  ASSERT_TRUE(parsed) << shown;
  EXPECT_EQ(parsed->string_or("note"), "caf\xef\xbf\xbd \"x\"\n");
  EXPECT_TRUE(parsed->find("battery_pct")->is_null());
}
TEST_F(routes, an_id_with_a_slash_is_addressed_percent_encoded) {
  ASSERT_EQ(
      say("POST", "/pawl/v1/lifecycle/instances/drone-survey/a%2Fb", R"({"phase":"planning"})")
          .status,
      201);
  EXPECT_EQ(say("GET", "/workflows/drone-survey/a%2Fb").status, 200);
}
TEST_F(routes, instances_can_be_completed_and_failed) {
  make("m2", "landing");
  make("m3", "landing");
  EXPECT_EQ(say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m2/complete").status, 200);
  EXPECT_EQ(
      say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m3/fail", R"({"reason":"engine"})")
          .status,
      200);
  EXPECT_EQ(say("POST", "/pawl/v1/lifecycle/instances/drone-survey/m1/fail").status, 400);
}
TEST_F(routes, a_body_over_the_limit_is_413) {
  std::string body = "{\"note\":\"" + std::string(limits::kOperatorBodyBytes, 'x') + "\"}";
  EXPECT_EQ(say("POST", "/workflows/drone-survey/m1/state", body).status, 413);
}
TEST_F(routes, a_repeated_idempotency_key_gets_the_first_answer) {
  wire::Headers once{{"Idempotency-Key", "k1"}};
  EXPECT_EQ(
      say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})", once).status,
      200);
  EXPECT_EQ(
      say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})", once).status,
      200);
  EXPECT_EQ(
      say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"landing"})", once).status,
      422);
}
TEST_F(routes, writes_need_a_role) {
  roles = "viewer";
  EXPECT_EQ(say("GET", "/workflows/drone-survey/m1").status, 200);
  EXPECT_EQ(say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})").status,
            403);
  EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/rules/r", "{}").status, 403);
  roles = "";
  EXPECT_EQ(say("GET", "/workflows").status, 403);
  roles = "ROLE_ADMIN";
  EXPECT_EQ(say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})").status,
            200);
}
TEST_F(routes, rules_are_stored_shown_run_and_removed) {
  std::string rule =
      R"({"workflow":"drone-survey","on":{"phase":"landing"},"then":[{"type":"lifecycle_transition","phase":"$message.to"}]})";
  EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/rules/r1", rule).status, 201);
  EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/rules/r1", rule).status, 200);
  EXPECT_EQ(say("PUT", "/pawl/v1/lifecycle/rules/r2", R"({"workflow":"drone-survey"})").status,
            400);
  auto ran = say("POST", "/pawl/v1/lifecycle/rules/r1/run",
                 R"({"entity_id":"m1","message":{"to":"flying"}})");
  EXPECT_EQ(ran.status, 200);
  EXPECT_NE(ran.body.find("\"fired\""), std::string::npos) << ran.body;
  EXPECT_NE(say("GET", "/pawl/v1/lifecycle/rules/r1").body.find("\"fired\":1"), std::string::npos);
  EXPECT_NE(say("GET", "/pawl/v1/lifecycle/rules").body.find("\"r1\""), std::string::npos);
  EXPECT_EQ(say("DELETE", "/pawl/v1/lifecycle/rules/r1").status, 200);
  EXPECT_EQ(say("GET", "/pawl/v1/lifecycle/rules/r1").status, 404);
}
TEST_F(routes, server_sent_events_send_a_snapshot_then_changes) {
  auto out = std::make_shared<Recorder>();
  auto got =
      say("GET", "/workflows/drone-survey?stream=true", {}, {{"Accept", "text/event-stream"}});
  ASSERT_TRUE(got.stream);
  got.stream(out);
  EXPECT_NE(out->text().find("event: snapshot"), std::string::npos);
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})");
  EXPECT_NE(out->text().find("event: change"), std::string::npos);
  say("DELETE", "/pawl/v1/lifecycle/instances/drone-survey/m1");
  EXPECT_NE(out->text().find("event: deleted"), std::string::npos);
  size_t before = out->all().size();
  out->close();
  make("m9");
  EXPECT_EQ(out->all().size(), before);
  auto resumed = std::make_shared<Recorder>();
  say("GET", "/workflows/drone-survey?stream=true", {},
      {{"Accept", "text/event-stream"}, {"Last-Event-ID", "2"}})
      .stream(resumed);
  std::string text = resumed->text();
  EXPECT_EQ(text.find("event: snapshot"), std::string::npos);
  EXPECT_LT(text.find("event: change"), text.find("event: deleted"));
}
TEST_F(routes, a_websocket_gets_one_message_per_state) {
  auto out = std::make_shared<Recorder>();
  auto got = say("GET", "/workflows/drone-survey?stream=true", {}, {{"Upgrade", "websocket"}});
  ASSERT_TRUE(got.socket);
  got.socket(out);
  ASSERT_EQ(out->all().size(), 1u);
  EXPECT_TRUE(out->all()[0].ends_with("}\n"));
  auto ghost = std::make_shared<Recorder>();
  say("GET", "/workflows/ghost?stream=true", {}, {{"Upgrade", "websocket"}}).socket(ghost);
  EXPECT_NE(ghost->text().find("\"error\""), std::string::npos);
  EXPECT_TRUE(ghost->ended);
  EXPECT_EQ(say("GET", "/workflows/drone-survey?stream=true").status, 400);
}
TEST_F(routes, a_slow_watcher_is_waited_for_and_ended_at_the_limit) {
  auto out = std::make_shared<Recorder>();
  out->buffered_bytes = limits::kWatchBufferedBytes + 1;
  say("GET", "/workflows/drone-survey?stream=true", {}, {{"Accept", "text/event-stream"}})
      .stream(out);
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})");
  EXPECT_EQ(out->text(), "");
  out->buffered_bytes = 0;
  for (int i = 0; i < 500 && out->text().find("event: change") == std::string::npos; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  // m1 has changed since: it comes as a change, and once only.
  EXPECT_EQ(out->text().find("event: snapshot"), std::string::npos);
  EXPECT_NE(out->text().find("\"flying\""), std::string::npos);
  auto stuck = std::make_shared<Recorder>();
  stuck->buffered_bytes = limits::kWatchBufferedBytes + 1;
  say("GET", "/workflows/drone-survey?stream=true", {}, {{"Accept", "text/event-stream"}})
      .stream(stuck);
  for (size_t i = 0; i < limits::kWatchWaiting; ++i)
    say("POST", "/workflows/drone-survey/m1/state", R"({"note":"x"})");
  EXPECT_FALSE(stuck->ended);
  say("POST", "/workflows/drone-survey/m1/state", R"({"note":"x"})");
  EXPECT_TRUE(stuck->ended);
  out->close();
  stuck->close();
}
TEST_F(routes, a_snapshot_of_many_pages_is_complete_and_ordered_by_revision) {
  const size_t many = limits::kWatchPage * 5 + 3;
  for (size_t i = 0; i < many; ++i)
    make("p" + std::to_string(i));
  say("POST", "/workflows/drone-survey/p0/transition", R"({"phase":"flying"})");
  for (bool events : {true, false}) {
    auto out = std::make_shared<Recorder>();
    if (events)
      say("GET", "/workflows/drone-survey?stream=true", {}, {{"Accept", "text/event-stream"}})
          .stream(out);
    else
      say("GET", "/workflows/drone-survey?stream=true", {}, {{"Upgrade", "websocket"}}).socket(out);
    for (int i = 0; i < 1000 && out->all().size() < many + 1; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(out->all().size(), many + 1);
    uint64_t last = 0;
    for (const std::string& piece : out->all()) {
      if (!events) continue;
      uint64_t id_number = std::stoull(piece.substr(4));
      EXPECT_GT(id_number, last);
      last = id_number;
    }
    // From the beginning of the journal: every change of every instance.
    auto resumed = std::make_shared<Recorder>();
    if (events) {
      say("GET", "/workflows/drone-survey?stream=true&after=0", {},
          {{"Accept", "text/event-stream"}})
          .stream(resumed);
      for (int i = 0; i < 1000 && resumed->all().size() < many + 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(resumed->all().size(), many + 2);
    }
    out->close();
    resumed->close();
  }
}
TEST_F(routes, phase_counts_apply_new_frames_instead_of_recounting) {
  PhaseCounts phase_counts(*shard);
  auto counts = [&] {
    std::string out;
    TypeCounts now = *phase_counts.of("t", "drone-survey");
    for (const auto& [phase_name, n] : now.by_phase)
      out += phase_name + ":" + std::to_string(n) + " ";
    return out;
  };
  EXPECT_EQ(counts(), "planning:1 ");
  make("m2");
  make("m3", "landing");
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})");
  say("POST", "/workflows/drone-survey/m1/state", R"({"note":"x"})");
  EXPECT_EQ(counts(), "flying:1 landing:1 planning:1 ");
  say("DELETE", "/pawl/v1/lifecycle/instances/drone-survey/m3");
  spoil("m2");
  EXPECT_EQ(counts(), "flying:1 ");
  EXPECT_EQ(phase_counts.of("t", "drone-survey")->unreadable, 1u);
  EXPECT_EQ(phase_counts.recounts(), 1u);
  EXPECT_TRUE(phase_counts.of("other", "drone-survey")->by_phase.empty());
  // After many frames counting all rows is cheaper; the counts must be the same.
  for (int i = 0; i < 200; ++i)
    make("n" + std::to_string(i));
  EXPECT_EQ(counts(), "flying:1 planning:200 ");
  EXPECT_EQ(phase_counts.recounts(), 2u);
}
TEST_F(routes, websockets_can_be_refused_by_origin_or_disabled) {
  auto ask = [&](FaceOptions options, wire::Headers headers) {
    Face strict(*shard, background, options);
    wire::Router own;
    own.add(strict.routes(), strict.dialects());
    int status = 0;
    headers.emplace_back("Upgrade", "websocket");
    own.dispatch(
        {"GET", "/workflows/drone-survey", "stream=true", headers, {}, {"t", "ann", "viewer"}},
        [&](wire::Response r) { status = r.socket ? 101 : r.status; });
    return status;
  };
  EXPECT_EQ(ask({.websocket = false}, {}), 403);
  EXPECT_EQ(ask({.allowed_origins = {"http://ours"}}, {{"Origin", "http://theirs"}}), 403);
  EXPECT_EQ(ask({.allowed_origins = {"http://ours"}}, {}), 403);
  EXPECT_EQ(ask({.allowed_origins = {"http://ours"}}, {{"Origin", "http://ours"}}), 101);
}
// case 134
TEST_F(routes, unreadable_instances_are_counted_and_skipped) {
  make("m2");
  auto watcher = std::make_shared<Recorder>();
  say("GET", "/workflows/drone-survey?stream=true", {}, {{"Accept", "text/event-stream"}})
      .stream(watcher);
  spoil("m2");
  EXPECT_EQ(say("GET", "/workflows/drone-survey/m2").status, 500);
  auto listed = say("GET", "/workflows/drone-survey");
  EXPECT_EQ(listed.status, 200);
  EXPECT_EQ(js::parse(listed.body)->array().size(), 1u);
  EXPECT_EQ(*wire::find_header(listed.headers, "X-Pawl-Skipped"), "1");
  auto index = say("GET", "/workflows");
  EXPECT_EQ(index.status, 200);
  auto row = js::parse(index.body)->array()[0];
  EXPECT_EQ(js::print(*row.find("counts_by_phase")), R"({"planning":1})");
  EXPECT_NE(row.string_or("counts_error").find("1 instance"), std::string_view::npos) << index.body;
  EXPECT_EQ(say("POST", "/workflows/drone-survey/m2/transition", R"({"phase":"flying"})").status,
            500);
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})");
  EXPECT_NE(watcher->text().find("\"flying\""), std::string::npos);
}
// case 154
TEST_F(routes, an_unreadable_revision_is_left_out_of_the_history) {
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying"})");
  spoil("m1");
  auto history = say("GET", "/workflows/drone-survey/m1/history");
  EXPECT_EQ(history.status, 200);
  auto events = js::parse(history.body)->array();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].string_or("to"), "flying");
  // The next event begins in the phase of the last readable revision.
  spoil("m1", "mend");
  events = js::parse(say("GET", "/workflows/drone-survey/m1/history").body)->array();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[2].string_or("from"), "flying");
  EXPECT_EQ(events[2].string_or("to"), "landing");
}
// case 158
TEST_F(routes, a_history_event_shows_its_note_only_when_it_has_one) {
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"flying","note":"cleared"})");
  say("POST", "/workflows/drone-survey/m1/transition", R"({"phase":"landing","note":""})");
  auto events = js::parse(say("GET", "/workflows/drone-survey/m1/history").body)->array();
  ASSERT_EQ(events.size(), 3u);
  for (const js::Value& event : events)
    for (auto member : {"from", "to", "at", "triggered"}) {
      ASSERT_TRUE(event.find(member)) << member;
      EXPECT_TRUE(event.find(member)->is_string());
    }
  EXPECT_EQ(events[0].string_or("from", "?"), "");
  EXPECT_FALSE(events[0].find("note"));
  EXPECT_EQ(events[1].string_or("note"), "cleared");
  EXPECT_FALSE(events[2].find("note"));
  EXPECT_TRUE(parse_rfc3339(events[2].string_or("at")));
}
TEST_F(routes, unclean_paths_are_redirected) {
  for (auto [path, clean] :
       {std::pair{"/workflows//drone-survey", "/workflows/drone-survey"},
        std::pair{"/workflows/drone-survey/..", "/workflows"},
        std::pair{"/workflows/./drone-survey/m1", "/workflows/drone-survey/m1"},
        std::pair{"/workflows/x/../drone-survey?limit=1", "/workflows/drone-survey?limit=1"}}) {
    auto moved = say("GET", path);
    EXPECT_EQ(moved.status, 307) << path;
    EXPECT_EQ(*wire::find_header(moved.headers, "Location"), clean);
  }
  make(".dot");
  EXPECT_EQ(say("GET", "/workflows/drone-survey/.dot").status, 200);
  EXPECT_EQ(say("HEAD", "/workflows/drone-survey/").status, 405);
  EXPECT_EQ(say("GET", "/workflows/drone-survey/").status, 200);
}

}  // namespace pawl::lifecycle
