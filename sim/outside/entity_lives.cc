// The player of entity workflows.

#include <fmt/format.h>

#include <map>

#include "faces/entities/members/members.h"
#include "json/text.h"
#include "sim/outside/stage.h"

namespace pawl::sim {
namespace {

constexpr const char* kTenant = "mock-tenant";  // of callers without a token

struct TransitionFacts {
  std::string name, next;
  bool manual = false;
};

struct StateFacts {
  std::vector<TransitionFacts> transitions;
};

struct WorkflowFacts {
  std::map<std::string, std::map<std::string, StateFacts>> workflows;  // by name, then by state
  std::set<std::string> tags;                                          // of members
};

// Tags stand in the configurations of processors and criteria, at any depth.
void find_tags(const json::Value& v, std::set<std::string>& tags) {
  if (v.is_array())
    for (const json::Value& one : v.array())
      find_tags(one, tags);
  if (!v.is_object()) return;
  for (const auto& [name, value] : v.object()) {
    if (name != "calculationNodesTags" || !value.is_string()) {
      find_tags(value, tags);
      continue;
    }
    std::string_view rest = value.string();
    while (!rest.empty()) {
      std::string_view tag = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), tag.size() + 1));
      while (tag.starts_with(' '))
        tag.remove_prefix(1);
      while (tag.ends_with(' '))
        tag.remove_suffix(1);
      if (!tag.empty()) tags.emplace(tag);
    }
  }
}

StateFacts state_facts(const json::Value& state) {
  StateFacts out;
  const json::Value* transitions = state.find("transitions");
  if (!transitions || !transitions->is_array()) return out;
  for (const json::Value& one : transitions->array()) {
    const json::Value* manual = one.find("manual");
    out.transitions.push_back({std::string(one.string_or("name")),
                               std::string(one.string_or("next")),
                               manual && manual->is_bool() && manual->boolean()});
  }
  return out;
}

WorkflowFacts facts_of(const json::Value& import) {
  WorkflowFacts out;
  find_tags(import, out.tags);
  const json::Value* workflows = import.find("workflows");
  if (!workflows || !workflows->is_array()) return out;
  for (const json::Value& workflow : workflows->array()) {
    auto& states = out.workflows[std::string(workflow.string_or("name"))];
    if (const json::Value* of = workflow.find("states"); of && of->is_object())
      for (const auto& [name, state] : of->object())
        states[name] = state_facts(state);
  }
  return out;
}

Part state_part(const std::string& workflow, const std::string& state) {
  return {"step", workflow + "/" + state};
}

Part transition_part(const std::string& workflow, const std::string& from, const std::string& to) {
  return {"branch", fmt::format("{}/{} -> {}", workflow, from, to)};
}

struct EntityLife : Life {
  using Life::Life;
  std::string id, state;
  Time changed = 0;
  bool over = false;
  std::set<std::string> expected;    // manual transitions that somebody will fire
  std::map<std::string, int> count;  // calls and transitions so far, by name
};

class EntityPlayer;

// The compute members of the outside, as one stream with all tags.
class Member final : public entities::MemberStream, public std::enable_shared_from_this<Member> {
 public:
  explicit Member(EntityPlayer& player) : player_(player) {}
  void send(entities::MemberEvent event) override;
  void end_unresponsive() override {}

 private:
  EntityPlayer& player_;
};

class EntityPlayer {
 public:
  EntityPlayer(const Script& script, const PlayOptions& options)
      : script_(script), facts_(facts_of(script.workflow)), stage_(script, options) {
    for (uint64_t number : options.lives)
      lives_.push_back(std::make_unique<EntityLife>(options.seed, number));
  }

  Result<std::vector<LifeEnd>> play() {
    member_ = std::make_shared<Member>(*this);
    keep_joined();
    set_up();
    TRY_OK(stage_.run([this] { return running(); }));
    std::vector<LifeEnd> out;
    for (auto& life : lives_) {
      judge_end(*life);
      out.push_back(std::move(life->end));
    }
    return out;
  }

  // A call to a processor, a criterion or a schedule function.
  void called(const entities::MemberEvent& event) {
    const json::Value request = json::parse(event.payload).value_or(json::Value());
    if (event.type == "CalculationMemberKeepAliveEvent")
      return to_members([id = member_id_](entities::Members& members) { members.alive(id); });
    const bool criterion = event.type == "EntityCriteriaCalculationRequest";
    if (!criterion && event.type != "EntityProcessorCalculationRequest") return;
    const std::string name(request.string_or(criterion ? "criteriaName" : "processorName"));
    const Behaviour& behaviour =
        behaviour_of(criterion ? script_.criteria : script_.processors, name);
    auto life = by_id_.find(std::string(request.string_or("entityId")));
    // The entity of a call within its own creation is not known yet: it is the one that waits.
    EntityLife* of = life != by_id_.end() ? life->second : creating_;
    if (!of) return;
    answer(*of, behaviour, name, criterion, request);
  }

 private:
  bool running() const {
    for (const auto& life : lives_)
      if (!life->over) return true;
    return false;
  }

  std::string model_path() const {
    return fmt::format("{}/{}", script_.model_name, script_.model_version);
  }

  void set_up() {
    const std::string sample =
        json::print(script_.model_sample.is_null() ? json::Value(script_.starts[0].value)
                                                   : script_.model_sample);
    step({{"POST", "/api/model/import/JSON/SAMPLE_DATA/" + model_path(), sample},
          {"PUT", "/api/model/" + model_path() + "/lock"},
          {"POST", "/api/model/" + model_path() + "/workflow/import",
           json::print(script_.workflow)}},
         0);
  }

  // One request after the other.
  void step(std::vector<Sent> requests, size_t at) {
    if (at == requests.size()) {
      for (auto& life : lives_)
        stage_.after(stage_.delay_of(*life), [this, one = life.get()] { create(*one); });
      return;
    }
    requests[at].headers = {{"Content-Type", "application/json"}};
    call_until_answered(
        stage_.world(), requests[at], [this, requests, at](const wire::Response& r) {
          if (r.status >= 300)
            return stage_.refuse(
                fmt::format("the server refuses {}: {}", requests[at].path, reason_of(r)));
          step(requests, at + 1);
        });
  }

  // -- Members.

  void to_members(const std::function<void(entities::Members&)>& act) {
    stage_.after(kMillisecond, [this, act, life = member_life_] {
      entities::Members* members = stage_.world().members();
      if (members && life == stage_.world().life()) act(*members);
    });
  }

  void keep_joined() {
    entities::Members* members = stage_.world().members();
    if (members && member_life_ != stage_.world().life()) {
      member_life_ = stage_.world().life();
      member_id_ = members->join(member_, kTenant,
                                 std::vector<std::string>(facts_.tags.begin(), facts_.tags.end()));
    }
    stage_.after(std::max<Time>(kSecond, stage_.quiet() / kQuietShare), [this] { keep_joined(); });
  }

  void answer(EntityLife& life, const Behaviour& behaviour, const std::string& name, bool criterion,
              const json::Value& request) {
    const int times = ++life.count["call " + name];
    const std::string choice = fmt::format("call {}/{}", name, times);
    const char* kind = criterion ? "criterion" : "processor";
    stage_.tell(life, fmt::format("a member is asked for {} {}", kind, name));
    if (life.dice.happens(choice + " dies", behaviour.dies))
      return stage_.tell(life, fmt::format("the member never answers {}", name));
    entities::CallResult result;
    if (life.dice.happens(choice + " fails", behaviour.fails)) {
      result.kind = entities::CallResult::failed;
      result.message = behaviour.message;
    } else if (criterion) {
      result.matches = life.dice.happens(choice + " matches", behaviour.matches);
    } else {
      result.data = merged(request, life.dice.pick(choice + " result", behaviour.results));
    }
    const Time takes = life.dice.span(choice + " takes", behaviour.takes);
    const auto call = criterion ? entities::Call::criterion : entities::Call::processor;
    auto send = [this, &life, result, call, name, kind, criterion,
                 id = std::string(request.string_or("requestId")), member = member_id_] {
      stage_.tell(life, fmt::format("the member answers {} {}: {}", kind, name,
                                    !result.ok()          ? result.message
                                    : criterion           ? (result.matches ? "yes" : "no")
                                    : result.data.empty() ? "unchanged"
                                                          : result.data));
      stage_.touch();
      to_members([=](entities::Members& members) { members.answered(member, id, call, result); });
    };
    stage_.after(takes, send);
    if (life.dice.happens(choice + " twice", behaviour.twice)) stage_.after(takes + kSecond, send);
  }

  // The entity's document with the members of the result; empty when nothing changes.
  static std::string merged(const json::Value& request, const json::Object& result) {
    const json::Value* payload = request.find("payload");
    const json::Value* data = payload ? payload->find("data") : nullptr;
    if (result.empty() || !data || !data->is_object()) return {};
    json::Object out = data->object();
    for (const auto& [name, value] : result)
      out.set(name, value);
    return json::print(json::Value(std::move(out)));
  }

  // -- Lives.

  // One creation at a time: calls within it name an entity that nobody knows yet.
  void create(EntityLife& life) {
    if (creating_) {
      stage_.after(kSecond, [this, &life] { create(life); });
      return;
    }
    creating_ = &life;
    stage_.begin(life);
    life.changed = stage_.elapsed();
    const json::Object& document = life.dice.pick("create", script_.starts);
    stage_.tell(life, fmt::format("an entity is created with {}", json::print(document)));
    const std::string key = fmt::format("life-{}", life.end.life);
    stage_.send(life,
                {"POST",
                 "/api/entity/JSON/" + model_path(),
                 json::print(document),
                 {{"Content-Type", "application/json"}, {"Idempotency-Key", key}},
                 3600 * kSecond},
                [this, &life](const wire::Response& r) {
                  creating_ = nullptr;
                  created(life, r);
                });
  }

  void created(EntityLife& life, const wire::Response& r) {
    const json::Value body = body_of(r);
    const json::Value* ids =
        body.is_array() && !body.array().empty() ? body.array()[0].find("entityIds") : nullptr;
    if (r.status == 200 && ids && ids->is_array() && !ids->array().empty()) {
      life.id = ids->array()[0].string();
      by_id_[life.id] = &life;
      look(life);
      stage_.keep_looking(life.changed, [this, &life]() -> std::optional<Time> {
        if (life.over) return std::nullopt;
        look(life);
        return life.changed;
      });
      return;
    }
    if (r.status >= 500 || r.body.find("WORKFLOW_FAILED") == std::string::npos)
      stage_.refuse(fmt::format("the server refuses an entity: {}", reason_of(r)));
    life.end.status = "NOT CREATED";
    life.end.reason = reason_of(r);
    stage_.tell(life, "the creation fails: " + life.end.reason);
    life.over = true;
  }

  void look(EntityLife& life) {
    stage_.read("/api/entity/" + life.id,
                [this, &life](const json::Value& entity) { see(life, entity); });
  }

  void see(EntityLife& life, const json::Value& entity) {
    if (life.over) return;
    const json::Value* meta = entity.find("meta");
    const json::Value* data = entity.find("data");
    if (!meta || !data || !data->is_object()) return;
    const std::string state(meta->string_or("state"));
    json::Object variables = data->object();
    variables.set("state", state);
    stage_.check_invariants(life, variables);
    if (state != life.state) {
      life.state = state;
      life.changed = stage_.elapsed();
      life.expected.clear();
      stage_.touch();
      stage_.tell(life, fmt::format("the entity is {}", state));
    }
    expect_people(life);
    if (transitions_of(state).empty()) finish(life);
  }

  std::vector<TransitionFacts> transitions_of(const std::string& state) const {
    for (const auto& [name, states] : facts_.workflows)
      if (auto found = states.find(state); found != states.end()) return found->second.transitions;
    return {};
  }

  // Somebody fires one of the manual transitions that the script names, whichever comes first.
  void expect_people(EntityLife& life) {
    for (const TransitionFacts& transition : transitions_of(life.state)) {
      auto found = script_.transitions.find(transition.name);
      if (!transition.manual || found == script_.transitions.end()) continue;
      if (!life.expected.insert(transition.name).second) continue;
      const Behaviour& behaviour = found->second;
      const int times = ++life.count["fire " + transition.name];
      const std::string choice = fmt::format("fire {}/{}", transition.name, times);
      if (life.dice.happens(choice + " never", behaviour.never)) continue;
      const Time takes = life.dice.span(choice + " takes", behaviour.takes);
      auto fire = [this, &life, name = transition.name] { fire_transition(life, name); };
      stage_.after(takes, fire);
      if (life.dice.happens(choice + " twice", behaviour.twice))
        stage_.after(takes + 5 * kSecond, fire);
    }
  }

  void fire_transition(EntityLife& life, const std::string& name) {
    if (life.over) return;
    stage_.tell(life, fmt::format("somebody fires {}", name));
    const std::string path = fmt::format(
        "/api/platform-api/entity/transition?entityId={}&transitionName={}", life.id, name);
    stage_.send(life, {"PUT", path, "", {}, 3600 * kSecond},
                [this, &life, name](const wire::Response& r) {
                  if (r.status >= 300)
                    stage_.tell(life, fmt::format("{} is refused: {}", name, reason_of(r)));
                  life.expected.erase(name);
                  look(life);
                });
  }

  void finish(EntityLife& life) {
    life.over = true;
    life.end.status = life.state;
    life.end.took = stage_.elapsed() - life.began;
    read_history(life);
  }

  // The audit trail names every transition: "name": FROM -> TO.
  void read_history(EntityLife& life) {
    const std::string path = "/api/audit/entity/" + life.id + "?eventType=StateMachine&limit=1000";
    stage_.read(path, [this, &life](const json::Value& body) {
      const json::Value* items = body.find("items");
      if (!items || !items->is_array()) return;
      for (const json::Value& item : items->array())
        if (item.string_or("eventType") == "TRANSITION_MAKE")
          take_transition(life, std::string(item.string_or("details")));
    });
  }

  void take_transition(EntityLife& life, const std::string& details) {
    const size_t colon = details.find("\": "), arrow = details.find(" -> ");
    if (colon == std::string::npos || arrow == std::string::npos || arrow < colon) return;
    const std::string from = details.substr(colon + 3, arrow - colon - 3);
    const std::string to = details.substr(arrow + 4);
    for (const auto& [workflow, states] : facts_.workflows) {
      if (!states.contains(from)) continue;
      life.end.reached.insert(state_part(workflow, from));
      life.end.reached.insert(state_part(workflow, to));
      life.end.reached.insert(transition_part(workflow, from, to));
    }
  }

  void judge_end(EntityLife& life) {
    for (const auto& [workflow, states] : facts_.workflows)
      if (states.contains(life.state)) life.end.reached.insert(state_part(workflow, life.state));
    if (life.over) return;
    life.end.status = "WAITING";
    life.end.took = stage_.elapsed() - life.began;
    if (script_.may_wait) return;
    life.end.problems.insert(
        {"waits-for-ever", fmt::format("an entity waits for ever in {}", life.state)});
    stage_.tell(life, fmt::format("nothing more comes: the entity waits in {}", life.state));
  }

  const Script& script_;
  const WorkflowFacts facts_;
  std::vector<std::unique_ptr<EntityLife>> lives_;
  std::map<std::string, EntityLife*> by_id_;
  EntityLife* creating_ = nullptr;
  std::shared_ptr<Member> member_;  // shared with the server, which holds the stream
  std::string member_id_;
  uint64_t member_life_ = 0;  // the life of the server that the member has joined
  Stage stage_;               // last: its end drops the requests that are open
};

void Member::send(entities::MemberEvent event) { player_.called(event); }

}  // namespace

Result<std::vector<LifeEnd>> play_entities(const Script& script, const PlayOptions& options) {
  return EntityPlayer(script, options).play();
}

void add_workflow_parts(const Script& script, AllParts& parts) {
  for (const auto& [workflow, states] : facts_of(script.workflow).workflows)
    for (const auto& [state, facts] : states) {
      parts[state_part(workflow, state)] = {};
      for (const TransitionFacts& transition : facts.transitions)
        parts[transition_part(workflow, state, transition.next)] =
            state_part(workflow, transition.next);
    }
}

}  // namespace pawl::sim
