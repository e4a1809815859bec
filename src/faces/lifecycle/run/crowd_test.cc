// Many threads on one engine: writers in process and over HTTP, watches that come and go, rules
// that are stored and removed, lists and counts. No write is lost and no thread hangs. The thread
// sanitizer runs this test too.

#include <atomic>
#include <map>
#include <thread>

#include "faces/lifecycle/served_test.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

struct crowd : testing::Test, Served {
  Warnings unheard;
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  static constexpr int kInstances = 6, kRounds = 60;

  static std::string id(int n) { return "m" + std::to_string(n % kInstances); }
  // Runs `work` on a thread of its own until the writers are done.
  void beside(std::function<void(int)> work) {
    threads.emplace_back([this, work = std::move(work)] {
      for (int n = 0; !over; ++n)
        work(n);
    });
  }
  // Watches a few changes, closes the watch, and resumes after the last change.
  void watch_beside(manager& m) {
    beside([&m, last = std::make_shared<revision>(0)](int n) {
      auto w = *(n % 4 ? m.watch<Mission>(*last) : m.watch<Mission>());
      for (int i = 0; i < 5; ++i) {
        auto c = w.next(deadline::in(5ms));
        if (!c) break;
        EXPECT_TRUE(c->snapshot || n % 4 == 0 || c->rev > *last);
        *last = std::max(*last, c->rev);
      }
      if (n % 3 == 0) w.close();
    });
  }
  void read_beside(manager& m) {
    beside([&m](int n) {
      query<Mission> q;
      q.active = n % 2;
      EXPECT_TRUE(m.list(q));
      EXPECT_TRUE(m.get<Mission>(id(n)));
      EXPECT_TRUE(m.history<Mission>(id(n)));
      EXPECT_TRUE(m.children(""));
    });
  }
  // Stores and removes a rule, and asks for the counts.
  void change_rules_beside() {
    static const std::string rule =
        R"({"workflow":"drone-survey","on":{"phase":"flying"},"max_iterations":3,"then":[{"type":"lifecycle_transition","phase":"capturing","set":{"retries":{"op":"increment"}}}]})";
    beside([this](int n) {
      wire::Request change{n % 2 ? "DELETE" : "PUT",
                           "/pawl/v1/lifecycle/rules/r",
                           "",
                           {},
                           n % 2 ? "" : rule,
                           {engine->options().tenant, "ann", "program"}};
      router.dispatch(std::move(change), [](wire::Response) {});
      router.dispatch(
          {"GET", "/workflows", "", {}, "", {engine->options().tenant, "ann", "viewer"}},
          [](wire::Response r) { EXPECT_EQ(r.status, 200); });
      std::this_thread::sleep_for(1ms);
    });
  }
  // Four writers, two on each manager; returns when all threads are done.
  void write_and_join(manager& local, manager& remote) {
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t)
      writers.emplace_back([&, t] {
        manager& m = t % 2 ? remote : local;
        for (int n = 0; n < kRounds; ++n) {
          EXPECT_TRUE(m.update<Mission>(id(n + t), [](Mission& x) { ++x.waypoint; }));
          // Whether this transition is allowed depends on the other writers.
          (void)m.transition<Mission>(id(n), n % 2 ? "flying" : "capturing").has_value();
        }
      });
    for (auto& t : writers)
      t.join();
    over = true;
    for (auto& t : threads)
      t.join();
  }
  // The last state that a watch from the beginning shows is the state that is stored.
  void expect_newest(watch_stream<Mission>& watch, manager& m) {
    std::map<std::string, Mission> seen;
    while (!seen.contains("last")) {
      auto c = watch.next(deadline::in(20s));
      ASSERT_TRUE(c);
      seen[c->id] = c->state;
    }
    for (int i = 0; i < kInstances; ++i)
      EXPECT_EQ(seen[id(i)].waypoint, m.get<Mission>(id(i))->waypoint) << id(i);
  }
};

TEST_F(crowd, loses_nothing) {
  std::string address = start();
  manager local(*engine, unheard.options()),
      remote = *manager::connect(address, {.log = unheard.options().log});
  for (manager* m : {&local, &remote})
    ASSERT_TRUE(m->register_type<Mission>());
  for (int i = 0; i < kInstances; ++i)
    ASSERT_TRUE(local.create(Mission{.entity_id = id(i)}));
  auto all = *local.watch<Mission>(), far = *remote.watch<Mission>();
  for (manager* m : {&local, &remote}) {
    watch_beside(*m);
    read_beside(*m);
  }
  change_rules_beside();
  write_and_join(local, remote);
  uint32_t sum = 0;
  for (int i = 0; i < kInstances; ++i)
    sum += local.get<Mission>(id(i))->waypoint;
  EXPECT_EQ(sum, 4u * kRounds);
  ASSERT_TRUE(local.create(Mission{.entity_id = "last"}));
  for (auto* w : {&all, &far}) {
    expect_newest(*w, local);
    if (HasFatalFailure()) return;
  }
  all.close();
  far.close();
  auto verified = engine->verify();
  EXPECT_TRUE(verified) << verified.error().message();
}

}  // namespace pawl::lifecycle
