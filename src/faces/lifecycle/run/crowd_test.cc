// Everything at once on one engine: writers here and over the wire, watches that come and go, rules
// that are put and removed, lists and counts. Nothing is lost, nobody waits for ever, and the
// thread sanitizer has something to look at.

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
  // Until the writers are done.
  void beside(std::function<void(int)> work) {
    threads.emplace_back([this, work = std::move(work)] {
      for (int n = 0; !over; ++n)
        work(n);
    });
  }
  // Reads a while, leaves, comes back where it was.
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
  std::string rule =
      R"({"workflow":"drone-survey","on":{"phase":"flying"},"max_iterations":3,"then":[{"type":"lifecycle_transition","phase":"capturing","set":{"retries":{"op":"increment"}}}]})";
  for (manager* m : {&local, &remote}) {
    watch_beside(*m);
    beside([&, m](int n) {
      query<Mission> q;
      q.active = n % 2;
      EXPECT_TRUE(m->list(q));
      EXPECT_TRUE(m->get<Mission>(id(n)));
      EXPECT_TRUE(m->history<Mission>(id(n)));
      EXPECT_TRUE(m->children(""));
    });
  }
  beside([&](int n) {
    wire::Request ask{n % 2 ? "DELETE" : "PUT",
                      "/pawl/v1/lifecycle/rules/r",
                      "",
                      {},
                      n % 2 ? "" : rule,
                      {engine->options().tenant, "ann", "program"}};
    router.dispatch(std::move(ask), [](wire::Response) {});
    router.dispatch({"GET", "/workflows", "", {}, "", {engine->options().tenant, "ann", "viewer"}},
                    [](wire::Response r) { EXPECT_EQ(r.status, 200); });
    std::this_thread::sleep_for(1ms);
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      manager& m = t % 2 ? remote : local;
      for (int n = 0; n < kRounds; ++n) {
        EXPECT_TRUE(m.update<Mission>(id(n + t), [](Mission& x) { ++x.waypoint; }));
        (void)m.transition<Mission>(id(n), n % 2 ? "flying" : "capturing")
            .has_value();  // whether it may is the others' doing
      }
    });
  for (auto& t : writers)
    t.join();
  over = true;
  for (auto& t : threads)
    t.join();
  uint32_t sum = 0;
  for (int i = 0; i < kInstances; ++i)
    sum += local.get<Mission>(id(i))->waypoint;
  EXPECT_EQ(sum, 4u * kRounds);
  // Those who watched all along have seen it end as it did.
  ASSERT_TRUE(local.create(Mission{.entity_id = "last"}));
  for (auto* w : {&all, &far}) {
    std::map<std::string, Mission> seen;
    while (!seen.contains("last")) {
      auto c = w->next(deadline::in(20s));
      ASSERT_TRUE(c);
      seen[c->id] = c->state;
    }
    for (int i = 0; i < kInstances; ++i)
      EXPECT_EQ(seen[id(i)].waypoint, local.get<Mission>(id(i))->waypoint) << id(i);
  }
  all.close(), far.close();
  auto verified = engine->verify();
  EXPECT_TRUE(verified) << verified.error().message();
}

}  // namespace pawl::lifecycle
