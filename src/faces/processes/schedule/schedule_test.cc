// Schedules over the whole face: what a due run starts, and the policies.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/limits.h"

namespace pawl::processes {
namespace {

const std::string kAll = "/pawl/v1/processes/schedules";
constexpr Time kMinute = 60 * kSecond, kHour = 60 * kMinute;
// Ends at once, and waits for a signal.
const std::string kQuick = definition("quick", kEnd);
const std::string kSlow =
    definition("slow", R"({"id":"w","name":"w","type":"WAIT","nextStep":"end"},)" + kEnd);

std::string schedule(const std::string& id, const std::string& definition_id,
                     const std::string& more) {
  return R"({"id":")" + id + R"(","definitionId":")" + definition_id + "\"," + more + "}";
}

void create(FaceFixture& s, const std::string& document) {
  json::Value answer = s.post(kAll, document);
  ASSERT_EQ(s.last_status, 201) << json::print(answer);
}

// "outcome outcome", the oldest first.
std::string outcomes(FaceFixture& s, const std::string& id) {
  std::string out;
  json::Value answer = s.get(kAll + "/" + id + "/runs");
  for (const json::Value& run : answer.find("items")->array())
    out = std::string(run.string_or("outcome")) + (out.empty() ? "" : " ") + out;
  return out;
}
std::vector<std::string> instances(FaceFixture& s, const std::string& id) {
  std::vector<std::string> out;
  json::Value answer = s.get(kAll + "/" + id + "/runs");
  for (const json::Value& run : answer.find("items")->array())
    if (run.find("instanceId")) out.emplace(out.begin(), run.string_or("instanceId"));
  return out;
}
size_t count(FaceFixture& s, const std::string& definition_id) {
  return static_cast<size_t>(
      *s.get("/v1/instances?definitionId=" + definition_id).find("total")->as_int64());
}
int64_t counted(FaceFixture& s, const std::string& id, std::string_view what) {
  return *s.get(kAll + "/" + id).find("counts")->find(what)->as_int64();
}

TEST(schedules, an_interval_starts_an_instance_each_time) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick",
                     R"("interval":"PT10M","variables":{"n":1},"timeVariable":"due",)"
                     R"("businessKey":"report {time}")"));
  EXPECT_EQ(s.open_timers(), 1u);
  const Time begun = s.time;
  s.pass(25 * kMinute);
  EXPECT_EQ(count(s, "quick"), 2u);
  auto ids = instances(s, "a");
  ASSERT_EQ(ids.size(), 2u);
  const std::string due = rfc3339(begun + 10 * kMinute);
  EXPECT_EQ(s.variables(ids[0]), R"({"n":1,"due":")" + due + "\"}");
  EXPECT_EQ(s.get("/v1/instances/" + ids[0]).string_or("businessKey"), "report " + due);
  json::Value events = s.get("/pawl/v1/processes/instances/" + ids[0] + "/events");
  EXPECT_NE(json::print(events).find("schedule \\\"a\\\", run of " + due), std::string::npos);
  json::Value shown = s.get(kAll + "/a");
  EXPECT_EQ(shown.string_or("state"), "active");
  EXPECT_EQ(shown.string_or("nextRunAt"), rfc3339(begun + 30 * kMinute, 6));
  EXPECT_EQ(s.open_timers(), 1u) << "one timer for each schedule";
  s.verify();
}

TEST(schedules, cron_in_a_time_zone_and_the_list_of_next_runs) {
  FaceFixture s;
  s.time = *parse_rfc3339("2026-10-24T20:00:00Z");
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("cron":"30 2 * * *","timeZone":"Europe/Berlin")"));
  EXPECT_EQ(json::print(*s.get(kAll + "/a/next?count=2").find("items")),
            R"(["2026-10-25T00:30:00Z","2026-10-26T01:30:00Z"])");
  EXPECT_EQ(json::print(*s.get(kAll + "/a/next?count=1&from=2026-03-29T00:00:00Z").find("items")),
            R"(["2026-03-29T01:00:00Z"])");
  s.get(kAll + "/a/next?count=101");
  EXPECT_EQ(s.last_status, 400);
  s.pass(48 * kHour);
  EXPECT_EQ(count(s, "quick"), 2u);
  s.verify();
}

TEST(schedules, a_run_is_skipped_while_the_one_before_is_not_finished) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M")"));
  s.pass(2 * kMinute);
  EXPECT_EQ(outcomes(s, "a"), "started skipped");
  s.post("/v1/instances/" + instances(s, "a")[0] + "/signals/w");
  s.pass(kMinute);
  EXPECT_EQ(outcomes(s, "a"), "started skipped started");
  EXPECT_EQ(counted(s, "a", "skipped"), 1);
  s.verify();
}

TEST(schedules, allow_starts_beside_the_one_before) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M","overlap":"allow")"));
  s.pass(3 * kMinute);
  EXPECT_EQ(outcomes(s, "a"), "started started started");
  s.verify();
}

TEST(schedules, cancel_ends_the_one_before) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M","overlap":"cancel")"));
  s.pass(2 * kMinute);
  auto ids = instances(s, "a");
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(s.status(ids[0]), "CANCELLED");
  EXPECT_EQ(s.status(ids[1]), "WAITING");
  s.verify();
}

TEST(schedules, queue_starts_a_waiting_run_as_soon_as_the_one_before_ends) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M","overlap":"queue","timeVariable":"due")"));
  const Time begun = s.time;
  s.pass(3 * kMinute);
  EXPECT_EQ(outcomes(s, "a"), "started");
  EXPECT_EQ(s.get(kAll + "/a").find("queued")->as_int64(), 2);
  s.post("/v1/instances/" + instances(s, "a")[0] + "/signals/w");
  auto ids = instances(s, "a");
  ASSERT_EQ(ids.size(), 2u) << "at once, not when the next run is due";
  EXPECT_EQ(s.variables(ids[1]), R"({"due":")" + rfc3339(begun + 2 * kMinute) + "\"}");
  s.post("/v1/instances/" + ids[1] + "/cancel", R"({"reason":"no"})");
  EXPECT_EQ(instances(s, "a").size(), 3u) << "a cancelled instance has ended too";
  EXPECT_EQ(s.get(kAll + "/a").find("queued")->as_int64(), 0);
  s.verify();
}

TEST(schedules, the_queue_has_a_limit) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M","overlap":"queue")"));
  s.pass((kQueuedRuns + 3) * kMinute);
  EXPECT_EQ(s.get(kAll + "/a").find("queued")->as_int64(), static_cast<int64_t>(kQueuedRuns));
  EXPECT_EQ(counted(s, "a", "skipped"), 2);
  s.verify();
}

// A queue of instances that end at once is worked off over several turns.
TEST(schedules, a_long_queue_goes_over_several_turns) {
  FaceFixture s;
  s.upload(kSlow);
  create(s, schedule("a", "slow", R"("interval":"PT1M","overlap":"queue")"));
  s.pass(51 * kMinute);
  EXPECT_EQ(s.get(kAll + "/a").find("queued")->as_int64(), 50);
  s.upload(definition("slow", kEnd));
  s.post("/v1/instances/" + instances(s, "a")[0] + "/signals/w");
  EXPECT_EQ(s.get(kAll + "/a").find("queued")->as_int64(), 0);
  EXPECT_EQ(counted(s, "a", "started"), 51);
  s.verify();
}

// The server does not run for a while: timers fire late.
void miss(FaceFixture& s, Time span) {
  s.time += span;
  s.pass(0);
}

TEST(schedules, missed_runs_are_caught_up_by_the_policy) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("none", "quick", R"("interval":"PT10M","catchUp":"none")"));
  create(s, schedule("last", "quick", R"("interval":"PT10M","catchUp":"last")"));
  create(s, schedule("all", "quick", R"("interval":"PT10M","catchUp":"all")"));
  miss(s, 65 * kMinute);
  EXPECT_EQ(outcomes(s, "none"), "missed");
  EXPECT_EQ(counted(s, "none", "missed"), 6);
  EXPECT_EQ(outcomes(s, "last"), "missed started");
  EXPECT_EQ(counted(s, "last", "missed"), 5);
  EXPECT_EQ(outcomes(s, "all"), "started started started started started started");
  s.pass(10 * kMinute);
  EXPECT_EQ(counted(s, "none", "started"), 1) << "a run in time is no catch-up";
  EXPECT_EQ(counted(s, "last", "started"), 2);
  EXPECT_EQ(counted(s, "all", "started"), 7);
  s.verify();
}

TEST(schedules, a_catch_up_is_bounded_and_goes_over_several_turns) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("interval":"PT1S","catchUp":"all","overlap":"allow")"));
  const size_t fired = s.fired;
  miss(s, 30 * 24 * kHour);
  EXPECT_EQ(counted(s, "a", "started"), static_cast<int64_t>(kCatchUpRuns));
  EXPECT_GE(s.fired - fired, kCatchUpRuns / kRunsPerTurn);
  EXPECT_EQ(s.get(kAll + "/a/runs").find("items")->array().size(), kRememberedRuns);
  s.verify();
}

TEST(schedules, runs_that_were_due_too_long_ago_are_not_caught_up) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("cron":"0 * * * *","catchUp":"all","overlap":"allow")"));
  miss(s, 30 * 24 * kHour);
  EXPECT_EQ(counted(s, "a", "started"), kCatchUpSeconds / 3600);
  s.verify();
}

TEST(schedules, pause_resume_and_trigger) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("interval":"PT10M","catchUp":"all")"));
  json::Value paused = s.post(kAll + "/a/pause", R"({"reason":"holiday"})");
  EXPECT_EQ(paused.string_or("state"), "paused");
  EXPECT_EQ(paused.string_or("pauseReason"), "holiday");
  EXPECT_EQ(s.open_timers(), 0u);
  s.pass(kHour);
  EXPECT_EQ(count(s, "quick"), 0u);
  json::Value run = s.post(kAll + "/a/trigger");
  EXPECT_EQ(run.string_or("outcome"), "started") << "also while it is paused";
  EXPECT_EQ(s.status(std::string(run.string_or("instanceId"))), "COMPLETED");
  EXPECT_EQ(s.post(kAll + "/a/resume").string_or("state"), "active");
  EXPECT_EQ(count(s, "quick"), 1u) << "runs of the pause are not caught up";
  s.pass(10 * kMinute);
  EXPECT_EQ(count(s, "quick"), 2u);
  s.verify();
}

TEST(schedules, a_deleted_schedule_is_gone_with_its_timer_and_runs) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("interval":"PT10M")"));
  s.pass(10 * kMinute);
  s.call("DELETE", kAll + "/a");
  EXPECT_EQ(s.last_status, 200);
  EXPECT_EQ(s.open_timers(), 0u);
  for (const char* path : {"", "/next", "/runs"}) {
    s.get(kAll + "/a" + path);
    EXPECT_EQ(s.last_status, 404) << path;
  }
  for (const char* operation : {"pause", "resume", "trigger"}) {
    s.post(kAll + "/a/" + operation);
    EXPECT_EQ(s.last_status, 404) << operation;
  }
  create(s, schedule("a", "quick", R"("interval":"PT10M")"));
  EXPECT_EQ(outcomes(s, "a"), "") << "a new schedule of that name has no old runs";
  s.verify();
}

TEST(schedules, a_start_that_is_refused_is_recorded_and_the_schedule_goes_on) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("interval":"PT1M")"));
  s.post("/pawl/v1/processes/definitions/quick/retire", R"({"reason":"old"})");
  s.pass(kMinute);
  EXPECT_EQ(outcomes(s, "a"), "failed");
  json::Value runs = s.get(kAll + "/a/runs");
  EXPECT_NE(runs.find("items")->array()[0].string_or("message").find("is retired"),
            std::string::npos);
  EXPECT_EQ(count(s, "quick"), 0u);
  s.post("/pawl/v1/processes/definitions/quick/activate", R"({"version":1})");
  s.pass(kMinute);
  EXPECT_EQ(outcomes(s, "a"), "failed started");
  s.verify();
}

TEST(schedules, start_and_end_bound_the_runs) {
  FaceFixture s;
  s.upload(kQuick);
  const std::string start = rfc3339(s.time + kHour), end = rfc3339(s.time + 2 * kHour);
  create(s, schedule("a", "quick",
                     R"("interval":"PT30M","startAt":")" + start + R"(","endAt":")" + end + "\""));
  s.pass(5 * kHour);
  EXPECT_EQ(counted(s, "a", "started"), 3);
  EXPECT_EQ(s.get(kAll + "/a").string_or("state"), "finished");
  EXPECT_EQ(s.open_timers(), 0u);
  s.verify();
}

TEST(schedules, replace_keeps_the_counts_and_moves_the_timer) {
  FaceFixture s;
  s.upload(kQuick);
  create(s, schedule("a", "quick", R"("interval":"PT10M")"));
  s.pass(10 * kMinute);
  s.post(kAll, schedule("a", "quick", R"("interval":"PT1M")"));
  EXPECT_EQ(s.last_status, 409);
  json::Value replaced =
      s.call("PUT", kAll + "/a", R"({"definitionId":"quick","interval":"PT1M"})");
  EXPECT_EQ(s.last_status, 200) << json::print(replaced);
  EXPECT_EQ(s.open_timers(), 1u);
  s.pass(3 * kMinute);
  EXPECT_EQ(counted(s, "a", "started"), 4);
  s.call("PUT", kAll + "/a", R"({"id":"b","definitionId":"quick","interval":"PT1M"})");
  EXPECT_EQ(s.last_status, 400);
  s.call("PUT", kAll + "/b", R"({"definitionId":"quick","interval":"PT1M"})");
  EXPECT_EQ(s.last_status, 200) << "PUT creates as well";
  s.verify();
}

TEST(schedules, bad_schedules_are_refused_and_change_nothing) {
  FaceFixture s;
  s.upload(kQuick);
  for (const auto& [document, status] : std::initializer_list<std::pair<std::string, int>>{
           {schedule("a b", "quick", R"("interval":"PT1M")"), 400},
           {schedule("", "quick", R"("interval":"PT1M")"), 400},
           {schedule("a", "", R"("interval":"PT1M")"), 400},
           {schedule("a", "nothing", R"("interval":"PT1M")"), 404},
           {schedule("a", "quick", R"("interval":"PT1M","overlap":"perhaps")"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","catchUp":"some")"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","every":1)"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","variables":[1])"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","definitionVersion":0)"), 400},
           {schedule("a", "quick", R"("cron":"0 0 30 2 *")"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","endAt":"2001-01-01T00:00:00Z")"), 400},
           {schedule("a", "quick", R"("interval":"PT1M","startAt":"soon")"), 400},
           {schedule(
                "a", "quick",
                R"("interval":"PT1M","description":")" + std::string(kScheduleBytes, 'x') + "\""),
            413},
           {"[]", 400}}) {
    json::Value answer = s.post(kAll, document);
    EXPECT_EQ(s.last_status, status) << document.substr(0, 200) << json::print(answer);
    EXPECT_FALSE(answer.string_or("reason").empty());
  }
  EXPECT_EQ(s.get(kAll).find("items")->array().size(), 0u);
  EXPECT_EQ(s.open_timers(), 0u);
}

TEST(schedules, a_tenant_has_a_limited_number_and_sees_only_its_own) {
  FaceFixture s;
  s.upload(kQuick);
  for (size_t i = 0; i < kMaxSchedules; ++i)
    create(s, schedule("s" + std::to_string(i), "quick", R"("cron":"0 0 1 1 *")"));
  s.post(kAll, schedule("more", "quick", R"("cron":"0 0 1 1 *")"));
  EXPECT_EQ(s.last_status, 429);
  json::Value page = s.get(kAll + "?limit=2");
  ASSERT_EQ(page.find("items")->array().size(), 2u);
  json::Value second = s.get(kAll + "?limit=2&after=" + std::string(page.string_or("after")));
  EXPECT_GT(second.find("items")->array()[0].string_or("id"), page.string_or("after"));
  EXPECT_EQ(s.get(kAll + "?definitionId=other").find("items")->array().size(), 0u);
  s.tenant = "other";
  EXPECT_EQ(s.get(kAll).find("items")->array().size(), 0u);
  s.get(kAll + "/s1");
  EXPECT_EQ(s.last_status, 404);
  s.post(kAll + "/s1/trigger");
  EXPECT_EQ(s.last_status, 404);
  s.upload(kQuick);
  create(s, schedule("s1", "quick", R"("interval":"PT1M")"));
  s.pass(kMinute);
  EXPECT_EQ(outcomes(s, "s1"), "started");
  s.tenant = FaceFixture::kTenant;
  EXPECT_EQ(outcomes(s, "s1"), "");
}

}  // namespace
}  // namespace pawl::processes
