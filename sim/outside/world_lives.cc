// The player of worlds. Each life is a world of its own on the simulated server: the outside sends
// it events and carries out its effects.

#include <fmt/format.h>

#include <map>

#include "base/hash.h"
#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"
#include "json/text.h"
#include "sim/outside/stage.h"
#include "sim/outside/world_parts.h"

namespace pawl::sim {
namespace {

constexpr int64_t kLeaseSeconds = 3600;  // the longest that there is: executors cannot extend it
constexpr int64_t kPollMs = 30'000;
// A late answer comes this long after the end of the lease. In a quiet world executors poll seldom
// (kQuietShare), and one of them takes the effect before.
constexpr Time kLate = kLeaseSeconds * kSecond * 2 / kQuietShare;

// A cell as it was last seen.
struct SeenCell {
  std::string workflow, key, status, failure;
  json::Value state;  // null: the cell is gone
  uint64_t last_event = 0;
};
using Cells = std::map<std::string, SeenCell>;  // by instance id

// An intent of a life that was given to an executor.
struct TakenIntent {
  int number = 0;            // among those of its effect
  int attempts = 0;          // how often it was taken
  uint64_t working_for = 0;  // the life of the server that leased it to the executor that works
};

struct WorldLife : Life {
  WorldLife(uint64_t seed, uint64_t number)
      : Life(seed, number), id(fmt::format("life-{}", number)) {}
  std::string id;
  size_t to_come = 0;  // events and receipts that somebody will send
  Time changed = 0;
  bool over = false;
  uint64_t height = 0;  // of the newest look
  Cells cells;
  std::vector<std::string> open;               // what it waits for
  std::map<std::string, TakenIntent> intents;  // by hash
  std::map<std::string, int> count;            // intents so far, by effect
};

// A look at all cells of a life. It counts only if all of them were read at one height.
struct Look {
  uint64_t height = 0;
  size_t unread = 0;
  bool torn = false;
  bool quiet = false;      // no delivery is queued
  bool after_all = false;  // nothing was to come when it began
  Cells cells;
  std::set<std::string> changed;  // ids
  std::vector<std::string> open;
};
using LookPtr = std::shared_ptr<Look>;

uint64_t number_of(const json::Value& v, std::string_view name) {
  const json::Value* member = v.find(name);
  return member && member->is_number() ? member->as_uint64().value_or(0) : 0;
}

const json::Array& list_of(const json::Value& v, std::string_view name) {
  static const json::Array none;
  const json::Value* member = v.find(name);
  return member && member->is_array() ? member->array() : none;
}

// The key of a cell as people write it.
std::string key_text(BytesView key) {
  auto decoded = cbor::decode(key);
  if (!decoded) return hex(key);
  const json::Value plain = worlds::plain_json(*decoded);
  return plain.is_string() ? plain.string() : json::print(plain);
}

class WorldPlayer {
 public:
  WorldPlayer(const Script& script, const PlayOptions& options)
      : script_(script),
        parts_(*script.world),
        effects_(parts_.asked_effects()),
        stage_(script, options),
        needs_all_cells_(stage_.invariants_use("cells")) {
    for (uint64_t number : options.lives)
      lives_.push_back(std::make_unique<WorldLife>(options.seed, number));
    for (auto& life : lives_)
      known_[life->id] = life.get();
  }

  Result<std::vector<LifeEnd>> play() {
    set_up();
    TRY_OK(stage_.run([this] { return running(); }));
    for (auto& life : lives_)
      if (!life->over) read_journal(*life, 0);
    stage_.finish_reading();
    std::vector<LifeEnd> out;
    for (auto& life : lives_) {
      judge_end(*life);
      out.push_back(std::move(life->end));
    }
    return out;
  }

 private:
  bool running() const {
    for (const auto& life : lives_)
      if (!life->over) return true;
    return false;
  }

  // -- The worlds.

  // One world brings the definitions and the modules into the store; those of the lives name its
  // manifest.
  void set_up() {
    json::Object modules;
    for (const auto& [name, wasm] : script_.world->modules)
      modules.set(name, base64(wasm));
    json::Value body = parts_.document();
    body.object().set("world_id", "set-up");
    body.object().set("modules", std::move(modules));
    call_until_answered(stage_.world(), {"POST", "/v1/worlds", json::print(body)},
                        [this](const wire::Response& r) {
                          if (r.status >= 300 && r.status != 409)
                            return stage_.refuse("the server refuses the world: " + reason_of(r));
                          begin_all();
                        });
  }

  void begin_all() {
    for (auto& life : lives_)
      stage_.after(stage_.delay_of(*life), [this, one = life.get()] { begin(*one); });
    if (effects_.empty()) return;
    json::Array effects;
    for (const std::string& effect : effects_)
      effects.emplace_back(effect);
    const json::Value body = json::object({{"worker", "simulated"},
                                           {"effects", std::move(effects)},
                                           {"limit", 20},
                                           {"lease_ms", kLeaseSeconds * 1000},
                                           {"wait_ms", kPollMs}});
    stage_.poll({{"POST", "/v1/effects/poll", json::print(body)},
                 "work",
                 [this] { return running(); },
                 [this](const json::Value& work) { take(work); }});
  }

  void begin(WorldLife& life) {
    stage_.begin(life);
    life.changed = stage_.elapsed();
    json::Value body =
        json::object({{"world_id", life.id}, {"manifest_hash", parts_.manifest().hash}});
    if (!script_.world->limits.is_null()) body.object().set("limits", script_.world->limits);
    // 409: an earlier copy of the request has made it.
    call_until_answered(stage_.world(), {"POST", "/v1/worlds", json::print(body)},
                        [this, &life](const wire::Response& r) {
                          if (r.status >= 300 && r.status != 409)
                            return stage_.refuse("the server refuses the world: " + reason_of(r));
                          expect_events(life);
                          look(life);
                          stage_.keep_looking(life.changed, [this, &life]() -> std::optional<Time> {
                            if (life.over) return std::nullopt;
                            look(life);
                            return life.changed;
                          });
                        });
  }

  // -- Events.

  void expect_events(WorldLife& life) {
    for (size_t i = 0; i < script_.events.size(); ++i) {
      const Behaviour& behaviour = script_.events[i].behaviour;
      const std::string name = fmt::format("event {}", i);
      if (life.dice.happens(name + " never", behaviour.never)) continue;
      const Time takes = life.dice.span(name + " after", behaviour.takes);
      come(life, takes, [this, &life, i] { send_event(life, i, 0); });
      if (life.dice.happens(name + " twice", behaviour.twice))
        come(life, takes + life.dice.span(name + " again", {kSecond, 600 * kSecond}),
             [this, &life, i] { send_event(life, i, 1); });
    }
  }

  // Somebody does something later. The life is not over before.
  void come(WorldLife& life, Time delay, Schedule::Task act) {
    ++life.to_come;
    stage_.after(delay, std::move(act));
  }

  json::Value event_value(const WorldLife& life, size_t event) const {
    const WorldEvent& of = script_.events[event];
    const std::string name = fmt::format("event {} value", event);
    if (!of.behaviour.results.empty()) return life.dice.pick(name, of.behaviour.results);
    return sample(parts_.event_schema(of.schema), life.dice, name);
  }

  void send_event(WorldLife& life, size_t event, int copy) {
    const std::string& schema = script_.events[event].schema;
    const json::Value value = event_value(life, event);
    stage_.tell(life, fmt::format("the event {} comes{}: {}", schema, copy ? " again" : "",
                                  json::print(value)));
    json::Value body = json::object({{"schema", schema},
                                     {"value", value},
                                     {"submission_id", fmt::format("{}-{}", event, copy)}});
    stage_.send(life, {"POST", path_of(life, "events"), json::print(body)},
                [this, &life, schema, value](const wire::Response& r) {
                  --life.to_come;
                  if (r.status >= 300)
                    return stage_.refuse(fmt::format("the server refuses event {} with {}: {}",
                                                     schema, json::print(value), reason_of(r)));
                  look(life);
                });
  }

  static std::string path_of(const WorldLife& life, std::string_view what) {
    return fmt::format("/v1/worlds/{}/{}", life.id, what);
  }

  // -- Effects.

  void take(const json::Value& work) {
    auto found = known_.find(std::string(work.string_or("world_id")));
    if (found == known_.end()) return;
    WorldLife& life = *found->second;
    const std::string effect(work.string_or("effect"));
    TakenIntent& intent = life.intents[std::string(work.string_or("intent_hash"))];
    // The lease of a slow executor ended. It goes on.
    if (intent.working_for == stage_.world().life()) return;
    if (!intent.number) intent.number = ++life.count[effect];
    const int attempt = ++intent.attempts;
    const std::string name = fmt::format("effect {}/{}/{}", effect, intent.number, attempt);
    const Behaviour& behaviour = behaviour_of(script_.effects, effect);
    const json::Value* params = work.find("params");
    stage_.tell(life, fmt::format("an executor takes {}{} with {}", effect,
                                  attempt > 1 ? fmt::format(", attempt {}", attempt) : "",
                                  params ? json::print(plain_variants(*params)) : "no params"));
    look(life);
    if (life.dice.happens(name + " dies", behaviour.dies))
      return stage_.tell(life, fmt::format("the executor of {} is never heard of again", effect));
    Time takes = life.dice.span(name + " takes", behaviour.takes);
    if (life.dice.happens(name + " late", behaviour.late))
      takes += kLeaseSeconds * kSecond + kLate;
    else
      intent.working_for = stage_.world().life();
    auto answer = [this, &life, &behaviour, work, name] { settle(life, behaviour, work, name); };
    come(life, takes, answer);
    if (life.dice.happens(name + " twice", behaviour.twice))
      come(life, takes + life.dice.span(name + " again", {kSecond, 600 * kSecond}), answer);
  }

  void settle(WorldLife& life, const Behaviour& behaviour, const json::Value& work,
              const std::string& name) {
    const std::string effect(work.string_or("effect"));
    if (const json::Value* error = work.find("error")) {
      const std::string why(error->string_or("message"));
      life.end.problems.insert(
          {"refused-result", fmt::format("the params of {} cannot be made: {}", effect, why)});
      return send_receipt(life, work, "error", json::object({{"message", why}}));
    }
    if (life.dice.happens(name + " fails", behaviour.fails))
      return send_receipt(life, work, "error", json::object({{"message", behaviour.message}}));
    if (!behaviour.results.empty())
      return send_receipt(life, work, "ok", life.dice.pick(name + " result", behaviour.results));
    send_receipt(life, work, "ok",
                 sample(parts_.receipt_schema(effect), life.dice, name + " result"));
  }

  void send_receipt(WorldLife& life, const json::Value& work, const std::string& status,
                    const json::Value& payload) {
    const std::string effect(work.string_or("effect"));
    stage_.tell(
        life, fmt::format("the executor answers {}: {} {}", effect, status, json::print(payload)));
    json::Value body = json::object(
        {{"intent_hash", work.string_or("intent_hash")}, {"status", status}, {"payload", payload}});
    stage_.send(life, {"POST", path_of(life, "receipts"), json::print(body)},
                [this, &life, work, status, effect](const wire::Response& r) {
                  if (r.status >= 400 && status == "ok") return refuse_result(life, work, r);
                  if (body_of(r).string_or("status") == "ignored")
                    stage_.tell(life, fmt::format("the answer to {} is ignored: it was settled "
                                                  "before",
                                                  effect));
                  --life.to_come;
                  look(life);
                });
  }

  // The payload does not fit: the executor has a bug, and reports an error instead.
  void refuse_result(WorldLife& life, const json::Value& work, const wire::Response& r) {
    const std::string effect(work.string_or("effect"));
    life.end.problems.insert(
        {"refused-result", fmt::format("a result of {} is refused: {}", effect, reason_of(r))});
    send_receipt(life, work, "error", json::object({{"message", reason_of(r)}}));
  }

  // -- Looking at cells.

  void look(WorldLife& life) {
    if (life.over) return;
    auto look = std::make_shared<Look>();
    look->after_all = life.to_come == 0;
    stage_.read(path_of(life, "runtime"),
                [this, &life, look](const json::Value& runtime) { see(life, look, runtime); });
  }

  void see(WorldLife& life, const LookPtr& look, const json::Value& runtime) {
    look->height = number_of(runtime, "height");
    if (life.over || look->height < life.height) return;
    const json::Value* queued = runtime.find("has_pending_inbox");
    look->quiet = queued && queued->is_bool() && !queued->boolean();
    look->cells = life.cells;
    for (const json::Value& one : list_of(runtime, "pending_workflow_receipts"))
      look->open.push_back(fmt::format("effect {} of {}", one.string_or("effect"),
                                       one.string_or("origin_module_id")));
    for (const json::Value& one : list_of(runtime, "workflow_instances")) {
      const std::string id(one.string_or("instance_id"));
      const uint64_t last = number_of(one, "last_processed_event_seq");
      SeenCell& cell = look->cells[id];
      if (!cell.workflow.empty() && cell.last_event == last &&
          cell.status == one.string_or("status"))
        continue;
      cell.last_event = last;
      look->changed.insert(id);
    }
    look->unread = look->changed.size();
    for (const std::string& id : look->changed)
      read_cell(life, look, id);
    if (look->changed.empty()) seen(life, look);
  }

  // An instance id is the name of the workflow and the key in hexadecimal digits.
  void read_cell(WorldLife& life, const LookPtr& look, const std::string& id) {
    const size_t colons = id.rfind("::");
    const std::string workflow = id.substr(0, colons);
    const Bytes key = unhex(id.substr(colons + 2)).value_or(Bytes());
    stage_.read(path_of(life, fmt::format("state/{}?key_b64={}", workflow,
                                          wire::percent_encode(base64(key)))),
                [this, &life, look, id, workflow, key](const json::Value& read) {
                  SeenCell& cell = look->cells[id];
                  cell.workflow = workflow;
                  cell.key = key_text(key);
                  cell.status = read.string_or("status");
                  cell.failure = read.string_or("failure");
                  const json::Value* state = read.find("state");
                  cell.state = state ? plain_variants(*state) : json::Value();
                  look->torn = look->torn || number_of(read, "journal_head") != look->height;
                  if (--look->unread == 0) seen(life, look);
                });
  }

  void seen(WorldLife& life, const LookPtr& look) {
    if (life.over || look->height < life.height) return;
    // Something happened between the reads: a second look finds it.
    if (look->torn) return this->look(life);
    life.height = look->height;
    life.cells = std::move(look->cells);
    life.open = std::move(look->open);
    for (const std::string& id : look->changed)
      tell_cell(life, life.cells[id]);
    for (const std::string& id : look->changed)
      check_invariants(life, life.cells[id]);
    if (!look->changed.empty()) {
      life.changed = stage_.elapsed();
      stage_.touch();
    }
    // An event that came after the look began is not in what it saw.
    const bool nothing_comes = look->after_all && life.to_come == 0;
    if (nothing_comes && life.open.empty() && look->quiet) finish(life);
  }

  void tell_cell(WorldLife& life, const SeenCell& cell) {
    stage_.tell(life, fmt::format("{} {} is {}: {}{}", cell.workflow, cell.key, cell.status,
                                  cell.state.is_null() ? "no state" : json::print(cell.state),
                                  cell.failure.empty() ? "" : "; it failed: " + cell.failure));
    life.end.reached.insert(WorldParts::workflow(cell.workflow));
    if (cell.state.is_null()) return;
    for (const std::string& label : parts_.labels(cell.workflow, cell.state))
      life.end.reached.insert(WorldParts::state(cell.workflow, label));
  }

  static json::Value cell_value(const SeenCell& cell) {
    return json::object({{"workflow", cell.workflow},
                         {"key", cell.key},
                         {"cellStatus", cell.status},
                         {"state", cell.state}});
  }

  // An invariant sees the members of one state, and with `cells` all cells of the world.
  void check_invariants(WorldLife& life, const SeenCell& cell) {
    if (script_.invariants.empty()) return;
    json::Object variables = cell_value(cell).object();
    if (needs_all_cells_) {
      json::Array all;
      for (const auto& [id, one] : life.cells)
        if (!one.state.is_null()) all.push_back(cell_value(one));
      variables.set("cells", std::move(all));
    }
    if (cell.state.is_object())
      for (const auto& [name, value] : cell.state.object())
        variables.set(name, value);
    stage_.check_invariants(life, variables);
  }

  // -- The end of a life.

  void finish(WorldLife& life) {
    life.over = true;
    life.end.took = stage_.elapsed() - life.began;
    read_journal(life, 0);
  }

  void read_journal(WorldLife& life, uint64_t from) {
    const std::string query = fmt::format(
        "journal?from={}&limit=1000&kinds=domain_event,effect_intent,step_failed,custom", from);
    stage_.read(path_of(life, query), [this, &life](const json::Value& page) {
      for (const json::Value& entry : list_of(page, "entries"))
        if (const json::Value* record = entry.find("record"))
          take_record(life, entry.string_or("kind"), *record);
      const uint64_t next = number_of(page, "next_from");
      if (next < number_of(page, "head") && next > number_of(page, "from"))
        read_journal(life, next);
    });
  }

  void take_record(WorldLife& life, std::string_view kind, const json::Value& record) {
    std::set<Part>& reached = life.end.reached;
    if (kind == "domain_event") {
      auto routes = parts_.manifest().routes.find(record.string_or("schema"));
      if (routes == parts_.manifest().routes.end()) return;
      for (const worlds::Binding& binding : routes->second)
        reached.insert(WorldParts::route(binding.subscribed, binding.workflow->def.name));
    } else if (kind == "effect_intent") {
      const json::Value* origin = record.find("origin");
      if (origin)
        reached.insert(WorldParts::effect(std::string(origin->string_or("name")),
                                          std::string(record.string_or("effect"))));
    } else if (kind == "custom") {
      if (record.string_or("tag") == "workflow.receipt_fault") take_fault(life, record);
    } else {
      life.end.reason = record.string_or("error_message");
      life.end.problems.insert(
          {"step-failed",
           fmt::format("a step of {} fails: {}", record.string_or("workflow"), life.end.reason)});
    }
  }

  // The server took a receipt that does not fit its effect, and the workflow heard of a failure:
  // the executor has a bug.
  void take_fault(WorldLife& life, const json::Value& record) {
    Bytes data;
    for (const json::Value& octet : list_of(record, "data"))
      data += static_cast<char>(octet.as_uint64().value_or(0));
    const auto fault = cbor::decode(data);
    if (!fault) return;
    const std::string what = fmt::format("a result of {} is refused: {}", fault->text_or("effect"),
                                         fault->text_or("error_message"));
    stage_.tell(life, what);
    life.end.problems.insert({"refused-result", what});
  }

  void judge_end(WorldLife& life) {
    LifeEnd& end = life.end;
    for (const auto& [id, cell] : life.cells) {
      if (cell.state.is_null() && cell.status != "failed") continue;
      const std::vector<std::string> labels = parts_.labels(cell.workflow, cell.state);
      ++end.cells[fmt::format("{}: {}", cell.workflow,
                              labels.empty()
                                  ? cell.status
                                  : fmt::format("{}, {}", cell.status, fmt::join(labels, ", ")))];
    }
    end.status = end.reason.empty() ? "ENDED" : "FAILED";
    if (life.over) return;
    end.status = "WAITING";
    end.took = stage_.elapsed() - life.began;
    if (script_.may_wait) return;
    for (const std::string& what : life.open)
      end.problems.insert({"waits-for-ever", what + " waits for ever"});
    stage_.tell(life, fmt::format("nothing more comes: the world waits for {}",
                                  fmt::join(life.open, ", ")));
  }

  const Script& script_;
  const WorldParts parts_;
  const std::vector<std::string> effects_;
  std::vector<std::unique_ptr<WorldLife>> lives_;
  std::map<std::string, WorldLife*> known_;  // by the id of the world
  Stage stage_;  // last but a flag: its end drops the requests that are open
  const bool needs_all_cells_;
};

}  // namespace

Result<std::vector<LifeEnd>> play_worlds(const Script& script, const PlayOptions& options) {
  return WorldPlayer(script, options).play();
}

}  // namespace pawl::sim
