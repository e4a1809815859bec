#include "sim/session.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace pawl::sim {

static constexpr int64_t kTokenSeconds = 3600;
// Streams end within two seconds of their token; a slow reader takes pieces late.
static constexpr Time kStreamsEnd = server::kLeeway + 90 * kSecond;

Session::Session(World& world, std::string tenant) : world_(world), tenant_(std::move(tenant)) {
  if (world.token_key().empty()) return;
  auto key = server::RsaKey::from_pem(world.token_key());
  CHECK(key);
  key_ = std::move(*key);
}

Session::Session(World& world) : Session(world, std::string(kDefaultTenant)) {}

std::string Session::token(const std::vector<std::string>& roles, int64_t seconds) const {
  json::Array list;
  for (const std::string& role : roles)
    list.emplace_back(role);
  const int64_t now = world_.wall() / kSecond;
  return server::sign_token(*key_, key_->kid(),
                            json::object({{"iss", "cyoda"},
                                          {"sub", "simulated"},
                                          {"caas_org_id", tenant_},
                                          {"caas_user_id", "ann"},
                                          {"user_roles", std::move(list)},
                                          {"iat", now},
                                          {"exp", now + seconds}}));
}

const Session::Issued& Session::current() {
  if (!is_valid(issued_) || issued_.expires - world_.wall() < 300 * kSecond)
    issued_ = {token({"ROLE_ADMIN", "ROLE_M2M"}, kTokenSeconds),
               world_.wall() + kTokenSeconds * kSecond, world_.clock_moves()};
  return issued_;
}

// A path that names one instance or one entity by its random id.
static bool names_one(std::string_view path) {
  constexpr std::string_view kInstances = "/v1/instances/", kEntities = "/api/entity/";
  constexpr size_t kUlid = 26, kUuid = 36;
  if (path.starts_with(kInstances)) return path.size() == kInstances.size() + kUlid;
  return path.starts_with(kEntities) && path.size() == kEntities.size() + kUuid;
}

void Session::call(Sent sent, Answered answered) {
  if (!key_) return world_.call(std::move(sent), std::move(answered));
  const Issued used = current();
  sent.headers.emplace_back("Authorization", "Bearer " + used.text);
  if (sent.piece)
    sent.piece = [this, used, piece = std::move(sent.piece)](std::string text) {
      const bool clock_is_right = used.clock_moves == world_.clock_moves();
      world_.expect(!clock_is_right || world_.wall() < used.expires + kStreamsEnd,
                    "a stream goes on although its token has expired");
      piece(std::move(text));
    };
  const std::string path = sent.path;
  const bool shows_one = sent.method == "GET" && names_one(path);
  world_.call(std::move(sent), [this, used, path, shows_one,
                                answered = std::move(answered)](std::optional<wire::Response> r) {
    if (shows_one && r && r->status == 200) world_.saw({tenant_, path});
    if (!r || r->status != 401) return answered(std::move(r));
    // The clock was set, or the request was long under way.
    world_.expect(!is_valid(used), fmt::format("{} refuses a valid token: {}", path, r->body));
    reach(Reach::old_token);
    issued_ = {};
    answered(std::nullopt);
  });
}

}  // namespace pawl::sim
