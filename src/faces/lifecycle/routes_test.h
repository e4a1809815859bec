#pragma once
// The fixture of the route tests: a router in this process, a stream that records what is written,
// and a program that can corrupt stored instances.

#include <atomic>

#include "embed/engine_parts.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/missions_test.h"
#include "json/text.h"
#include "server/auth/guarded_test.h"
#include "storage/memory/memory.h"

namespace pawl::lifecycle {

// A stream that records what is written. The test closes it.
class Recorder final : public wire::Socket {
 public:
  bool write(BytesView piece) override {
    std::lock_guard lock(mutex_);
    if (gone_) return false;
    pieces.emplace_back(piece);
    return true;
  }
  void end() override { ended = true; }
  size_t buffered() const override { return buffered_bytes; }
  void on_close(std::function<void()> closed) override { closed_ = std::move(closed); }
  void on_message(std::function<void(std::string)>) override {}
  void close() {
    {
      std::lock_guard lock(mutex_);
      gone_ = true;
    }
    if (closed_) closed_();
  }
  std::vector<std::string> all() {
    std::lock_guard lock(mutex_);
    return pieces;
  }
  std::string text() {
    std::string out;
    for (const auto& p : all())
      out += p;
    return out;
  }
  std::vector<std::string> pieces;
  std::atomic<bool> ended{false};
  std::atomic<size_t> buffered_bytes{0};

 private:
  std::mutex mutex_;
  bool gone_ = false;
  std::function<void()> closed_;
};

// The lifecycle program with two more verbs: `spoil` corrupts an instance, `mend` repairs it.
class Spoiler final : public pawl::Program {
 public:
  std::string_view name() const override { return "lifecycle"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    Key at = instance_key(turn.caller().tenant, "drone-survey", input.body);
    if (input.verb == "spoil")
      turn.write(at, "no record");
    else if (input.verb == "mend")
      turn.write(at, landing(input.body));
    else
      return inner_.run(turn, input);
    return Bytes();
  }
  void view(const Committed& frame, ViewRows& rows) const override { inner_.view(frame, rows); }
  bool keeps_history(BytesView key) const override { return inner_.keeps_history(key); }

 private:
  static Bytes landing(std::string_view id_text) {
    Mission one{.entity_id = std::string(id_text), .phase = "landing"};
    std::string record_bytes = to_record(one);
    StoredInstance stored;
    stored.phase = one.phase;
    stored.record = record_bytes;
    return encode(stored);
  }
  lifecycle::Program inner_;
};

struct routes : testing::Test {
  Spoiler program;
  std::unique_ptr<Shard> shard =
      *Shard::open(std::make_unique<MemoryJournal>(), std::make_unique<MemoryRows>(), {&program});
  BackgroundThreads background;
  std::optional<Face> face;
  wire::Router router;
  server::GuardedRouter guarded;
  std::string roles = "program";

  void SetUp() override {
    ASSERT_TRUE(shard->start());
    face.emplace(*shard, background);
    router.add(face->routes(), face->dialects());
    guarded.guard(router);
    ASSERT_EQ(say("PUT", "/pawl/v1/lifecycle/types/drone-survey",
                  js::print(type_json(describe<Mission>())))
                  .status,
              201);
    make("m1");
  }
  void TearDown() override {
    face.reset();
    shard->stop();
  }
  wire::Response say(std::string method, std::string path, std::string body = {},
                     wire::Headers headers = {}) {
    std::string query;
    if (size_t mark = path.find('?'); mark != std::string::npos) {
      query = path.substr(mark + 1);
      path.resize(mark);
    }
    auto done = std::make_shared<std::atomic<bool>>(false);
    auto out = std::make_shared<wire::Response>();
    guarded.dispatch(
        {std::move(method), path, query, std::move(headers), std::move(body), {"t", "ann", roles}},
        [done, out](wire::Response r) {
          *out = std::move(r);
          *done = true;
          done->notify_one();
        });
    done->wait(false);
    return *out;
  }
  void make(std::string id, std::string phase_name = "planning") {
    ASSERT_EQ(say("POST", "/pawl/v1/lifecycle/instances/drone-survey/" + id,
                  "{\"phase\":\"" + phase_name + "\"}")
                  .status,
              201);
  }
  void spoil(std::string id, std::string verb = "spoil") {
    std::atomic<bool> done{false};
    Input input;
    input.program = "lifecycle";
    input.verb = std::move(verb);
    input.body = std::move(id);
    input.caller = {"t", "ann", ""};
    shard->submit(std::move(input), [&](Result<Answer> a) {
      EXPECT_TRUE(a);
      done = true;
      done.notify_one();
    });
    done.wait(false);
  }
};

}  // namespace pawl::lifecycle
