// Readers of the records of a simulated world.

#include <fmt/format.h>

#include "json/text.h"
#include "sim/clients/bank.h"
#include "sim/clients/client.h"

namespace pawl::sim {

void RecordReaders::begin() { stream(); }

// Every reader must see the same record at one height, for ever.
void RecordReaders::saw(const json::Value& entry, const char* reader) {
  const uint64_t seq = number_in(entry, "seq");
  const std::string payload(entry.string_or("payload_b64"));
  auto [known, is_new] = payloads_.emplace(seq, payload);
  world_.expect(is_new || known->second == payload,
                fmt::format("record {} of {} changed: {} reads {}", seq, bank_.id, reader,
                            json::print(entry)));
}

void RecordReaders::stream() {
  lines_.clear();
  Sent sent{"GET", bank_.path(fmt::format("/journal/stream?from={}", next_))};
  // Half of the time as browsers do it.
  if (next_ > 0 && world_.schedule().chance(50)) {
    sent.path = bank_.path("/journal/stream");
    sent.headers = {{"Last-Event-ID", std::to_string(next_ - 1)}};
  }
  sent.patience = static_cast<Time>(1 + world_.schedule().roll(1800)) * kSecond;
  sent.piece = [this](std::string text) {
    for (const EventLines::Event& event : lines_.take(text))
      take_event(event);
  };
  world_.call(std::move(sent), [this](std::optional<wire::Response> r) {
    if (r && r->status != 503 && r->status != 429)
      world_.expect(r->status == 200,
                    fmt::format("the stream of {} answers {} {}", bank_.id, r->status, r->body));
    const Time pause = world_.calm() ? kSecond : world_.pause();
    world_.later(pause, [this] { stream(); });
  });
}

void RecordReaders::take_event(const EventLines::Event& event) {
  const json::Value data = json::parse(event.data).value_or(json::Value());
  if (event.name == "gap") {
    world_.expect(bank_.compacted, "a stream has a gap although nothing was compacted");
    next_ = number_in(data, "next_from");
    return;
  }
  if (event.name != "journal_record") return;
  world_.expect(number_in(data, "seq") == next_,
                fmt::format("the stream of {} gives record {} and {} is next", bank_.id,
                            number_in(data, "seq"), next_));
  next_ = number_in(data, "seq") + 1;
  saw(data, "a stream");
}

void RecordReaders::take_page(const json::Value& page, uint64_t from) {
  const json::Value* entries = page.find("entries");
  if (!entries || !entries->is_array())
    return world_.expect(false, "a page without entries: " + json::print(page));
  uint64_t next = std::max(from, number_in(page, "retained_from"));
  world_.expect(next == from || bank_.compacted, "a page begins too late: " + json::print(page));
  for (const json::Value& entry : entries->array()) {
    world_.expect(number_in(entry, "seq") == next,
                  fmt::format("a page of {} from {} gives record {} and {} is next", bank_.id, from,
                              number_in(entry, "seq"), next));
    saw(entry, "a page");
    ++next;
  }
}

void RecordReaders::read_page() {
  const uint64_t from = world_.schedule().roll(next_ + 1);
  // Whatever was acknowledged when the question is asked must be there.
  const uint64_t height = bank_.height;
  world_.call({"GET", bank_.path(fmt::format("/journal?from={}&limit=20", from))},
              [this, from, height](std::optional<wire::Response> r) {
                if (!r || r->status != 200) return;
                const json::Value page = body_of(*r);
                take_page(page, from);
                world_.expect(number_in(page, "head") >= height,
                              fmt::format("{} records of {} were acknowledged and {} are there",
                                          height, bank_.id, number_in(page, "head")));
              });
}

void RecordReaders::wait() {
  const uint64_t from = next_;
  world_.call({"GET", bank_.path(fmt::format("/journal/wait?from={}&timeout_ms=20000", from))},
              [this, from](std::optional<wire::Response> r) {
                if (r && r->status == 200) take_page(body_of(*r), from);
              });
}

void RecordReaders::read_all() {
  const uint64_t from = read_to_;
  call_until_answered(world_, {"GET", bank_.path(fmt::format("/journal?from={}&limit=500", from))},
                      [this, from](const wire::Response& r) {
                        const json::Value page = body_of(r);
                        take_page(page, from);
                        read_to_ = number_in(page, "next_from");
                        if (read_to_ < number_in(page, "head") && read_to_ > from) read_all();
                      });
}

void RecordReaders::check(uint64_t head) {
  world_.expect(read_to_ >= head,
                fmt::format("{} has {} records and the pages end at {}", bank_.id, head, read_to_));
  world_.expect(next_ >= head,
                fmt::format("{} has {} records and its stream is at {}", bank_.id, head, next_));
}

}  // namespace pawl::sim
