// Updates: what a mutator may do, conflicts with other writers, and writers that wait in line.

#include <atomic>
#include <thread>

#include "faces/lifecycle/missions_test.h"
#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

struct updates : Missions {
  // A second manager, whose writes conflict.
  manager other{*engine};
  void SetUp() override {
    Missions::SetUp();
    ASSERT_TRUE(other.register_type<Mission>());
    make("m1");
  }
  revision rev() { return m.get_with_revision<Mission>("m1")->second; }
};

// case 60
TEST_F(updates, changes_of_the_mutator_are_stored) {
  ASSERT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.owner = "other"; }));
  EXPECT_EQ(m.get<Mission>("m1")->owner, "other");
}
// case 61
TEST_F(updates, a_rejected_update_stores_nothing_and_keeps_its_error) {
  revision before = rev();
  auto got = m.update<Mission>("m1", [](Mission& x) -> result<void> {
    x.owner = "lost";
    return lifecycle::fail(std::make_error_code(std::errc::no_space_on_device), "full");
  });
  EXPECT_ERRC(got, errc::rejected);
  EXPECT_TRUE(got.error() == std::make_error_code(std::errc::no_space_on_device));
  EXPECT_EQ(rev(), before);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
}
// case 62
TEST_F(updates, an_exception_reaches_the_caller_and_stores_nothing) {
  EXPECT_THROW((void)m
                   .update<Mission>("m1",
                                    [](Mission& x) {
                                      x.owner = "lost";
                                      throw std::runtime_error("boom");
                                    })
                   .has_value(),
               std::runtime_error);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
  EXPECT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.owner = "after"; }));
}
// case 63
TEST_F(updates, one_conflict_runs_the_mutator_twice) {
  int runs = 0;
  ASSERT_TRUE(m.update<Mission>("m1", [&](Mission& x) {
    if (++runs == 1) {
      EXPECT_TRUE(other.update<Mission>("m1", [](Mission& y) { y.retries = 7; }));
    }
    x.owner = "mine" + std::to_string(x.retries);
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "mine7");
}
// case 64
TEST_F(updates, update_cas_gives_up_after_five_conflicts) {
  int runs = 0;
  auto got = m.update_cas<Mission>("m1", [&](Mission&) {
    ++runs;
    EXPECT_TRUE(other.update<Mission>("m1", [](Mission& y) { ++y.retries; }));
  });
  EXPECT_ERRC(got, errc::update_retries_exhausted);
  EXPECT_EQ(runs, 5);
}
// case 65
TEST_F(updates, four_threads_append_once_each) {
  std::vector<std::thread> threads;
  for (std::string word : {"a", "b", "c", "d"})
    threads.emplace_back([&, word] {
      EXPECT_TRUE(m.update<Mission>("m1", [&](Mission& x) { x.labels.push_back(word); }));
    });
  for (auto& t : threads)
    t.join();
  auto got = m.get<Mission>("m1")->labels;
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, (std::vector<std::string>{"a", "b", "c", "d"}));
}
// case 66
TEST_F(updates, sixteen_threads_increment_without_a_single_conflict_shown) {
  std::atomic<int> ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 60; ++i)
        ok += m.update<Mission>("m1", [](Mission& x) { ++x.waypoint; }).has_value();
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(ok, 960);
  EXPECT_EQ(m.get<Mission>("m1")->waypoint, 960u);
}
TEST_F(updates, writers_of_two_managers_lose_nothing) {
  std::vector<std::thread> threads;
  for (manager* who : {&m, &other, &m, &other})
    threads.emplace_back([&, who] {
      for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(who->update<Mission>("m1", [](Mission& x) { ++x.waypoint; }));
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(m.get<Mission>("m1")->waypoint, 200u);
}
// case 67
TEST_F(updates, a_missing_id_does_not_run_the_mutator) {
  bool ran = false;
  EXPECT_ERRC(m.update<Mission>("nobody", [&](Mission&) { ran = true; }), errc::entity_not_found);
  EXPECT_FALSE(ran);
}
// case 68
TEST_F(updates, an_unregistered_type_is_refused) {
  manager bare(*engine);
  EXPECT_ERRC(bare.update<Mission>("m1", [](Mission&) {}), errc::workflow_not_registered);
}
// case 69
TEST_F(updates, a_missing_mutator_is_reported_before_a_missing_type) {
  EXPECT_ERRC(m.update_record("ghost", "m1", nullptr), errc::mutator_required);
  std::function<void(Mission&)> empty;
  EXPECT_ERRC(m.update<Mission>("m1", empty), errc::mutator_required);
}
// case 70
TEST_F(updates, an_id_removed_between_two_tries_is_not_found) {
  int runs = 0;
  auto got = m.update<Mission>("m1", [&](Mission&) {
    if (++runs == 1) {
      EXPECT_TRUE(other.remove<Mission>("m1"));
    }
  });
  EXPECT_ERRC(got, errc::entity_not_found);
  EXPECT_EQ(runs, 1);
}
// case 71
TEST_F(updates, the_phase_may_be_set_to_anything) {
  ASSERT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.phase = "anything"; }));
  EXPECT_EQ(phase_of("m1"), "anything");
}
// case 72
TEST_F(updates, changing_nothing_is_still_a_write) {
  revision before = rev();
  ASSERT_TRUE(m.update<Mission>("m1", [](Mission&) {}));
  EXPECT_GT(rev(), before);
}
// case 73
TEST_F(updates, the_id_cannot_be_changed) {
  EXPECT_ERRC(m.update<Mission>("m1", [](Mission& x) { x.entity_id = "m2"; }), errc::bad_id);
}
// case 74
TEST_F(updates, the_mutator_may_use_other_entities) {
  make("m2", "planning", "globex");
  ASSERT_TRUE(m.update<Mission>("m1", [&](Mission& x) {
    x.owner = m.get<Mission>("m2")->owner;
    EXPECT_TRUE(m.update<Mission>("m2", [](Mission& y) { y.note = "seen"; }));
  }));
  EXPECT_EQ(m.get<Mission>("m1")->owner, "globex");
  EXPECT_EQ(m.get<Mission>("m2")->note, "seen");
}
TEST_F(updates, the_mutator_of_update_cas_may_use_other_entities) {
  ASSERT_TRUE(m.update_cas<Mission>("m1", [&](Mission&) {
    EXPECT_ERRC(m.update<Mission>("m1", [](Mission&) {}), errc::reentrant_update);
  }));
}
// case 75
TEST_F(updates, the_mutator_may_not_write_its_own_entity) {
  ASSERT_TRUE(m.update<Mission>("m1", [&](Mission&) {
    EXPECT_ERRC(m.update<Mission>("m1", [](Mission&) {}), errc::reentrant_update);
    EXPECT_ERRC(m.transition<Mission>("m1", "flying"), errc::reentrant_update);
    EXPECT_TRUE(m.get<Mission>("m1"));
  }));
}
TEST_F(updates, a_mutator_that_keeps_writing_its_own_entity_is_refused) {
  int runs = 0;
  auto by_update = [&](Mission&) {
    ++runs;
    EXPECT_TRUE(other.update<Mission>("m1", [](Mission& y) { ++y.retries; }));
  };
  EXPECT_ERRC(m.update<Mission>("m1", by_update), errc::reentrant_update);
  EXPECT_EQ(runs, 5);
  EXPECT_ERRC(
      m.update<Mission>(
          "m1",
          [&](Mission&) { EXPECT_TRUE(other.operator_patch<Mission>("m1", R"({"note":"x"})")); }),
      errc::reentrant_update);
  EXPECT_ERRC(m.update<Mission>("m1",
                                [&](Mission&) {
                                  auto [state, at] = *other.get_with_revision<Mission>("m1");
                                  EXPECT_TRUE(other.compare_and_swap(state, at));
                                }),
              errc::reentrant_update);
  ASSERT_TRUE(m.transition<Mission>("m1", "flying"));
  const char* next = "capturing";
  EXPECT_ERRC(m.update<Mission>("m1",
                                [&](Mission&) {
                                  EXPECT_TRUE(other.run_action(
                                      "m1", R"({"type":"lifecycle_transition","phase":")" +
                                                std::string(next) + "\"}"));
                                  next =
                                      next == std::string_view("flying") ? "capturing" : "flying";
                                }),
              errc::reentrant_update);
}
// Conflicts with other writers do not end an update, however many there are.
TEST_F(updates, conflicts_of_other_threads_are_not_blamed_on_the_mutator) {
  int runs = 0;
  ASSERT_TRUE(m.update<Mission>("m1", [&](Mission& x) {
    if (++runs < 12)
      std::thread([&] {
        EXPECT_TRUE(other.update<Mission>("m1", [](Mission& y) { ++y.retries; }));
      }).join();
    x.owner = "through";
  }));
  EXPECT_EQ(runs, 12);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "through");
}
// An action without a workflow finds it by the id.
TEST_F(updates, the_mutator_may_not_run_an_action_on_its_own_entity) {
  ASSERT_TRUE(m.update<Mission>("m1", [&](Mission&) {
    EXPECT_ERRC(m.run_action("m1", R"({"type":"lifecycle_transition","phase":"flying"})"),
                errc::reentrant_update);
  }));
  EXPECT_EQ(phase_of("m1"), "planning");
}
TEST_F(updates, two_mutators_that_write_each_others_entity_both_end) {
  make("m2");
  std::atomic<int> inside{0};
  auto cross = [&](std::string mine, std::string its) {
    bool first = true;
    auto done = m.update<Mission>(mine, [&](Mission& x) {
      if (std::exchange(first, false)) {
        ++inside;
        while (inside < 2)
          std::this_thread::yield();
      }
      EXPECT_TRUE(m.update<Mission>(its, [](Mission& y) { ++y.retries; }));
      ++x.waypoint;
    });
    EXPECT_TRUE(done);
  };
  std::thread one([&] { cross("m1", "m2"); }), two([&] { cross("m2", "m1"); });
  one.join();
  two.join();
  for (auto id_text : {"m1", "m2"}) {
    EXPECT_EQ(m.get<Mission>(id_text)->waypoint, 1u);
    EXPECT_GE(m.get<Mission>(id_text)->retries, 1);
  }
}
TEST_F(updates, a_nested_transition_checks_its_edge_before_it_waits) {
  make("m2", "landing");
  std::atomic<bool> held{false}, done{false};
  std::thread holder([&] {
    EXPECT_TRUE(m.update<Mission>("m2", [&](Mission&) {
      held = true;
      while (!done)
        std::this_thread::yield();
    }));
  });
  while (!held)
    std::this_thread::yield();
  bool ran = false;
  EXPECT_TRUE(m.update<Mission>("m1", [&](Mission&) {
    EXPECT_ERRC(m.transition_with<Mission>("m2", "flying", {}, [&](Mission&) { ran = true; }),
                errc::invalid_transition);
    EXPECT_TRUE(
        m.transition_with<Mission>("m2", "completed", {}, [&](Mission& y) { y.note = "landed"; }));
  }));
  done = true;
  holder.join();
  EXPECT_FALSE(ran);
  EXPECT_EQ(m.get<Mission>("m2")->note, "landed");
  EXPECT_EQ(phase_of("m2"), "completed");
}
// case 76
TEST_F(updates, a_stop_requested_before_the_call_writes_nothing) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_ERRC(m.update<Mission>(
                  "m1", [](Mission& x) { x.owner = "late"; }, stop.get_token()),
              errc::cancelled);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
}

// A store whose calls fail.
class Unreachable final : public store {
 public:
  int asked = 0;
  failure no() {
    ++asked;
    return lifecycle::fail(errc::storage, "timed out");
  }
  result<void> put_type(const dynamic_type&) override { return {}; }
  result<dynamic_type> type(std::string_view) override { return no(); }
  result<std::vector<dynamic_type>> types() override { return no(); }
  result<instance> get(std::string_view, std::string_view) override { return no(); }
  result<written> create(std::string_view, std::string_view, std::string, deadline) override {
    return no();
  }
  std::unique_ptr<pending_write> replace(replace_request) override { return nullptr; }
  result<written> transition(std::string_view, std::string_view, std::string_view, const how&,
                             deadline) override {
    return no();
  }
  result<written> complete(std::string_view, std::string_view, std::string_view,
                           deadline) override {
    return no();
  }
  result<written> mark_failed(std::string_view, std::string_view, std::string_view,
                              deadline) override {
    return no();
  }
  result<written> remove(std::string_view, std::string_view, deadline) override { return no(); }
  result<written> patch(std::string_view, std::string_view, std::string_view, deadline) override {
    return no();
  }
  result<any_page> list(std::string_view, const any_query&) override { return no(); }
  result<history_log> history(std::string_view, std::string_view) override { return no(); }
  result<std::vector<snapshot>> children(std::string_view) override { return no(); }
  result<std::vector<snapshot>> ancestors(std::string_view, std::string&) override { return no(); }
  result<snapshot> lookup(std::string_view) override { return no(); }
  result<std::unique_ptr<subscription>> watch(std::string_view, std::optional<revision>) override {
    return no();
  }
  result<void> put_rule(std::string_view, std::string_view) override { return no(); }
  result<written> run_action(std::string_view, std::string_view, const rule_context&,
                             deadline) override {
    return no();
  }
  result<std::string> substitute(std::string_view, std::string_view, const rule_context&) override {
    return no();
  }
};

// case 77
TEST(update, a_store_error_is_returned_without_retry) {
  auto broken = std::make_shared<Unreachable>();
  manager m(broken);
  ASSERT_TRUE(m.register_type<Mission>());
  EXPECT_ERRC(m.update<Mission>("m1", [](Mission&) {}), errc::storage);
  EXPECT_EQ(broken->asked, 1);
}

TEST_F(updates, compare_and_swap_takes_only_the_newest_revision) {
  auto [state, at] = *m.get_with_revision<Mission>("m1");
  state.owner = "swapped";
  auto swapped = m.compare_and_swap(state, at);
  ASSERT_TRUE(swapped);
  EXPECT_GT(*swapped, at);
  EXPECT_ERRC(m.compare_and_swap(state, at), errc::conflict);
}

// Deadlines.
TEST_F(updates, a_deadline_that_has_passed_writes_nothing) {
  auto late = deadline::in(-std::chrono::seconds(1));
  revision before = rev();
  EXPECT_ERRC(m.update<Mission>(
                  "m1", [](Mission& x) { x.owner = "late"; }, late),
              errc::deadline_exceeded);
  EXPECT_ERRC(m.transition<Mission>("m1", "flying", {}, late), errc::deadline_exceeded);
  EXPECT_ERRC(m.create(Mission{.entity_id = "m2"}, late), errc::deadline_exceeded);
  EXPECT_ERRC(m.operator_patch<Mission>("m1", R"({"note":"x"})", late), errc::deadline_exceeded);
  EXPECT_ERRC(m.run_action("m1", R"({"type":"lifecycle_complete"})", {}, late),
              errc::deadline_exceeded);
  EXPECT_EQ(rev(), before);
}
TEST_F(updates, a_deadline_in_time_changes_nothing) {
  ASSERT_TRUE(m.update<Mission>(
      "m1", [](Mission& x) { x.owner = "soon"; }, deadline::in(std::chrono::minutes(1))));
  ASSERT_TRUE(
      m.transition<Mission>("m1", "flying", {}, deadline::in(deadline::clock::duration::max())));
  EXPECT_EQ(m.get<Mission>("m1")->owner, "soon");
}
TEST_F(updates, a_deadline_ends_the_wait_for_another_writer) {
  std::atomic<bool> inside{false}, go{false};
  std::thread slow([&] {
    EXPECT_TRUE(m.update<Mission>("m1", [&](Mission& x) {
      inside = true;
      while (!go)
        std::this_thread::yield();
      x.owner = "slow";
    }));
  });
  while (!inside)
    std::this_thread::yield();
  auto begin = deadline::clock::now();
  EXPECT_ERRC(
      m.update<Mission>(
          "m1", [](Mission& x) { x.note = "never"; }, deadline::in(std::chrono::milliseconds(20))),
      errc::deadline_exceeded);
  EXPECT_LT(deadline::clock::now() - begin, std::chrono::seconds(5));
  go = true;
  slow.join();
  EXPECT_EQ(m.get<Mission>("m1")->owner, "slow");
  EXPECT_EQ(m.get<Mission>("m1")->note, "");
  EXPECT_TRUE(m.update<Mission>("m1", [](Mission& x) { x.note = "after"; }));
}

// Transitions that carry a mutator.
// case 86
TEST_F(updates, a_transition_and_its_changes_are_one_revision) {
  revision before = rev();
  ASSERT_TRUE(m.transition_with<Mission>("m1", "flying", {}, [](Mission& x) { x.owner = "wind"; }));
  EXPECT_EQ(rev(), before + 1);
  Mission now = *m.get<Mission>("m1");
  EXPECT_EQ(now.phase, "flying");
  EXPECT_EQ(now.owner, "wind");
}
// case 87
TEST_F(updates, a_failed_mutator_leaves_phase_and_fields) {
  EXPECT_ERRC(m.transition_with<Mission>("m1", "flying", {},
                                         [](Mission& x) -> result<void> {
                                           x.owner = "no";
                                           return lifecycle::fail(errc::rejected, "no");
                                         }),
              errc::rejected);
  EXPECT_EQ(phase_of("m1"), "planning");
  EXPECT_EQ(m.get<Mission>("m1")->owner, "acme");
}
// case 88
TEST_F(updates, without_a_mutator_it_is_a_transition) {
  std::function<void(Mission&)> none_given;
  ASSERT_TRUE(m.transition_with<Mission>("m1", "flying", {}, none_given));
  EXPECT_EQ(phase_of("m1"), "flying");
}
// case 89
TEST_F(updates, an_impossible_transition_does_not_run_the_mutator) {
  make("done", "aborted");
  bool ran = false;
  auto f = [&](Mission&) { ran = true; };
  EXPECT_ERRC(m.transition_with<Mission>("m1", "exploded", {}, f), errc::invalid_transition);
  EXPECT_ERRC(m.transition_with<Mission>("done", "flying", {}, f), errc::terminal_phase);
  EXPECT_ERRC(m.transition_with<Mission>("m1", "completed", {}, f), errc::invalid_transition);
  EXPECT_FALSE(ran);
}
// case 90
TEST_F(updates, the_requested_phase_wins_over_the_mutators) {
  ASSERT_TRUE(
      m.transition_with<Mission>("m1", "flying", {}, [](Mission& x) { x.phase = "aborted"; }));
  EXPECT_EQ(phase_of("m1"), "flying");
}
// case 91
TEST_F(updates, after_a_conflict_the_edge_is_checked_again) {
  int runs = 0;
  auto got = m.transition_with<Mission>("m1", "flying", {}, [&](Mission&) {
    if (++runs == 1) {
      EXPECT_TRUE(other.transition<Mission>("m1", "aborted"));
    }
  });
  EXPECT_ERRC(got, errc::terminal_phase);
  EXPECT_EQ(runs, 1);
}
// case 91
TEST_F(updates, after_a_conflict_the_mutator_of_a_transition_sees_the_fresh_value) {
  int runs = 0;
  ASSERT_TRUE(m.transition_with<Mission>("m1", "flying", {}, [&](Mission& x) {
    if (++runs == 1) {
      EXPECT_TRUE(other.update<Mission>("m1", [](Mission& y) { y.retries = 7; }));
    }
    x.owner = "saw " + std::to_string(x.retries);
  }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(m.get<Mission>("m1")->owner, "saw 7");
  EXPECT_EQ(phase_of("m1"), "flying");
}

}  // namespace pawl::lifecycle
