// Limits of jobs: at most so many at a time and so often, for each key. Every way in which a job
// ends frees its slot in the same turn.

#include "faces/processes/face_fixture_test.h"
#include "faces/processes/state/limiter.h"

namespace pawl::processes {
namespace {

const std::string kOps = "/pawl/v1/processes/instances/";

// A SERVICE_TASK "a" of type "j" under the limit, then the end. `more` is further members of the
// step.
std::string limited(const std::string& limit, const std::string& more = "") {
  return definition(
      "d", R"({"id":"a","name":"a","type":"SERVICE_TASK","jobType":"j","nextStep":"end",)" + more +
               R"("limit":)" + limit + "}," + kEnd);
}

std::string refusal_of(const std::string& document) {
  FaceFixture s;
  json::Value answer = s.post("/v1/definitions", document);
  EXPECT_EQ(s.last_status, 400);
  return std::string(answer.string_or("reason"));
}

// The cells that limiters have: none once no job is left.
size_t limiter_cells(FaceFixture& s) {
  size_t found = 0;
  auto count = [&](BytesView, const Cell&) { return ++found > 0; };
  for (const Key& prefix :
       {limiter_prefix(), key({kProgram, "t", "r", ""}), key({kProgram, "t", "q", ""}),
        key({kProgram, "t", "p", ""}), key({kProgram, "t", "f", ""})})
    EXPECT_TRUE(s.snapshot().scan(prefix, count));
  return found;
}

std::string job_of(FaceFixture& s, const std::string& instance) {
  json::Value tokens = *s.get(kOps + instance).find("tokens");
  return std::string(tokens.array().at(0).string_or("jobId"));
}

TEST(limits, a_bad_limit_is_refused_with_the_step) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"concurrent":0})", "step \"a\" limit.concurrent must be an integer from 1"},
      {R"({"concurrent":"3"})", "limit: concurrent must be an integer"},
      {R"({"concurrent":1.5})", "limit: concurrent must be an integer"},
      {R"({"key":"x"})", "step \"a\" limit needs concurrent, rate or both"},
      {R"({"rate":"10"})", "step \"a\" limit.rate \"10\" is not a rate"},
      {R"({"rate":"0/s"})", "is not a rate"},
      {R"({"rate":"10/x"})", "is not a rate"},
      {R"({"rate":"-1/s"})", "is not a rate"},
      {R"({"rate":"200000/s"})", "is not a rate"},
      {R"({"concurrent":1,"burst":2})", "limit.burst needs a rate"},
      {R"({"concurrent":1,"key":"1 +"})", "step \"a\" limit.key is not an expression"},
      {R"({"concurrent":1,"per":"x"})", "step \"a\" limit: unknown field \"per\""},
      {R"({"concurrent":1,"key":5})", "limit: key must be a string"},
      {R"(5)", "step \"a\": limit must be an object"},
  };
  for (const auto& [limit, wanted] : cases)
    EXPECT_NE(refusal_of(limited(limit)).find(wanted), std::string::npos)
        << limit << " -> " << refusal_of(limited(limit));
  std::string elsewhere = definition(
      "d",
      R"({"id":"w","name":"w","type":"WAIT","nextStep":"end","limit":{"concurrent":1}},)" + kEnd);
  EXPECT_NE(refusal_of(elsewhere).find("step \"w\": limit belongs to"), std::string::npos);
  EXPECT_NE(refusal_of(definition("d", kEnd, R"("limit":{"concurrent":-1},)"))
                .find("definition limit.concurrent"),
            std::string::npos);
}

TEST(limits, jobs_over_the_limit_wait_in_order_for_each_key) {
  FaceFixture s;
  s.upload(limited(R"({"key":"customer","concurrent":2})"));
  std::vector<std::string> a, b;
  for (int i = 0; i < 5; ++i)
    a.push_back(job_of(s, s.start("d", R"({"customer":"x"})")));
  b.push_back(job_of(s, s.start("d", R"({"customer":"y"})")));
  EXPECT_EQ(s.open_job_ids(), (std::set<std::string>{a[0], a[1], b[0]}));
  EXPECT_EQ(s.complete(a[1]), 204);
  EXPECT_EQ(s.open_job_ids(), (std::set<std::string>{a[0], a[2], b[0]}));
  EXPECT_EQ(s.complete(a[3]), 204) << "a waiting job may be completed by its id";
  EXPECT_EQ(s.open_job_ids(), (std::set<std::string>{a[0], a[2], b[0]}));
  for (const std::string& job : {a[0], a[2], a[4], b[0]})
    EXPECT_EQ(s.complete(job), 204);
  EXPECT_EQ(s.open_jobs(), 0u);
  EXPECT_EQ(limiter_cells(s), 0u);
  s.verify();
}

TEST(limits, every_way_a_job_ends_frees_its_slot) {
  struct Way {
    const char* name;
    std::function<void(FaceFixture&, const std::string& instance, const std::string& job)> end;
  };
  auto order = [](const char* operation, const char* body = R"({"reason":"r"})") {
    return [=](FaceFixture& s, const std::string& instance, const std::string&) {
      s.post(kOps + instance + "/" + operation, body);
      EXPECT_EQ(s.last_status, 200) << operation;
    };
  };
  auto failed = [](bool retryable) {
    return [=](FaceFixture& s, const std::string&, const std::string& job) {
      s.post("/v1/jobs/" + job + "/fail", std::string(R"({"workerId":"w","errorMessage":"e",)") +
                                              "\"retryable\":" + (retryable ? "true}" : "false}"));
    };
  };
  const Way ways[] = {
      {"complete", [](FaceFixture& s, auto&, const std::string& job) { s.complete(job); }},
      {"fail", failed(false)},
      {"fail and retry", failed(true)},
      {"cancel", [](FaceFixture& s, const std::string& id,
                    auto&) { s.post("/v1/instances/" + id + "/cancel"); }},
      {"operator cancels", order("cancel")},
      {"skip", order("skip")},
      {"move", order("move", R"({"to":"end","reason":"r"})")},
      {"pause", order("pause")},
      {"migrate", order("migrate", R"({"version":2,"reason":"r"})")},
      {"timer", [](FaceFixture& s, auto&, auto&) { s.pass(59 * kSecond + kSecond / 2); }},
  };
  for (const Way& way : ways) {
    FaceFixture s;
    // The boundary timer of the first instance only: the others are started later.
    std::string timer =
        R"("retryCount":3,"boundaryEvents":[{"type":"TIMER","duration":"PT1M","interrupting":true,"targetStepId":"end"}],)";
    s.upload(limited(R"({"concurrent":1})", timer));
    s.upload(limited(R"({"concurrent":1,"key":"'v2'"})", timer));
    auto begin = [&] {
      json::Value made = s.post("/v1/instances", R"({"definitionId":"d","definitionVersion":1})");
      return std::string(made.string_or("id"));
    };
    std::string first = begin();
    std::string job = job_of(s, first);
    s.pass(kSecond);
    std::string second_job = job_of(s, begin());
    EXPECT_EQ(s.open_job_ids(), std::set<std::string>{job}) << way.name;
    way.end(s, first, job);
    EXPECT_TRUE(s.open_job_ids().contains(second_job)) << way.name;
    EXPECT_FALSE(s.open_job_ids().contains(job) && std::string(way.name) != "migrate") << way.name;
    s.verify();
  }
}

TEST(limits, a_retry_that_is_not_due_holds_no_slot) {
  FaceFixture s;
  s.upload(limited(R"({"concurrent":1})", R"("retryCount":3,"retryBackoff":{"initial":"PT10S"},)"));
  std::string id = s.start("d"), first = job_of(s, id), second = job_of(s, s.start("d"));
  s.post("/v1/jobs/" + first + "/fail", R"({"workerId":"w","errorMessage":"e","retryable":true})");
  first = job_of(s, id);  // each attempt has its own
  EXPECT_EQ(s.open_job_ids(), std::set<std::string>{second});
  s.pass(11 * kSecond);
  EXPECT_EQ(s.open_job_ids(), std::set<std::string>{second}) << "it waits for the slot now";
  EXPECT_EQ(s.complete(second), 204);
  EXPECT_EQ(s.open_job_ids(), std::set<std::string>{first});
  s.post("/v1/jobs/" + first + "/fail", R"({"workerId":"w","errorMessage":"e","retryable":true})");
  EXPECT_EQ(s.open_jobs(), 0u);
  EXPECT_EQ(s.complete(first), 204) << "a late result of an earlier attempt changes nothing";
  EXPECT_EQ(s.status(id), "ACTIVE");
  EXPECT_EQ(s.complete(job_of(s, id)), 204) << "a result ends a delayed job";
  EXPECT_EQ(s.open_timers(), 0u);
  EXPECT_EQ(limiter_cells(s), 0u);
  s.verify();
}

TEST(limits, a_rate_spreads_jobs_evenly) {
  FaceFixture s;
  s.upload(limited(R"({"rate":"10/s"})"));
  for (int i = 0; i < 25; ++i)
    s.start("d");
  EXPECT_EQ(s.open_jobs(), 1u);
  s.pass(kSecond);
  EXPECT_EQ(s.open_jobs(), 11u);
  s.pass(kSecond);
  EXPECT_EQ(s.open_jobs(), 21u);
  s.pass(5 * kSecond);
  EXPECT_EQ(s.open_jobs(), 25u);
  while (s.open_jobs())
    s.finish("j");
  EXPECT_EQ(limiter_cells(s), 0u) << "an unused limiter leaves nothing behind";
  EXPECT_EQ(s.open_timers(), 0u);
  s.verify();
}

TEST(limits, a_burst_may_begin_at_once) {
  FaceFixture s;
  s.upload(limited(R"({"rate":"5/h","burst":5,"concurrent":100})"));
  for (int i = 0; i < 10; ++i)
    s.start("d");
  EXPECT_EQ(s.open_jobs(), 5u);
  s.pass(12 * 60 * kSecond);
  EXPECT_EQ(s.open_jobs(), 6u);
  s.pass(10 * 3600 * kSecond);
  EXPECT_EQ(s.open_jobs(), 10u);
  s.verify();
}

TEST(limits, a_definition_has_one_limit_for_all_its_steps_and_names_are_shared) {
  FaceFixture s;
  auto task = [](const std::string& id, const std::string& next, const std::string& more = "") {
    return R"({"id":")" + id + R"(","name":"n","type":"SERVICE_TASK","jobType":"j","nextStep":")" +
           next + "\"" + more + "},";
  };
  s.upload(
      definition("one", task("a", "b") + task("b", "end") + kEnd, R"("limit":{"concurrent":1},)"));
  s.start("one");
  s.start("one");
  EXPECT_EQ(s.open_jobs(), 1u);
  s.finish("j");
  EXPECT_EQ(s.open_jobs(), 1u) << "step b of the first waits behind step a of the second";
  for (const char* id : {"two", "three"})
    s.upload(definition(id, task("a", "end", R"(,"limit":{"name":"crm","concurrent":1})") + kEnd));
  s.start("two");
  s.start("three");
  EXPECT_EQ(s.open_jobs(), 2u);
  s.verify();
}

TEST(limits, a_key_that_cannot_be_evaluated_fails_the_step) {
  FaceFixture s;
  s.upload(limited(R"({"key":"customer","concurrent":1})"));
  std::string id = s.start("d");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_NE(s.reason(id).find("customer"), std::string::npos) << s.reason(id);
  std::string list = s.start("d", R"({"customer":[1]})");
  EXPECT_NE(s.reason(list).find("LimitKeyInvalid"), std::string::npos) << s.reason(list);
  std::string length = s.start("d", R"({"customer":")" + std::string(300, 'x') + "\"}");
  EXPECT_NE(s.reason(length).find("may have 256 bytes"), std::string::npos) << s.reason(length);
  s.post(kOps + id + "/retry", R"({"reason":"r","variables":{"customer":"x"}})");
  EXPECT_EQ(s.open_jobs(), 1u);
  // While it is paused the key becomes unusable.
  s.post(kOps + id + "/pause", R"({"reason":"r"})");
  s.post(kOps + id + "/variables", R"({"reason":"r","remove":["customer"]})");
  s.post(kOps + id + "/resume", R"({"reason":"r"})");
  EXPECT_EQ(s.status(id), "FAILED");
  EXPECT_EQ(s.open_jobs(), 0u);
  EXPECT_EQ(limiter_cells(s), 0u);
  s.verify();
}

TEST(limits, an_instance_without_limits_has_the_bytes_it_had_before) {
  Instance i;
  i.variables = make_variables({});
  i.tokens.push_back({.step = 1});
  size_t plain = encode(i).size();
  i.tokens[0].limit = LimitUse{"d/a", "x", 3, 7, 2};
  i.priority = -5;
  i.fairness_key = "k";
  auto back = decode_instance(encode(i));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->tokens[0].limit->scope, "d/a");
  EXPECT_EQ(back->tokens[0].limit->concurrent, 3u);
  EXPECT_EQ(back->tokens[0].limit->interval, 7);
  EXPECT_EQ(back->tokens[0].limit->burst, 2u);
  EXPECT_EQ(back->priority, -5);
  EXPECT_EQ(back->fairness_key, "k");
  back->tokens[0].limit.reset();
  back->priority = 0;
  back->fairness_key.clear();
  EXPECT_EQ(encode(*back).size(), plain);
}

// The limiter of one key, written down as simply as possible: for each priority, the fairness keys
// in the order of their turns, each with its jobs.
struct ReferenceLimiter {
  size_t concurrent;
  std::set<std::string> running{};
  struct Lane {
    std::string fairness_key;
    std::deque<std::string> jobs;
  };
  std::map<int, std::deque<Lane>, std::greater<>> levels{};
  void request(const std::string& id, int priority, const std::string& fairness_key) {
    auto& lanes = levels[priority];
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const Lane& l) { return l.fairness_key == fairness_key; });
    if (lane == lanes.end()) lane = lanes.insert(lane, {fairness_key, {}});
    lane->jobs.push_back(id);
    admit();
  }
  void release(const std::string& id) {
    running.erase(id);
    for (auto& [priority, lanes] : levels)
      for (Lane& lane : lanes)
        std::erase(lane.jobs, id);
    admit();
  }
  void admit() {
    for (auto& [priority, lanes] : levels) {
      std::erase_if(lanes, [](const Lane& l) { return l.jobs.empty(); });
      while (running.size() < concurrent && !lanes.empty()) {
        Lane lane = std::move(lanes.front());
        lanes.pop_front();
        running.insert(lane.jobs.front());
        lane.jobs.pop_front();
        if (!lane.jobs.empty()) lanes.push_back(std::move(lane));
      }
    }
  }
};

// Plays random orders against the face and against a reference limiter for each key.
class RandomOrders {
 public:
  explicit RandomOrders(uint64_t seed) : dice_({seed, 3}) {
    face.upload(
        definition("d",
                   R"({"id":"a","name":"a","type":"SERVICE_TASK","jobType":"j","nextStep":"end",
            "retryCount":1000,"limit":{"key":"k","concurrent":3}},)" +
                       kEnd,
                   R"("priority":"p","fairnessKey":"f",)"));
  }
  void play() {
    uint64_t act = dice_.next() % 10;
    if (runs_.empty() || act < 3) return begin();
    size_t at = dice_.next() % runs_.size();
    Run& run = runs_[at];
    if (run.paused || run.failed) return go_on(run);
    if (act < 7) {
      if (act < 6)
        EXPECT_EQ(face.complete(run.job), 204);
      else
        face.post("/v1/instances/" + run.id + "/cancel");
      model_.at(run.key).release(run.job);
      runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (act == 7) {
      order(run, "pause");
      run.paused = true;
      model_.at(run.key).release(run.job);
    } else {
      fail(run, act == 8);
    }
  }
  std::set<std::string> expected() const {
    std::set<std::string> out;
    for (const auto& [k, one] : model_)
      out.insert(one.running.begin(), one.running.end());
    return out;
  }
  void cancel_all() {
    for (const Run& run : runs_)
      order(run, "cancel");
  }

  FaceFixture face;

 private:
  struct Run {
    std::string id, key, job;
    int priority = 0;
    std::string fairness_key{};
    bool paused = false, failed = false;
  };
  void begin() {
    std::string k(1, static_cast<char>('a' + dice_.next() % 3));
    Run run{.id = "", .key = k, .job = ""};
    run.priority = static_cast<int>(dice_.next() % 2);
    if (uint64_t f = dice_.next() % 4) run.fairness_key = std::string(1, "-fgh"[f]);
    run.id = face.start("d", R"({"k":")" + k + R"(","p":)" + std::to_string(run.priority) +
                                 R"(,"f":")" + run.fairness_key + "\"}");
    run.job = job_of(face, run.id);
    model_.try_emplace(k, ReferenceLimiter{3});
    request(run);
    runs_.push_back(run);
  }
  void go_on(Run& run) {
    order(run, run.paused ? "resume" : "retry");
    run.paused = run.failed = false;
    run.job = job_of(face, run.id);  // a retry by an operator is a new job
    request(run);
  }
  void request(const Run& run) {
    model_.at(run.key).request(run.job, run.priority, run.fairness_key);
  }
  void fail(Run& run, bool retryable) {
    face.post("/v1/jobs/" + run.job + "/fail",
              std::string(R"({"workerId":"w","errorMessage":"e","retryable":)") +
                  (retryable ? "true}" : "false}"));
    run.failed = !retryable;
    model_.at(run.key).release(run.job);
    if (!retryable) return;
    run.job = job_of(face, run.id);  // each attempt has its own
    request(run);
  }
  void order(const Run& run, const std::string& operation) {
    face.post(kOps + run.id + "/" + operation, R"({"reason":"r"})");
    EXPECT_EQ(face.last_status, 200) << operation;
  }

  Dice dice_;
  std::map<std::string, ReferenceLimiter> model_;
  std::vector<Run> runs_;
};

TEST(limits, random_orders_agree_with_a_simple_limiter) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    RandomOrders orders(seed);
    for (int step = 0; step < 400; ++step) {
      orders.play();
      ASSERT_EQ(orders.face.open_job_ids(), orders.expected())
          << "seed " << seed << " step " << step;
    }
    orders.cancel_all();
    EXPECT_EQ(orders.face.open_jobs(), 0u);
    EXPECT_EQ(limiter_cells(orders.face), 0u);
    orders.face.verify();
  }
}

TEST(limits, a_limiter_without_lanes_has_the_bytes_it_had_before) {
  Limiter limiter{.running = 1, .waiting = 2, .next = 3, .wake = 4, .levels = {}};
  limiter.levels.push_back({.priority = 5, .first = "-", .last = "-", .plain = {"a", "b"}});
  EXPECT_EQ(encode(limiter), Bytes("\x01\x01\x02\x06\x08\x01\x0a\x01"
                                   "a\x01"
                                   "b"));
  auto back = decode_limiter(encode(limiter));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->levels[0].plain.last, "b");
  EXPECT_EQ(back->levels[0].first, "-");
  limiter.levels[0].last = lane_name("x");
  limiter.levels[0].plain.after = lane_name("x");
  back = decode_limiter(encode(limiter));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->levels[0].last, "kx");
  EXPECT_EQ(back->levels[0].plain.after, "kx");
  EXPECT_FALSE(decode_limiter(encode(limiter) + "x"));
}

TEST(limits, many_waiting_jobs_start_in_several_turns) {
  FaceFixture s;
  s.upload(limited(R"({"name":"n","concurrent":1})"));
  s.upload(definition("wide",
                      R"({"id":"a","name":"a","type":"SERVICE_TASK","jobType":"k","nextStep":"end",
                          "limit":{"name":"n","concurrent":1000}},)" +
                          kEnd));
  s.start("d");
  s.start("d");  // the head of the queue, which keeps all others waiting
  for (int i = 0; i < 500; ++i)
    s.start("wide");
  EXPECT_EQ(s.open_jobs(), 1u);
  s.finish("j");
  EXPECT_EQ(s.open_jobs(), 200u) << "one turn starts no more";
  s.pass(kSecond);
  EXPECT_EQ(s.open_jobs(), 501u);
  s.verify();
}

}  // namespace
}  // namespace pawl::processes
