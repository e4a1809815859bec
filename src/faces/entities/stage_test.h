#pragma once
// The whole face on memory stores, driven by hand: inputs run where they are submitted, members are
// scripts, callers come through the router. What the tests of this folder stand on.

#include <gtest/gtest.h>

#include <atomic>

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
      kernel_.run(std::move(next), std::move(answer));
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
    return watchers_.push_back(std::move(watcher)), watchers_.size();
  }
  void unwatch(uint64_t) override {}
  Time now() const override { return now_; }

  // Runs every frame again and compares.
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
      moved.opened ? members->opened(moved.effect) : members->closed(*moved.effect);
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

// A member that keeps what it is sent.
class Script final : public MemberStream {
 public:
  void send(Outgoing event) override {
    if (!event.type.starts_with("Entity")) return;
    std::lock_guard lock(mutex_);
    auto body = json::parse(event.payload);
    calls_.push_back(*body);
    for (auto& [name, value] : event.attributes)
      if (name == "cyodatxtoken") tokens_.push_back(value);
  }
  void end_silent() override {}
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

struct Heard {
  int status = 0;  // 0: no answer yet
  json::Value body;
  std::string text;
  std::string code() const {
    return body.find("properties") ? std::string(body.find("properties")->string_or("errorCode"))
                                   : "";
  }
};
using HeardPtr = std::shared_ptr<Heard>;  // filled when the answer comes

struct Stage {
  explicit Stage(ProgramOptions options = {}) : kernel(options) {
    FaceOptions o;
    face = std::make_unique<Face>(kernel, o);
    kernel.members = &face->members();
    EXPECT_TRUE(face->start());
    router.add(face->routes(), face->dialect());
  }
  ~Stage() { face->stop(); }

  HeardPtr begin(const std::string& method, const std::string& target, const std::string& body = "",
                 wire::Headers headers = {}, const std::string& tenant = "t") {
    size_t question = target.find('?');
    wire::Request request{
        .method = method,
        .path = "/api" + target.substr(0, question),
        .query = question == std::string::npos ? "" : target.substr(question + 1)};
    request.headers = std::move(headers);
    request.body = body;
    request.caller = {tenant, "user", "ROLE_ADMIN,ROLE_M2M"};
    auto heard = std::make_shared<Heard>();
    router.dispatch(std::move(request), [heard](wire::Response r) {
      heard->text = r.body;
      if (auto v = json::parse(r.body)) heard->body = *v;
      std::atomic_ref(heard->status).store(r.status);  // last: whoever waits reads the rest then
    });
    return heard;
  }
  Heard say(const std::string& method, const std::string& target, const std::string& body = "",
            wire::Headers headers = {}, const std::string& tenant = "t") {
    auto heard = begin(method, target, body, std::move(headers), tenant);
    for (int i = 0; i < 2000 && std::atomic_ref(heard->status).load() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *heard;
  }
  void model(const std::string& tenant = "t") {
    EXPECT_EQ(
        say("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1})", {}, tenant).status,
        200);
    EXPECT_EQ(say("PUT", "/model/m/1/lock", "", {}, tenant).status, 200);
  }
  void flow(const std::string& states) {
    Heard h = say(
        "POST", "/model/m/1/workflow/import",
        R"({"importMode":"REPLACE","workflows":[{"version":"1","name":"w","initialState":"A","states":)" +
            states + "}]}");
    EXPECT_EQ(h.status, 200) << h.text;
  }
  // One manual transition "go" from A to B with these processors.
  void processors(const std::string& list) {
    flow(R"({"A":{"transitions":[{"name":"go","next":"B","manual":true,"processors":[)" + list +
         R"(]}]},"B":{}})");
  }
  std::string create(const std::string& body = R"({"k":"a","n":1})",
                     const std::string& tenant = "t") {
    Heard h = say("POST", "/entity/JSON/m/1", body, {}, tenant);
    EXPECT_EQ(h.status, 200) << h.text;
    return h.body.array()[0].find("entityIds")->array()[0].string();
  }
  std::string state(const std::string& id) {
    return std::string(say("GET", "/entity/" + id).body.find("meta")->string_or("state"));
  }
  std::string data(const std::string& id) {
    return json::print(*say("GET", "/entity/" + id).body.find("data"));
  }
  std::string join(std::shared_ptr<Script> script, std::vector<std::string> tags = {"x"}) {
    return face->members().join(std::move(script), "t", std::move(tags));
  }

  TestKernelAccess kernel;
  std::unique_ptr<Face> face;
  wire::Router router;
};

inline std::string processor(const std::string& name, const std::string& mode,
                             const std::string& more = "") {
  return R"({"type":"EXTERNAL","name":")" + name + R"(","executionMode":")" + mode +
         R"(","config":{"attachEntity":true,"calculationNodesTags":"x")" + more + "}}";
}

}  // namespace pawl::entities
