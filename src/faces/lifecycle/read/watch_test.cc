// Watches: a snapshot, then every change. Nothing comes twice, nothing is lost, and a slow reader
// delays nobody.

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "embed/engine_parts.h"
#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/missions_test.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

struct watching : Missions {};

// The next change, or nothing after a while.
template <class T>
static std::optional<change<T>> soon(watch_stream<T>& from,
                                     std::chrono::milliseconds wait = 1000ms) {
  return from.next(deadline::in(wait));
}

// case 140
TEST_F(watching, the_snapshot_comes_first_and_then_writes_in_order) {
  make("a");
  make("b");
  auto w = *m.watch<Mission>();
  for (auto name : {"a", "b"}) {
    auto c = soon(w);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->id, name);
    EXPECT_TRUE(c->snapshot);
  }
  ASSERT_TRUE(m.transition<Mission>("b", "flying"));
  ASSERT_TRUE(m.transition<Mission>("a", "aborted"));
  auto one = soon(w), two = soon(w);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->state.phase, "flying");
  EXPECT_FALSE(one->snapshot);
  EXPECT_EQ(two->state.phase, "aborted");
  EXPECT_LT(one->rev, two->rev);
}
// case 141
TEST_F(watching, a_stop_ends_a_pending_next) {
  auto w = *m.watch<Mission>();
  std::jthread reader([&](std::stop_token stop) { EXPECT_FALSE(w.next(stop)); });
  std::this_thread::sleep_for(10ms);
  auto begin = std::chrono::steady_clock::now();
  reader.request_stop();
  reader.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
}
// case 142
TEST_F(watching, a_removal_is_shown) {
  make("a");
  auto w = *m.watch<Mission>();
  ASSERT_TRUE(soon(w));
  ASSERT_TRUE(m.remove<Mission>("a"));
  auto c = soon(w);
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->deleted);
  EXPECT_EQ(c->state.entity_id, "a");
}
// case 144
TEST_F(watching, a_write_before_the_first_next_is_seen_exactly_once) {
  make("a");
  auto w = *m.watch<Mission>();
  make("b");
  ASSERT_TRUE(m.transition<Mission>("a", "flying"));
  std::map<std::string, int> seen;
  while (auto c = soon(w, 200ms))
    ++seen[c->id + c->state.phase];
  EXPECT_EQ(seen["bplanning"], 1);
  EXPECT_EQ(seen["aflying"], 1);
}
// case 145
TEST_F(watching, a_state_from_the_stream_is_a_copy) {
  make("a");
  auto w = *m.watch<Mission>();
  auto c = soon(w);
  ASSERT_TRUE(c);
  c->state.owner = "changed";
  EXPECT_EQ(m.get<Mission>("a")->owner, "acme");
}
// case 146
TEST_F(watching, other_types_in_the_same_bucket_are_not_delivered) {
  dynamic_type t = describe<Mission>();
  t.name = "other-survey";
  ASSERT_TRUE(m.register_type(t));
  ASSERT_TRUE(m.create_json("other-survey", "before", R"({"phase":"planning"})"));
  auto w = *m.watch<Mission>();
  ASSERT_TRUE(m.create_json("other-survey", "after", R"({"phase":"planning"})"));
  ASSERT_TRUE(m.create(Capture{.entity_id = "task"}));
  make("a");
  EXPECT_EQ(soon(w)->id, "a");
  EXPECT_FALSE(soon(w, 100ms));
}
// The same workflow in a program where `retries` is a boolean: what Mission writes does not fit.
struct Misread {
  std::string entity_id{}, phase = "planning";
  bool retries = false;
  static constexpr std::string_view workflow = "drone-survey", bucket = "MISSIONS";
  static constexpr auto fields = lifecycle::fields(
      field<&Misread::entity_id>("entity_id", lifecycle::id),
      field<&Misread::phase>("phase", lifecycle::phase), field<&Misread::retries>("retries"));
  static constexpr auto transitions = Mission::transitions;
};
// case 143
TEST_F(watching, an_unreadable_state_is_skipped_with_a_warning) {
  make("old");
  Warnings heard;
  manager odd(*engine, heard.options());
  ASSERT_TRUE(odd.register_type<Misread>());
  auto w = *odd.watch<Misread>();
  ASSERT_TRUE(odd.create(Misread{.entity_id = "new"}));
  EXPECT_EQ(soon(w)->id, "new");
  EXPECT_EQ(heard.count(), 1u);
  ASSERT_TRUE(m.update<Mission>("old", [](Mission& x) { x.note = "live"; }));
  ASSERT_TRUE(odd.transition<Misread>("new", "flying"));
  EXPECT_EQ(soon(w)->state.phase, "flying");
  ASSERT_EQ(heard.count(), 2u);
  EXPECT_NE(heard.all[1].find("'old'"), std::string::npos) << heard.all[1];
}
// case 147
TEST_F(watching, an_unregistered_type_is_refused) {
  manager bare(*engine);
  EXPECT_ERRC(bare.watch<Mission>(), errc::workflow_not_registered);
}
// case 148
TEST_F(watching, a_destroyed_stream_is_removed_from_the_hub) {
  {
    auto w = *m.watch<Mission>();
    EXPECT_EQ(engine->parts().hub->watchers(), 1u);
  }
  EXPECT_EQ(engine->parts().hub->watchers(), 0u);
  make("a");  // would reach freed memory
  auto w = *m.watch<Mission>();
  w.close();
  EXPECT_FALSE(w.next());
}
// case 149
TEST_F(watching, a_slow_reader_gets_the_newest_state_and_delays_nobody) {
  make("a");
  auto slow = *m.watch<Mission>(), fast = *m.watch<Mission>();
  ASSERT_TRUE(soon(slow));
  ASSERT_TRUE(soon(fast));
  const int writes = static_cast<int>(limits::kWatchQueue) + 100;
  for (int i = 1; i <= writes; ++i) {
    ASSERT_TRUE(m.update<Mission>("a", [&](Mission& x) { x.retries = i; }));
    ASSERT_EQ(soon(fast)->state.retries, i);
  }
  int64_t last = 0;
  uint64_t got = 0, skipped = 0;
  while (auto c = soon(slow, 100ms)) {
    EXPECT_GT(c->state.retries, last);
    last = c->state.retries;
    skipped += c->skipped;
    ++got;
  }
  EXPECT_EQ(last, writes);
  EXPECT_LE(got, limits::kWatchQueue + 1);
  EXPECT_EQ(got + skipped, static_cast<uint64_t>(writes));
}
TEST_F(watching, unread_ids_that_come_and_go_use_no_memory) {
  make("known");
  make("back");
  auto w = *m.watch<Mission>();
  ASSERT_TRUE(soon(w) && soon(w));
  const size_t rounds = limits::kWatchQueue * 2;
  for (size_t i = 0; i < rounds; ++i) {
    make("n" + std::to_string(i));
    ASSERT_TRUE(m.remove<Mission>("n" + std::to_string(i)));
  }
  make("stays");
  ASSERT_TRUE(m.remove<Mission>("known"));
  ASSERT_TRUE(m.remove<Mission>("back"));
  make("back", "landing");
  size_t got = 0;
  std::map<std::string, std::string> last;
  while (auto c = soon(w, 100ms)) {
    ++got;
    last[c->id] = c->deleted ? "deleted" : c->state.phase;
  }
  EXPECT_LE(got, limits::kWatchQueue + 4);
  EXPECT_EQ(last["stays"], "planning");
  EXPECT_EQ(last["known"], "deleted");
  EXPECT_EQ(last["back"], "landing");
  for (const auto& [id_text, at] : last) {
    bool passing = id_text[0] == 'n';
    EXPECT_TRUE(!passing || at == "deleted") << id_text;
  }
}
TEST_F(watching, copies_of_a_stream_keep_their_own_deadlines) {
  auto w = *m.watch<Mission>();
  std::stop_source stop;
  std::atomic<int> got{0};
  std::thread waits([w, &stop, &got]() mutable {
    while (w.next(stop.get_token()))
      ++got;
  });
  std::this_thread::sleep_for(20ms);
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(w.next(deadline::in(50ms)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  make("a");
  make("b");
  for (int i = 0; i < 500 && got < 2; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(got, 2);
  stop.request_stop();
  waits.join();
}
TEST_F(watching, a_watch_resumes_after_a_revision) {
  make("a");
  revision at = m.get_with_revision<Mission>("a")->second;
  ASSERT_TRUE(m.transition<Mission>("a", "flying"));
  ASSERT_TRUE(m.transition<Mission>("a", "landing"));
  auto w = *m.watch<Mission>(at);
  EXPECT_EQ(soon(w)->state.phase, "flying");
  EXPECT_EQ(soon(w)->state.phase, "landing");
  ASSERT_TRUE(m.transition<Mission>("a", "failed"));
  EXPECT_EQ(soon(w)->state.phase, "failed");
}
TEST_F(watching, a_snapshot_of_many_comes_in_pages) {
  const size_t many = limits::kWatchPage * 2 + 7;
  for (size_t i = 0; i < many; ++i)
    make("m" + std::to_string(i));
  auto w = *m.watch<Mission>();
  std::set<std::string> seen;
  while (seen.size() < many) {
    auto c = soon(w);
    ASSERT_TRUE(c);
    EXPECT_TRUE(seen.insert(c->id).second);
  }
}
TEST_F(watching, a_callback_is_called_until_the_stop) {
  make("a");
  std::stop_source stop;
  int calls = 0;
  ASSERT_TRUE(m.watch<Mission>(
      [&](const change<Mission>&) {
        ++calls;
        stop.request_stop();
      },
      stop.get_token()));
  EXPECT_EQ(calls, 1);
}
TEST_F(watching, a_watch_is_a_range) {
  make("a");
  make("b");
  auto w = *m.watch<Mission>();
  int n = 0;
  for (const auto& c : w) {
    EXPECT_TRUE(c.snapshot);
    if (++n == 2) break;
  }
  EXPECT_EQ(n, 2);
}

}  // namespace pawl::lifecycle
