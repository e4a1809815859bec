// Callers without a right: one of another tenant, one whose token is not valid, one whose role may
// not write. None of them sees or changes anything.

#include <fmt/format.h>

#include "sim/clients/client.h"

namespace pawl::sim {
namespace {

class SpyClient final : public Client {
 public:
  explicit SpyClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "spy"; }
  void begin() override {
    if (world_.has_token()) act();
  }
  void finish() override {}
  void ask_everything() override {}
  void check() override {}

 private:
  void act() {
    if (world_.calm()) return;
    schedule_.after(2 * world_.pause(), [this] { act(); });
    switch (schedule_.roll(3)) {
      case 0: return ask_for_foreign();
      case 1: return send_bad_token();
      default: return write_as_viewer();
    }
  }

  // Things of another tenant are not there.
  void ask_for_foreign() {
    const std::vector<Sighting>& all = world_.world().sightings();
    if (all.empty()) return;
    const Sighting seen = all[schedule_.roll(all.size())];
    if (seen.tenant == world_.tenant()) return;
    Sent sent{"GET", seen.path};
    if (seen.path.starts_with("/v1/") && schedule_.chance(30))
      sent = {"POST", seen.path + "/cancel", "{}"};
    if (seen.path.starts_with("/api/") && schedule_.chance(30)) sent.method = "DELETE";
    const std::string what = sent.method + " " + sent.path;
    world_.call(std::move(sent), [this, what](std::optional<wire::Response> r) {
      if (!r || r->status == 503 || r->status == 429) return;
      world_.reach(Reach::foreign);
      world_.expect(r->status == 404, fmt::format("{} of another tenant answers {} {}", what,
                                                  r->status, r->body.substr(0, 200)));
    });
  }

  // A token that has expired, or of which a letter was changed.
  void send_bad_token() {
    std::string token = world_.token({"ROLE_ADMIN"}, schedule_.chance(50) ? -7200 : 3600);
    char& letter = token[schedule_.roll(token.size() - 3)];  // the last bits mean nothing
    letter = letter == 'A' ? 'B' : 'A';
    send(token, {"GET", "/v1/instances?pageSize=1"}, 401, Reach::bad_token);
  }

  void write_as_viewer() {
    send(world_.token({"ROLE_VIEWER"}, 3600),
         {"POST", "/v1/instances", R"({"definitionId":"line","businessKey":"of-a-viewer"})"}, 403,
         Reach::forbidden);
  }

  void send(const std::string& token, Sent sent, int status, Reach reach) {
    sent.headers.emplace_back("Authorization", "Bearer " + token);
    const uint64_t moves = world_.clock_moves();
    world_.world().call(std::move(sent),
                        [this, status, reach, moves](std::optional<wire::Response> r) {
                          if (!r || r->status == 503 || r->status == 429) return;
                          // A clock that was set makes tokens of before invalid.
                          const bool was_set = moves != world_.clock_moves();
                          if (r->status == status) world_.reach(reach);
                          world_.expect(r->status == status || (was_set && r->status == 401),
                                        fmt::format("{} is due and the answer is {} {}", status,
                                                    r->status, r->body.substr(0, 200)));
                        });
  }

  Session& world_;
  Schedule& schedule_;
};

}  // namespace

std::unique_ptr<Client> make_spy_client(Session& world) {
  return std::make_unique<SpyClient>(world);
}

}  // namespace pawl::sim
