#include "runtime/workers.h"

#include "runtime/tally_test.h"

namespace pawl {

TEST(workers, a_job_released_after_stop_is_not_handed_out) {
  Host host;
  ASSERT_TRUE(host.say("job", "j"));
  ASSERT_EQ(host.poll(1).size(), 1u);
  int answers = 0;
  host.workers->poll({"t", {"work"}, "w", 1, 30 * kSecond, 30 * kSecond, "tally"},
                     [&](std::vector<Leased> got) { answers += 1 + static_cast<int>(got.size()); });
  host.workers->stop();
  host.workers->release("j");
  EXPECT_EQ(answers, 1);
}

TEST(workers, a_job_has_one_lease_and_is_offered_again_when_it_expires) {
  Host host;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(host.say("job", "j" + std::to_string(i)));
  EXPECT_EQ(host.poll(2, 0, 40 * kMillisecond).size(), 2u);
  EXPECT_EQ(host.poll(5, 0, 10 * kSecond).size(), 1u);
  EXPECT_EQ(host.poll(5).size(), 0u);
  EXPECT_EQ(host.poll(5, 2 * kSecond).size(), 2u);
  EXPECT_EQ(host.workers->leases_expired(), 2u);
}

TEST(workers, a_lease_is_extended_by_its_worker_only) {
  Host host;
  ASSERT_TRUE(host.say("job", "j"));
  ASSERT_EQ(host.poll(1, 0, 60 * kMillisecond).size(), 1u);
  auto place = host.workers->place_of("j");
  ASSERT_TRUE(place);
  EXPECT_FALSE(host.workers->extend("j", "nobody", place->until + kSecond));
  EXPECT_FALSE(host.workers->extend("none", place->worker, place->until + kSecond));
  EXPECT_EQ(host.workers->extend("j", place->worker, place->until - 1), place->until);
  Time until = place->until + kSecond / 2;
  EXPECT_EQ(host.workers->extend("j", place->worker, until), until);
  EXPECT_EQ(host.poll(1, 300 * kMillisecond).size(), 0u) << "the old end of the lease is past";
  EXPECT_EQ(host.poll(1, 2 * kSecond).size(), 1u) << "the new end is past";
  EXPECT_EQ(host.workers->leases_expired(), 1u);
}

// Chunks of many sizes that are freed in rising order: the heap gives them out in falling order.
static void prepare_falling_addresses() {
  std::vector<std::unique_ptr<char[]>> chunks;
  for (size_t size = 64; size <= 512; size += 16)
    for (int i = 0; i < 7; ++i)
      chunks.push_back(std::make_unique<char[]>(size));
  for (auto& chunk : chunks)
    chunk.reset();
}

// The order must not be that of their addresses: the same requests get the same answers.
TEST(workers, leases_that_end_together_are_offered_again_in_the_order_of_their_jobs) {
  Host host(false);
  Workers workers(*host.shard, host.shard->scheduler());
  workers.start();
  auto poll = [&](Time wait, Time lease) {
    std::promise<std::string> ids;
    workers.poll({"t", {"work"}, "w", 7, lease, wait, "tally"}, [&](std::vector<Leased> got) {
      std::string all;
      for (const Leased& leased : got)
        all += leased.effect->id + " ";
      ids.set_value(all);
    });
    return ids.get_future().get();
  };
  std::vector<EffectPtr> effects;
  std::string expected;
  for (int i = 0; i < 7; ++i) {
    const std::string id = "j" + std::to_string(i);
    effects.push_back(
        std::make_shared<Effect>(Effect{id, To::worker, "tally", "t", "work", 0, id}));
    expected += id + " ";
  }
  prepare_falling_addresses();
  for (const EffectPtr& effect : effects)
    workers.opened(effect);
  EXPECT_EQ(poll(0, 40 * kMillisecond), expected);
  EXPECT_EQ(poll(5 * kSecond, 30 * kSecond), expected);
  workers.stop();
}

TEST(workers, a_poll_is_bounded_by_bytes) {
  Host host;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(host.say("job of " + std::to_string(9 << 20), "j" + std::to_string(i)));
  EXPECT_EQ(host.poll(3).size(), 2u) << "16 MiB are reached with the second";
  EXPECT_EQ(host.poll(3).size(), 1u);
}

TEST(workers, the_oldest_job_is_handed_out_first) {
  Host host(false);
  Workers workers(*host.shard, host.shard->scheduler(),
                  [](const Effect& e) -> Time { return std::stoll(e.body); });
  auto open = [&](const char* id, const char* born) {
    workers.opened(std::make_shared<Effect>(Effect{id, To::worker, "tally", "t", "work", 0, born}));
  };
  auto take = [&](size_t limit) {
    std::string ids;
    workers.poll({"t", {"work"}, "w", limit, 30 * kSecond, 0, "tally"},
                 [&](std::vector<Leased> got) {
                   for (const Leased& l : got)
                     ids += l.effect->id + " ";
                 });
    return ids;
  };
  for (auto [id, born] : {std::pair("c", "3"), {"a", "1"}, {"e", "5"}, {"d", "4"}, {"b", "2"}})
    open(id, born);
  EXPECT_EQ(take(2), "a b ");
  workers.release("a");
  open("f", "6");
  workers.closed(Effect{.id = "d", .program = {}, .tenant = {}, .queue = {}, .body = {}});
  EXPECT_EQ(take(9), "a c e f ");
  EXPECT_EQ(take(9), "");
}

TEST(workers, the_highest_priority_is_first_and_fairness_keys_are_served_in_turn) {
  Host host(false);
  Workers workers(*host.shard, host.shard->scheduler());
  auto open = [&](const char* id, int32_t priority, const char* key, const char* queue = "work") {
    workers.opened(std::make_shared<Effect>(
        Effect{id, To::worker, "tally", "t", queue, 0, "", priority, key}));
  };
  auto take = [&](size_t limit, std::vector<std::string> queues = {"work"}) {
    std::string ids;
    workers.poll({"t", queues, "w", limit, 30 * kSecond, 0, "tally"}, [&](std::vector<Leased> got) {
      for (const Leased& l : got)
        ids += l.effect->id + " ";
    });
    return ids;
  };
  for (const char* id : {"a1", "a2", "a3", "a4"})
    open(id, 0, "a");
  open("b1", 0, "b");
  open("c1", 0, "c");
  open("c2", 0, "c");
  EXPECT_EQ(take(9), "a1 b1 c1 a2 c2 a3 a4 ") << "in turn over the keys, in order within a key";
  for (const char* id : {"a1", "a2", "a3", "a4", "b1", "c1", "c2"})
    workers.closed(Effect{.id = id, .program = {}, .tenant = {}, .queue = {}, .body = {}});
  open("low", -5, "");
  open("plain", 0, "");
  open("high", 7, "");
  open("gone", 9, "");
  open("other", 3, "", "side");
  workers.closed(Effect{.id = "gone", .program = {}, .tenant = {}, .queue = {}, .body = {}});
  EXPECT_EQ(take(2, {"side", "work"}), "high other ") << "the priority counts across the queues";
  auto place = workers.place_of("high");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->state, WorkQueue::Place::State::leased);
  EXPECT_EQ(place->worker, "w");
  EXPECT_EQ(take(9), "plain low ");
  EXPECT_EQ(take(9), "");
  EXPECT_FALSE(workers.place_of("gone"));
}

TEST(workers, a_waiting_poll_is_woken_by_a_job) {
  Host host;
  auto waiting = std::async(std::launch::async, [&] { return host.poll(1, 5 * kSecond); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(host.say("job", "soon"));
  auto got = waiting.get();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].effect->id, "soon");
}

TEST(workers, a_waiting_poll_times_out_empty) {
  Host host;
  EXPECT_EQ(host.poll(1, 30 * kMillisecond).size(), 0u);
}

TEST(workers, a_settled_job_is_not_offered_and_a_released_one_is) {
  Host host;
  ASSERT_TRUE(host.say("job", "a"));
  ASSERT_TRUE(host.say("job", "b"));
  ASSERT_TRUE(host.say("receipt", "", "a"));
  auto got = host.poll(5);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].effect->id, "b");
  host.workers->release("b");
  EXPECT_EQ(host.poll(5).size(), 1u);
}

TEST(workers, a_paused_queue_offers_nothing_until_it_is_resumed) {
  Host host;
  host.workers->pause("tally", "t", "work", true);
  ASSERT_TRUE(host.say("job", "a"));
  EXPECT_EQ(host.poll(5).size(), 0u);
  host.workers->pause("tally", "t", "work", false);
  EXPECT_EQ(host.poll(5).size(), 1u);
}

TEST(workers, a_reused_id_starts_afresh) {
  Host host;
  auto effect =
      std::make_shared<const Effect>(Effect{"again", To::worker, "tally", "t", "work", 0, ""});
  host.workers->opened(effect);
  EXPECT_EQ(host.poll(1).size(), 1u);
  host.workers->opened(effect);
  EXPECT_EQ(host.poll(5).size(), 1u);
  EXPECT_EQ(host.workers->depths()[0].leased, 1u);
}

TEST(workers, queue_names_known_only_from_polls_are_dropped) {
  Host host;
  ASSERT_TRUE(host.say("job", "kept"));
  host.workers->pause("tally", "t", "paused", true);
  for (int i = 0; i < 5000; ++i)
    host.workers->poll({"t",
                        {"made-up-" + std::to_string(i), "work-" + std::to_string(i)},
                        "w",
                        1,
                        kSecond,
                        0,
                        "tally"},
                       [](std::vector<Leased>) {});
  EXPECT_LT(host.workers->depths().size(), 2100u);
  EXPECT_EQ(host.poll(5).size(), 1u);
  ASSERT_TRUE(host.say("job", "later"));
  host.workers->pause("tally", "t", "work", true);
  EXPECT_EQ(host.poll(5).size(), 0u);
}

TEST(workers, jobs_that_end_unpolled_free_their_memory) {
  Host host;
  std::vector<std::weak_ptr<const Effect>> all;
  for (int i = 0; i < 1000; ++i) {
    auto effect = std::make_shared<const Effect>(
        Effect{"j" + std::to_string(i), To::worker, "tally", "t", "work", 0, "body"});
    all.push_back(effect);
    host.workers->opened(effect);
    if (i % 10) host.workers->closed(*effect);
  }
  EXPECT_LT(std::count_if(all.begin(), all.end(), [](const auto& one) { return !one.expired(); }),
            400);
  EXPECT_EQ(host.poll(1000).size(), 100u);
}

TEST(workers, a_large_body_is_read_when_its_job_is_leased) {
  Host host;
  // The id of a job of the tally is its body.
  const std::string large(3000, 'a');
  ASSERT_TRUE(host.say("job", large));
  auto kept = std::make_shared<const Effect>(
      Effect{"outside", To::worker, "tally", "t", "work", 0, std::string(100'000, 'b')});
  std::weak_ptr<const Effect> watched = kept;
  host.workers->opened(kept);
  kept.reset();
  EXPECT_TRUE(watched.expired());
  // The second job is not in the kernel: it counts as settled.
  std::vector<Leased> got = host.poll(5);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].effect->body, large);
}

TEST(workers, a_job_with_a_large_body_is_handed_out_whole) {
  Host host;
  ASSERT_TRUE(host.say("job of 100000", "big"));
  std::vector<Leased> got = host.poll(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].effect->body, std::string(100'000, 'x'));
  host.workers->release("big");
  EXPECT_EQ(host.poll(1, kSecond).at(0).effect->body.size(), 100'000u);
}

TEST(workers, the_end_of_a_poll_costs_nothing_to_the_others) {
  Host host;
  std::vector<std::string> types;
  for (int i = 0; i < 1000; ++i)
    types.push_back("type-" + std::to_string(i));
  std::vector<uint64_t> polls;
  auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 2000; ++i)
    polls.push_back(host.workers->poll({"t", types, "w", 1, kSecond, 600 * kSecond, "tally"},
                                       [](std::vector<Leased>) {}));
  // The last polls are the farthest from the front of their queues' lists.
  for (size_t i = polls.size(); i-- > 0;)
    host.workers->cancel(polls[i]);
  // Two million places are taken and given back. A search through the lists took a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(host.workers->depths()[0].waiting_polls, 0u);
  ASSERT_TRUE(host.say("job", "a"));
  EXPECT_EQ(host.poll(1).size(), 1u);
}

TEST(workers, tenants_do_not_see_each_other) {
  Host host;
  ASSERT_TRUE(host.say("job", "a"));
  std::promise<std::vector<Leased>> got;
  host.workers->poll({"thief", {"work"}, "w", 5, kSecond, 0, "tally"},
                     [&](std::vector<Leased> l) { got.set_value(std::move(l)); });
  EXPECT_TRUE(got.get_future().get().empty());
}

TEST(workers, faces_do_not_lease_each_others_effects) {
  Host host;
  ASSERT_TRUE(host.say("job", "a"));
  std::promise<std::vector<Leased>> got;
  host.workers->poll({"t", {"work"}, "w", 5, kSecond, 0, "worlds"},
                     [&](std::vector<Leased> l) { got.set_value(std::move(l)); });
  EXPECT_TRUE(got.get_future().get().empty());
  EXPECT_EQ(host.poll(5).size(), 1u);
}

TEST(workers, the_jobs_in_flight_of_one_tenant_are_limited) {
  Host host(false);
  Workers workers(*host.shard, host.shard->scheduler(), [](const Effect&) -> Time { return 0; },
                  {.tenant_leases = 2});
  auto open = [&](const std::string& id, const char* tenant, const char* queue) {
    workers.opened(std::make_shared<Effect>(Effect{id, To::worker, "tally", tenant, queue, 0, ""}));
  };
  auto take = [&](const char* tenant, std::vector<std::string> queues, Time wait = 0) {
    auto ids = std::make_shared<std::string>();
    workers.poll({tenant, std::move(queues), "w", 9, 30 * kSecond, wait, "tally"},
                 [ids](std::vector<Leased> got) {
                   for (const Leased& l : got)
                     *ids += l.effect->id + " ";
                 });
    return ids;
  };
  for (const char* id : {"a", "b", "c", "d"})
    open(id, "t", id < std::string("c") ? "one" : "two");
  open("x", "u", "one");
  EXPECT_TRUE(workers.admit("t"));
  EXPECT_EQ(*take("t", {"one"}), "a b ");
  auto refused = workers.admit("t");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::exhausted);
  EXPECT_EQ(refused.error().reason, "TENANT_JOBS");
  EXPECT_TRUE(workers.admit("u"));
  EXPECT_EQ(*take("t", {"two"}), "");
  EXPECT_EQ(*take("u", {"one"}), "x ");
  // A poll that waits gets a job as soon as another one is finished.
  auto waiting = take("t", {"two"}, 30 * kSecond);
  EXPECT_EQ(*waiting, "");
  workers.closed(Effect{.id = "a", .program = {}, .tenant = {}, .queue = {}, .body = {}});
  workers.flushed();
  EXPECT_EQ(*waiting, "c ");
  EXPECT_FALSE(workers.admit("t"));
  auto next = take("t", {"two"}, 30 * kSecond);
  workers.release("b");  // it goes back to its queue, which nobody polls
  EXPECT_EQ(*next, "d ");
}

TEST(workers, polls_that_wait_are_counted_in_the_memory_budget) {
  Host host(false);
  MemoryBudget budget(8 << 20);  // polls may use 2 MiB
  auto account = std::make_shared<MemoryAccount>(budget);
  Workers workers(*host.shard, host.shard->scheduler(), [](const Effect&) -> Time { return 0; },
                  {.charge = [&](MemoryUse use, const std::string&) {
                    return MemoryCharge(&budget, use, account);
                  }});
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i)
    many.push_back("a job type with a name " + std::to_string(i));
  std::vector<uint64_t> polls;
  while (polls.size() < 100 && workers.admit("t"))
    polls.push_back(workers.poll({"t", many, "w", 1, 30 * kSecond, 30 * kSecond, "tally"},
                                 [](std::vector<Leased>) {}));
  EXPECT_GE(polls.size(), 3u);
  EXPECT_LE(polls.size(), 6u);
  auto refused = workers.admit("t");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "WAITING_POLLS");
  for (uint64_t poll : polls)
    workers.cancel(poll);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_TRUE(workers.admit("t"));
}

}  // namespace pawl
