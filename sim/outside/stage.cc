#include "sim/outside/stage.h"

#include <fmt/format.h>

#include "json/text.h"

namespace pawl::sim {

// In a life with a kill, each request brings it with this share until it came.
static constexpr double kKillShare = 0.3;
static constexpr size_t kMaxStory = 400;

Stage::Stage(const Script& script, const PlayOptions& options)
    : script_(script),
      options_(options),
      // Members answer keepalives, and none of them is lost, so they need few. After a kill a call
      // waits until the member has joined again.
      world_({.seed = options.seed,
              .faults = FaultSet{},
              .trouble = false,
              .settings = {{"keepalive-interval", "24h"},
                           {"keepalive-timeout", "72h"},
                           {"dispatch-wait", "60s"}}}) {
  for (const std::string& text : script.invariants)
    invariants_.emplace_back(text);
}

Result<void> Stage::run(const std::function<bool()>& running) {
  while (!refused_ && world_.broken().empty() && (running() || reading()) &&
         elapsed() < kSpread + script_.horizon)
    world_.live(std::max<Time>(60 * kSecond, quiet() / kQuietShare));
  if (refused_) return fail(Code::invalid, "REFUSED", *refused_);
  if (!world_.broken().empty())
    return fail(Code::internal, "BROKEN_PROMISE",
                "the simulated server broke a promise: " + world_.broken()[0]);
  return {};
}

void Stage::finish_reading() {
  while (reading() && world_.broken().empty())
    world_.live(kSecond);
}

void Stage::read(const std::string& path, std::function<void(const json::Value&)> found) {
  ++reads_;
  call_until_answered(session_, {"GET", path},
                      [this, found = std::move(found)](const wire::Response& r) {
                        --reads_;
                        if (r.status == 200) found(body_of(r));
                      });
}

void Stage::keep_looking(Time changed, std::function<std::optional<Time>()> look) {
  after(patience(changed), [this, look = std::move(look)]() mutable {
    if (const auto last = look()) keep_looking(*last, std::move(look));
  });
}

void Stage::refuse(std::string why) {
  if (!refused_) refused_ = std::move(why);
}

Time Stage::delay_of(const Life& life) const {
  const uint64_t within = options_.lives.size() > 1 ? static_cast<uint64_t>(kSpread) : 1;
  return static_cast<Time>(life.dice.draw("begins") % within);
}

void Stage::begin(Life& life) {
  life.began = elapsed();
  life.will_be_killed = options_.crashes && life.dice.happens("killed", script_.crashes);
}

void Stage::tell(Life& life, std::string text) {
  if (life.end.story.size() < kMaxStory)
    life.end.story.push_back({elapsed() - life.began, std::move(text)});
}

void Stage::send(Life& life, Sent sent, std::function<void(wire::Response)> answered) {
  touch();
  call_until_answered(session_, std::move(sent), std::move(answered));
  const std::string name = fmt::format("kill {}", ++life.requests);
  if (!life.will_be_killed || !life.dice.happens(name, kKillShare)) return;
  life.will_be_killed = false;
  const auto delay = static_cast<Time>(life.dice.draw("kill moment") % (4 * kMillisecond));
  after(delay, [this, &life] {
    tell(life, "the server is killed, and starts again");
    world_.kill();
  });
}

static std::vector<std::string> missing_in(const json::Object& variables,
                                           const expr::Expression& invariant) {
  std::vector<std::string> out;
  for (const std::string& name : invariant.variables())
    if (!variables.has(name)) out.push_back(name);
  return out;
}

// A variable that is not there counts as null or as false, whichever the expression can use.
static Result<bool> holds(const expr::Expression& invariant, json::Object variables,
                          const std::vector<std::string>& missing) {
  for (const std::string& name : missing)
    variables.set(name, json::Value());
  auto good = invariant.test(variables, 0);
  if (good || missing.empty()) return good;
  for (const std::string& name : missing)
    variables.set(name, false);
  auto second = invariant.test(variables, 0);
  return second ? second : good;
}

void Stage::check_invariants(Life& life, const json::Object& variables) {
  for (const expr::Expression& invariant : invariants_) {
    const std::vector<std::string> missing = missing_in(variables, invariant);
    auto good = holds(invariant, variables, missing);
    if (!good && !missing.empty()) {
      life.end.unchecked[invariant.text()] = good.error().message;
      continue;
    }
    ++life.end.checked[invariant.text()];
    if (!good) {
      const std::string what = fmt::format("{}: {}", invariant.text(), good.error().message);
      if (life.end.problems.insert({"invariant-fails", what}).second)
        tell(life, fmt::format("{} cannot be evaluated with {}", what, json::print(variables)));
      continue;
    }
    if (*good) continue;
    if (life.end.problems.insert({"invariant", invariant.text()}).second)
      tell(life, fmt::format("BROKEN: {} does not hold with {}", invariant.text(),
                             json::print(variables)));
  }
}

bool Stage::invariants_use(std::string_view variable) const {
  for (const expr::Expression& invariant : invariants_)
    for (const std::string& name : invariant.variables())
      if (name == variable) return true;
  return false;
}

void Stage::poll(Poll poll) {
  if (!poll.running()) return;
  Sent sent = poll.sent;
  world_.call(std::move(sent), [this, poll = std::move(poll)](
                                   const std::optional<wire::Response>& r) mutable {
    const json::Value answer = r ? body_of(*r) : json::Value();
    const json::Value* items = answer.find(poll.list);
    const bool any = items && items->is_array() && !items->array().empty();
    if (any)
      for (const json::Value& item : items->array())
        poll.take(item);
    if (any) touch();
    const Time pause = any || quiet() < 600 * kSecond ? 0 : quiet() / kQuietShare;
    after(pause, [this, poll = std::move(poll)]() mutable { this->poll(std::move(poll)); });
  });
}

std::string reason_of(const wire::Response& response) {
  const json::Value body = body_of(response);
  for (std::string_view member : {"reason", "detail", "message"})
    if (!body.string_or(member).empty()) return std::string(body.string_or(member));
  return fmt::format("{} {}", response.status, response.body);
}

const Behaviour& behaviour_of(const std::map<std::string, Behaviour>& known,
                              const std::string& name) {
  static const Behaviour at_once;
  auto found = known.find(name);
  return found == known.end() ? at_once : found->second;
}

AllParts parts_of(const Script& script) {
  AllParts out;
  add_definition_parts(script, out);
  add_workflow_parts(script, out);
  if (script.world) add_world_parts(script, out);
  return out;
}

Result<std::vector<LifeEnd>> play(const Script& script, const PlayOptions& options) {
  if (script.world) return play_worlds(script, options);
  return script.workflow.is_null() ? play_processes(script, options)
                                   : play_entities(script, options);
}

}  // namespace pawl::sim
