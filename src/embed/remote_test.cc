// The manager with a remote store: the same calls over HTTP, to a server in this process.

#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "faces/lifecycle/served_test.h"
#include "net/scripted_test.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

// `Served` runs the lifecycle face on an HTTP server in this process; `engine` is the engine behind
// it.
struct remote : testing::Test, Served {
  std::optional<manager> m;

  void SetUp() override {
    auto connected = manager::connect(start());
    ASSERT_TRUE(connected) << connected.error().message();
    m.emplace(*std::move(connected));
    ASSERT_TRUE(m->register_type<Mission>());
    ASSERT_TRUE(m->register_type<Capture>());
  }
};

TEST_F(remote, a_whole_mission_is_flown) {
  Mission one{.entity_id = "a/b m",
              .owner = "acme",
              .drone = "d7",
              .waypoint = 1,
              .battery = 0.1,
              .labels = {"x"}};
  EXPECT_ERRC(m->create(one), errc::bad_id);
  one.entity_id = "a/b";
  ASSERT_TRUE(m->create(one));
  EXPECT_ERRC(m->create(one), errc::already_exists);
  EXPECT_EQ(*m->get<Mission>("a/b"), one);
  ASSERT_TRUE(m->transition<Mission>("a/b", "flying", {source::op, "cleared"}));
  EXPECT_ERRC(m->transition<Mission>("a/b", "completed"), errc::invalid_transition);
  ASSERT_TRUE(m->transition_with<Mission>("a/b", "landing", {source::rule, "home"},
                                          [](Mission& x) { ++x.waypoint; }));
  ASSERT_TRUE(m->complete<Mission>("a/b", "completed"));
  EXPECT_ERRC(m->complete<Mission>("a/b"), errc::terminal_phase);
  EXPECT_EQ(m->get<Mission>("a/b")->waypoint, 2u);
  auto log = *m->history<Mission>("a/b");
  ASSERT_EQ(log.size(), 4u);
  EXPECT_EQ(log[1].note, "cleared");
  EXPECT_EQ(log[2].triggered, source::rule);
  EXPECT_EQ(log[2].note, "home");
  EXPECT_EQ(log[3].caller, "remote");
}

TEST_F(remote, writers_on_both_sides_lose_nothing) {
  manager local(*engine);
  ASSERT_TRUE(local.register_type<Mission>());
  ASSERT_TRUE(local.create(Mission{.entity_id = "m1"}));
  std::vector<std::thread> threads;
  for (manager* who : {&*m, &local, &*m, &local})
    threads.emplace_back([who] {
      for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(who->update<Mission>("m1", [](Mission& x) { ++x.waypoint; }));
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(m->get<Mission>("m1")->waypoint, 80u);
}

TEST_F(remote, lists_links_patches_and_rules_work_over_http) {
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(
        m->create(Mission{.entity_id = "m" + std::to_string(i), .owner = i % 2 ? "odd" : "even"}));
  ASSERT_TRUE(m->create(Capture{.entity_id = "t1", .mission = "m1", .priority = 3}));
  query<Mission> q;
  q.where<&Mission::owner>("even").limit = 2;
  auto first = *m->list(q);
  EXPECT_EQ(first.size(), 2u);
  q.cursor = first.cursor;
  EXPECT_EQ(m->list(q)->states.at(0).entity_id, "m4");
  EXPECT_EQ(m->children("m1")->at(0).as<Capture>()->priority, 3);
  EXPECT_EQ(m->children("")->size(), 5u);
  EXPECT_TRUE(m->children("no such*")->empty());
  EXPECT_EQ(m->ancestors("t1")->at(0).id, "m1");
  EXPECT_EQ(m->lookup("t1")->workflow, "capture-task");
  ASSERT_TRUE(m->operator_patch<Mission>("m2", R"({"note":"hi"})"));
  EXPECT_ERRC(m->operator_patch<Mission>("m2", R"({"phase":"x"})"),
              errc::field_not_operator_writable);
  ASSERT_TRUE(m->run_action(
      "m2", R"({"type":"lifecycle_transition","phase":"flying","reason":"by $entity.id"})"));
  EXPECT_EQ((*m->history<Mission>("m2"))[1].note, "by m2");
  EXPECT_EQ(*m->substitute("m2", "$entity.lifecycle.phase"), "flying");
  EXPECT_ERRC(
      m->put_rule(
          "r", R"({"workflow":"ghost","on":{"phase":"x"},"then":[{"type":"lifecycle_complete"}]})"),
      errc::workflow_not_registered);
  auto [state, rev] = *m->get_with_revision<Mission>("m3");
  EXPECT_TRUE(m->compare_and_swap(state, rev));
  EXPECT_ERRC(m->compare_and_swap(state, rev), errc::conflict);
  ASSERT_TRUE(m->remove<Mission>("m3"));
  EXPECT_ERRC(m->get<Mission>("m3"), errc::entity_not_found);
}

// NaN, infinity and invalid UTF-8 would change on their way through JSON, so they are refused
// before anything is sent.
TEST_F(remote, values_that_json_cannot_carry_are_refused) {
  auto nan = std::numeric_limits<double>::quiet_NaN();
  for (const Mission& odd :
       {Mission{.entity_id = "m1", .battery = nan}, Mission{.entity_id = "m1", .battery = -1 / 0.0},
        Mission{.entity_id = "m1", .note = "caf\xe9"},
        Mission{.entity_id = "m1", .labels = {"fine", "\xff"}}})
    EXPECT_ERRC(m->create(odd), errc::type_mismatch);
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  EXPECT_ERRC(m->update<Mission>("m1", [&](Mission& x) { x.battery = nan; }), errc::type_mismatch);
  EXPECT_EQ(m->get<Mission>("m1")->battery, 0);
}

// waypoint_index is a uint32, and a value carries its kind: int64 0 is another value than uint32 0.
TEST_F(remote, a_query_by_a_value_of_another_kind_finds_nothing) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  EXPECT_EQ(m->list(query<Mission>().where("waypoint_index", int64_t{0}))->size(), 0u);
  EXPECT_ERRC(m->list(query<Mission>().where("waypoint_index", int64_t{0}).where("surprise", "x")),
              errc::unknown_field);
}

TEST_F(remote, a_list_has_the_revision_of_each_instance) {
  auto one = *m->create(Mission{.entity_id = "m1"});
  auto two = *m->create(Mission{.entity_id = "m2"});
  auto page = *m->list<Mission>();
  ASSERT_EQ(page.revisions, (std::vector<revision>{one, two}));
  page.states[0].note = "by its revision";
  EXPECT_TRUE(m->compare_and_swap(page.states[0], page.revisions[0]));
  EXPECT_ERRC(m->compare_and_swap(page.states[0], page.revisions[0]), errc::conflict);
}

TEST_F(remote, writers_of_one_manager_queue_and_never_conflict) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  std::atomic<int> runs{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(m->update<Mission>("m1", [&](Mission& x) {
          ++runs;
          ++x.waypoint;
        }));
    });
  for (auto& t : threads)
    t.join();
  EXPECT_EQ(m->get<Mission>("m1")->waypoint, 100u);
  EXPECT_EQ(runs, 100);
}

TEST_F(remote, bad_ids_and_revisions_fail_as_they_do_in_process) {
  for (auto bad : {"", "a b", "*"}) {
    EXPECT_ERRC(m->complete<Mission>(bad), errc::bad_id);
    EXPECT_ERRC(m->fail<Mission>(bad, "x"), errc::bad_id);
    EXPECT_ERRC(m->remove<Mission>(bad), errc::bad_id);
    EXPECT_ERRC(m->operator_patch<Mission>(bad, "{}"), errc::bad_id);
    EXPECT_ERRC(m->history<Mission>(bad), errc::bad_id);
    EXPECT_ERRC(m->lookup(bad), errc::bad_id);
    EXPECT_ERRC(m->ancestors(bad), errc::bad_id);
  }
  for (auto bad : {"", "a b", "*"})
    EXPECT_ERRC(m->compare_and_swap(Mission{.entity_id = bad}, 1), errc::bad_id);
  for (auto step : {".", "..", "./..", "a/.."}) {
    ASSERT_TRUE(m->create(Mission{.entity_id = step})) << step;
    EXPECT_EQ(m->get<Mission>(step)->entity_id, step);
    EXPECT_TRUE(m->transition<Mission>(step, "flying"));
    EXPECT_TRUE(m->remove<Mission>(step));
  }
  EXPECT_ERRC(m->transition<Mission>("m1", " "), errc::invalid_transition);
  for (auto no_json : {"[", "", "[]"}) {
    EXPECT_ERRC(m->operator_patch<Mission>("m1", no_json), errc::type_mismatch);
    EXPECT_ERRC(m->put_rule("r", no_json), errc::invalid_rule);
    EXPECT_ERRC(m->run_action("m1", no_json), errc::invalid_rule);
  }
  EXPECT_ERRC(m->compare_and_swap(Mission{.entity_id = "m1"}, 0), errc::entity_not_found);
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  EXPECT_ERRC(m->compare_and_swap(Mission{.entity_id = "m1"}, 0), errc::conflict);
  query<Mission> late;
  late.updated_after = time_point::max();
  EXPECT_EQ(m->list(late)->size(), 0u);
}

TEST_F(remote, a_watch_may_be_closed_twice_and_from_other_threads) {
  auto w = *m->watch<Mission>();
  std::thread one([w]() mutable { w.close(); }), two([w]() mutable { w.close(); });
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  one.join();
  two.join();
  EXPECT_FALSE(w.next());
}

TEST_F(remote, the_source_of_a_move_is_kept) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  ASSERT_TRUE(m->transition<Mission>("m1", "flying", {source::component, "engine on"}));
  ASSERT_TRUE(m->transition<Mission>("m1", "landing", {source::rule, ""}));
  ASSERT_TRUE(m->remove<Mission>("m1"));
  auto log = *m->history<Mission>("m1");
  EXPECT_EQ(log[1].triggered, source::component);
  EXPECT_EQ(log[2].triggered, source::rule);
  EXPECT_EQ(log[3].triggered, source::component);
}

// The same workflow with one field more than the program that connects knows.
struct RicherCapture : Capture {
  std::string extra{};
  static constexpr auto fields =
      lifecycle::fields(field<&RicherCapture::entity_id>("entity_id", lifecycle::id),
                        field<&RicherCapture::phase>("phase", lifecycle::phase),
                        field<&RicherCapture::mission>("mission_id", lifecycle::parent),
                        field<&RicherCapture::assignee>("assignee", operator_writable | omitempty),
                        field<&RicherCapture::priority>("priority", operator_writable | indexable),
                        field<&RicherCapture::extra>("extra"));
};

// case 50
TEST_F(remote, unknown_members_survive_a_write) {
  manager local(*engine);
  ASSERT_TRUE(local.register_type<RicherCapture>());
  RicherCapture rich;
  rich.entity_id = "t1";
  rich.extra = "keep me";
  ASSERT_TRUE(local.create(rich));
  EXPECT_EQ(m->get<Capture>("t1")->entity_id, "t1");
  ASSERT_TRUE(m->update<Capture>("t1", [](Capture& c) { c.phase = "running"; }));
  EXPECT_EQ(local.get<RicherCapture>("t1")->extra, "keep me");
  EXPECT_EQ(local.get<RicherCapture>("t1")->phase, "running");
}

TEST_F(remote, a_watch_shows_the_snapshot_changes_and_removals) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  auto w = *m->watch<Mission>();
  auto first = w.next();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->snapshot);
  ASSERT_TRUE(m->transition<Mission>("m1", "flying"));
  auto second = w.next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->state.phase, "flying");
  ASSERT_TRUE(m->remove<Mission>("m1"));
  EXPECT_TRUE(w.next()->deleted);
  auto later = *m->watch<Mission>(~revision{0});
  ASSERT_TRUE(m->create(Mission{.entity_id = "m2"}));
  EXPECT_FALSE(later.next(deadline::in(100ms)));
  auto again = *m->watch<Mission>(first->rev);
  EXPECT_EQ(again.next()->state.phase, "flying");
}

TEST_F(remote, a_watch_retries_while_the_server_is_busy) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  busy = 2;
  auto w = *m->watch<Mission>();
  auto first = w.next(deadline::in(10s));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, "m1");
  EXPECT_EQ(busy, 0);
}

TEST_F(remote, a_watch_that_is_refused_says_why) {
  roles = "passer-by";
  auto w = *m->watch<Mission>();
  EXPECT_FALSE(w.next(deadline::in(10s)));
  ASSERT_TRUE(w.failed());
  EXPECT_TRUE(*w.failed() == errc::denied) << w.failed()->message();
  auto called = m->watch<Mission>([](const change<Mission>&) {}, deadline::in(10s));
  EXPECT_ERRC(called, errc::denied);
  roles = "program";
  auto closed = *m->watch<Mission>();
  closed.close();
  EXPECT_FALSE(closed.next());
  EXPECT_FALSE(closed.failed());
}

TEST_F(remote, a_viewer_may_read_and_nothing_else) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  roles = "viewer";
  EXPECT_TRUE(m->get<Mission>("m1"));
  EXPECT_ERRC(m->transition<Mission>("m1", "flying"), errc::denied);
  EXPECT_ERRC(m->operator_patch<Mission>("m1", R"({"note":"x"})"), errc::denied);
  roles = "passer-by";
  EXPECT_ERRC(m->get<Mission>("m1"), errc::denied);
}

TEST_F(remote, an_operator_may_patch_but_not_write_records) {
  ASSERT_TRUE(m->create(Mission{.entity_id = "m1"}));
  roles = "operator";
  EXPECT_TRUE(m->operator_patch<Mission>("m1", R"({"note":"x"})"));
  EXPECT_ERRC(m->update<Mission>("m1", [](Mission& it) { it.battery = 1; }), errc::denied);
  EXPECT_ERRC(m->create(Mission{.entity_id = "m2"}), errc::denied);
}

TEST(remote_address, a_silent_server_exceeds_the_deadline) {
  net::ScriptedServer silent({{std::nullopt}});
  auto begin = deadline::clock::now();
  EXPECT_ERRC(manager::connect(silent.url(), {.timeout = 50ms}), errc::deadline_exceeded);
  EXPECT_LT(deadline::clock::now() - begin, 10s);
}

TEST(remote_address, a_malformed_answer_is_an_error) {
  for (std::string says :
       {"no HTTP at all\r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n[]",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfoo",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nx",
        "HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}"}) {
    net::ScriptedServer odd({{says}, {says}, {says}});
    EXPECT_FALSE(manager::connect(odd.url(), {.timeout = 5s})) << says;
  }
}

// Over TLS.
struct remote_tls : remote {
  std::string folder = testing::TempDir() + "/pawl-remote-tls-" + std::to_string(getpid());
  std::string address;
  void SetUp() override {
    std::string made = "mkdir -p " + folder +
                       " && openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
                       "-addext subjectAltName=IP:127.0.0.1 -keyout " +
                       folder + "/key.pem -out " + folder + "/certificate.pem 2> /dev/null";
    ASSERT_EQ(std::system(made.c_str()), 0);
    server::HttpOptions options;
    options.tls = {folder + "/certificate.pem", folder + "/key.pem"};
    address = start(options);
    address.insert(4, "s");
  }
  void TearDown() override { std::system(("rm -r " + folder).c_str()); }
};

TEST_F(remote_tls, a_mission_is_flown_and_watched) {
  auto connected = manager::connect(address, {.ca_file = folder + "/certificate.pem"});
  ASSERT_TRUE(connected) << connected.error().message();
  ASSERT_TRUE(connected->register_type<Mission>());
  auto w = *connected->watch<Mission>();
  ASSERT_TRUE(connected->create(Mission{.entity_id = "m1", .note = std::string(300'000, 'x')}));
  ASSERT_TRUE(connected->transition<Mission>("m1", "flying"));
  EXPECT_EQ(connected->get<Mission>("m1")->note.size(), 300'000u);
  EXPECT_EQ(w.next(deadline::in(10s))->id, "m1");
}

TEST_F(remote_tls, an_untrusted_certificate_is_refused) {
  auto refused = manager::connect(address);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("certificate"), std::string::npos)
      << refused.error().message();
  auto no_file = manager::connect(address, {.ca_file = folder + "/nothing.pem"});
  ASSERT_FALSE(no_file);
  EXPECT_NE(no_file.error().message().find("nothing.pem"), std::string::npos)
      << no_file.error().message();
  std::string plain = address;
  plain.erase(4, 1);
  EXPECT_FALSE(manager::connect(plain, {.timeout = 5s}));
}

TEST(remote_address, an_unreachable_server_is_named) {
  auto none_there = manager::connect("http://127.0.0.1:1");
  ASSERT_FALSE(none_there);
  EXPECT_NE(none_there.error().message().find("is the server running?"), std::string::npos)
      << none_there.error().message();
  for (auto bad : {"ftp://x", "http://", "https://", "127.0.0.1:1", "http://host/path", ""})
    EXPECT_FALSE(manager::connect(bad)) << bad;
}

}  // namespace pawl::lifecycle
