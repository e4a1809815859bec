// A drone survey, from planning to landing: a struct with phases. The instances are stored in
// ./drone-data, or in the folder named on the command line, and are still there at the next run.
//
//   g++ drone.cpp $(pkg-config --cflags --libs pawl-embed) -o drone && ./drone

#include <pawl/lifecycle.h>

#include <iostream>
#include <thread>

namespace lc = pawl::lifecycle;

// The members are plain C++. The field list gives each its stored name and its tags; the table
// gives the phases and the moves between them. Both are checked when the program is compiled.
struct Mission {
  std::string entity_id{}, phase = "planning", owner{}, drone{}, parent{};
  std::uint32_t waypoint = 0, waypoints = 0;
  double battery = 100;

  static constexpr std::string_view workflow = "drone-survey", bucket = "MISSIONS";
  static constexpr auto fields = lc::fields(
      lc::field<&Mission::entity_id>("entity_id", lc::id),
      lc::field<&Mission::phase>("phase", lc::phase | lc::readonly),
      lc::field<&Mission::owner>("owner_org_id", lc::operator_writable),
      lc::field<&Mission::drone>("drone_id", lc::operator_writable | lc::indexable | lc::omitempty),
      lc::field<&Mission::waypoint>("waypoint_index", lc::operator_writable),
      lc::field<&Mission::waypoints>("waypoints"), lc::field<&Mission::battery>("battery_pct"),
      lc::field<&Mission::parent>("parent_mission", lc::parent | lc::omitempty));
  static constexpr auto transitions =
      lc::table(lc::from("planning", "flying", "aborted"),
                lc::from("flying", "capturing", "landing", "aborted"),
                lc::from("capturing", "flying"), lc::from("landing", "completed", "failed"),
                lc::success("completed"), lc::terminal("failed"), lc::terminal("aborted"));
};
static_assert(lc::participant<Mission>);
static_assert(Mission::transitions.is_terminal("completed") &&
              Mission::transitions.allows("capturing", "flying"));

// Returns the value of a result. If the result is an error, prints it and ends the program.
template <class T>
T must(lc::result<T> got) {
  if (got) {
    if constexpr (!std::is_void_v<T>)
      return *std::move(got);
    else
      return;
  }
  std::cerr << "drone: " << got.error().message() << '\n';
  std::exit(1);
}

// Shows the writes: transitions, a transition with a mutator, a refusal by the mutator, one by the
// table, and complete().
static void fly(lc::manager& missions, const std::string& id) {
  must(missions.transition<Mission>(id, "flying", {lc::source::op, "cleared by tower"}));
  for (int i = 0; i < 3; ++i) {
    must(missions.transition<Mission>(id, "capturing"));
    must(missions.transition_with<Mission>(id, "flying", {lc::source::rule, ""},
                                           [](Mission& m) { ++m.waypoint; }));
  }
  // When a mutator returns an error, nothing is written and the caller gets that error.
  auto no =
      missions.transition_with<Mission>(id, "landing", {}, [](Mission& m) -> lc::result<void> {
        if (m.battery > 50) return lc::fail(lc::errc::rejected, "too much battery left");
        return {};
      });
  if (!no && no.error() == lc::errc::rejected)
    std::cout << "not yet: " << no.error().detail << '\n';

  auto bad = missions.transition<Mission>(id, "completed");
  if (!bad && bad.error() == lc::errc::invalid_transition)
    std::cout << bad.error().code.message() << ": " << bad.error().detail << '\n';

  must(missions.update<Mission>(id, [](Mission& m) { m.battery = 21.5; }));
  must(missions.transition<Mission>(id, "landing"));
  must(missions.complete<Mission>(id));
}

// Shows the reads: queries by a member, and the history.
static void tell(const lc::manager& missions, const std::string& id) {
  lc::query<Mission> ours;
  ours.where<&Mission::owner>("acme").limit = 20;
  std::cout << must(missions.list(ours)).size() << " mission(s) of acme, ";
  ours.active = true;
  std::cout << must(missions.list(ours)).size() << " active\n";
  for (const auto& e : must(missions.history<Mission>(id)))
    std::cout << "  " << (e.from.empty() ? "(new)" : e.from) << " -> " << e.to << " by "
              << lc::name_of(e.triggered) << (e.note.empty() ? "" : " (" + e.note + ")") << '\n';
}

int main(int argc, char** argv) {
  auto engine = must(pawl::Engine::open({.data = argc > 1 ? argv[1] : "drone-data"}));
  lc::manager missions(*engine);
  must(missions.register_type<Mission>());

  // last() grows with every write, so each run gets a new id.
  const std::string id = "acme.fleet.survey.gcs.mission.m" + std::to_string(engine->last());
  must(missions.create(Mission{.entity_id = id, .owner = "acme", .drone = "d7", .waypoints = 3}));
  {
    auto stream = must(missions.watch<Mission>());
    std::jthread watcher([w = stream, id](std::stop_token stop) mutable {
      while (auto c = w.next(stop)) {
        if (c->id != id) continue;
        std::cout << (c->snapshot ? "snapshot " : "change   ") << c->state.phase << " wp "
                  << c->state.waypoint << '\n';
        if (c->state.phase == "completed") return;
      }
    });
    fly(missions, id);
    watcher.join();
  }
  tell(missions, id);
  std::cout << must(engine->verify()) << " turns verified\n";
}
