#include "sim/clients/watch.h"

#include <fmt/format.h>

#include <charconv>

#include "json/text.h"

namespace pawl::sim {

void Watch::begin() {
  follow();
  look();
}

static uint64_t revision_of(const EventLines::Event& event) {
  uint64_t out = 0;
  std::from_chars(event.id.data(), event.id.data() + event.id.size(), out);
  return out;
}

void Watch::follow() {
  lines_.clear();
  Sent sent{"GET", fmt::format("/workflows/{}?stream=true&after={}", type_, last_)};
  sent.headers = {{"Accept", "text/event-stream"}};
  sent.patience = static_cast<Time>(world_.schedule().roll(1800)) * kSecond;
  sent.piece = [this](std::string text) {
    for (const EventLines::Event& event : lines_.take(text))
      take(event);
  };
  world_.call(std::move(sent), [this](std::optional<wire::Response> r) {
    if (r && r->status != 503 && r->status != 429)
      world_.expect(r->status == 200, fmt::format("a watch answers {} {}", r->status, r->body));
    const Time pause = world_.calm() ? kSecond : world_.pause();
    world_.later(pause, [this] { follow(); });
  });
}

void Watch::look() {
  if (world_.calm()) return;
  others_.clear();
  Sent sent{"GET", fmt::format("/workflows/{}?stream=true", type_)};
  sent.headers = {{"Accept", "text/event-stream"}};
  sent.patience = static_cast<Time>(world_.schedule().roll(300)) * kSecond;
  sent.piece = [this](std::string text) {
    for (const EventLines::Event& event : others_.take(text))
      saw(event);
  };
  world_.call(std::move(sent), [this](std::optional<wire::Response>) {
    world_.schedule().after(4 * world_.pause(), [this] { look(); });
  });
}

void Watch::take(const EventLines::Event& event) {
  const uint64_t revision = revision_of(event);
  world_.expect(revision >= last_, fmt::format("a watch goes back from revision {} to {}: {}",
                                               last_, revision, event.data));
  world_.expect(event.name == "change" || event.name == "deleted",
                fmt::format("a watch that goes on shows {} {}", event.name, event.data));
  last_ = revision;
  saw(event);
  const json::Value state = json::parse(event.data).value_or(json::Value());
  std::vector<std::string>& phases = phases_[std::string(state.string_or("id"))];
  const std::string phase(event.name == "deleted" ? "<deleted>" : state.string_or("phase"));
  // A patch shows the same phase again.
  if (phases.empty() || phases.back() != phase) phases.push_back(phase);
}

void Watch::saw(const EventLines::Event& event) {
  const json::Value state = json::parse(event.data).value_or(json::Value());
  const std::pair name(std::string(state.string_or("id")), revision_of(event));
  auto [known, is_new] = states_.emplace(name, event.data);
  world_.expect(is_new || known->second == event.data,
                fmt::format("revision {} of {} was {} and is {}", name.second, name.first,
                            known->second, event.data));
}

}  // namespace pawl::sim
