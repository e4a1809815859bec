#pragma once
// A Stage is what players of all faces share: the false world, the lives that are played in it,
// their stories, and the invariants.

#include <memory>
#include <optional>

#include "expr/expression.h"
#include "sim/clients/client.h"
#include "sim/outside/lives.h"

namespace pawl::sim {

// Things that nobody waits for are looked at after a pause of this share of the quiet time before
// it, so that a life of months takes a few hundred looks.
inline constexpr Time kQuietShare = 20;
// Lives of one world begin within this time of each other.
inline constexpr Time kSpread = 600 * kSecond;

// A life that is being played. Players add what they know of it.
struct Life {
  Life(uint64_t seed, uint64_t number) : dice(seed, number) { end.life = number; }
  LifeDice dice;
  Time began = 0;
  uint64_t requests = 0;
  bool will_be_killed = false;
  LifeEnd end;
};

class Stage {
 public:
  Stage(const Script& script, const PlayOptions& options);

  Session& world() { return session_; }
  Time elapsed() { return world_.schedule().elapsed(); }
  void after(Time delay, Schedule::Task task) { world_.schedule().after(delay, std::move(task)); }

  // The outside did something, or something was seen to change.
  void touch() { active_ = elapsed(); }
  Time quiet() { return elapsed() - active_; }
  // The pause before the next look at something that has not changed since `changed`.
  Time patience(Time changed) {
    return std::max<Time>(20 * kSecond, (elapsed() - changed) / kQuietShare);
  }
  // Runs the world while `running` says so, until the horizon.
  Result<void> run(const std::function<bool()>& running);
  // Runs the world until everything that was asked for is read.
  void finish_reading();
  // The server refused what the script says: the run ends with this error.
  void refuse(std::string why);

  // When the life begins, after the set-up.
  Time delay_of(const Life& life) const;
  void begin(Life& life);
  void tell(Life& life, std::string text);
  // Sends a request of a life until it is answered. The server may be killed meanwhile.
  void send(Life& life, Sent sent, std::function<void(wire::Response)> answered);
  // Reads until the server answers, and passes on the body when it is there. The run goes on while
  // something is read.
  void read(const std::string& path, std::function<void(const json::Value&)> found);
  bool reading() const { return reads_ > 0; }
  // Timers change things without any request: calls `look` again and again, with growing pauses.
  // It returns when the thing last changed, or nothing when nobody needs to look any more.
  void keep_looking(Time changed, std::function<std::optional<Time>()> look);
  void check_invariants(Life& life, const json::Object& variables);
  // Whether an invariant uses the variable.
  bool invariants_use(std::string_view variable) const;
  // Polls for work while `running` says so, and passes on each item of the answer's list.
  struct Poll {
    Sent sent;
    std::string list;
    std::function<bool()> running;
    std::function<void(const json::Value&)> take;
  };
  void poll(Poll poll);

 private:
  const Script& script_;
  const PlayOptions& options_;
  std::vector<expr::Expression> invariants_;
  std::optional<std::string> refused_;
  Time active_ = 0;
  size_t reads_ = 0;
  World world_;
  Session session_{world_};
};

// What the server says about a refusal.
std::string reason_of(const wire::Response& response);
// What the script says about the name; without a word about it: it is answered soon.
const Behaviour& behaviour_of(const std::map<std::string, Behaviour>& known,
                              const std::string& name);

Result<std::vector<LifeEnd>> play_processes(const Script& script, const PlayOptions& options);
Result<std::vector<LifeEnd>> play_entities(const Script& script, const PlayOptions& options);
Result<std::vector<LifeEnd>> play_worlds(const Script& script, const PlayOptions& options);
// Add the parts of the script's definitions, of its entity workflows, or of its world.
void add_definition_parts(const Script& script, AllParts& parts);
void add_workflow_parts(const Script& script, AllParts& parts);
void add_world_parts(const Script& script, AllParts& parts);

}  // namespace pawl::sim
