// The client of the lifecycle face: owns instances of one type, moves and patches each of them with
// one request at a time, and so knows exactly what every instance must be. A rule moves paid orders
// on.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "json/text.h"
#include "sim/clients/watch.h"

namespace pawl::sim {
namespace {

constexpr const char* kType = R"({"bucket":"ORDERS","fields":[
  {"name":"id","type":"string","tags":["id"]},
  {"name":"phase","type":"string","tags":["phase"]},
  {"name":"count","type":"int64","tags":["operator_writable","indexable"]}],
  "transitions":{"new":["open","dropped"],"open":["new","paid","dropped"],"paid":["shipped"],
                 "shipped":[],"dropped":[]}})";
constexpr const char* kRule = R"({"workflow":"order","on":{"phase":"paid"},
  "then":[{"type":"lifecycle_transition","phase":"shipped","reason":"paid in full"}]})";

const std::map<std::string, std::vector<std::string>> kMoves{
    {"new", {"open", "dropped"}},
    {"open", {"new", "new", "paid", "dropped"}},
    {"paid", {}},
    {"shipped", {}},
    {"dropped", {}}};

struct Order {
  std::string id;
  std::string phase;  // empty: it does not exist
  int64_t count = 0;
  std::vector<std::string> moves;  // every phase that it entered, in order
  bool busy = false;               // a request is under way
  json::Value history, state;      // the answers at the end
};

class LifecycleClient final : public Client {
 public:
  explicit LifecycleClient(Session& world)
      : world_(world), schedule_(world.schedule()), watch_(world, "order") {}
  std::string_view name() const override { return "lifecycle"; }

  void begin() override {
    call_until_answered(
        world_, {"PUT", "/pawl/v1/lifecycle/types/order", kType}, [this](const wire::Response& r) {
          world_.expect(r.status == 201 || r.status == 200, "the type was refused: " + r.body);
          put_rule();
        });
  }

  void finish() override {}

  void ask_everything() override {
    for (auto& [id, order] : orders_) {
      if (order.moves.empty()) continue;
      read("/workflows/order/" + id + "/history", order.history);
      if (!order.phase.empty()) read("/workflows/order/" + id, order.state);
    }
  }

  void check() override {
    for (auto& [id, order] : orders_)
      if (!order.moves.empty()) check_end(order);
  }

 private:
  void put_rule() {
    call_until_answered(
        world_, {"PUT", "/pawl/v1/lifecycle/rules/ship", kRule}, [this](const wire::Response& r) {
          world_.expect(r.status == 201 || r.status == 200, "the rule was refused: " + r.body);
          for (int i = 0; i < 3; ++i)
            act();
          watch_.begin();
        });
  }

  void read(const std::string& path, json::Value& into) {
    call_until_answered(world_, {"GET", path}, [this, path, &into](const wire::Response& r) {
      world_.expect(r.status == 200,
                    fmt::format("{} was acknowledged and answers {} {}", path, r.status, r.body));
      into = body_of(r);
    });
  }

  void act() {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this] { act(); });
    const std::string id = fmt::format("o{}", schedule_.roll(12 + orders_.size() / 2));
    Order& order = orders_[id];
    order.id = id;
    if (order.busy) return;
    if (order.phase.empty()) return create(order);
    switch (schedule_.roll(6)) {
      case 0:
      case 1: return move(order);
      case 2: return patch(order);
      case 3: return list(order);
      case 4:
        if (schedule_.one_in(3) && order.phase == "dropped") return remove(order);
        [[fallthrough]];
      default: return look(order);
    }
  }

  // One request about an order, once. `done` changes the model after the answer.
  void once(Order& order, std::string method, std::string path, std::string body, int status,
            std::function<void()> done) {
    order.busy = true;
    Sent sent{std::move(method), std::move(path), std::move(body)};
    sent.headers = {{"Idempotency-Key", fmt::format("order-{}", ++keys_)}};
    const std::string what = sent.method + " " + sent.path + " " + sent.body;
    call_until_answered(world_, std::move(sent),
                        [this, &order, status, what, done = std::move(done)](wire::Response r) {
                          order.busy = false;
                          world_.expect(r.status == status,
                                        fmt::format("{} ({} {}) answers {} {}", what, order.phase,
                                                    order.count, r.status, r.body));
                          done();
                        });
  }

  void create(Order& order) {
    once(order, "POST", "/pawl/v1/lifecycle/instances/order/" + order.id,
         R"({"phase":"new","count":0})", 201, [&order] {
           order.phase = "new";
           order.count = 0;
           order.moves.emplace_back("new");
         });
  }

  void move(Order& order) {
    const auto& next = kMoves.at(order.phase);
    if (next.empty()) return look(order);
    const std::string to = next[schedule_.roll(next.size())];
    once(order, "POST", "/workflows/order/" + order.id + "/transition",
         json::print(json::object({{"phase", to}, {"note", "moved"}})), 200, [&order, to] {
           order.phase = to;
           order.moves.push_back(to);
           // The rule does the next move; nobody else touches a paid order.
           if (to == "paid") order.moves.emplace_back("shipped");
         });
  }

  void patch(Order& order) {
    const int64_t count = static_cast<int64_t>(schedule_.roll(1000));
    once(order, "POST", "/workflows/order/" + order.id + "/state",
         json::print(json::object({{"count", count}})), 200,
         [&order, count] { order.count = count; });
  }

  void remove(Order& order) {
    once(order, "DELETE", "/pawl/v1/lifecycle/instances/order/" + order.id, "", 200, [&order] {
      order.phase.clear();
      order.moves.emplace_back("<deleted>");
    });
  }

  void look(Order& order) {
    order.busy = true;
    world_.call({"GET", "/workflows/order/" + order.id},
                [this, &order](std::optional<wire::Response> r) {
                  order.busy = false;
                  if (r && r->status != 503 && r->status != 429) compare(order, *r);
                });
  }

  static bool same_phase(const Order& order, std::string_view seen) {
    return seen == order.phase || (order.phase == "paid" && seen == "shipped");
  }

  void compare(Order& order, const wire::Response& r) {
    const json::Value state = body_of(r);
    const json::Value* count = state.find("count");
    world_.expect(r.status == 200 && same_phase(order, state.string_or("phase")) && count &&
                      count->is_number() && count->as_int64() == order.count,
                  fmt::format("{} must be {} with {} and is {} {}", order.id, order.phase,
                              order.count, r.status, r.body));
  }

  // A list must show what was acknowledged before.
  void list(Order& order) {
    order.busy = true;
    const bool by_count = schedule_.chance(50);
    const std::string filter =
        by_count ? fmt::format("match.count={}", order.count) : "phase=" + order.phase;
    world_.call({"GET", "/pawl/v1/lifecycle/instances/order?limit=500&" + filter},
                [this, &order, filter, by_count](std::optional<wire::Response> r) {
                  order.busy = false;
                  if (!r || r->status == 503 || r->status == 429) return;
                  bool found = !by_count && order.phase == "paid";  // the rule may have moved it
                  const json::Value body = body_of(*r);
                  if (const json::Value* list = body.find("instances"); list && list->is_array())
                    for (const json::Value& one : list->array())
                      found = found || one.string_or("id") == order.id;
                  world_.expect(r->status == 200 && found,
                                fmt::format("the list by {} lacks {}: {} {}", filter, order.id,
                                            r->status, r->body.substr(0, 300)));
                });
  }

  void check_end(const Order& order) {
    std::vector<std::string> moves;
    if (order.history.is_array())
      for (const json::Value& event : order.history.array())
        moves.emplace_back(event.string_or("to"));
    world_.expect(moves == order.moves,
                  fmt::format("the history of {} must be {} and is {}", order.id,
                              fmt::join(order.moves, ","), fmt::join(moves, ",")));
    const std::vector<std::string>& watched = watch_.phases_of(order.id);
    world_.expect(watched == order.moves,
                  fmt::format("the watch of {} must show {} and showed {}", order.id,
                              fmt::join(order.moves, ","), fmt::join(watched, ",")));
    if (order.phase.empty()) return;
    const std::string phase = order.phase == "paid" ? "shipped" : order.phase;
    const json::Value* count = order.state.find("count");
    world_.expect(order.state.string_or("phase") == phase && count && count->is_number() &&
                      count->as_int64() == order.count,
                  fmt::format("{} must be {} with {} and is {}", order.id, phase, order.count,
                              json::print(order.state)));
  }

  Session& world_;
  Schedule& schedule_;
  Watch watch_;
  std::map<std::string, Order> orders_;
  uint64_t keys_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_lifecycle_client(Session& world) {
  return std::make_unique<LifecycleClient>(world);
}

}  // namespace pawl::sim
