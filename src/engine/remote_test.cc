// The manager against a server: the same calls over HTTP, on a server in this process.

#include <chrono>
#include <thread>

#include "engine/missions_test.h"
#include "engine/parts.h"
#include "faces/lifecycle/face.h"
#include "server/http.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

struct remote : testing::Test {
  std::unique_ptr<Engine> engine = *Engine::open();
  Face face{*engine->parts().shard};
  wire::Router router;
  std::unique_ptr<server::HttpServer> http;
  std::optional<manager> m;
  std::string roles = "operator";

  std::string start() {
    router.add(face.routes(), face.dialects());
    server::HttpOptions options;
    options.address = *server::parse_address("127.0.0.1:0");
    http = *server::HttpServer::start(options, [this](wire::Request request, wire::Respond respond) {
      request.caller = {engine->options().tenant, "remote", roles};
      router.dispatch(std::move(request), std::move(respond));
    });
    return "http://" + http->address().text();
  }
  void SetUp() override {
    auto connected = manager::connect(start());
    ASSERT_TRUE(connected) << connected.error().message();
    m.emplace(*std::move(connected));
    ASSERT_TRUE(m->register_type<Mission>());
    ASSERT_TRUE(m->register_type<Capture>());
  }
};

TEST_F(remote, a_whole_mission_is_flown) {
  Mission one{.entity_id = "a/b m", .owner = "acme", .drone = "d7", .waypoint = 1, .battery = 0.1, .labels = {"x"}};
  EXPECT_ERRC(m->create(one), errc::bad_id);
  one.entity_id = "a/b";
  ASSERT_TRUE(m->create(one));
  EXPECT_ERRC(m->create(one), errc::already_exists);
  EXPECT_EQ(*m->get<Mission>("a/b"), one);
  ASSERT_TRUE(m->transition<Mission>("a/b", "flying", {source::op, "cleared"}));
  EXPECT_ERRC(m->transition<Mission>("a/b", "completed"), errc::invalid_transition);
  ASSERT_TRUE(m->transition_with<Mission>("a/b", "landing", {source::rule, "home"}, [](Mission& x) { ++x.waypoint; }));
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
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(who->update<Mission>("m1", [](Mission& x) { ++x.waypoint; }));
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(m->get<Mission>("m1")->waypoint, 80u);
}

TEST_F(remote, lists_links_patches_and_rules_work_over_the_wire) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(m->create(Mission{.entity_id = "m" + std::to_string(i), .owner = i % 2 ? "odd" : "even"}));
  ASSERT_TRUE(m->create(Capture{.entity_id = "t1", .mission = "m1", .priority = 3}));
  query<Mission> q;
  q.where<&Mission::owner>("even").limit = 2;
  auto first = *m->list(q);
  EXPECT_EQ(first.size(), 2u);
  q.cursor = first.cursor;
  EXPECT_EQ(m->list(q)->states.at(0).entity_id, "m4");
  EXPECT_EQ(m->children("m1")->at(0).as<Capture>()->priority, 3);
  EXPECT_EQ(m->ancestors("t1")->at(0).id, "m1");
  EXPECT_EQ(m->lookup("t1")->workflow, "capture-task");
  ASSERT_TRUE(m->operator_patch<Mission>("m2", R"({"note":"hi"})"));
  EXPECT_ERRC(m->operator_patch<Mission>("m2", R"({"phase":"x"})"), errc::field_not_operator_writable);
  ASSERT_TRUE(m->run_action("m2", R"({"type":"lifecycle_transition","phase":"flying","reason":"by $entity.id"})"));
  EXPECT_EQ((*m->history<Mission>("m2"))[1].note, "by m2");
  EXPECT_EQ(*m->substitute("m2", "$entity.lifecycle.phase"), "flying");
  EXPECT_ERRC(m->put_rule("r", R"({"workflow":"ghost","on":{"phase":"x"},"then":[{"type":"lifecycle_complete"}]})"), errc::workflow_not_registered);
  auto [state, rev] = *m->get_with_revision<Mission>("m3");
  EXPECT_TRUE(m->compare_and_swap(state, rev));
  EXPECT_ERRC(m->compare_and_swap(state, rev), errc::conflict);
  ASSERT_TRUE(m->remove<Mission>("m3"));
  EXPECT_ERRC(m->get<Mission>("m3"), errc::entity_not_found);
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
  auto again = *m->watch<Mission>(first->rev);
  EXPECT_EQ(again.next()->state.phase, "flying");
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

TEST(remote_address, nobody_there_is_said) {
  auto none_there = manager::connect("http://127.0.0.1:1");
  ASSERT_FALSE(none_there);
  EXPECT_NE(none_there.error().message().find("is the server running?"), std::string::npos) << none_there.error().message();
  EXPECT_FALSE(manager::connect("ftp://x"));
}

}  // namespace pawl::lifecycle
