// The processes face: three service tasks over REST, workflows without jobs, the pickup time of a
// job, timers and memory.

#include <fmt/format.h>

#include <deque>
#include <mutex>
#include <thread>

#include "bench/site.h"

namespace pawl::bench {

// linear: three jobs in a row. quick: no job, ends in its first turn. task: waits for a person.
static constexpr std::string_view kLinear = R"({"id":"linear","name":"Linear","steps":[
  {"id":"a","name":"A","type":"SERVICE_TASK","jobType":"work","nextStep":"b"},
  {"id":"b","name":"B","type":"SERVICE_TASK","jobType":"work","nextStep":"c"},
  {"id":"c","name":"C","type":"SERVICE_TASK","jobType":"work","nextStep":"end"},
  {"id":"end","name":"End","type":"END"}]})";
static constexpr std::string_view kQuick = R"({"id":"quick","name":"Quick","steps":[
  {"id":"t","name":"T","type":"TRANSFORMATION","transformations":{"sum":"${a + b}"},"nextStep":"d"},
  {"id":"d","name":"D","type":"DECISION","conditionalNextSteps":{"sum > 10":"big","sum <= 10":"small"}},
  {"id":"big","name":"Big","type":"END"},{"id":"small","name":"Small","type":"END"}]})";
static constexpr std::string_view kTask = R"({"id":"task","name":"Task","steps":[
  {"id":"u","name":"U","type":"USER_TASK","nextStep":"end"},{"id":"end","name":"End","type":"END"}]})";

// The job ids in the answer to a poll, without parsing the rest.
static void each_job(std::string_view body, const std::function<void(std::string)>& got) {
  for (size_t at = body.find("{\"id\":\""); at != std::string_view::npos;
       at = body.find("{\"id\":\"", at + 1))
    got(std::string(body.substr(at + 7, body.find('"', at + 7) - at - 7)));
}

// A worker: one connection polls batches of jobs, the others complete them.
static double linear(Site& site, double for_seconds) {
  std::mutex mutex;
  std::deque<std::string> jobs;
  std::atomic<uint64_t> started{0}, completed{0};
  std::atomic<bool> stop{false};
  std::string poll =
      request("POST", "/v1/jobs/poll",
              R"({"workerId":"w","jobTypes":["work"],"maxJobs":200,"maxWaitMs":20})");
  std::thread worker([&] {
    Load load{site.address(), 33, for_seconds + 1,
              [&](size_t c) -> std::string {
                if (stop) return {};
                std::lock_guard lock(mutex);
                if (c == 0) return jobs.size() < 2000 ? poll : std::string();
                if (jobs.empty()) return {};
                std::string id = std::move(jobs.front());
                jobs.pop_front();
                return request("POST", "/v1/jobs/" + id + "/complete",
                               R"({"workerId":"w","variables":{"x":1}})");
              },
              [&](size_t c, int status, std::string_view body) {
                CHECK(status < 400);
                if (c) return void(++completed);
                std::lock_guard lock(mutex);
                each_job(body, [&](std::string id) { jobs.push_back(std::move(id)); });
              }};
    load.until = [&] { return stop.load(); };
    run(load);
  });
  std::string text =
      request("POST", "/v1/instances",
              R"({"definitionId":"linear","variables":{"order":17,"name":"somebody"}})");
  Load clients{
      site.address(), 64, for_seconds,
      // At most 1,000 instances are in progress, so that starts do not run away from the worker.
      [&](size_t) { return started * 3 < completed + 3000 ? (++started, text) : std::string(); },
      [&](size_t, int status, std::string_view) { CHECK(status == 201); }};
  double begin = seconds();
  run(clients);
  double rate = static_cast<double>(completed) / 3 / (seconds() - begin);
  stop = true;
  worker.join();
  return rate;
}

// Completes the jobs that a run left open, so that the next run starts with none.
static void drain(Site& site) {
  std::vector<std::string> ids{""};
  while (!ids.empty()) {
    ids.clear();
    each_job(json::print(site.call("POST", "/v1/jobs/poll",
                                   R"({"workerId":"w","jobTypes":["work"],"maxJobs":1000})")),
             [&](std::string id) { ids.push_back(std::move(id)); });
    std::string batch;
    for (const std::string& id : ids)
      batch += (batch.empty() ? R"({"items":[{"workerId":"w","jobId":")"
                              : R"(,{"workerId":"w","jobId":")") +
               id + "\"}";
    if (!ids.empty()) site.call("POST", "/pawl/v1/processes/complete-batch", batch + "]}");
  }
}

// How long the server is idle before each request.
static constexpr double kIdle = 2e-3;

// The time from the start of an instance to the job in the hands of a worker that waits in a poll.
// Both run in this process, so one clock measures it.
static double pickup_us(Site& site) {
  std::atomic<double> woken{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> polls{0};
  std::thread worker([&] {
    std::string job;
    Load load{site.address(), 1, 30,
              [&](size_t) {
                if (!job.empty())
                  return request("POST", "/v1/jobs/" + std::exchange(job, {}) + "/complete",
                                 R"({"workerId":"w"})");
                ++polls;
                return request(
                    "POST", "/v1/jobs/poll",
                    R"({"workerId":"w","jobTypes":["pick"],"maxJobs":1,"maxWaitMs":10000})");
              },
              [&](size_t, int, std::string_view body) {
                each_job(body, [&](std::string id) {
                  woken = seconds();
                  job = id;
                });
              }};
    load.until = [&] { return stop.load(); };
    run(load);
  });
  Latencies l;
  double sent = 0;
  uint64_t answered = 0;  // polls that brought a job
  size_t left = 500;
  std::string text = request("POST", "/v1/instances", R"({"definitionId":"pick"})");
  Load client{site.address(), 1, 20, [&](size_t) -> std::string {
                if (sent != 0) {
                  if (woken < sent) return {};
                  l.us.push_back((woken - sent) * 1e6);
                  sent = 0;
                  --left;
                  ++answered;
                  return {};
                }
                if (polls == answered || left == 0) return {};
                pause(kIdle);  // by then the poll has arrived and all threads sleep
                sent = seconds();
                return text;
              }};
  client.until = [&] { return left == 0; };
  run(client);
  stop = true;
  worker.join();
  return l.p(50);
}

// 100,000 timers are due at one moment. Measures how long after it the last one has fired.
static double timers(Site& site, Report& report) {
  // Each batch has a definition of its own, whose duration is the time that is left until `due`.
  static constexpr size_t kTimers = 100'000, kBatch = 1000;
  double due = seconds() + 25;
  for (size_t i = 0; i < kTimers; i += kBatch) {
    std::string id = fmt::format("timer{}", i);
    site.call(
        "POST", "/v1/definitions",
        fmt::format(
            R"({{"id":"{}","name":"T","steps":[{{"id":"w","name":"W","type":"WAIT","nextStep":"end","boundaryEvents":[{{"type":"TIMER","duration":"PT{:.3f}S","interrupting":true,"targetStepId":"end"}}]}},{{"id":"end","name":"End","type":"END"}}]}})",
            id, due - seconds()));
    std::string item = fmt::format(R"({{"definitionId":"{}"}})", id), batch = R"({"items":[)";
    for (size_t k = 0; k < kBatch; ++k)
      batch += (k ? "," : "") + item;
    site.call("POST", "/pawl/v1/processes/start-batch", batch + "]}");
  }
  double left = due - seconds();
  report.line("100,000 timers armed; seconds left until they are due", left, "s");
  CHECK(left > 0);
  auto waiting = [&] {
    return site.call("GET", "/v1/instances?status=WAITING&pageSize=1")
        .find("total")
        ->as_int64()
        .value_or(-1);
  };
  CHECK(waiting() == static_cast<int64_t>(kTimers));  // none fired early
  while (waiting() != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return seconds() - due;
}

void bench_flow(Report& report, Facts&) {
  Site site("flow");
  for (auto definition : {kLinear, kQuick})
    site.call("POST", "/v1/definitions", definition);
  double bare = 0, three = 0, streamed = 0, quick = 0;
  for (int round = 0; round < 3; ++round) {
    bare += bare_load(64, 1).rps / 3;
    let_settle();  // a run must not pay for the work that the run before left
    three += linear(site, 2) / 3;
    drain(site);
    let_settle();
    streamed += linear_by_stream(site, 2) / 3;
    drain(site);
    std::string text =
        request("POST", "/v1/instances", R"({"definitionId":"quick","variables":{"a":3,"b":9}})");
    quick += run({site.address(), 64, 2, [&](size_t) { return text; }}).rps / 3;
  }
  report.line("bare HTTP, 64 connections", bare, "/s");
  report.line("three service tasks over REST, instances", three, "/s");
  report.bar({"instances x 4 / bare", three * 4 / bare, 0.25, true, ""});
  report.line("the same by stream and start-batch", streamed, "/s");
  report.bar({"by stream / over REST", streamed / three, 3, true, ""});
  report.line("TRANSFORMATION + DECISION", quick, "/s");
  report.bar({"workflows without jobs / bare", quick / bare, 0.30, true, ""});
}

// The stream alone, for profiling.
void bench_stream(Report& report, Facts&) {
  Site site("stream");
  site.call("POST", "/v1/definitions", kLinear);
  constexpr double kSeconds = 3;
  double cpu = cpu_seconds(), rate = linear_by_stream(site, kSeconds);
  report.line("three service tasks by stream, instances", rate, "/s");
  report.line("CPU of a turn, all threads", (cpu_seconds() - cpu) * 1e6 / (rate * 4 * kSeconds),
              "us");
}

void bench_pickup(Report& report, Facts& facts) {
  Site site("pickup");
  site.call(
      "POST", "/v1/definitions",
      R"({"id":"pick","name":"Pick","steps":[{"id":"a","name":"A","type":"SERVICE_TASK","jobType":"pick","nextStep":"e"},{"id":"e","name":"E","type":"END"}]})");
  double us = pickup_us(site);
  report.line("job creation to a waiting worker, p50", us, "us");
  // Both sides are idle for the same time, so the cost of waking a core cancels out.
  double append = raw_append_us(kIdle), round_trip = bare_load(1, 0.6, kIdle).p50_us;
  report.line("one append and one bare round trip, as idle", append + round_trip, "us");
  if (facts.append_us == 0) facts.append_us = raw_append_us();
  if (facts.bare_us == 0) facts.bare_us = bare_load(1, 0.5).p50_us;
  report.line("pickup / the two without idleness", us / (facts.append_us + facts.bare_us), "");
  report.bar(
      {"pickup / (raw append + bare round trip), idle", us / (append + round_trip), 2, false, ""});
}

void bench_timers(Report& report, Facts&) {
  Site site("timers");
  report.bar({"100,000 timers due at one moment: the last fired after", timers(site, report), 2,
              false, "s"});
}

void bench_waiting(Report& report, Facts&) {
  static constexpr size_t kWaiting = 1'000'000, kBatch = 1000, kTimed = 30;
  Site site("waiting");
  site.call("POST", "/v1/definitions", kTask);
  std::string batch = R"({"items":[)";
  for (size_t k = 0; k < kBatch; ++k)
    batch += std::string(k ? "," : "") +
             R"({"definitionId":"task","variables":{"customer":"somebody","amount":1200}})";
  batch += "]}";
  auto start = [&](size_t batches) {
    double begin = seconds();
    for (size_t k = 0; k < batches; ++k)
      site.call("POST", "/pawl/v1/processes/start-batch", batch);
    return seconds() - begin;
  };
  // Warm-up, so that caches and buffers are not counted as memory of instances.
  start(10);
  size_t before = resident_bytes();
  double first = start(kTimed);
  start(kWaiting / kBatch - 10 - 2 * kTimed);
  let_settle();
  double last = start(kTimed);
  size_t after = resident_bytes();
  report.line(fmt::format("starts by batch, the last 30,000 of {}", kWaiting),
              kTimed * kBatch / last, "/s");
  report.bar(
      {"cost of a start with 1,000,000 waiting / at the beginning", last / first, 1.2, false, ""});
  report.bar({"resident memory for each waiting instance",
              static_cast<double>(after > before ? after - before : 0) / kWaiting, 1024, false,
              "bytes"});
}

}  // namespace pawl::bench
