#pragma once
// A session is one tenant's view of a simulated world. When the server asks for tokens, its
// requests carry one, and it gets a new one before the old one expires. The other functions are
// those of World.

#include <optional>

#include "server/auth/jwt.h"
#include "sim/world.h"

namespace pawl::sim {

class Session {
 public:
  // The key comes from the world; without one the tenant is that of every caller.
  Session(World& world, std::string tenant);
  explicit Session(World& world);

  const std::string& tenant() const { return tenant_; }
  bool has_token() const { return key_.has_value(); }
  void call(Sent sent, Answered answered);
  // A token of this tenant with these roles that is valid for `seconds` from now.
  std::string token(const std::vector<std::string>& roles, int64_t seconds) const;

  World& world() { return world_; }
  Schedule& schedule() { return world_.schedule(); }
  bool strikes(Fault fault, uint64_t one_in) { return world_.strikes(fault, one_in); }
  Time pause() { return world_.pause(); }
  Time until_busy(Time delay) { return world_.until_busy(delay); }
  bool busy() { return world_.busy(); }
  void later(Time delay, Schedule::Task task) { world_.later(delay, std::move(task)); }
  Time left() const { return world_.left(); }
  bool calm() const { return world_.calm(); }
  uint64_t life() const { return world_.life(); }
  entities::Members* members() { return world_.members(); }
  uint64_t clock_moves() const { return world_.clock_moves(); }
  void expect(bool held, const std::string& what) { world_.expect(held, what); }
  void note(std::string text) { world_.note(std::move(text)); }
  void reach(Reach reach) { ++world_.reached()[reach]; }

 private:
  struct Issued {
    std::string text;
    Time expires = 0;  // by the server's clock
    uint64_t clock_moves = 0;
  };
  const Issued& current();
  // True while the clock was not set: then the token is valid until it expires.
  bool is_valid(const Issued& token) const {
    return token.clock_moves == world_.clock_moves() && world_.wall() < token.expires;
  }

  World& world_;
  const std::string tenant_;
  std::optional<server::RsaKey> key_;
  Issued issued_;
};

}  // namespace pawl::sim
