#include "runtime/shard.h"

#include <gtest/gtest.h>

#include <future>

#include "runtime/clock.h"
#include "runtime/workers.h"
#include "storage/memory/memory.h"

namespace pawl {

// Counts in the cell named by the body. "later:MS:NAME" adds one after MS milliseconds, "job:NAME"
// opens an effect to a worker ("job of SIZE" one with so large a body), and a receipt adds ten.
class Tally final : public Program {
 public:
  std::string_view name() const override { return "tally"; }
  BytesView family(BytesView key) const override {
    return key.starts_with(pawl::key({"tally", "kin"})) ? key.substr(0, 9) : BytesView();
  }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    std::string name = input.settles.empty() ? input.body : input.settles;
    if (input.verb == "later" || input.verb == "job" || input.verb == "send") {
      Time due = input.verb == "later" ? turn.now() + 20 * kMillisecond : 0;
      To to = input.verb == "later" ? To::clock : input.verb == "job" ? To::worker : To::cell;
      turn.open({name, to, "tally", "t", "work", due, name});
      return Bytes();
    }
    if (input.verb.starts_with("job of ")) {
      const size_t size = std::stoul(input.verb.substr(7));
      turn.open({name, To::worker, "tally", "t", "work", 0, Bytes(size, 'x')});
      return Bytes();
    }
    if (input.verb == "ask") {
      turn.ask({name, To::member, "tally", "t", "m", 0, ""});
      return Bytes();
    }
    if (name == "shy") {
      TRY(Cell kernel, turn.read(key({"tally", "door"})));
      if (!kernel.exists()) return fail(Code::unavailable, "SHUT", "the door is shut");
    }
    TRY(Cell cell, turn.read(key({"tally", name})));
    int64_t n = cell.exists() ? std::stoll(std::string(cell.value())) : 0;
    n += input.settles.empty() ? 1 : 10;
    turn.write(key({"tally", name}), std::to_string(n));
    return std::to_string(n);
  }
};

struct Host {
  Tally tally;
  MemoryJournal* journal;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Workers> workers;

  explicit Host(bool started = true, ShardOptions options = {}) {
    auto j = std::make_unique<MemoryJournal>();
    journal = j.get();
    shard =
        *Shard::open(std::move(j), std::make_unique<MemoryRows>(), {&tally}, std::move(options));
    clock = std::make_unique<Clock>(*shard);
    workers = std::make_unique<Workers>(*shard);
    shard->connect(To::clock, *clock);
    shard->connect(To::worker, *workers);
    if (started) start();
  }
  void start() {
    clock->start();
    workers->start();
    CHECK(shard->start());
  }
  ~Host() {
    workers->stop();
    clock->stop();
    shard->stop();
  }
  Result<Answer> say(std::string verb, std::string body, std::string settles = {}) {
    auto promise = std::make_shared<std::promise<Result<Answer>>>();
    auto future = promise->get_future();
    Input input{.program = "tally",
                .verb = std::move(verb),
                .body = std::move(body),
                .caller = {"t", "u", ""}};
    input.settles = std::move(settles);
    shard->submit(std::move(input),
                  [promise](Result<Answer> a) { promise->set_value(std::move(a)); });
    if (future.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
      return fail(Code::unavailable, "SILENT", "");
    return future.get();
  }
  std::string value(const std::string& name) {
    return std::string(shard->read(key({"tally", name}))->value());
  }
  bool becomes(const std::string& name, const std::string& want) {
    for (int i = 0; i < 2000; ++i) {
      if (value(name) == want) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  std::vector<Leased> poll(size_t limit, Time wait = 0, Time lease = 30 * kSecond,
                           std::vector<std::string> queues = {"work"}) {
    auto promise = std::make_shared<std::promise<std::vector<Leased>>>();
    auto future = promise->get_future();
    workers->poll({"t", std::move(queues), "w", limit, lease, wait, "tally"},
                  [promise](std::vector<Leased> got) { promise->set_value(std::move(got)); });
    return future.get();
  }
};

static Input count(const std::string& name) {
  return {.program = "tally", .verb = "add", .body = name, .caller = {"t", "u", ""}};
}

TEST(shard, a_batch_scope_commits_as_one_group_on_the_callers_thread) {
  Host host;
  uint64_t before = host.shard->stats().groups;
  std::vector<std::thread::id> answered;
  {
    BatchScope run_batch;
    for (int i = 0; i < 20; ++i)
      host.shard->submit(count("g"),
                         [&](Result<Answer>) { answered.push_back(std::this_thread::get_id()); });
    EXPECT_TRUE(answered.empty());
  }
  EXPECT_EQ(answered, std::vector(20, std::this_thread::get_id()));
  EXPECT_EQ(host.shard->stats().groups, before + 1);
  EXPECT_EQ(host.value("g"), "20");
}

TEST(shard, family_cells_are_limited) {
  ShardOptions few;
  few.family_cells = 3;
  Host host(true, std::move(few));
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(host.say("add", "kin" + std::to_string(i))->body, std::to_string(round));
    ASSERT_TRUE(host.say("add", "other"));
    ASSERT_TRUE(host.shard->snapshot().scan(
        "tally", [](BytesView, const Cell&) { return true; }));  // a scan applies the rows
    EXPECT_EQ(host.shard->stats().family_cells, 3u);
  }
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(host.value("kin" + std::to_string(i)), "3");
  EXPECT_EQ(host.shard->stats().family_cells, 3u);
}

TEST(shard, a_waiting_caller_commits_for_itself_and_others) {
  Host host;
  std::vector<std::thread> threads;
  std::atomic<int> own{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        std::promise<std::thread::id> answered;
        auto by = answered.get_future();
        host.shard->post(count("w"),
                         [&](Result<Answer>) { answered.set_value(std::this_thread::get_id()); });
        host.shard->work(i % 2 ? Shard::Commit::here : Shard::Commit::elsewhere);
        if (by.wait_for(std::chrono::seconds(10)) != std::future_status::ready) return;
        own += by.get() == std::this_thread::get_id();
      }
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(host.value("w"), "1600");
  EXPECT_GT(own, 0);
}

TEST(shard, replies_may_submit_again) {
  Host host;
  std::promise<void> over;
  std::function<void(int)> next = [&](int left) {
    host.shard->submit(count("chain"),
                       [&, left](Result<Answer>) { left ? next(left - 1) : over.set_value(); });
  };
  {
    BatchScope run_batch;
    next(5000);
  }
  over.get_future().wait();
  EXPECT_EQ(host.value("chain"), "5001");
}

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

TEST(shard, an_acknowledged_write_is_visible_to_every_later_read) {
  Host host;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 300; ++i) {
        auto answer = host.say("add", "k" + std::to_string(t));
        if (!answer || host.value("k" + std::to_string(t)) != std::to_string(i)) ++wrong;
        if (host.shard->durable() < answer->seq) ++wrong;
      }
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(host.journal->last(), 2400u);
}

TEST(shard, submitters_of_one_cell_all_succeed) {
  Host host;
  std::atomic<int> left{5000};
  for (int i = 0; i < 5000; ++i)
    host.shard->submit({.program = "tally", .verb = "add", .body = "one", .caller = {}},
                       [&](Result<Answer> a) {
                         CHECK(a);
                         --left;
                       });
  while (left)
    std::this_thread::yield();
  EXPECT_EQ(host.value("one"), "5000");
}

TEST(shard, a_timer_fires_when_due_and_not_before) {
  Host host;
  Time begin = host.shard->now();
  ASSERT_TRUE(host.say("later", "tick"));
  ASSERT_TRUE(host.becomes("tick", "10"));
  EXPECT_GE(host.shard->now() - begin, 20 * kMillisecond);
  EXPECT_EQ(host.clock->waiting(), 0u);
}

TEST(shard, a_delivery_to_a_cell_happens_once) {
  Host host;
  ASSERT_TRUE(host.say("send", "parcel"));
  ASSERT_TRUE(host.becomes("parcel", "10"));
  EXPECT_FALSE(host.say("receipt", "", "parcel"));
}

TEST(shard, open_effects_are_offered_again_after_a_restart) {
  Tally tally;
  MemoryJournal kept;
  {
    Host host;
    ASSERT_TRUE(host.say("job", "j1"));
    ASSERT_TRUE(host.say("later", "t1"));
    EXPECT_EQ(host.poll(5).size(), 1u);
    host.clock->stop();
    ASSERT_TRUE(host.journal->read(1, [&](Seq seq, BytesView entry) -> Result<bool> {
      if (seq > 2) return false;
      BytesView one[] = {entry};
      TRY_OK(kept.append(one, seq - 1));
      return true;
    }));
  }
  auto copy = std::make_unique<MemoryJournal>();
  ASSERT_TRUE(kept.read(1, [&](Seq seq, BytesView entry) -> Result<bool> {
    BytesView one[] = {entry};
    TRY_OK(copy->append(one, seq - 1));
    return true;
  }));
  auto shard = *Shard::open(std::move(copy), std::make_unique<MemoryRows>(), {&tally});
  Clock clock(*shard);
  Workers workers(*shard);
  shard->connect(To::clock, clock);
  shard->connect(To::worker, workers);
  ASSERT_TRUE(shard->start());
  EXPECT_EQ(clock.waiting(), 1u);
  EXPECT_EQ(workers.depths()[0].offered, 1u);
  shard->stop();
}

TEST(shard, a_failed_append_stops_the_shard_and_says_so) {
  Host host;
  ASSERT_TRUE(host.say("add", "x"));
  host.journal->fail_next_append(AppendFault::nothing_written);
  auto answer = host.say("add", "x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "JOURNAL_FAILED");
  EXPECT_FALSE(host.shard->healthy());
  EXPECT_FALSE(host.say("add", "x"));
  EXPECT_EQ(host.value("x"), "1");
}

TEST(shard, a_failed_delivery_to_a_cell_is_retried) {
  Host host;
  ASSERT_TRUE(host.say("send", "shy"));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(host.value("shy"), "");
  ASSERT_TRUE(host.say("add", "door"));
  EXPECT_TRUE(host.becomes("shy", "10"));
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(host.value("shy"), "10");
}

TEST(shard, watchers_see_frames_in_order_after_they_are_durable) {
  Host host;
  std::mutex mutex;
  std::vector<Seq> seen;
  uint64_t id = host.shard->watch([&](const Frame& f) {
    std::lock_guard lock(mutex);
    seen.push_back(f.seq);
  });
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(host.say("add", "w"));
  host.shard->unwatch(id);
  ASSERT_TRUE(host.say("add", "w"));
  std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(seen[i], i + 1);
}

TEST(shard, stopping_ends_open_turns_with_an_error) {
  Host host;
  std::promise<Result<Answer>> heard;
  host.shard->submit({.program = "tally", .verb = "ask", .body = "q", .caller = {}},
                     [&](Result<Answer> a) { heard.set_value(std::move(a)); });
  host.shard->stop(10 * kMillisecond);
  auto answer = heard.get_future().get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "STOPPING");
}

TEST(shard, open_turns_of_one_tenant_leave_the_others_alone) {
  Host host(true, {.tenant_open_turns = 3});
  for (int i = 0; i < 5; ++i)
    host.shard->submit({.program = "tally",
                        .verb = "ask",
                        .body = "q" + std::to_string(i),
                        .caller = {"t", "u", ""}},
                       [](Result<Answer>) {});
  auto refused = host.say("add", "x");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason, "TENANT_OPEN_TURNS");
  std::promise<Result<Answer>> other;
  host.shard->submit({.program = "tally", .verb = "add", .body = "y", .caller = {"other", "u", ""}},
                     [&](Result<Answer> a) { other.set_value(std::move(a)); });
  EXPECT_TRUE(other.get_future().get());
  ASSERT_TRUE(host.say("", "", "q0"));  // a receipt ends a turn, and there is room again
  EXPECT_TRUE(host.say("add", "x"));
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

TEST(workers, a_poll_is_bounded_by_bytes) {
  Host host;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(host.say("job of " + std::to_string(9 << 20), "j" + std::to_string(i)));
  EXPECT_EQ(host.poll(3).size(), 2u) << "16 MiB are reached with the second";
  EXPECT_EQ(host.poll(3).size(), 1u);
}

TEST(workers, the_oldest_job_is_handed_out_first) {
  Host host(false);
  Workers workers(*host.shard, [](const Effect& e) -> Time { return std::stoll(e.body); });
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
  Workers workers(*host.shard);
  auto open = [&](const char* id, int32_t priority, const char* key, const char* queue = "work") {
    workers.opened(std::make_shared<Effect>(
        Effect{id, To::worker, "tally", "t", queue, 0, "", priority, key}));
  };
  auto take = [&](size_t limit, std::vector<std::string> queues = {"work"}) {
    std::string ids;
    workers.poll({"t", queues, "w", limit}, [&](std::vector<Leased> got) {
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
    polls.push_back(host.workers->poll({"t", types, "w", 1, kSecond, 600 * kSecond},
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

// The program blocks as a turn does that computes for too long.
TEST(shard, a_turn_that_does_not_end_is_noticed) {
  std::promise<void> begun, end;
  std::shared_future<void> ended = end.get_future().share();
  struct Stuck final : Program {
    std::promise<void>* begun = nullptr;
    std::shared_future<void> ended;
    std::string_view name() const override { return "stuck"; }
    Result<Bytes> run(Turn&, const Input&) const override {
      begun->set_value();
      ended.wait();
      return Bytes();
    }
  } stuck;
  stuck.begun = &begun;
  stuck.ended = ended;
  auto shard =
      *Shard::open(std::make_unique<MemoryJournal>(), std::make_unique<MemoryRows>(), {&stuck}, {});
  ASSERT_TRUE(shard->start());
  EXPECT_TRUE(shard->progressing(0));
  std::thread caller([&] {
    shard->submit({.program = "stuck", .verb = "x", .body = {}, .caller = {"t", "u", ""}},
                  [](Result<Answer>) {});
  });
  begun.get_future().wait();
  EXPECT_TRUE(shard->progressing(3600 * kSecond)) << "it has just begun";
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  auto progress = shard->progressing(20 * kMillisecond);
  ASSERT_FALSE(progress);
  EXPECT_EQ(progress.error().code, Code::unavailable);
  end.set_value();
  caller.join();
  EXPECT_TRUE(shard->progressing(20 * kMillisecond));
  shard->stop();
}

}  // namespace pawl
