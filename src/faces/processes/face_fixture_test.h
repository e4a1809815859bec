#pragma once
// The fixture of the processes tests: the whole face on memory stores. The test moves the time, and
// every command is durable when call() returns.

#include <gtest/gtest.h>

#include "faces/processes/face.h"
#include "json/text.h"
#include "kernel/commit.h"
#include "kernel/kernel.h"
#include "kernel/verify.h"
#include "storage/memory/memory.h"

namespace pawl::processes {

// The JSON of a definition; `more` is further members with a trailing comma.
inline std::string definition(const std::string& id, const std::string& steps,
                              const std::string& more = "") {
  return R"({"id":")" + id + R"(","name":"n",)" + more + R"("steps":[)" + steps + "]}";
}
inline const std::string kEnd = R"({"id":"end","name":"e","type":"END"})";

class FaceFixture final : public KernelAccess, public WorkQueue {
 public:
  static constexpr const char* kTenant = "t";

  void submit(Input input, Reply reply) override {
    input.stamp = {0, {dice_++, 7}};
    kernel_.tick(time);
    kernel_.run(std::move(input), std::move(reply));
    flush();
  }
  Result<Cell> read(BytesView key) const override { return cache_.read(key); }
  ReadSnapshot snapshot() const override {
    CHECK(committer_.apply());
    return ReadSnapshot(rows_.snapshot());
  }
  Seq durable() const override { return committer_.published(); }
  Result<void> frames(Seq from,
                      const std::function<Result<bool>(const Frame&)>& visit) const override {
    return journal_.read(from, [&](Seq seq, BytesView entry) -> Result<bool> {
      TRY(Sealed sealed, unseal(entry));
      TRY(Frame frame, decode_frame(seq, sealed.body));
      return visit(frame);
    });
  }
  uint64_t watch(Watcher watcher) override {
    watcher_ = std::move(watcher);
    return 1;
  }
  void unwatch(uint64_t) override { watcher_ = {}; }
  Time now() const override { return time; }

  uint64_t poll(Poll poll, Polled done) override {
    std::vector<Leased> out;
    for (auto& [id, job] : jobs_) {
      bool wanted =
          std::find(poll.queues.begin(), poll.queues.end(), job.effect->queue) != poll.queues.end();
      if (!wanted || job.effect->due > time || job.until > time ||
          paused_.contains(job.effect->queue) || out.size() == poll.limit)
        continue;
      job.until = time + poll.lease;
      job.worker = poll.worker;
      out.push_back({job.effect, job.until});
    }
    done(std::move(out));
    return 1;
  }
  void cancel(uint64_t) override {}
  void give_up(uint64_t) override {}
  void release(std::string_view id) override { jobs_[std::string(id)].until = 0; }
  std::optional<Time> extend(std::string_view id, std::string_view worker, Time until) override {
    auto it = jobs_.find(std::string(id));
    if (it == jobs_.end() || it->second.until <= time || it->second.worker != worker)
      return std::nullopt;
    return it->second.until = std::max(it->second.until, until);
  }
  void pause(std::string_view, std::string_view, std::string_view queue, bool paused) override {
    if (paused)
      paused_.insert(std::string(queue));
    else
      paused_.erase(std::string(queue));
  }
  std::vector<Depth> depths() const override { return {}; }
  std::optional<Place> place_of(std::string_view id) const override {
    auto it = jobs_.find(std::string(id));
    if (it == jobs_.end()) return std::nullopt;
    const Effect& e = *it->second.effect;
    Place place{Place::State::offered,
                0,
                "",
                {e.program, kTenant, e.queue, 1, 0, 0, paused_.contains(e.queue)}};
    if (e.due > time) {
      place.state = Place::State::held;
      place.until = e.due;
    } else if (it->second.until > time) {
      place.state = Place::State::leased;
      place.until = it->second.until;
      place.worker = it->second.worker;
    }
    return place;
  }
  // The effect of an open job; null when there is none.
  EffectPtr open_effect(const std::string& id) const {
    auto it = jobs_.find(id);
    return it == jobs_.end() ? nullptr : it->second.effect;
  }

  // Calls a route, as the HTTP server does.
  json::Value call(std::string method, std::string path, std::string body = "",
                   int* status = nullptr) {
    if (!face_) {
      face_ = std::make_unique<Face>(*this, *this, quarantine, options);
      router_.add(face_->routes(), face_->dialects());
    }
    wire::Request request{.method = std::move(method),
                          .path = path,
                          .body = std::move(body),
                          .caller = {tenant, "tester", ""}};
    if (size_t cut = path.find('?'); cut != std::string::npos) {
      request.query = path.substr(cut + 1);
      request.path.resize(cut);
    }
    wire::Response got{.status = 0};
    router_.dispatch(std::move(request), [&](wire::Response r) { got = std::move(r); });
    last_status = got.status;
    if (status) *status = got.status;
    auto parsed = json::parse(got.body);
    return parsed ? *parsed : json::Value(got.body);
  }
  json::Value post(std::string path, std::string body = "{}") {
    return call("POST", std::move(path), std::move(body));
  }
  json::Value get(std::string path) { return call("GET", std::move(path)); }

  void upload(const std::string& definition) {
    json::Value answer = post("/v1/definitions", definition);
    ASSERT_EQ(last_status, 201) << json::print(answer);
  }
  std::string start(const std::string& definition_id, const std::string& variables = "{}") {
    json::Value answer = post("/v1/instances", R"({"definitionId":")" + definition_id +
                                                   R"(","variables":)" + variables + "}");
    EXPECT_EQ(last_status, 201) << json::print(answer);
    return std::string(answer.string_or("id"));
  }
  std::string status(const std::string& id) {
    return std::string(get("/v1/instances/" + id).string_or("status"));
  }
  std::string reason(const std::string& id) {
    return std::string(get("/v1/instances/" + id).string_or("failureReason"));
  }
  std::string variables(const std::string& id) {
    return json::print(*get("/v1/instances/" + id).find("variables"));
  }
  std::string steps(const std::string& id) {
    return json::print(*get("/v1/instances/" + id).find("currentStepIds"));
  }
  // "step:STATUS step:STATUS" in order.
  std::string history(const std::string& id) {
    std::string out;
    json::Value answer = get("/v1/instances/" + id + "/history");
    for (const json::Value& row : answer.find("items")->array())
      out += (out.empty() ? "" : " ") + std::string(row.string_or("StepID")) + ":" +
             std::string(row.string_or("Status"));
    return out;
  }
  // Leases a job of that type and returns its id; empty when there is none.
  std::string take(const std::string& type) {
    json::Value answer =
        post("/v1/jobs/poll", R"({"workerId":"w","maxJobs":1,"jobTypes":[")" + type + "\"]}");
    const json::Value* jobs = answer.find("jobs");
    return jobs && jobs->is_array() ? std::string(jobs->array()[0].string_or("id")) : std::string();
  }
  int complete(const std::string& job, const std::string& variables = "{}") {
    post("/v1/jobs/" + job + "/complete", R"({"workerId":"w","variables":)" + variables + "}");
    return last_status;
  }
  void finish(const std::string& type, const std::string& variables = "{}") {
    std::string job = take(type);
    ASSERT_FALSE(job.empty()) << "no job of type " << type;
    EXPECT_EQ(complete(job, variables), 204);
  }
  // Moves the time forward. Timers fire in the order in which they are due.
  void pass(Time nanos) {
    Time until = time + nanos;
    while (!timers_.empty() && timers_.begin()->first <= until) {
      auto [due, id] = *timers_.begin();
      timers_.erase(timers_.begin());
      time = std::max(time, due);
      Input input;
      input.verb = "timer";
      input.settles = id;
      ++fired;
      submit(std::move(input), [](Result<Answer>) {});
    }
    time = until;
  }
  // Replays every frame and compares the results.
  void verify() {
    Program program;
    const pawl::Program* programs[] = {&program};
    MemoryRows scratch;
    auto report = pawl::verify(journal_, scratch, programs);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->difference, "");
  }

  size_t open_timers() const { return timers_.size(); }
  size_t open_jobs() const { return jobs_.size(); }
  // The ids of the jobs that are open to workers.
  std::set<std::string> open_job_ids() const {
    std::set<std::string> out;
    for (const auto& [id, job] : jobs_)
      out.insert(id.substr(0, 26));
    return out;
  }

  Time time = 1'794'700'000 * kSecond;
  std::string tenant = kTenant;   // of call()
  QuarantineAccess quarantine{};  // set it before the first call()
  ServiceOptions options{};       // the same
  int last_status = 0;
  size_t fired = 0;

 private:
  void flush() {
    Group group = kernel_.take();
    std::span one(&group, 1);
    CHECK(committer_.append(one));
    committer_.publish(one);
    if (watcher_)
      for (const Frame& frame : group.frames)
        watcher_(frame);
    for (auto& moved : group.moved) {
      const Effect& e = *moved.effect;
      if (e.to == To::clock) {
        if (moved.opened)
          timers_.emplace(e.due, e.id);
        else
          timers_.erase({e.due, e.id});
      } else if (e.to == To::cell) {
        if (moved.opened) deliveries_.push_back(e.id);
      } else if (moved.opened) {
        jobs_[e.id] = {moved.effect, 0};
      } else {
        jobs_.erase(e.id);
      }
    }
    for (auto& [reply, answer] : group.answers)
      if (reply) reply(std::move(answer));
    while (!deliveries_.empty()) {
      Input input{.caller = {kTenant, "~kernel", ""}};
      input.settles = std::move(deliveries_.front());
      deliveries_.pop_front();
      submit(std::move(input), [](Result<Answer>) {});
    }
  }

  struct Offered {
    EffectPtr effect;
    Time until;
    std::string worker{};
  };
  MemoryJournal journal_;
  MemoryRows rows_;
  Program program_;
  mutable CellCache cache_{rows_, 16 << 20};
  mutable Committer committer_{journal_, rows_, cache_, Digest{}};
  Kernel kernel_{cache_, [this] { return snapshot(); }, {&program_}, 0};
  uint64_t dice_ = 1;
  Watcher watcher_;
  std::map<std::string, Offered> jobs_;
  std::set<std::pair<Time, std::string>> timers_;
  std::deque<std::string> deliveries_;
  std::set<std::string> paused_;
  std::unique_ptr<Face> face_;
  wire::Router router_;
};

}  // namespace pawl::processes
