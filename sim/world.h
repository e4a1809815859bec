#pragma once
// A simulated world: the server that ships (shard, clock, workers, members, four faces, router and
// front) on a false schedule, disk and network. One thread and one seed: the same seed gives the
// same bytes. Clients call the server as over HTTP; the world loses, delays and doubles their
// messages, and kills the server at any moment, also while it waits for the disk.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assembly/programs.h"
#include "base/hash.h"
#include "base/memory_budget.h"
#include "json/value.h"
#include "server/ops/config.h"
#include "sim/coverage.h"
#include "sim/false_disk.h"
#include "sim/faults.h"
#include "sim/mutation.h"
#include "sim/reach.h"
#include "sim/schedule.h"
#include "wire/message.h"

namespace pawl::entities {
class Members;
}

namespace pawl::sim {

struct WorldOptions {
  uint64_t seed = 1;
  Mutation mutation = Mutation::none;
  FaultSet faults = FaultSet::all();
  bool tell = false;  // keep the story in words
  // Faults of machine, disk and clock come by themselves. Without it only kill() ends a process.
  bool trouble = true;
  // Clients are busy for some minutes, then idle for up to this time, again and again. 0: they are
  // always busy.
  Time longest_gap = 0;
  std::string wasm_cache{};  // folder of compiled modules, which many worlds may share
  // The key (PEM) that signs the tokens of callers. Empty: the server asks for none.
  std::string token_key{};
  std::map<std::string, std::string> settings{};  // of the server, by flag
};

// Something of a tenant that its caller has read.
struct Sighting {
  std::string tenant, path;
};

// A request of a client. An answer that never came is nothing.
struct Sent {
  std::string method, path, body{};
  wire::Headers headers{};
  Time patience = 40 * kSecond;  // the client hangs up after this time
  // Gets the pieces of a streamed answer as they come. Without it they are collected as the body of
  // the response.
  std::function<void(std::string)> piece{};
};
using Answered = std::function<void(std::optional<wire::Response>)>;

class World {
 public:
  explicit World(WorldOptions options);
  ~World();

  Schedule& schedule() { return schedule_; }
  const FaultSet& faults() const { return options_.faults; }
  // True with probability 1/n when the fault is on and the world is not calm. Counts it.
  bool strikes(Fault fault, uint64_t one_in);
  // The same without counting, for faults that count where they take effect.
  bool threatens(Fault fault, uint64_t one_in) const;
  void count(Fault fault) { ++counts_[fault]; }

  // Sends a request. `answered` is called once, later.
  void call(Sent sent, Answered answered);

  // A random pause between two actions of a client: mostly seconds, sometimes hours.
  Time pause();
  // How long a client waits that wants to do something after `delay`: longer when that falls into a
  // gap.
  Time until_busy(Time delay);
  bool busy() { return until_busy(0) == 0; }
  // Runs the task after the delay, and not in a gap. When the world becomes calm, it runs soon.
  void later(Time delay, Schedule::Task task);
  // Time with faults that is left; 0 once the world is calm.
  Time left() const { return calm_ ? 0 : ends_ - schedule_.elapsed(); }
  // Time in which clients were busy.
  Time busy_time() const;

  // Runs the world for this long, with its faults.
  void live(Time time);
  // Ends all faults, starts the server if it is down, and runs for this long.
  void calm_down(Time time);
  bool calm() const { return calm_; }
  // Which start of the server this is. A lease of an earlier one counts no more.
  uint64_t life() const { return life_; }
  // The compute members of the entities face; null while the server is down. The simulator drives
  // them below gRPC.
  entities::Members* members();
  // How often the clock was set.
  uint64_t clock_moves() const {
    return counts_.of[static_cast<size_t>(Fault::clock_forward)] +
           counts_.of[static_cast<size_t>(Fault::clock_back)];
  }
  // The server's time: the clock that stamps inputs.
  Time wall() const { return schedule_.wall_now(); }
  const std::string& token_key() const { return options_.token_key; }
  // What callers have read lately, so that others can ask for it.
  void saw(Sighting sighting);
  const std::vector<Sighting>& sightings() const { return sightings_; }

  // The process dies now and starts again. From inside a task, which must then return.
  void kill();

  // Promises. The first broken one ends the life.
  void expect(bool held, const std::string& what);
  const std::vector<std::string>& broken() const { return broken_; }
  // Promises that are checked on the whole state: verify, and rows against a rebuild. The server is
  // stopped as it should be, and does not start again.
  void check_journal();

  // Something happened: it goes into the hash of the life and, when told, into the story.
  void note(std::string text);
  const std::vector<std::string>& story() const { return story_; }
  Digest digest() const;
  FaultCounts& counts() { return counts_; }
  uint64_t frames() const { return frames_; }
  uint64_t answers() const { return answers_; }
  const Coverage& coverage() const { return coverage_; }
  ReachCounts& reached() { return reached_; }

 private:
  struct Server;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  void start();
  void read_with_flipped_bit();
  Result<void> try_start();
  Result<std::unique_ptr<Journal>> open_journal();
  void stop_cleanly();
  void die(FalseDisk::Crash how);
  void bury();  // frees the memory of the dead process and drops its connections
  void hit_open_calls(Fault fault);
  bool strikes_call(Fault fault, uint64_t one_in, const Sent& sent);
  void trouble();
  Time until_trouble();
  void wake(uint64_t sleeper);
  void disturb_disk();
  void move_clock();
  Result<void> open_shard(Server& server);
  void open_front(Server& server);
  // A timer may become fatal: each turn that settles it kills the process.
  void before_turn(const Input& input);
  void release_parked();
  // Memory and queues are within their limits.
  void check_limits();
  void deliver(const CallPtr& call);
  void settle(const CallPtr& call, std::optional<wire::Response> response, Time delay);
  void read_stream(const CallPtr& call, wire::Response response);
  void compare_with_rebuild(Server& server);
  struct Window {
    Time begins, ends;
  };
  // The first window that ends after this time.
  const Window& window_at(Time time);

  // One for each start of the server. First: requests of dead processes, which the schedule may
  // still hold, have accounts there.
  std::deque<MemoryBudget> memories_;
  const WorldOptions options_;
  mutable Schedule schedule_;  // mutable: the dice
  FaultCounts counts_;
  FalseDisk disk_;
  MemoryRows rows_;
  server::Config config_;
  std::unique_ptr<assembly::Programs> programs_;  // of this start of the server
  std::vector<std::unique_ptr<MutantProgram>> wrapped_programs_;
  std::unique_ptr<Server> server_;
  bool dead_ = false;  // the process died; bury() comes next
  bool calm_ = false;
  uint64_t life_ = 0;
  uint64_t next_call_ = 0;
  std::map<uint64_t, CallPtr> open_calls_;
  std::vector<std::string> broken_;
  std::vector<std::string> story_;
  Coverage coverage_;
  ReachCounts reached_;
  Digest hash_{};
  uint64_t frames_ = 0, answers_ = 0;
  std::vector<Window> windows_;  // in which clients are busy; more are added when they are needed
  Time ends_ = 0;                // the end of the time with faults
  std::map<uint64_t, Schedule::Task> sleepers_;  // tasks of later() that wait
  uint64_t next_sleeper_ = 0;
  uint64_t reads_until_error_ = 0;  // 0: no read of the start fails
  std::string fatal_;               // the effect that kills the process; empty: none
  uint64_t killed_by_it_ = 0;
  Time fatal_since_ = 0;
  uint64_t newest_delivered_ = 0;  // the newest request that has arrived
  std::vector<Sighting> sightings_;
  std::string last_authorization_;  // of the last request, for a mutation
};

}  // namespace pawl::sim
