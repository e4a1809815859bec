#include "faces/entities/http/result_stream.h"

#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

// A client that reads nothing until it is released.
class SlowClient final : public wire::Stream {
 public:
  bool write(BytesView piece) override {
    std::lock_guard lock(mutex_);
    text_ += piece;
    return !gone_;
  }
  void end() override {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  void cut() override {
    std::lock_guard lock(mutex_);
    ended_ = cut_ = true;
  }
  bool was_cut() const {
    std::lock_guard lock(mutex_);
    return cut_;
  }
  size_t buffered() const override { return released_ ? 0 : size_t{1} << 30; }
  void on_close(std::function<void()>) override {}

  void release() { released_ = true; }
  void leave() {
    std::lock_guard lock(mutex_);
    gone_ = true;
  }
  bool ended() const {
    std::lock_guard lock(mutex_);
    return ended_;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  bool ended_ = false, cut_ = false;
  bool gone_ = false;
  std::atomic<bool> released_ = false;
};

// A model whose 40 entities are 800 KB together, and a client that searches for all of them.
struct LargeResult : FaceFixture {
  LargeResult() {
    add_model();
    for (int i = 0; i < 40; ++i)
      ids.push_back(create(fmt::format(R"({{"k":"{}","n":{}}})", std::string(20'000, 'x'), i)));
    std::sort(ids.begin(), ids.end());
  }
  void search(const std::string& query = "") {
    std::atomic<bool> answered = false;
    router.dispatch(request("POST", "/search/direct/m/1" + query,
                            R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})"),
                    [&](wire::Response response) {
                      EXPECT_EQ(response.status, 200) << response.body;
                      EXPECT_TRUE(response.stream);
                      if (response.stream) response.stream(client);
                      answered = true;
                    });
    EXPECT_TRUE(wait_until([&] { return answered.load(); }));
  }
  std::vector<std::string> found() const {
    std::vector<std::string> out;
    const std::string text = client->text();
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      out.emplace_back(json::parse(text.substr(at, end - at))->find("meta")->string_or("id"));
    return out;
  }

  std::vector<std::string> ids;
  std::shared_ptr<SlowClient> client = std::make_shared<SlowClient>();
};

TEST(result_stream, a_slow_client_gets_the_whole_snapshot) {
  LargeResult s;
  s.search();
  EXPECT_EQ(s.client->text(), "");
  EXPECT_EQ(s.send("DELETE", "/entity/" + s.ids.back()).status, 200);
  s.client->release();
  EXPECT_TRUE(s.wait_until([&] { return s.client->ended(); }));
  EXPECT_EQ(s.found(), s.ids);
}

TEST(result_stream, a_result_at_a_time_reads_the_old_versions) {
  LargeResult s;
  const std::string then = rfc3339(s.kernel.now());
  for (const std::string& id : s.ids)
    EXPECT_EQ(s.send("DELETE", "/entity/" + id).status, 200);
  s.search("?pointInTime=" + then);
  s.client->release();
  EXPECT_TRUE(s.wait_until([&] { return s.client->ended(); }));
  EXPECT_EQ(s.found(), s.ids);
}

TEST(result_stream, more_slow_clients_than_threads_block_no_search) {
  LargeResult s;
  for (int i = 0; i < 5; ++i)
    s.search();
  EXPECT_EQ(s.send("POST", "/search/m/1", R"({"type":"group","operator":"AND","conditions":[]})")
                .body.array()
                .size(),
            40u);
}

TEST(result_stream, a_client_that_leaves_is_dropped) {
  LargeResult s;
  s.search();
  s.client->leave();
  s.client->release();
  EXPECT_TRUE(s.wait_until([&] { return s.client.use_count() == 1; }));
  EXPECT_FALSE(s.client->ended());
}

// The 30th entity is damaged: after the lines that were read stands the error, and the body is cut.
TEST(result_stream, an_entity_that_cannot_be_read_ends_the_result_with_an_error) {
  LargeResult s;
  ReadSnapshot whole = s.kernel.snapshot();
  ResultStream stream{.snapshot = std::move(whole), .tenant = "t"};
  stream.ids = s.ids;
  stream.ids[29] = "no-such-entity";
  stream.out = s.client;
  s.client->release();
  while (stream.write())
    continue;
  EXPECT_TRUE(s.client->was_cut());
  const std::string text = s.client->text();
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  auto line = json::parse(last);
  ASSERT_TRUE(line) << last.substr(0, 200);
  EXPECT_EQ(line->string_or("type"), "ERROR") << last.substr(0, 200);
  EXPECT_NE(line->find("error")->string_or("message").find("no-such-entity"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 30);
}

TEST(result_stream, one_tenant_streams_a_bounded_number_of_results) {
  LargeResult s;
  for (size_t i = 0; i < limits::kTenantStreamedSearches; ++i)
    s.search();
  const std::string all = R"({"type":"group","operator":"AND","conditions":[]})";
  const TestResponse refused = s.send("POST", "/search/direct/m/1", all);
  EXPECT_EQ(refused.status, 429) << refused.text.substr(0, 200);
  EXPECT_NE(refused.text.find("64 large search results"), std::string::npos);
  // A small result needs no stream, and another tenant has streams of its own.
  EXPECT_EQ(s.send("POST", "/search/direct/m/1?limit=1", all).status, 200);
  EXPECT_TRUE(s.face->stream_slots().take("other").has_value());
  // A result that was read makes room.
  s.client->release();
  EXPECT_TRUE(s.wait_until([&] { return s.face->stream_slots().take("t").has_value(); }));
}

TEST(result_stream, all_tenants_together_stream_a_bounded_number_of_results) {
  StreamSlots slots;
  std::vector<StreamSlots::SlotPtr> held;
  for (size_t i = 0; i < limits::kStreamedSearches; ++i)
    held.push_back(*slots.take("t" + std::to_string(i % 10)));
  auto refused = slots.take("new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  held.pop_back();
  EXPECT_TRUE(slots.take("new"));
}

TEST(result_stream, stopping_does_not_end_an_incomplete_result) {
  LargeResult s;
  s.search();
  s.face->stop();
  EXPECT_FALSE(s.client->ended());
  EXPECT_EQ(s.client.use_count(), 1);
}

}  // namespace
}  // namespace pawl::entities
