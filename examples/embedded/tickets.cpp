// Support tickets in an embedded engine: no server, no sockets. Run the program twice: the second
// run finds the tickets of the first.

#include <pawl/lifecycle.h>

#include <iostream>

namespace lc = pawl::lifecycle;

struct Ticket {
  std::string id{}, phase = "open", title{}, assignee{};
  std::int64_t answers = 0;

  static constexpr std::string_view workflow = "ticket", bucket = "TICKETS";
  static constexpr auto fields =
      lc::fields(lc::field<&Ticket::id>("id", lc::id),
                 lc::field<&Ticket::phase>("phase", lc::phase), lc::field<&Ticket::title>("title"),
                 lc::field<&Ticket::assignee>("assignee", lc::operator_writable | lc::indexable),
                 lc::field<&Ticket::answers>("answers"));
  static constexpr auto transitions =
      lc::table(lc::from("open", "waiting", "closed"), lc::from("waiting", "open", "closed"),
                lc::success("closed"));
};

int main(int argc, char** argv) {
  auto engine = pawl::Engine::open({.data = argc > 1 ? argv[1] : "tickets-data"});
  if (!engine) {
    std::cerr << engine.error().message() << '\n';
    return 1;
  }
  // value() throws when a result is an error; a real program would handle it.
  lc::manager tickets(**engine);
  tickets.register_type<Ticket>().value();

  std::string id = "T-" + std::to_string(tickets.list<Ticket>()->size() + 1);
  tickets.create(Ticket{.id = id, .title = "It does not start", .assignee = "ann"}).value();
  tickets
      .transition_with<Ticket>(id, "waiting", {lc::source::component, "asked for the log"},
                               [](Ticket& t) { ++t.answers; })
      .value();
  tickets.complete<Ticket>(id).value();

  std::cout << tickets.list(lc::query<Ticket>().where<&Ticket::assignee>("ann"))->size()
            << " ticket(s) of ann\n";
  for (const auto& e : *tickets.history<Ticket>(id))
    std::cout << e.from << " -> " << e.to << '\n';
}
