#pragma once
// The whole face on memory stores, for the tests of this folder. Inputs run on the thread that
// submits them, compute members are fakes, requests come through the router.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "faces/entities/face.h"
#include "faces/entities/program.h"
#include "json/text.h"
#include "kernel/commit.h"
#include "kernel/verify.h"
#include "storage/memory/memory.h"

namespace pawl::entities {

class TestKernelAccess final : public KernelAccess {
 public:
  explicit TestKernelAccess(ProgramOptions options = {}) : program(options) {}

  void submit(Input input, Reply reply) override {
    std::unique_lock lock(mutex_);
    input.stamp = {0, {dice_++, 7}};
    line_.push_back({std::move(input), std::move(reply)});
    if (running_) return;
    running_ = true;
    while (!line_.empty()) {
      auto [next, answer] = std::move(line_.front());
      line_.pop_front();
      kernel_.tick(now_ += kMillisecond);
      const auto begin = std::chrono::steady_clock::now();
      kernel_.run(std::move(next), std::move(answer));
      last_turn = std::chrono::steady_clock::now() - begin;
      commit(lock);
    }
    running_ = false;
  }
  Result<Cell> read(BytesView key) const override { return cache_.read(key); }
  ReadSnapshot snapshot() const override {
    CHECK(committer_.apply());
    return ReadSnapshot(rows_.snapshot());
  }
  Seq durable() const override { return committer_.published(); }
  Result<void> frames(Seq, const std::function<Result<bool>(const Frame&)>&) const override {
    return {};
  }
  uint64_t watch(Watcher watcher) override {
    watchers_.push_back(std::move(watcher));
    return watchers_.size();
  }
  void unwatch(uint64_t) override {}
  Time now() const override { return now_; }

  // Runs every frame again and compares; empty when all are equal.
  std::string verify() {
    MemoryRows scratch;
    std::vector<const pawl::Program*> programs{&program};
    auto verified = pawl::verify(journal_, scratch, programs);
    return verified ? verified->difference : verified.error().message;
  }
  size_t open_turns() const { return kernel_.open_turns(); }

  Program program;
  Outbox* members = nullptr;
  std::vector<Effect> timers;
  std::chrono::nanoseconds last_turn{};  // how long the kernel ran the last input

 private:
  void commit(std::unique_lock<std::recursive_mutex>& lock) {
    Group group = kernel_.take();
    std::span one(&group, 1);
    CHECK(committer_.append(one));
    committer_.publish(one);
    lock.unlock();
    for (const Frame& frame : group.frames)
      for (Watcher& w : watchers_)
        w(frame);
    for (auto& moved : group.moved) {
      if (moved.effect->to == To::clock && moved.opened) timers.push_back(*moved.effect);
      if (moved.effect->to != To::member || !members) continue;
      if (moved.opened)
        members->opened(moved.effect);
      else
        members->closed(*moved.effect);
    }
    for (auto& [reply, answer] : group.answers)
      reply(std::move(answer));
    lock.lock();
  }
  std::recursive_mutex mutex_;
  std::deque<std::pair<Input, Reply>> line_;
  bool running_ = false;
  uint64_t dice_ = 1;
  std::atomic<Time> now_ = 1'700'000'000 * kSecond;
  MemoryJournal journal_;
  mutable MemoryRows rows_;
  mutable CellCache cache_{rows_, 1 << 24};
  std::vector<const pawl::Program*> programs_{&program};
  Kernel kernel_{cache_, [this] { return snapshot(); }, programs_, 0};
  mutable Committer committer_{journal_, rows_, cache_, Digest{}};
  std::vector<Watcher> watchers_;
};

// A compute member that stores the calls it gets. The tests answer them.
class FakeMember final : public MemberStream {
 public:
  void send(MemberEvent event) override {
    if (!event.type.starts_with("Entity")) return;
    std::lock_guard lock(mutex_);
    auto body = json::parse(event.payload);
    calls_.push_back(*body);
    for (auto& [name, value] : event.attributes)
      if (name == "cyodatxtoken") tokens_.push_back(value);
  }
  void end_unresponsive() override {}
  std::vector<json::Value> calls() {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  std::string token(size_t i) { return tokens_[i]; }
  std::string request(size_t i) { return std::string(calls()[i].string_or("requestId")); }

 private:
  std::mutex mutex_;
  std::vector<json::Value> calls_;
  std::vector<std::string> tokens_;
};

struct TestResponse {
  int status = 0;  // 0: not answered yet
  json::Value body;
  std::string text;
  std::string code() const {
    return body.find("properties") ? std::string(body.find("properties")->string_or("errorCode"))
                                   : "";
  }
};
using TestResponsePtr = std::shared_ptr<TestResponse>;  // filled when the answer comes

struct FaceFixture {
  explicit FaceFixture(ProgramOptions options = {}) : kernel(options) {
    face = std::make_unique<Face>(kernel, background, FaceOptions());
    kernel.members = &face->members();
    EXPECT_TRUE(face->start());
    router.add(face->routes(), face->dialect());
  }
  ~FaceFixture() { face->stop(); }

  // Sends a request and does not wait for the answer.
  TestResponsePtr start(const std::string& method, const std::string& target,
                        const std::string& body = "", wire::Headers headers = {},
                        const std::string& tenant = "t") {
    auto response = std::make_shared<TestResponse>();
    router.dispatch(request(method, target, body, std::move(headers), tenant),
                    [response](wire::Response r) {
                      response->text = r.body;
                      if (auto v = json::parse(r.body)) response->body = *v;
                      // The status comes last: a waiting thread reads the rest after it.
                      std::atomic_ref(response->status).store(r.status);
                    });
    return response;
  }
  // Sends a request and waits up to 2 seconds for the answer.
  TestResponse send(const std::string& method, const std::string& target,
                    const std::string& body = "", wire::Headers headers = {},
                    const std::string& tenant = "t") {
    auto response = start(method, target, body, std::move(headers), tenant);
    wait_until([&] { return std::atomic_ref(response->status).load() != 0; });
    return *response;
  }
  // Waits up to 2 seconds for the condition.
  template <class Condition>
  static bool wait_until(Condition condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  void wait_for_indexes() {
    EXPECT_TRUE(wait_until([&] {
      return send("GET", "/model/m/1/indexes").text.find("BUILDING") == std::string::npos;
    }));
  }
  static wire::Request request(const std::string& method, const std::string& target,
                               const std::string& body = "", wire::Headers headers = {},
                               const std::string& tenant = "t") {
    size_t question = target.find('?');
    wire::Request request{
        .method = method,
        .path = "/api" + target.substr(0, question),
        .query = question == std::string::npos ? "" : target.substr(question + 1)};
    request.headers = std::move(headers);
    request.body = body;
    request.caller = {tenant, "user", "ROLE_ADMIN,ROLE_M2M"};
    return request;
  }
  // Imports and locks the model m version 1 with the fields k (text) and n (integer).
  void add_model(const std::string& tenant = "t") {
    EXPECT_EQ(
        send("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1})", {}, tenant).status,
        200);
    EXPECT_EQ(send("PUT", "/model/m/1/lock", "", {}, tenant).status, 200);
  }
  // Imports the workflow w with these states; A is the initial one.
  void import_workflow(const std::string& states) {
    TestResponse h = send(
        "POST", "/model/m/1/workflow/import",
        R"({"importMode":"REPLACE","workflows":[{"version":"1","name":"w","initialState":"A","states":)" +
            states + "}]}");
    EXPECT_EQ(h.status, 200) << h.text;
  }
  // Imports a workflow with one manual transition "go" from A to B that has these processors.
  void import_processors(const std::string& list) {
    import_workflow(R"({"A":{"transitions":[{"name":"go","next":"B","manual":true,"processors":[)" +
                    list + R"(]}]},"B":{}})");
  }
  std::string create(const std::string& body = R"({"k":"a","n":1})",
                     const std::string& tenant = "t") {
    TestResponse h = send("POST", "/entity/JSON/m/1", body, {}, tenant);
    EXPECT_EQ(h.status, 200) << h.text;
    return h.body.array()[0].find("entityIds")->array()[0].string();
  }
  std::string state(const std::string& id) {
    return std::string(send("GET", "/entity/" + id).body.find("meta")->string_or("state"));
  }
  std::string data(const std::string& id) {
    return json::print(*send("GET", "/entity/" + id).body.find("data"));
  }
  // Returns the id of the member.
  std::string join(std::shared_ptr<FakeMember> fake, std::vector<std::string> tags = {"x"}) {
    return face->members().join(std::move(fake), "t", std::move(tags));
  }

  TestKernelAccess kernel;
  BackgroundThreads background;
  std::unique_ptr<Face> face;
  wire::Router router;
};

inline std::string processor(const std::string& name, const std::string& mode,
                             const std::string& more = "") {
  return R"({"type":"EXTERNAL","name":")" + name + R"(","executionMode":")" + mode +
         R"(","config":{"attachEntity":true,"calculationNodesTags":"x")" + more + "}}";
}

}  // namespace pawl::entities
