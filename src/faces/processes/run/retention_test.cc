// Retention: instances that have ended are forgotten after a time, or by command.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

const std::string kHour = R"("retention":{"completed":"PT1H"},)";
constexpr Time kHours = 3600 * kSecond;

std::string waiting(const std::string& more) {
  return definition("a", R"({"id":"w","name":"w","type":"USER_TASK","nextStep":"end"},)" + kEnd,
                    more);
}
std::string start(FaceFixture& s, const std::string& key = "k") {
  json::Value answer =
      s.post("/v1/instances", R"({"definitionId":"a","businessKey":")" + key + "\"}");
  EXPECT_EQ(s.last_status, 201) << json::print(answer);
  return std::string(answer.string_or("id"));
}
void end(FaceFixture& s, const std::string& id) {
  s.post("/v1/instances/" + id + "/user-tasks/w/complete");
  ASSERT_EQ(s.status(id), "COMPLETED");
}
size_t rows(FaceFixture& s) {
  size_t count = 0;
  auto visit = [&](BytesView, BytesView) {
    ++count;
    return true;
  };
  EXPECT_TRUE(s.snapshot().rows(kProgram, "", visit));
  return count;
}
// Not in a list, a count, a history or any row.
void expect_gone(FaceFixture& s, const std::string& id) {
  for (const std::string& path :
       {"/v1/instances/" + id, "/v1/instances/" + id + "/history",
        "/pawl/v1/processes/instances/" + id, "/pawl/v1/processes/instances/" + id + "/events"}) {
    s.get(path);
    EXPECT_EQ(s.last_status, 404) << path;
  }
  for (const std::string query : {"", "?businessKey=k", "?definitionId=a", "?status=COMPLETED"}) {
    EXPECT_EQ(s.get("/v1/instances" + query).find("total")->as_int64(), 0) << query;
    json::Value found = s.get("/pawl/v1/processes/instances" + query);
    EXPECT_TRUE(found.find("items")->array().empty()) << query;
  }
  json::Value summary = s.get("/pawl/v1/processes/definitions");
  for (const json::Value& item : summary.find("items")->array())
    EXPECT_TRUE(item.find("instances")->object().empty()) << json::print(summary);
  EXPECT_EQ(rows(s), 0u);
}

TEST(retention, an_instance_is_forgotten_when_its_time_is_over) {
  FaceFixture s;
  s.upload(waiting(kHour));
  std::string id = start(s);
  s.pass(10 * kHours);
  EXPECT_EQ(s.status(id), "WAITING") << "the time begins at the end";
  end(s, id);
  s.pass(kHours - kSecond);
  EXPECT_EQ(s.status(id), "COMPLETED");
  s.pass(kSecond);
  expect_gone(s, id);
  s.verify();
}

TEST(retention, delete_erases_an_instance_that_has_ended) {
  FaceFixture s;
  s.upload(waiting(kHour));
  std::string id = start(s);
  json::Value refused = s.call("DELETE", "/v1/instances/" + id);
  EXPECT_EQ(s.last_status, 409) << json::print(refused);
  end(s, id);
  s.tenant = "other";
  s.call("DELETE", "/v1/instances/" + id);
  EXPECT_EQ(s.last_status, 404);
  s.tenant = FaceFixture::kTenant;
  json::Value answer = s.call("DELETE", "/v1/instances/" + id);
  EXPECT_EQ(s.last_status, 200);
  EXPECT_TRUE(answer.find("archivedUntil")->is_null());
  EXPECT_EQ(s.open_timers(), 0u);
  expect_gone(s, id);
  // The journal still shows the last event.
  json::Value then = s.get("/pawl/v1/processes/instances/" + id + "/events/" +
                           json::print(*answer.find("lastEvent")));
  EXPECT_EQ(then.string_or("status"), "COMPLETED");
  s.call("DELETE", "/v1/instances/" + id);
  EXPECT_EQ(s.last_status, 404);
  s.verify();
}

TEST(retention, an_instance_that_goes_on_again_is_kept) {
  FaceFixture s;
  s.upload(definition(
      "a", R"({"id":"t","name":"t","type":"SERVICE_TASK","jobType":"j","nextStep":"end"},)" + kEnd,
      R"("retention":{"failed":"PT1H","cancelled":"PT2H"},)"));
  std::string id = start(s);
  auto fail_it = [&] {
    s.post("/v1/jobs/" + s.take("j") + "/fail",
           R"({"workerId":"w","errorMessage":"no","retryable":false})");
    ASSERT_EQ(s.status(id), "FAILED");
  };
  fail_it();
  s.pass(kHours / 2);
  s.post("/pawl/v1/processes/instances/" + id + "/retry", R"({"reason":"r"})");
  EXPECT_EQ(s.open_timers(), 0u);
  s.pass(kHours);
  EXPECT_EQ(s.status(id), "ACTIVE");
  fail_it();
  s.post("/pawl/v1/processes/instances/" + id + "/cancel", R"({"reason":"r"})");
  s.pass(kHours);
  EXPECT_EQ(s.status(id), "CANCELLED") << "the retention of its last status holds";
  s.pass(kHours);
  expect_gone(s, id);
  s.verify();
}

TEST(retention, the_default_of_the_tenant_holds_where_the_definition_says_nothing) {
  FaceFixture s;
  s.upload(waiting(R"("retention":{"failed":"PT1H"},)"));
  const std::string path = "/pawl/v1/processes/retention";
  EXPECT_EQ(json::print(s.get(path)), "{}");
  s.call("PUT", path, R"({"completed":"PT2H","failed":null})");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(json::print(s.get(path)), R"({"completed":"PT2H"})");
  std::string id = start(s);
  end(s, id);
  s.pass(2 * kHours);
  expect_gone(s, id);
  for (const char* bad : {R"({"completed":"x"})", R"({"completed":"PT0S"})", R"({"done":"PT1H"})",
                          R"({"completed":1})", "[]", ""}) {
    s.call("PUT", path, bad);
    EXPECT_EQ(s.last_status, 400) << bad;
  }
  s.call("PUT", path, "{}");
  id = start(s);
  end(s, id);
  EXPECT_EQ(s.open_timers(), 0u) << "for ever again";
  s.tenant = "other";
  EXPECT_EQ(json::print(s.get(path)), "{}");
  s.verify();
}

TEST(retention, a_forgotten_instance_releases_its_key_and_its_chain) {
  FaceFixture s;
  s.upload(definition("a", kEnd,
                      R"("businessKey":{"unique":"always"},"autoStartNextWorkflow":true,)"
                      R"("nextWorkflowId":"later",)" +
                          kHour));
  start(s);
  s.pass(kHours);
  start(s);
  s.pass(kHours);
  s.upload(definition("later", kEnd));
  EXPECT_EQ(s.get("/v1/instances").find("total")->as_int64(), 0) << "no chain goes on";
  s.verify();
}

TEST(retention, bad_durations_refuse_the_upload) {
  FaceFixture s;
  for (const auto& [retention, words] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"completed":"soon"})", "retention.completed \"soon\" is not an ISO 8601"},
           {R"({"failed":"PT0S"})", "retention.failed must be longer than nothing"},
           {R"({"ended":"P1D"})", "unknown field \"ended\""},
           {R"("P1D")", "retention must be an object"}}) {
    json::Value answer = s.post("/v1/definitions", waiting(R"("retention":)" + retention + ","));
    EXPECT_EQ(s.last_status, 400);
    EXPECT_NE(answer.string_or("reason").find(words), std::string::npos) << json::print(answer);
  }
}

}  // namespace
}  // namespace pawl::processes
