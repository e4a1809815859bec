#include "sim/clients/client.h"

#include "json/text.h"

namespace pawl::sim {

void call_until_answered(Session& world, Sent sent, std::function<void(wire::Response)> answered) {
  world.call(sent, [&world, sent, answered = std::move(answered)](
                       std::optional<wire::Response> response) mutable {
    // 503 and 429 tell the client to come again: nothing is known, or nothing was done. So does the
    // answer that an earlier copy of this request still runs.
    const bool known = response && response->status != 503 && response->status != 429 &&
                       response->body.find("IDEMPOTENCY_KEY_RUNNING") == std::string::npos;
    if (known) return answered(std::move(*response));
    // Seldom in a gap, in which a compute member may be away for days, but within the 24 hours for
    // which an Idempotency-Key holds.
    const uint64_t often = world.busy() ? 5 * kSecond : 7200 * kSecond;
    const Time pause = static_cast<Time>(world.schedule().roll(often));
    world.schedule().after(pause, [&world, sent, answered = std::move(answered)]() mutable {
      call_until_answered(world, std::move(sent), std::move(answered));
    });
  });
}

void call_once(Session& world, std::string key, Sent sent, bool& busy,
               std::function<void(const wire::Response&)> answered) {
  busy = true;
  sent.headers.emplace_back("Idempotency-Key", std::move(key));
  sent.headers.emplace_back("Content-Type", "application/json");
  call_until_answered(world, std::move(sent),
                      [&busy, answered = std::move(answered)](const wire::Response& r) {
                        busy = false;
                        answered(r);
                      });
}

json::Value body_of(const wire::Response& response) {
  return json::parse(response.body).value_or(json::Value());
}

static EventLines::Event event_of(std::string_view text) {
  EventLines::Event out;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with("event: ")) out.name = line.substr(7);
    if (line.starts_with("id: ")) out.id = line.substr(4);
    if (line.starts_with("data: ")) out.data = line.substr(6);
    at = end + 1;
  }
  return out;
}

std::vector<EventLines::Event> EventLines::take(std::string_view piece) {
  unread_ += piece;
  std::vector<Event> out;
  for (size_t end; (end = unread_.find("\n\n")) != std::string::npos;) {
    Event event = event_of(std::string_view(unread_).substr(0, end));
    unread_.erase(0, end + 2);
    if (!event.data.empty()) out.push_back(std::move(event));
  }
  return out;
}

}  // namespace pawl::sim
