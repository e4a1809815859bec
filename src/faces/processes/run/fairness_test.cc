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
  expect_part(explained(s, taken), "done: the job is done");
  std::string again = job_of(s, ids[taken == jobs[0] ? 0 : 1]);  // each attempt has its own
  expect_part(explained(s, again), "delayed: a retry waits for its backoff until ");
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

TEST(fairness, a_limit_serves_the_fairness_keys_in_turn) {
  FaceFixture s;
  s.upload(definition("d", task(R"(,"limit":{"concurrent":1})"), R"("fairnessKey":"c",)"));
  auto begin = [&](const std::string& customer) {
    return job_of(s, s.start("d", R"({"c":")" + customer + "\"}"));
  };
  // One customer has many jobs and was first; the others have one or two.
  std::string running = begin("big");
  std::vector<std::string> big, small;
  for (int i = 0; i < 4; ++i)
    big.push_back(begin("big"));
  std::string a = begin("a"), plain = begin(""), a2 = begin("a");
  const std::vector<std::string> order{running, big[0], a, plain, big[1], a2, big[2], big[3]};
  for (size_t i = 1; i < order.size(); ++i) {
    json::Value answer = s.get("/v1/jobs/" + order[i] + "/explain");
    EXPECT_EQ(answer.find("position")->as_int64(), static_cast<int64_t>(i));
  }
  for (const std::string& job : order) {
    EXPECT_EQ(s.open_job_ids(), std::set<std::string>{job});
    EXPECT_EQ(s.complete(job), 204);
  }
  s.verify();
}

TEST(fairness, the_expressions_are_charged_to_the_turn) {
  const std::string text = std::string(1'000'000, 'x');
  auto reason = [&](const std::string& more, const std::string& limit) {
    FaceFixture s;
    std::string steps;
    for (const char* id : {"t1", "t2", "t3", "t4"})
      steps += R"({"id":")" + std::string(id) +
               R"(","name":"t","type":"TRANSFORMATION","transformations":{"y":"${)" +
               R"(count(1..100, s contains \"abc\"))" + R"(}"},"nextStep":")" +
               (id[1] == '4' ? "a" : "t" + std::string(1, static_cast<char>(id[1] + 1))) + "\"},";
    s.upload(definition("d", steps + task(limit), more));
    return s.reason(s.start("d", R"({"s":")" + text + "\"}"));
  };
  const std::string quoted = R"(count(1..250, s contains \"abc\"))";
  EXPECT_EQ(reason("", ""), "");
  expect_part(reason(R"("priority":")" + quoted + "\",", ""), "WorkLimitReached");
  expect_part(reason(R"("fairnessKey":")" + quoted + "\",", ""), "WorkLimitReached");
}

TEST(fairness, the_jobs_of_a_resumed_instance_are_charged_to_the_turn) {
  FaceFixture s;
  std::string tasks, names;
  for (int i = 0; i < 300; ++i) {
    std::string id = "s" + std::to_string(i);
    names += (i ? ",\"" : "\"") + id + "\"";
    tasks += R"({"id":")" + id + R"(","name":"n","type":"SERVICE_TASK","jobType":"j",
                "limit":{"concurrent":1,"key":"s contains \"abc\" ? n : n"},"nextStep":"join"},)";
  }
  s.upload(definition(
      "d", R"({"id":"g","name":"g","type":"PARALLEL_GATEWAY","parallelNextSteps":[)" + names +
               R"(],"joinStep":"join"},)" + tasks +
               R"({"id":"join","name":"j","type":"JOIN_GATEWAY","nextStep":"end"},)" + kEnd));
  std::string id = s.start("d", R"({"s":"x","n":1})");
  ASSERT_EQ(s.status(id), "ACTIVE");
  s.post(kOps + id + "/pause", R"({"reason":"r"})");
  s.post(kOps + id + "/variables",
         R"({"reason":"r","variables":{"s":")" + std::string(2'000'000, 'x') + "\"}}");
  ASSERT_EQ(s.last_status, 200);
  s.post(kOps + id + "/resume", R"({"reason":"r"})");
  EXPECT_EQ(s.status(id), "FAILED");
  expect_part(s.reason(id), "WorkLimitReached");
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
