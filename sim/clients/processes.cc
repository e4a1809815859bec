// The client of the processes face: starts instances of fixed and random definitions, works on
// their jobs, completes user tasks, signals, cancels, pauses, and has a schedule.

#include <fmt/format.h>

#include <map>
#include <set>

#include "json/text.h"
#include "sim/clients/client.h"
#include "sim/clients/shapes.h"

namespace pawl::sim {
namespace {

// What the client knows of one instance that it started.
struct Started {
  std::string business_key;
  std::string definition;
  bool even = false;  // its variable `kind`
  std::string id;     // empty: no answer yet
  bool may_be_cancelled = false;
  bool paused = false;        // or about to be
  bool nobody_comes = false;  // no person completes the user task: its timer must end it
  std::string ended;          // a status that is final
  // The value that each step's job wrote, once it was seen: it never changes again.
  std::map<std::string, std::string> outputs;
  json::Value last, history, listed, next;  // the answers at the end
};

struct Job {
  uint64_t life = 0;    // of the server that gave the lease
  Time told = 0;        // when the client heard of the lease; 0: it has none
  Time ends = 0;        // the end of the lease, by the server's clock
  Time settled = 0;     // when the client heard that the job is done; 0: not yet
  bool failed = false;  // a failure was sent: it ends whatever lease it finds when it arrives
};

bool is_final(std::string_view status) {
  return status == "COMPLETED" || status == "FAILED" || status == "CANCELLED";
}

class ProcessesClient final : public Client {
 public:
  explicit ProcessesClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "processes"; }

  void begin() override {
    for (Shape& shape : fixed_shapes())
      upload(std::move(shape));
    for (int i = 0; i < 3; ++i)
      act();
    for (int i = 0; i < 3; ++i)
      poll();
  }

  void finish() override {
    for (auto& [key, started] : started_)
      if (!started.id.empty()) push(started);
    // No restart mends what happens to these.
    const bool has_timer = std::find(known_.begin(), known_.end(), "timer") != known_.end();
    for (int i = 0; i < 6 && has_timer; ++i)
      start_one("timer", true);
  }

  void ask_everything() override {
    read("/pawl/v1/processes/schedules/every", schedule_page_);
    read("/pawl/v1/processes/schedules/every/runs", runs_);
    read("/v1/instances?definitionId=tick&pageSize=1", ticks_);
    for (auto& [key, started] : started_) {
      if (started.id.empty()) continue;
      if (started.definition == "brief") {
        // Its time is over: it is deleted, and in no list.
        read("/v1/instances/" + started.id, started.last, 404);
        read("/v1/instances?businessKey=" + started.business_key, started.listed);
        continue;
      }
      Started* one = &started;
      read("/v1/instances/" + started.id, one->last, 200, [this, one] {
        const std::string next(one->last.string_or("nextInstanceId"));
        if (!next.empty()) read("/v1/instances/" + next, one->next);
      });
      read("/v1/instances/" + started.id + "/history", one->history);
      read("/v1/instances?businessKey=" + started.business_key, one->listed);
    }
  }

  void check() override {
    check_schedule();
    for (auto& [key, started] : started_) {
      if (started.definition != "brief") {
        check_end(started);
        continue;
      }
      const json::Value* total = started.listed.find("total");
      world_.expect(total && total->as_int64() == 0,
                    started.id + " is past its retention and still listed");
    }
  }

 private:
  void read(const std::string& path, json::Value& into, int status = 200,
            std::function<void()> then = {}) {
    call_until_answered(
        world_, {"GET", path}, [this, path, &into, status, then](const wire::Response& r) {
          world_.expect(r.status == status,
                        fmt::format("{} must answer {} and answers {}", path, status, r.status));
          into = body_of(r);
          if (then) then();
        });
  }

  void upload(Shape shape) {
    call_until_answered(world_, {"POST", "/v1/definitions", json::print(shape.definition)},
                        [this, shape](const wire::Response& response) {
                          world_.expect(response.status == 201,
                                        "an upload was refused: " + response.body);
                          shapes_[shape.id] = shape;
                          if (shape.id == "tick") return put_schedule();
                          if (shape.id != "child") return known_.push_back(shape.id);
                          // Random definitions call it.
                          for (int i = 0; i < 4; ++i)
                            upload(random_shape(schedule_, fmt::format("random-{}", i)));
                        });
  }

  // Runs by itself for the whole life. Its instances end at once.
  void put_schedule() {
    const bool is_long = world_.left() > 24 * 3600 * kSecond;
    const json::Value schedule = json::object({{"definitionId", "tick"},
                                               {"interval", is_long                ? "PT11H"
                                                            : schedule_.chance(50) ? "PT7M"
                                                                                   : "PT1H"},
                                               {"businessKey", "tick {time}"},
                                               {"overlap", schedule_.chance(50) ? "skip" : "queue"},
                                               {"catchUp", schedule_.chance(50) ? "all" : "last"}});
    call_until_answered(
        world_, {"PUT", "/pawl/v1/processes/schedules/every", json::print(schedule)},
        [this](const wire::Response& r) {
          world_.expect(r.status == 200 || r.status == 201, "the schedule is refused: " + r.body);
        });
  }

  // Every run starts one instance, and no time has two runs.
  void check_schedule() {
    const json::Value* counts = schedule_page_.find("counts");
    const json::Value* started = counts ? counts->find("started") : nullptr;
    const json::Value* total = ticks_.find("total");
    world_.expect(started && total && started->as_int64() == total->as_int64(),
                  fmt::format("the schedule started {} and there are {}",
                              json::print(schedule_page_), json::print(ticks_)));
    std::set<std::string> times, instances;
    const json::Value* items = runs_.find("items");
    if (!items || !items->is_array()) return;
    for (const json::Value& run : items->array()) {
      if (run.string_or("outcome") != "started") continue;
      const std::string time(run.string_or("scheduledFor")), id(run.string_or("instanceId"));
      world_.reach(Reach::scheduled);
      world_.expect(times.insert(time).second, "the schedule ran twice for " + time);
      world_.expect(instances.insert(id).second, "two runs have the instance " + id);
    }
  }

  Started* some() {
    if (started_.empty()) return nullptr;
    auto it = started_.begin();
    std::advance(it, static_cast<ptrdiff_t>(schedule_.roll(started_.size())));
    return it->second.id.empty() ? nullptr : &it->second;
  }

  void act() {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this] { act(); });
    switch (schedule_.roll(8)) {
      case 0:
      case 1:
      case 2: return start();
      case 3:
        if (Started* one = some()) push(*one);
        return;
      case 4:
        if (Started* one = some(); one && schedule_.one_in(4)) cancel(*one);
        return;
      case 5:
        if (Started* one = some()) look_in_list(*one);
        return;
      case 6:
        if (Started* one = some(); one && schedule_.one_in(3)) return pause(*one);
        [[fallthrough]];
      default:
        if (Started* one = some()) look(*one);
    }
  }

  void start() {
    if (known_.empty()) return;
    if (schedule_.one_in(6)) return start_batch();
    start_one(known_[schedule_.roll(known_.size())], schedule_.chance(50));
  }

  Started& new_start(const std::string& of, bool nobody_comes) {
    const uint64_t n = ++starts_;
    const std::string key = fmt::format("key-{}", n);
    Started& started = started_[key];
    started.business_key = key;
    started.definition = of;
    started.even = n % 2 == 0;
    started.nobody_comes = nobody_comes;
    return started;
  }

  static json::Value start_body(const Started& started) {
    return json::object({{"definitionId", started.definition},
                         {"businessKey", started.business_key},
                         {"variables", json::object({{"kind", started.even ? "even" : "odd"}})}});
  }

  // Several at once. Each is started once, however often the batch is repeated.
  void start_batch() {
    std::vector<Started*> all;
    json::Array items;
    for (uint64_t i = 0; i < 2 + schedule_.roll(3); ++i) {
      all.push_back(&new_start(known_[schedule_.roll(known_.size())], schedule_.chance(50)));
      items.push_back(start_body(*all.back()));
    }
    const json::Value body = json::object({{"items", std::move(items)}});
    send_batch({"POST",
                "/pawl/v1/processes/start-batch",
                json::print(body),
                {{"Idempotency-Key", "batch-" + all[0]->business_key}}},
               all);
  }

  void send_batch(const Sent& sent, const std::vector<Started*>& all) {
    call_until_answered(world_, sent, [this, sent, all](const wire::Response& r) {
      // An item of which nothing is known is asked for again, with all others.
      if (r.status == 200 && r.body.find(R"("status":503)") != std::string::npos)
        return schedule_.after(kSecond, [this, sent, all] { send_batch(sent, all); });
      const json::Value answer = body_of(r);
      const json::Value* started = answer.find("items");
      if (r.status != 200 || !started || started->array().size() != all.size())
        return world_.expect(false, fmt::format("a batch answers {} {}", r.status, r.body));
      for (size_t i = 0; i < all.size(); ++i) {
        const json::Value* instance = started->array()[i].find("instance");
        world_.expect(instance != nullptr, "an item of a batch was refused: " + r.body);
        if (!instance) continue;
        all[i]->id = instance->string_or("id");
        take(*all[i], *instance, {});
        if (world_.calm()) push(*all[i]);
      }
    });
  }

  void start_one(const std::string& of, bool nobody_comes) {
    Started& started = new_start(of, nobody_comes);
    const std::string key = started.business_key;
    call_until_answered(
        world_,
        {"POST", "/v1/instances", json::print(start_body(started)), {{"Idempotency-Key", key}}},
        [this, &started](const wire::Response& response) {
          world_.expect(response.status == 201, "a start was refused: " + response.body);
          started.id = body_of(response).string_or("id");
          take(started, body_of(response), {});
          if (world_.calm()) push(started);
        });
  }

  // Does what a person does: completes the user task, or signals.
  void push(Started& started) {
    const std::string base = "/v1/instances/" + started.id;
    if (started.definition == "timer" && !started.nobody_comes)
      world_.call({"POST", base + "/user-tasks/u/complete", R"({"workerId":"ann"})"},
                  [this](std::optional<wire::Response> r) {
                    may_be(r, {204, 404, 409});
                  });
    if (started.definition == "wait")
      world_.call({"POST", base + "/signals/w", R"({"signalled":true})"},
                  [this](std::optional<wire::Response> r) {
                    may_be(r, {204, 409});
                  });
    if (!world_.calm()) return;
    // In the calm the outside comes until the instance is at its end.
    schedule_.after(60 * kSecond, [this, &started] {
      look(started);
      if (started.ended.empty()) push(started);
    });
  }

  // An operator pauses the instance and resumes it later, each once.
  void pause(Started& started) {
    if (started.paused || started.definition == "brief") return;
    started.paused = true;
    interrupted_.insert(started.id);
    const std::string path = "/pawl/v1/processes/instances/" + started.id;
    operate(path + "/pause", [this, &started, path] {
      const Time pause = std::min(world_.pause(), 1800 * kSecond);
      schedule_.after(pause, [this, &started, path] {
        operate(path + "/resume", [&started] { started.paused = false; });
      });
    });
  }

  // 409: the instance is at its end, or not paused.
  void operate(const std::string& path, std::function<void()> done) {
    call_until_answered(world_,
                        {"POST",
                         path,
                         R"({"reason":"to look at it"})",
                         {{"Idempotency-Key", fmt::format("operator-{}", ++operations_)}}},
                        [this, path, done = std::move(done)](const wire::Response& r) {
                          world_.expect(r.status == 200 || r.status == 409,
                                        fmt::format("{} answers {} {}", path, r.status, r.body));
                          done();
                        });
  }

  void may_be(const std::optional<wire::Response>& response, const std::set<int>& statuses) {
    if (!response || response->status == 503 || response->status == 429) return;
    world_.expect(statuses.contains(response->status),
                  fmt::format("an answer {} that the contract does not know: {}", response->status,
                              response->body));
  }

  void cancel(Started& started) {
    if (started.definition == "brief") return;
    started.may_be_cancelled = true;
    world_.call({"POST", "/v1/instances/" + started.id + "/cancel", R"({"reason":"not wanted"})"},
                [this](std::optional<wire::Response> r) {
                  may_be(r, {200, 409});
                });
  }

  void look(Started& started) {
    const std::string ended = started.ended;  // when the question is asked
    world_.call({"GET", "/v1/instances/" + started.id},
                [this, &started, ended](std::optional<wire::Response> response) {
                  if (!response || response->status == 503) return;
                  if (started.definition == "brief" && response->status == 404) return;
                  world_.expect(response->status == 200,
                                started.id + " was acknowledged and is gone: " + response->body);
                  take(started, body_of(*response), ended);
                });
  }

  // An instance that has ended stays as it is, and outputs of jobs never change.
  void take(Started& started, const json::Value& instance, const std::string& ended_before) {
    const std::string status(instance.string_or("status"));
    if (!ended_before.empty())
      world_.expect(status == ended_before,
                    fmt::format("{} was {} and is {}", started.id, ended_before, status));
    if (is_final(status)) started.ended = status;
    const json::Value* variables = instance.find("variables");
    const json::Value* out = variables ? variables->find("out") : nullptr;
    if (!out || !out->is_object()) return;
    for (const auto& [step, value] : out->object()) {
      if (step.starts_with("loop-")) continue;
      auto [seen, is_new] = started.outputs.emplace(step, value.string());
      world_.expect(is_new || seen->second == value.string(),
                    fmt::format("the output of {} of {} changed from {} to {}", step, started.id,
                                seen->second, value.string()));
    }
  }

  void look_in_list(Started& started) {
    if (started.definition == "brief") return;
    world_.call({"GET", "/v1/instances?businessKey=" + started.business_key},
                [this, &started](std::optional<wire::Response> response) {
                  if (!response || response->status == 503) return;
                  const json::Value body = body_of(*response);
                  const json::Value* total = body.find("total");
                  world_.expect(total && total->is_number() && total->as_int64() == 1,
                                fmt::format("the list of {} has {}", started.business_key,
                                            response->body.substr(0, 200)));
                });
  }

  // One worker: it asks for jobs all the time.
  void poll() {
    const Time asked = schedule_.elapsed();
    const uint64_t life = world_.life();
    const uint64_t lease = 5 + schedule_.roll(60);
    const uint64_t wait = world_.calm()          ? 30'000
                          : schedule_.chance(50) ? 0
                                                 : schedule_.roll(20'000);
    json::Value body = json::object({{"workerId", fmt::format("w{}", schedule_.roll(3))},
                                     {"jobTypes", json::Array{"work-0", "work-1", "work-2"}},
                                     {"maxJobs", 1 + schedule_.roll(4)},
                                     {"leaseSeconds", lease},
                                     {"maxWaitMs", wait}});
    world_.call({"POST", "/v1/jobs/poll", json::print(body)},
                [this, asked, life](std::optional<wire::Response> response) {
                  if (response && response->status == 200) {
                    const json::Value body = body_of(*response);
                    const json::Value* jobs = body.find("jobs");
                    if (jobs && jobs->is_array())
                      for (const json::Value& job : jobs->array())
                        take_job(job, asked, life);
                  }
                  const Time pause = world_.calm() ? kSecond : world_.pause() / 4;
                  world_.later(pause, [this] { poll(); });
                });
  }

  void take_job(const json::Value& offered, Time asked, uint64_t life) {
    const std::string id(offered.string_or("id"));
    Job& job = jobs_[id];
    const Time locked = parse_rfc3339(offered.string_or("lockedAt")).value_or(0);
    const Time expires = parse_rfc3339(offered.string_or("lockExpiresAt")).value_or(0);
    world_.expect(!job.settled || asked < job.settled,
                  "job " + id + " was done and is offered again");
    // A restart forgets leases; the poll may have waited over one.
    const bool same_life = job.life == life && life == world_.life();
    const bool interrupted = interrupted_.contains(std::string(offered.string_or("instanceId")));
    if (job.told && same_life && asked > job.told && !job.failed && !interrupted)
      world_.expect(locked + kSecond >= job.ends,
                    fmt::format("job {} was given to a second worker {} ms before its lease ended",
                                id, (job.ends - locked) / kMillisecond));
    job.ends = same_life ? std::max(job.ends, expires) : expires;
    job.told = schedule_.elapsed();
    job.life = life == world_.life() ? life : 0;
    work(offered, id);
  }

  void work(const json::Value& offered, const std::string& id) {
    const std::string step(offered.string_or("stepId"));
    const std::string value = fmt::format("{}-{}", id.substr(20), ++values_);
    if (world_.strikes(Fault::lost_lease, 10)) return;
    Time takes = static_cast<Time>(schedule_.roll(4 * kSecond));
    if (world_.strikes(Fault::late_answer, 10))
      takes += static_cast<Time>(schedule_.roll(180 * kSecond));
    // This step always fails, and its instance undoes what was done before.
    if (step == "doomed") return schedule_.after(takes, [this, id] { fail_job(id, false); });
    if (!world_.calm() && schedule_.one_in(8))
      return schedule_.after(takes, [this, id] { fail_job(id, true); });
    schedule_.after(takes, [this, id, step, value] { complete(id, step, value); });
    if (world_.strikes(Fault::twice_answered, 6))
      schedule_.after(takes + static_cast<Time>(schedule_.roll(20 * kSecond)),
                      [this, id, step, value] { complete(id, step, value + "-again"); });
  }

  void fail_job(const std::string& id, bool retryable) {
    jobs_[id].failed = true;
    const json::Value body =
        json::object({{"workerId", "w0"}, {"errorMessage", "no luck"}, {"retryable", retryable}});
    world_.call({"POST", "/v1/jobs/" + id + "/fail", json::print(body)},
                [this](std::optional<wire::Response> r) { may_be(r, {204}); });
  }

  void complete(const std::string& id, const std::string& step, const std::string& value) {
    json::Value body =
        json::object({{"workerId", "w0"},
                      {"variables", json::object({{"out", json::object({{step, value}})}})}});
    call_until_answered(world_, {"POST", "/v1/jobs/" + id + "/complete", json::print(body)},
                        [this, id](const wire::Response& response) {
                          world_.expect(response.status == 204,
                                        fmt::format("complete of {} answers {} {}", id,
                                                    response.status, response.body));
                          if (!jobs_[id].settled) jobs_[id].settled = schedule_.elapsed();
                        });
  }

  void check_end(const Started& started) {
    if (started.id.empty()) return world_.expect(false, started.business_key + " never started");
    const std::string status(started.last.string_or("status"));
    world_.expect(is_final(status),
                  fmt::format("{} ({}) is {} long after the last fault: {}", started.id,
                              started.definition, status, json::print(started.last)));
    world_.expect(started.ended.empty() || status == started.ended,
                  started.id + " left its final status");
    world_.expect(status != "CANCELLED" || started.may_be_cancelled,
                  started.id + " was cancelled by nobody");
    const std::string_view reason = started.last.string_or("failureReason");
    const bool undone = started.definition == "undo" && reason.starts_with("Compensated");
    world_.expect(status != "FAILED" || undone, fmt::format("{} failed: {}", started.id, reason));
    world_.expect(status != "COMPLETED" || started.definition != "undo",
                  started.id + " completed although its last step fails");
    if (started.definition == "chained" && status == "COMPLETED") {
      world_.reach(Reach::chained);
      world_.expect(started.next.string_or("previousInstanceId") == started.id &&
                        started.next.string_or("status") == "COMPLETED",
                    fmt::format("{} is chained to {}", started.id, json::print(started.next)));
    }
    const json::Value* total = started.listed.find("total");
    world_.expect(total && total->as_int64() == 1,
                  started.business_key +
                      " was started once and is listed otherwise: " + json::print(started.listed));
    check_history(started, status);
  }

  void check_history(const Started& started, const std::string& status) {
    const json::Value* items = started.history.find("items");
    if (!items || !items->is_array()) return world_.expect(false, started.id + " has no history");
    std::map<std::string, size_t> entered;
    for (const json::Value& item : items->array()) {
      const std::string step(item.string_or("StepID"));
      ++entered[step];
      if (step == "u" && item.string_or("Status") == "FAILED" && status != "CANCELLED")
        check_timer(started, item);
    }
    if (status == "FAILED") return check_undone(started, *items);
    const Shape& shape = shapes_[started.definition];
    const auto& expected = started.even ? shape.even : shape.odd;
    // A join counts each branch once. An instance that was cancelled did no more than the others.
    for (const auto& [step, times] : entered) {
      if (step.starts_with("join")) continue;
      auto most = expected.find(step);
      const size_t allowed = most != expected.end() ? most->second : expected.empty() ? 1 : 0;
      world_.expect(
          times <= allowed || step.ends_with(".compensation"),
          fmt::format("{} ({}) entered {} {} times", started.id, started.definition, step, times));
    }
    if (status != "COMPLETED") return;
    const json::Value* variables = started.last.find("variables");
    const json::Value* out = variables ? variables->find("out") : nullptr;
    for (const auto& [step, times] : expected) {
      world_.expect(entered[step] == times,
                    fmt::format("{} ({}) is complete and entered {} {} times instead of {}",
                                started.id, started.definition, step, entered[step], times));
      world_.expect(!is_task(shape, step) || (out && out->find(step)),
                    fmt::format("{} lost the output of its step {}", started.id, step));
    }
  }

  static bool is_task(const Shape& shape, const std::string& step) {
    const json::Value* steps = shape.definition.find("steps");
    for (const json::Value& one : steps->array())
      if (one.string_or("id") == step) return one.string_or("type") == "SERVICE_TASK";
    return false;
  }

  // What was done is undone once each, the last first.
  void check_undone(const Started& started, const json::Value& items) {
    std::string steps;
    for (const json::Value& item : items.array())
      steps += std::string(item.string_or("StepID")) + " ";
    world_.expect(steps == "u1 u2 doomed u2.compensation u1.compensation ",
                  fmt::format("{} went through {}", started.id, steps));
  }

  void check_timer(const Started& started, const json::Value& item) {
    const Time began = parse_rfc3339(item.string_or("StartedAt")).value_or(0);
    const Time ended = parse_rfc3339(item.string_or("EndedAt")).value_or(0);
    world_.expect(
        ended - began >= kTimer,
        fmt::format("the timer of {} fired after {} ms, {} ms early", started.id,
                    (ended - began) / kMillisecond, (kTimer - (ended - began)) / kMillisecond));
  }

  Session& world_;
  Schedule& schedule_;
  std::map<std::string, Shape> shapes_;  // uploaded definitions
  std::vector<std::string> known_;       // those that the client starts
  std::set<std::string> interrupted_;    // instances that were paused: their leases are void
  json::Value schedule_page_, runs_, ticks_;
  std::map<std::string, Started> started_;
  std::map<std::string, Job> jobs_;
  uint64_t starts_ = 0, values_ = 0, operations_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_processes_client(Session& world) {
  return std::make_unique<ProcessesClient>(world);
}

}  // namespace pawl::sim
