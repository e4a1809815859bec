#include "sim/clients/client.h"

#include "json/text.h"

namespace pawl::sim {

void call_until_answered(World& world, Sent sent, std::function<void(wire::Response)> answered) {
  world.call(sent, [&world, sent, answered = std::move(answered)](
                       std::optional<wire::Response> response) mutable {
    // 503 and 429 tell the client to come again: nothing is known, or nothing was done. So does the
    // answer that an earlier copy of this request still runs.
    const bool known = response && response->status != 503 && response->status != 429 &&
                       response->body.find("IDEMPOTENCY_KEY_RUNNING") == std::string::npos;
    if (known) return answered(std::move(*response));
    const Time pause = static_cast<Time>(world.schedule().roll(5 * kSecond));
    world.schedule().after(pause, [&world, sent, answered = std::move(answered)]() mutable {
      call_until_answered(world, std::move(sent), std::move(answered));
    });
  });
}

json::Value body_of(const wire::Response& response) {
  return json::parse(response.body).value_or(json::Value());
}

}  // namespace pawl::sim
