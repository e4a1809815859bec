// Types and rules as data: equal definitions, refusals, and firing counts.

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/routes_test.h"

namespace pawl::lifecycle {

static const char* const kFields =
    R"([{"name":"id","type":"string","tags":["id"]},{"name":"at","type":"string","tags":["phase"]},)"
    R"({"name":"load","type":"double","tags":["operator_writable","indexable"]},{"name":"extra","type":"json","tags":["operator_writable","indexable"]}])";

struct data_routes : routes {
  std::string types = "/pawl/v1/lifecycle/types/", instances = "/pawl/v1/lifecycle/instances/",
              rules = "/pawl/v1/lifecycle/rules/";
  static std::string type(std::string transitions, std::string more = {},
                          std::string fields = kFields) {
    return R"({"bucket":"B","fields":)" + fields + R"(,"transitions":)" + transitions + more + "}";
  }
  std::string refused(std::string path, std::string body) {
    auto said = say("PUT", path, body);
    EXPECT_EQ(said.status, 400) << body << said.body;
    return said.body;
  }
  uint64_t revision_of(const wire::Response& said) {
    return js::parse(said.body)->find("revision")->as_uint64().value_or(0);
  }
  size_t found(std::string query) {
    auto said = say("GET", "/workflows/crate?" + query);
    EXPECT_EQ(said.status, 200) << said.body;
    return js::parse(said.body)->array().size();
  }
};

TEST_F(data_routes, order_and_implied_tags_do_not_change_a_type) {
  ASSERT_EQ(say("PUT", types + "crate",
                type(R"({"a":["b","c"],"b":[],"c":[]})", R"(,"success":["b","c"])"))
                .status,
            201);
  EXPECT_EQ(say("PUT", types + "crate",
                type(R"({"c":[],"b":[],"a":["c","b"]})", R"(,"success":["c","b"])"))
                .status,
            200);
  std::string readonly_phase = kFields;
  readonly_phase.replace(readonly_phase.find("\"phase\""), 7, "\"phase\",\"readonly\"");
  EXPECT_EQ(say("PUT", types + "crate",
                type(R"({"a":["b","c"],"b":[],"c":[]})", R"(,"success":["b","c"])", readonly_phase))
                .status,
            200);
  EXPECT_EQ(
      say("PUT", types + "crate", type(R"({"a":["b"],"b":[],"c":[]})", R"(,"success":["b","c"])"))
          .status,
      409);
  EXPECT_EQ(
      say("PUT", types + "crate", type(R"({"a":["b","c"],"b":[],"c":[]})", R"(,"success":["b"])"))
          .status,
      409);
}
TEST_F(data_routes, bad_success_and_parent_fields_are_refused) {
  for (auto success : {"7", "true", "{}", "null", R"(["a",7])"})
    EXPECT_NE(refused(types + "x", type(R"({"a":[]})", std::string(R"(,"success":)") + success))
                  .find("invalid definition"),
              std::string::npos)
        << success;
  for (auto parent_field : {"id", "at"})
    EXPECT_NE(refused(types + "x", type(R"({"a":[]})",
                                        std::string(R"(,"parent_field":")") + parent_field + "\""))
                  .find("invalid definition"),
              std::string::npos)
        << parent_field;
}
TEST_F(data_routes, filters_match_minus_zero_as_zero_and_json_by_value) {
  ASSERT_EQ(say("PUT", types + "crate", type(R"({"a":[]})")).status, 201);
  ASSERT_EQ(say("POST", instances + "crate/c1",
                R"({"at":"a","load":-0.0,"extra":{"x":1,"y":[1.0,{"z":null}]}})")
                .status,
            201);
  ASSERT_EQ(say("POST", instances + "crate/c2", R"({"at":"a","load":0,"extra":null})").status, 201);
  ASSERT_EQ(say("POST", instances + "crate/c3", R"({"at":"a","load":1})").status, 201);
  EXPECT_EQ(found("match.load=0"), 2u);
  EXPECT_EQ(found("match.load=-0.0"), 2u);
  EXPECT_EQ(found("match.extra=%7B%22y%22:%5B1,%7B%22z%22:null%7D%5D,%22x%22:1.0%7D"), 1u);
  EXPECT_EQ(found("match.extra=%7B%22x%22:1%7D"), 0u);
  EXPECT_EQ(found("match.extra=null"), 2u);
  ASSERT_EQ(say("POST", "/workflows/crate/c1/state", R"({"load":2})").status, 200);
  EXPECT_EQ(found("match.load=0"), 1u);
}
TEST_F(data_routes, updated_after_accepts_any_rfc3339_time) {
  auto count = [&](std::string after) {
    auto said = say("GET", "/workflows/drone-survey?updated_after=" + after);
    EXPECT_EQ(said.status, 200) << said.body;
    return js::parse(said.body)->array().size();
  };
  EXPECT_EQ(count("2999-01-01T00:00:00Z"), 0u);
  EXPECT_EQ(count("2262-04-12T00:00:00Z"), 0u);
  EXPECT_EQ(count("0001-01-01T00:00:00Z"), 1u);
  EXPECT_EQ(say("GET", "/workflows/drone-survey?updated_after=2999-13-01T00:00:00Z").status, 400);
}
TEST_F(data_routes, texts_of_an_action_must_be_strings) {
  for (auto action : {R"({"type":"lifecycle_complete","workflow":7})",
                      R"({"type":"lifecycle_transition","phase":"flying","reason":["x"]})",
                      R"({"type":"lifecycle_transition","phase":"flying","workflow":{}})"}) {
    std::string rule = R"({"workflow":"drone-survey","on":{"phase":"landing"},"then":[)" +
                       std::string(action) + "]}";
    EXPECT_NE(refused(rules + "r", rule).find("invalid rule"), std::string::npos) << action;
    auto now = say("POST", "/pawl/v1/lifecycle/actions",
                   R"({"entity_id":"m1","action":)" + std::string(action) + "}");
    EXPECT_EQ(now.status, 400);
    EXPECT_NE(now.body.find("invalid rule"), std::string::npos) << now.body;
  }
}
TEST_F(data_routes, unknown_members_of_an_action_are_refused) {
  for (auto action : {R"({"type":"lifecycle_complete","target":"completed"})",
                      R"({"type":"lifecycle_transition","phase":"flying","sets":{}})",
                      R"({"type":"lifecycle_fail","reason":"x","Workflow":"drone-survey"})"}) {
    std::string rule = R"({"workflow":"drone-survey","on":{"phase":"landing"},"then":[)" +
                       std::string(action) + "]}";
    EXPECT_NE(refused(rules + "r", rule).find("unknown member"), std::string::npos) << action;
    auto now = say("POST", "/pawl/v1/lifecycle/actions",
                   R"({"entity_id":"m1","action":)" + std::string(action) + "}");
    EXPECT_EQ(now.status, 400);
    EXPECT_NE(now.body.find("unknown member"), std::string::npos) << now.body;
  }
  EXPECT_EQ(
      say("POST", "/pawl/v1/lifecycle/actions",
          R"({"entity_id":"m1","action":{"type":"lifecycle_transition","id":"a1","phase":"flying","workflow":"drone-survey","set":{},"reason":"x","when":{},"max_iterations":1}})")
          .status,
      200);
}
TEST_F(data_routes, a_rule_that_can_never_work_is_refused) {
  auto rule = [](std::string on, std::string when, std::string set) {
    return R"({"workflow":"drone-survey","on":)" + on + R"(,"when":)" + when +
           R"(,"then":[{"type":"lifecycle_transition","phase":"flying","set":)" + set + "}]}";
  };
  std::string landing = R"({"phase":"landing"})";
  for (auto set :
       {R"({"retries":1.5})", R"({"waypoint_index":-1})", R"({"retries":{"op":"INCREMENT"}})",
        R"({"note":{"op":"increment"}})", R"({"armed":{"value":true}})"})
    refused(rules + "r", rule(landing, "{}", set));
  for (auto when : {R"({"retries":"many"})", R"([{"field":"retries","vaule":1}])",
                    R"([{"field":"retries","value":1,"operator":7}])",
                    R"([{"field":"retries","value":1,"required":"yes"}])"})
    refused(rules + "r", rule(landing, when, "{}"));
  EXPECT_NE(refused(rules + "r", rule(R"({"cron":"0 0 30 2 *"})", "{}", "{}")).find("never comes"),
            std::string::npos);
  EXPECT_EQ(
      say("PUT", rules + "leap",
          rule(
              R"({"cron":"0 0 29 2 *"})",
              R"([{"field":"retries","value":null,"operator":"ne","required":true},{"field":"$entity.lifecycle.phase","value":"x"}])",
              R"({"retries":"$message.n","note":null,"waypoint_index":{"op":"decrement"},"tags":["a"]})"))
          .status,
      201);
  EXPECT_EQ(say("PUT", types + "x", type(R"({"a":[]})", R"(,"workflow":"y")")).status, 400);
}
TEST_F(data_routes, every_route_checks_roles) {
  for (const wire::Route& route : face->routes()) {
    if (route.method == "HEAD") continue;  // nobody may
    std::string path = route.pattern;
    for (auto [hole, filling] :
         {std::pair{"{type}", "drone-survey"}, std::pair{"{id}", "m1"}, std::pair{"{name}", "r"}})
      if (size_t at = path.find(hole); at != std::string::npos)
        path.replace(at, std::string_view(hole).size(), filling);
    bool reads = route.method == "GET" || path.ends_with("/substitute"),
         operates = reads || path.starts_with("/workflows");
    for (auto [who, refused] :
         {std::pair{"viewer", !reads}, std::pair{"", true}, std::pair{"ROLE_M2M", true},
          std::pair{"ROLE_VIEWER", !reads}, std::pair{"operator", !operates},
          std::pair{"ROLE_OPERATOR", !operates}}) {
      roles = who;
      auto said = say(route.method, path);
      EXPECT_EQ(said.status == 403, refused)
          << who << " " << route.method << " " << path << " " << said.status << said.body;
    }
    for (auto who : {"program", "ROLE_PROGRAM", "admin", "ROLE_ADMIN"}) {
      roles = who;
      EXPECT_NE(say(route.method == "DELETE" ? "GET" : route.method, path).status, 403) << path;
    }
  }
  roles = "";
  for (wire::Headers headers :
       {wire::Headers{{"Upgrade", "websocket"}}, wire::Headers{{"Accept", "text/event-stream"}}})
    EXPECT_EQ(say("GET", "/workflows/drone-survey?stream=true", {}, headers).status, 403);
}
TEST_F(data_routes, an_unchanged_rule_keeps_its_revision) {
  std::string rule =
      R"({"workflow":"drone-survey","on":{"phase":"landing"},"then":[{"type":"lifecycle_complete"}]})";
  auto first = say("PUT", rules + "r", rule);
  make("m2");
  auto again = say("PUT", rules + "r", rule);
  EXPECT_GT(revision_of(first), 0u);
  EXPECT_EQ(revision_of(again), revision_of(first));
  EXPECT_EQ(*wire::find_header(again.headers, "ETag"),
            "\"" + std::to_string(revision_of(first)) + "\"");
}
TEST_F(data_routes, state_variables_count_firings_and_a_new_rule_starts_at_zero) {
  ASSERT_EQ(say("PUT", types + "ring", type(R"({"a":["a"]})")).status, 201);
  ASSERT_EQ(say("POST", instances + "ring/r1", R"({"at":"a"})").status, 201);
  auto put = [&](std::string more) {
    return say("PUT", rules + "count",
               R"({"workflow":"ring","on":{"cron":"0 0 1 1 *"},"then":[{"type":"lifecycle_transition","phase":"a","reason":"$state.iteration of $state.max_iterations")" +
                   more + "}")
        .status;
  };
  auto run = [&] {
    auto said = say("POST", rules + "count/run", R"({"entity_id":"r1"})");
    EXPECT_EQ(said.status, 200) << said.body;
    auto events = js::parse(say("GET", "/workflows/ring/r1/history").body)->array();
    return std::string(js::parse(said.body)->string_or("result")) + " " +
           std::string(events.back().string_or("note"));
  };
  ASSERT_EQ(put("}]"), 201);
  EXPECT_EQ(run(), "fired 1 of 0");
  EXPECT_EQ(run(), "fired 2 of 0");
  // A changed rule keeps its counts; a removed rule loses them.
  ASSERT_EQ(put(R"(}],"max_iterations":3)"), 200);
  EXPECT_EQ(run(), "fired 3 of 3");
  EXPECT_EQ(run(), "exhausted 3 of 3");
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(say("DELETE", rules + "count").status, 200);
    ASSERT_EQ(put(R"(,"max_iterations":2}],"max_iterations":3)"), 201);
    EXPECT_EQ(run(), "fired 1 of 3");
    EXPECT_EQ(run(), "fired 2 of 3");
    EXPECT_EQ(run(), "fired 2 of 3");  // the action has a limit of its own
    EXPECT_EQ(run(), "exhausted 2 of 3");
  }
}
TEST_F(data_routes, counts_of_a_removed_rule_are_erased) {
  ASSERT_EQ(say("PUT", types + "ring", type(R"({"a":["a"]})")).status, 201);
  std::string rule =
      R"({"workflow":"ring","on":{"cron":"0 0 1 1 *"},"max_iterations":9,"then":[{"type":"lifecycle_transition","phase":"a"}]})";
  auto fire = [&](std::string id) {
    EXPECT_EQ(say("POST", rules + "count/run", R"({"entity_id":")" + id + "\"}").status, 200);
  };
  auto counts = [&] {
    size_t found = 0;
    EXPECT_TRUE(
        shard->snapshot().scan(prefix({"lifecycle", "t", "c"}), [&](BytesView, const Cell&) {
          ++found;
          return true;
        }));
    return found;
  };
  auto left = [&](size_t max) {
    for (int i = 0; i < 500 && counts() > max; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return counts();
  };
  ASSERT_EQ(say("PUT", rules + "count", rule).status, 201);
  const size_t many = limits::kSweepPage * 2 + 7;
  for (size_t i = 0; i < many; ++i) {
    ASSERT_EQ(say("POST", instances + "ring/r" + std::to_string(i), R"({"at":"a"})").status, 201);
    fire("r" + std::to_string(i));
  }
  EXPECT_EQ(counts(), many);
  ASSERT_EQ(say("DELETE", rules + "count").status, 200);
  EXPECT_EQ(left(0), 0u);
  // Counts of a new rule with the same name stay: they belong to the new generation.
  ASSERT_EQ(say("PUT", rules + "count", rule).status, 201);
  for (size_t i = 0; i < limits::kSweepPage + 1; ++i)
    fire("r" + std::to_string(i));
  ASSERT_EQ(say("DELETE", rules + "count").status, 200);
  ASSERT_EQ(say("PUT", rules + "count", rule).status, 201);
  fire("r0");
  EXPECT_LE(left(2), 2u);  // the count, and the round if the old counts went after it was put
  for (int i = 2; i <= 9; ++i)
    fire("r0");
  EXPECT_NE(say("POST", rules + "count/run", R"({"entity_id":"r0"})").body.find("exhausted"),
            std::string::npos);
}
TEST_F(data_routes, a_watch_after_a_malformed_revision_is_refused) {
  for (wire::Headers headers :
       {wire::Headers{{"Upgrade", "websocket"}}, wire::Headers{{"Accept", "text/event-stream"}}}) {
    for (auto after : {"abc", "-1", "1x", "1.5", "18446744073709551616", "%20"}) {
      auto said = say("GET", "/workflows/drone-survey?stream=true&after=" + std::string(after), {},
                      headers);
      EXPECT_EQ(said.status, 400) << after;
      EXPECT_FALSE(said.stream || said.socket);
      EXPECT_NE(said.body.find("must be a revision"), std::string::npos) << said.body;
    }
    EXPECT_NE(say("GET", "/workflows/drone-survey?stream=true&after=", {}, headers).status, 400);
    headers.emplace_back("Last-Event-ID", "latest");
    EXPECT_EQ(say("GET", "/workflows/drone-survey?stream=true", {}, headers).status, 400);
  }
}
TEST_F(data_routes, a_watch_after_a_future_revision_begins_now) {
  for (auto after : {"18446744073709551615", "1000000"}) {
    auto events = std::make_shared<Recorder>(), socket = std::make_shared<Recorder>();
    say("GET", "/workflows/drone-survey?stream=true&after=" + std::string(after), {},
        {{"Accept", "text/event-stream"}})
        .stream(events);
    say("GET", "/workflows/drone-survey?stream=true&after=" + std::string(after), {},
        {{"Upgrade", "websocket"}})
        .socket(socket);
    EXPECT_EQ(events->text() + socket->text(), "") << after;
    say("POST", "/workflows/drone-survey/m1/state", R"({"note":"x"})");
    EXPECT_EQ(events->all().size(), 1u) << after;
    EXPECT_EQ(socket->all().size(), 1u) << after;
    events->close();
    socket->close();
  }
  auto newest = js::parse(say("GET", instances + "drone-survey").body)
                    ->find("instances")
                    ->array()[0]
                    .find("revision")
                    ->as_uint64()
                    .value_or(0);
  auto next = std::make_shared<Recorder>();
  say("GET", "/workflows/drone-survey?stream=true&after=" + std::to_string(newest), {},
      {{"Accept", "text/event-stream"}})
      .stream(next);
  say("POST", "/workflows/drone-survey/m1/state", R"({"note":"y"})");
  EXPECT_EQ(next->all().size(), 1u) << next->text();
  next->close();
}

}  // namespace pawl::lifecycle
