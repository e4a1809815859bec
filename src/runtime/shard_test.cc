#include "runtime/shard.h"

#include "runtime/tally_test.h"

namespace pawl {

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

// Windows fill and empty all the time here, in every order of submitting, driving and committing.
// An input that nobody drives would wait for ever.
TEST(shard, paced_lanes_lose_no_input) {
  Host host;
  std::vector<std::thread> threads;
  std::atomic<int> left{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        // The loud tenants send windows at a time, the quiet ones one input.
        const int burst = t < 2 ? 40 : 1;
        std::promise<void> answered;
        std::atomic<int> open{burst};
        for (int k = 0; k < burst; ++k) {
          Input input = count("c" + std::to_string(t));
          input.caller.tenant = "t" + std::to_string(t);
          ++left;
          host.shard->submit(std::move(input), [&](Result<Answer>) {
            --left;
            if (--open == 0) answered.set_value();
          });
        }
        auto done = answered.get_future();
        ASSERT_EQ(done.wait_for(std::chrono::seconds(30)), std::future_status::ready);
      }
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(host.value("c0"), "12000");
  EXPECT_EQ(host.value("c3"), "300");
  EXPECT_EQ(host.shard->stats().in_flight, 0u);
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
  Clock clock(*shard, shard->scheduler());
  Workers workers(*shard, shard->scheduler());
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

TEST(shard, a_shard_that_another_owner_has_sends_its_callers_there) {
  Host host;
  ASSERT_TRUE(host.say("add", "x"));
  BytesView claim = "the entry of another owner";
  ASSERT_TRUE(host.journal->append({&claim, 1}, host.journal->last()));
  auto answer = host.say("add", "x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().reason, "SHARD_MOVED");
  EXPECT_TRUE(answer.error().retryable);
  EXPECT_FALSE(host.shard->healthy());
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
  EXPECT_EQ(host.shard->stats().refused_open_turns, 3u);
  std::promise<Result<Answer>> other;
  host.shard->submit({.program = "tally", .verb = "add", .body = "y", .caller = {"other", "u", ""}},
                     [&](Result<Answer> a) { other.set_value(std::move(a)); });
  EXPECT_TRUE(other.get_future().get());
  ASSERT_TRUE(host.say("", "", "q0"));  // a receipt ends a turn, and there is room again
  EXPECT_TRUE(host.say("add", "x"));
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
