// A second client of the entities face: tickets with a unique code. A criterion moves urgent
// tickets on by itself, and a scheduled transition ends tickets that nobody touches.

#include <fmt/format.h>

#include <map>

#include "json/text.h"
#include "sim/clients/client.h"

namespace pawl::sim {
namespace {

constexpr Time kExpiry = 120 * kSecond;
constexpr const char* kWorkflow = R"({"importMode":"REPLACE","workflows":[{"version":"1","name":"t",
  "initialState":"NEW","active":true,"states":{
  "NEW":{"transitions":[
    {"name":"escalate","next":"URGENT","manual":false,"criterion":{"type":"simple",
      "jsonPath":"$.urgent","operatorType":"EQUALS","value":true}},
    {"name":"close","next":"CLOSED","manual":true},
    {"name":"expire","next":"EXPIRED","manual":false,"schedule":{"delayMs":120000}}]},
  "URGENT":{"transitions":[{"name":"close","next":"CLOSED","manual":true}]},
  "CLOSED":{},"EXPIRED":{}}}]})";

struct Ticket {
  uint64_t number = 0;
  std::string id, state;  // as the client knows it; a NEW ticket may have expired
  std::string code;
  int64_t n = 0;
  bool urgent = false, busy = false, deleted = false;
  bool may_have_expired = false;  // before its last write
  Time written = 0;               // when the last write was sent
  uint64_t clock_moves = 0;       // how often the clock had been set by then
};

json::Value document(const Ticket& t, int64_t n) {
  return json::object({{"code", t.code}, {"n", n}, {"urgent", t.urgent}});
}

class TicketsClient final : public Client {
 public:
  explicit TicketsClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "tickets"; }

  void begin() override {
    const Ticket sample{.code = "x", .urgent = true};
    set_up(
        {{"POST", "/api/model/import/JSON/SAMPLE_DATA/ticket/1", json::print(document(sample, 1))},
         {"PUT", "/api/model/ticket/1/unique-keys",
          R"({"uniqueKeys":[{"id":"code","fields":["$.code"]}]})"},
         {"PUT", "/api/model/ticket/1/lock"},
         {"POST", "/api/model/ticket/1/workflow/import", kWorkflow}},
        0);
  }
  void finish() override {}

  void ask_everything() override {
    for (auto& [number, ticket] : tickets_)
      if (!ticket.id.empty())
        call_until_answered(
            world_, {"GET", "/api/entity/" + ticket.id},
            [this, &ticket = ticket](const wire::Response& r) { compare(ticket, r, true); });
  }

  void check() override {
    for (const auto& [number, ticket] : tickets_)
      world_.expect(!ticket.busy,
                    fmt::format("ticket {} has no answer long after the last fault", number));
  }

 private:
  void set_up(std::vector<Sent> requests, size_t at) {
    if (at == requests.size()) return act();
    call_until_answered(world_, requests[at], [this, requests, at](const wire::Response& r) {
      world_.expect(r.status == 200 || r.status == 409,
                    fmt::format("{} answers {} {}", requests[at].path, r.status, r.body));
      set_up(requests, at + 1);
    });
  }

  void act() {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this] { act(); });
    const uint64_t number = schedule_.roll(6 + tickets_.size() / 2);
    Ticket& ticket = tickets_[number];
    ticket.number = number;
    if (ticket.busy || ticket.deleted) return;
    if (ticket.id.empty()) return create(ticket);
    switch (schedule_.roll(6)) {
      case 0: return close(ticket);
      case 1: return put(ticket);
      case 2: return rival(ticket);
      case 3:
        if (schedule_.one_in(4)) return remove(ticket);
        [[fallthrough]];
      default: return look(ticket);
    }
  }

  void once(Ticket& ticket, Sent sent, std::function<void(const wire::Response&)> done) {
    call_once(world_, fmt::format("ticket-{}", ++keys_), std::move(sent), ticket.busy,
              std::move(done));
  }

  void must(const Ticket& t, const char* what, const wire::Response& r, bool held) {
    world_.expect(held, fmt::format("{} of ticket {} ({} with {}) answers {} {}", what, t.number,
                                    t.state, t.n, r.status, r.body));
  }

  void stamp(Ticket& ticket) {
    ticket.written = schedule_.elapsed();
    ticket.clock_moves = world_.clock_moves();
  }

  void create(Ticket& ticket) {
    ticket.code = fmt::format("code-{}", ++codes_);
    ticket.urgent = schedule_.one_in(3);
    stamp(ticket);
    once(ticket, {"POST", "/api/entity/JSON/ticket/1", json::print(document(ticket, 1))},
         [this, &ticket](const wire::Response& r) {
           must(ticket, "create", r, r.status == 200);
           const json::Value body = body_of(r);
           if (!body.is_array() || body.array().empty()) return;
           const json::Value* ids = body.array()[0].find("entityIds");
           if (!ids || !ids->is_array() || ids->array().empty()) return;
           ticket.id = ids->array()[0].string();
           ticket.state = ticket.urgent ? "URGENT" : "NEW";
           ticket.n = 1;
         });
  }

  // A ticket that has expired meanwhile is changed all the same: only its state stays.
  void put(Ticket& ticket) {
    const int64_t n = ticket.n + 1;
    const Ticket before = ticket;
    stamp(ticket);
    once(ticket, {"PUT", "/api/entity/JSON/" + ticket.id, json::print(document(ticket, n))},
         [this, &ticket, n, before](const wire::Response& r) {
           must(ticket, "put", r, r.status == 200);
           ticket.n = n;
           if (schedule_.elapsed() - before.written >= kExpiry ||
               before.clock_moves != world_.clock_moves())
             ticket.may_have_expired = true;
         });
  }

  void close(Ticket& ticket) {
    if (ticket.state == "CLOSED" || ticket.state == "EXPIRED") return look(ticket);
    const bool may_expire = ticket.state == "NEW";
    once(ticket,
         {"PUT", "/api/entity/JSON/" + ticket.id + "/close",
          json::print(document(ticket, ticket.n))},
         [this, &ticket, may_expire](const wire::Response& r) {
           // Its time may have come before the request.
           must(ticket, "close", r,
                r.status == 200 || (may_expire && r.status >= 400 && r.status < 500));
           ticket.state = r.status == 200 ? "CLOSED" : "EXPIRED";
         });
  }

  // Another ticket may not have the code of this one.
  void rival(Ticket& ticket) {
    once(ticket, {"POST", "/api/entity/JSON/ticket/1", json::print(document(ticket, 7))},
         [this, &ticket](const wire::Response& r) {
           must(ticket, "a rival", r,
                r.status == 409 && r.body.find("UNIQUE_VIOLATION") != std::string::npos);
         });
  }

  void remove(Ticket& ticket) {
    once(ticket, {"DELETE", "/api/entity/" + ticket.id}, [this, &ticket](const wire::Response& r) {
      must(ticket, "delete", r, r.status == 200);
      ticket.deleted = true;
    });
  }

  void look(Ticket& ticket) {
    ticket.busy = true;
    world_.call({"GET", "/api/entity/" + ticket.id},
                [this, &ticket](std::optional<wire::Response> r) {
                  ticket.busy = false;
                  if (r && r->status != 503 && r->status != 429) compare(ticket, *r, false);
                });
  }

  void compare(Ticket& ticket, const wire::Response& r, bool at_end) {
    if (ticket.deleted) return must(ticket, "get after delete", r, r.status == 404);
    const json::Value body = body_of(r);
    const json::Value* meta = body.find("meta");
    const json::Value* data = body.find("data");
    const json::Value* n = data ? data->find("n") : nullptr;
    const std::string state(meta ? meta->string_or("state") : std::string_view());
    const bool expired = ticket.state == "NEW" && state == "EXPIRED";
    must(ticket, "get", r,
         r.status == 200 && n && n->as_int64() == ticket.n && (state == ticket.state || expired));
    // Without a change of the clock the time that passed tells whether it came too early.
    if (expired && !ticket.may_have_expired && ticket.clock_moves == world_.clock_moves())
      must(ticket, "expiry before its time", r, schedule_.elapsed() - ticket.written >= kExpiry);
    if (expired) ticket.state = "EXPIRED";
    if (at_end) must(ticket, "get at the end", r, state != "NEW");
  }

  Session& world_;
  Schedule& schedule_;
  std::map<uint64_t, Ticket> tickets_;
  uint64_t keys_ = 0, codes_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_tickets_client(Session& world) {
  return std::make_unique<TicketsClient>(world);
}

}  // namespace pawl::sim
