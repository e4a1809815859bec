// The explanation of a job that waits, and the priority and fairness key of an instance.

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

const std::string kOps = "/pawl/v1/processes/instances/";

std::string task(const std::string& more = "") {
  return R"({"id":"a","name":"a","type":"SERVICE_TASK","jobType":"j","nextStep":"end")" + more +
         "}," + kEnd;
}

std::string job_of(FaceFixture& s, const std::string& instance) {
  json::Value tokens = *s.get(kOps + instance).find("tokens");
  return std::string(tokens.array().at(0).string_or("jobId"));
}

// "state: reason" of the job.
std::string explained(FaceFixture& s, const std::string& job) {
  json::Value answer = s.get("/v1/jobs/" + job + "/explain");
  if (s.last_status != 200) return std::to_string(s.last_status);
  return std::string(answer.string_or("state")) + ": " + std::string(answer.string_or("reason"));
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text << "\n lacks " << part;
}

TEST(explain, says_what_a_job_waits_for) {
  FaceFixture s;
  s.upload(definition(
      "d",
      task(
          R"(,"retryCount":3,"retryBackoff":{"initial":"PT10S"},"limit":{"key":"k","concurrent":2})")));
  std::vector<std::string> jobs, ids;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(s.start("d", R"({"k":"x"})"));
    jobs.push_back(job_of(s, ids.back()));
  }
  expect_part(explained(s, jobs[0]),
              "offered: 1 job of job type \"j\" offered, and no worker polls");
  expect_part(explained(s, jobs[3]),
              "waiting-for-slot: waits for a slot of limit \"d/a\" for key \"x\": 2 of 2 run, "
              "position 2 of 3 in the queue");
  json::Value answer = s.get("/v1/jobs/" + jobs[4] + "/explain");
  EXPECT_EQ(json::print(*answer.find("position")), "3");
  EXPECT_EQ(json::print(*answer.find("heldBy")), "[\"" + jobs[0] + "\",\"" + jobs[1] + "\"]");
  std::string taken = s.take("j");
  expect_part(explained(s, taken), "leased: leased by worker \"w\" until ");
  s.post("/v1/jobs/" + taken + "/fail", R"({"workerId":"w","errorMessage":"e","retryable":true})");
  expect_part(explained(s, taken), "delayed: a retry waits for its backoff until ");
  s.post("/pawl/v1/processes/job-types/j/pause");
  expect_part(explained(s, jobs[1] == taken ? jobs[0] : jobs[1]),
              "paused: job type \"j\" is paused");
  s.post(kOps + ids[4] + "/pause");
  expect_part(explained(s, jobs[4]), "suspended: instance");
  EXPECT_EQ(s.complete(jobs[3]), 204);
  expect_part(explained(s, jobs[3]), "done: the job ended at ");
  EXPECT_EQ(explained(s, ids[0]), "404");
  EXPECT_EQ(explained(s, "nonsense"), "404");
}

TEST(explain, says_when_a_rate_lets_a_job_run) {
  FaceFixture s;
  s.upload(definition("d", task(R"(,"limit":{"rate":"1/m"})")));
  std::vector<std::string> jobs;
  for (int i = 0; i < 4; ++i)
    jobs.push_back(job_of(s, s.start("d")));
  Time begin = s.time;
  for (int i = 1; i < 4; ++i) {
    json::Value answer = s.get("/v1/jobs/" + jobs[static_cast<size_t>(i)] + "/explain");
    EXPECT_EQ(answer.string_or("state"), "waiting-for-rate");
    EXPECT_EQ(answer.string_or("mayRunAt"), rfc3339(begin + i * 60 * kSecond, 6));
  }
  s.pass(60 * kSecond);
  EXPECT_TRUE(s.open_job_ids().contains(jobs[1]));
}

TEST(fairness, the_definition_or_the_start_sets_priority_and_key) {
  FaceFixture s;
  s.upload(definition("d", task(), R"("priority":"vip ? 10 : 0","fairnessKey":"customer",)"));
  auto effect = [&](const std::string& id) { return s.open_effect(job_of(s, id)); };
  std::string vip = s.start("d", R"({"vip":true,"customer":"x"})");
  EXPECT_EQ(effect(vip)->priority, 10);
  EXPECT_EQ(effect(vip)->fairness_key, "x");
  json::Value shown = s.get("/v1/instances/" + vip);
  EXPECT_EQ(json::print(*shown.find("priority")), "10");
  EXPECT_EQ(shown.string_or("fairnessKey"), "x");
  json::Value made = s.post(
      "/v1/instances", R"({"definitionId":"d","priority":-3,"fairnessKey":"y","variables":{}})");
  EXPECT_EQ(effect(std::string(made.string_or("id")))->priority, -3);
  EXPECT_EQ(effect(std::string(made.string_or("id")))->fairness_key, "y");
  EXPECT_EQ(s.status(s.start("d")), "FAILED") << "the variables of the expressions are missing";
  for (const char* bad :
       {R"("priority":1001)", R"("priority":-1001)", R"("priority":"x")", R"("fairnessKey":5)"}) {
    s.post("/v1/instances", R"({"definitionId":"d",)" + std::string(bad) + "}");
    EXPECT_EQ(s.last_status, 400) << bad;
  }
  s.upload(definition("n", task(), R"("priority":"'high'",)"));
  expect_part(s.reason(s.start("n")), "PriorityInvalid");
  s.post("/v1/definitions", definition("m", task(), R"("priority":"1 +",)"));
  EXPECT_EQ(s.last_status, 400);
  s.verify();
}

TEST(fairness, a_limit_lets_the_highest_priority_run_first) {
  FaceFixture s;
  s.upload(definition("d", task(R"(,"limit":{"concurrent":1})"), R"("priority":"p",)"));
  auto begin = [&](int priority) {
    return job_of(s, s.start("d", R"({"p":)" + std::to_string(priority) + "}"));
  };
  std::string first = begin(0), low = begin(-1), plain = begin(0), high = begin(5),
              higher = begin(9), high2 = begin(5);
  for (const std::string& job : {first, higher, high, high2, plain, low}) {
    EXPECT_EQ(s.open_job_ids(), std::set<std::string>{job});
    EXPECT_EQ(s.complete(job), 204);
  }
  s.verify();
}

TEST(fairness, a_chained_instance_keeps_the_priority) {
  FaceFixture s;
  s.upload(definition("next", task()));
  s.upload(definition(
      "d", task(),
      R"("priority":"4","fairnessKey":"'k'","autoStartNextWorkflow":true,"nextWorkflowId":"next",)"));
  std::string id = s.start("d");
  s.finish("j");
  std::string next(s.get("/v1/instances/" + id).string_or("nextInstanceId"));
  EXPECT_EQ(s.open_effect(job_of(s, next))->priority, 4);
  EXPECT_EQ(s.open_effect(job_of(s, next))->fairness_key, "k");
  s.verify();
}

TEST(fairness, an_effect_without_priority_has_the_bytes_it_had_before) {
  Effect e{"id", To::worker, "processes", "t", "q", 7, "body"};
  Bytes before = encode(e);
  EXPECT_EQ(before, Bytes("\x02\x02"
                          "id\x09"
                          "processes\x01t\x01q\x0e\x04"
                          "body"));
  e.priority = -7;
  e.fairness_key = "k";
  auto back = decode_effect(encode(e));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->priority, -7);
  EXPECT_EQ(back->fairness_key, "k");
  EXPECT_EQ(decode_effect(before)->priority, 0);
  EXPECT_FALSE(decode_effect(before + "\x01"));
}

}  // namespace
}  // namespace pawl::processes
