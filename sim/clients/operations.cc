// The client of what operators do with processes: it moves and migrates instances, pauses and
// resumes many at once, signals by name, and has jobs with a limit for each key. It knows which
// path every instance must take.

#include <fmt/format.h>

#include <map>
#include <set>

#include "json/text.h"
#include "sim/clients/client.h"

namespace pawl::sim {
namespace {

constexpr const char* kOperations = "/pawl/v1/processes/";
// Jobs of `limited` that may be open at once for each key.
constexpr size_t kConcurrent = 2;
// How long a signal by name is kept (P300D).
constexpr Time kKept = 300 * 24 * 3600 * kSecond;

// `w` waits for nobody: the operator moves the instance to `r2`, which no variable leads to.
constexpr const char* kRoute = R"({"id":"op-route","name":"route","steps":[
  {"id":"d","name":"d","type":"DECISION",
   "conditionalNextSteps":{"kind == 'neither'":"r2","kind != 'neither'":"w"}},
  {"id":"w","name":"w","type":"WAIT","nextStep":"r1"},
  {"id":"r1","name":"r1","type":"SERVICE_TASK","jobType":"op-work","retryCount":1000,"nextStep":"end"},
  {"id":"r2","name":"r2","type":"SERVICE_TASK","jobType":"op-work","retryCount":1000,"nextStep":"end"},
  {"id":"end","name":"end","type":"END"}]})";
// Version 1 goes on with `g2` and version 2 with `g3`.
constexpr const char* kGrow = R"({{"id":"op-grow","name":"grow","steps":[
  {{"id":"g1","name":"g1","type":"WAIT","nextStep":"{0}"}},
  {{"id":"{0}","name":"{0}","type":"SERVICE_TASK","jobType":"op-work","retryCount":1000,"nextStep":"end"}},
  {{"id":"end","name":"end","type":"END"}}]}})";
constexpr const char* kNamed = R"({"id":"op-named","name":"named","steps":[
  {"id":"s1","name":"s1","type":"SERVICE_TASK","jobType":"op-work","retryCount":1000,"nextStep":"n"},
  {"id":"n","name":"n","type":"WAIT","signal":"go","nextStep":"end"},
  {"id":"end","name":"end","type":"END"}]})";
constexpr const char* kLimited = R"({"id":"op-limited","name":"limited","steps":[
  {"id":"l1","name":"l1","type":"SERVICE_TASK","jobType":"op-limited","retryCount":1000,
   "limit":{"concurrent":2,"key":"kind"},"nextStep":"end"},
  {"id":"end","name":"end","type":"END"}]})";

// Steps that an instance which completes has entered, once each.
const std::map<std::string, std::set<std::string>> kPaths{{"op-route", {"d", "w", "r2", "end"}},
                                                          {"op-grow", {"g1", "g3", "end"}},
                                                          {"op-named", {"s1", "n", "end"}},
                                                          {"op-limited", {"l1", "end"}}};

struct Case {
  std::string key, definition, kind;
  std::string id;       // empty: no answer yet
  bool pushed = false;  // the operator does something about it
  bool paused = false;
  bool was_paused = false;          // or about to be: its jobs were withdrawn, and have new ids
  json::Value last, history, kept;  // the answers at the end
};

class OperationsClient final : public Client {
 public:
  explicit OperationsClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "operations"; }

  void begin() override {
    upload({kRoute, kNamed, kLimited, fmt::format(kGrow, "g2"), fmt::format(kGrow, "g3")}, 0);
  }
  // Nothing stays paused.
  void finish() override {
    json::Array ids;
    for (const auto& [key, one] : cases_)
      if (!one.id.empty()) ids.emplace_back(one.id);
    if (!ids.empty()) bulk("resume", ids, [] {});
    for (const auto& [key, sent] : published_)
      if (schedule_.elapsed() - sent > kKept / 2) replace_signal(cases_[key]);
  }

  void ask_everything() override {
    for (auto& [key, one] : cases_) {
      if (one.id.empty()) continue;
      read("/v1/instances/" + one.id, one.last);
      read("/v1/instances/" + one.id + "/history", one.history);
      if (one.definition == "op-named")
        read(fmt::format("{}signals?name=go&correlationKey={}", kOperations, one.key), one.kept);
    }
  }

  void check() override {
    for (const auto& [key, one] : cases_)
      check_end(one);
  }

 private:
  void upload(std::vector<std::string> definitions, size_t at) {
    if (at == definitions.size()) {
      act();
      act();
      for (int i = 0; i < 2; ++i)
        poll();
      return;
    }
    call_until_answered(world_, {"POST", "/v1/definitions", definitions[at]},
                        [this, definitions, at](const wire::Response& r) {
                          world_.expect(r.status == 201, "an upload was refused: " + r.body);
                          upload(definitions, at + 1);
                        });
  }

  void read(const std::string& path, json::Value& into) {
    call_until_answered(world_, {"GET", path}, [this, path, &into](const wire::Response& r) {
      world_.expect(r.status == 200, fmt::format("{} answers {} {}", path, r.status, r.body));
      into = body_of(r);
    });
  }

  void act() {
    if (world_.calm()) return;
    schedule_.after(2 * world_.pause(), [this] { act(); });
    if (schedule_.one_in(4)) return pause_some();
    start();
  }

  void start() {
    static constexpr const char* kDefinitions[] = {"op-route", "op-grow", "op-named", "op-limited",
                                                   "op-limited"};
    const uint64_t n = ++starts_;
    Case& one = cases_[fmt::format("op-{}", n)];
    one.key = fmt::format("op-{}", n);
    one.definition = kDefinitions[schedule_.roll(std::size(kDefinitions))];
    one.kind = n % 2 == 0 ? "even" : "odd";
    json::Value body = json::object({{"definitionId", one.definition},
                                     {"businessKey", one.key},
                                     {"variables", json::object({{"kind", one.kind}})}});
    if (one.definition == "op-grow") body.object().set("definitionVersion", 1);
    // A signal may come before its instance: then it is kept.
    if (one.definition == "op-named" && schedule_.one_in(3)) publish(one);
    call_until_answered(
        world_, {"POST", "/v1/instances", json::print(body), {{"Idempotency-Key", one.key}}},
        [this, &one](const wire::Response& r) {
          world_.expect(r.status == 201, "a start was refused: " + r.body);
          one.id = body_of(r).string_or("id");
          world_.later(world_.calm() ? kSecond : world_.pause(), [this, &one] { push(one); });
        });
  }

  void push(Case& one) {
    if (std::exchange(one.pushed, true)) return;
    if (one.definition == "op-route")
      operate(one, "move", json::object({{"from", "w"}, {"to", "r2"}}),
              [this] { world_.reach(Reach::moved); });
    if (one.definition == "op-named") publish(one);
    if (one.definition == "op-grow")
      operate(one, "migrate", json::object({{"version", 2}}), [this, &one] {
        world_.reach(Reach::migrated);
        signal(one);
      });
  }

  // An operation that is refused, because the instance is paused for example, is tried again.
  void operate(Case& one, const std::string& what, json::Value body, std::function<void()> done) {
    body.object().set("reason", "the operator wants it");
    const std::string path = fmt::format("{}instances/{}/{}", kOperations, one.id, what);
    call_until_answered(world_,
                        {"POST",
                         path,
                         json::print(body),
                         {{"Idempotency-Key", fmt::format("{}-{}", one.key, ++operations_)}}},
                        [this, &one, what, path, body, done](const wire::Response& r) {
                          if (r.status == 200) return done();
                          world_.expect(r.status == 409,
                                        fmt::format("{} answers {} {}", path, r.status, r.body));
                          try_again(one, what, body, done);
                        });
  }

  // A refused attempt is not recorded under its key, so a late copy of it may have been carried
  // out.
  void try_again(Case& one, const std::string& what, const json::Value& body,
                 const std::function<void()>& done) {
    call_until_answered(world_, {"GET", "/v1/instances/" + one.id},
                        [this, &one, what, body, done](const wire::Response& r) {
                          const json::Value now = body_of(r);
                          const json::Value* version = now.find("definitionVersion");
                          const bool was_done = what == "migrate"
                                                    ? version && version->as_int64() == 2
                                                    : !is_at(now, "w");
                          if (was_done) return done();
                          schedule_.after(30 * kSecond, [this, &one, what, body, done] {
                            operate(one, what, body, done);
                          });
                        });
  }

  static bool is_at(const json::Value& instance, const std::string& step) {
    const json::Value* at = instance.find("currentStepIds");
    return at && json::print(*at).find('"' + step + '"') != std::string::npos;
  }

  void signal(Case& one) {
    call_until_answered(world_, {"POST", "/v1/instances/" + one.id + "/signals/g1", "{}"},
                        [this, &one](const wire::Response& r) {
                          // 409: paused, or an earlier copy of this request came through.
                          world_.expect(r.status == 204 || r.status == 409,
                                        fmt::format("a signal answers {} {}", r.status, r.body));
                          if (r.status == 204) return;
                          call_until_answered(world_, {"GET", "/v1/instances/" + one.id},
                                              [this, &one](const wire::Response& now) {
                                                if (!is_at(body_of(now), "g1")) return;
                                                schedule_.after(30 * kSecond,
                                                                [this, &one] { signal(one); });
                                              });
                        });
  }

  // A signal that was kept for too long is gone: an instance that comes to its WAIT later gets
  // another one.
  void replace_signal(Case& one) {
    if (one.id.empty()) return;
    call_until_answered(
        world_, {"GET", "/v1/instances/" + one.id}, [this, &one](const wire::Response& r) {
          const json::Value now = body_of(r);
          if (now.string_or("status") == "COMPLETED") return;
          const json::Value* paused = now.find("paused");
          if (is_at(now, "n") && !(paused && paused->is_bool() && paused->boolean())) {
            published_.erase(one.key);
            publish(one);
          }
          schedule_.after(60 * kSecond, [this, &one] { replace_signal(one); });
        });
  }

  // Once for each instance.
  void publish(Case& one) {
    if (!published_.emplace(one.key, schedule_.elapsed()).second) return;
    const json::Value body = json::object({{"name", "go"},
                                           {"correlationKey", one.key},
                                           {"variables", json::object({{"went", one.key}})},
                                           {"ttl", "P300D"}});
    call_until_answered(world_,
                        {"POST",
                         std::string(kOperations) + "signals",
                         json::print(body),
                         {{"Idempotency-Key", fmt::format("go-{}-{}", one.key, ++operations_)}}},
                        [this](const wire::Response& r) {
                          world_.expect(
                              r.status == 200 || r.status == 202,
                              fmt::format("a signal by name answers {} {}", r.status, r.body));
                          world_.reach(r.status == 200 ? Reach::named_signal : Reach::kept_signal);
                        });
  }

  // Several instances are paused in one request, and resumed in another one.
  void pause_some() {
    std::vector<Case*> chosen;
    json::Array ids;
    for (auto& [key, one] : cases_)
      if (!one.id.empty() && !one.paused && schedule_.one_in(3) && chosen.size() < 5) {
        chosen.push_back(&one);
        ids.emplace_back(one.id);
      }
    if (chosen.empty()) return;
    for (Case* one : chosen)
      one->paused = one->was_paused = true;
    bulk("pause", ids, [this, chosen, ids] {
      schedule_.after(std::min(world_.pause(), 900 * kSecond), [this, chosen, ids] {
        bulk("resume", ids, [chosen] {
          for (Case* one : chosen)
            one->paused = false;
        });
      });
    });
  }

  void bulk(const std::string& what, const json::Array& ids, std::function<void()> done) {
    const json::Value body = json::object({{"instanceIds", ids}, {"reason", "all of them"}});
    call_until_answered(
        world_,
        {"POST",
         fmt::format("{}bulk/{}", kOperations, what),
         json::print(body),
         {{"Idempotency-Key", fmt::format("bulk-{}", ++operations_)}}},
        [this, what, ids, done](const wire::Response& r) {
          const json::Value answer = body_of(r);
          auto number = [&](std::string_view name) {
            const json::Value* v = answer.find(name);
            return v && v->is_number() ? v->as_uint64().value_or(0) : 0;
          };
          world_.expect(
              r.status == 200 && number("matched") == ids.size() &&
                  number("succeeded") + number("failed") == ids.size(),
              fmt::format("bulk {} of {} answers {} {}", what, ids.size(), r.status, r.body));
          // Items that could not be taken now, or of which nothing is known, are asked for again.
          // An item has a reason and no status.
          if (r.body.find("retry later") != std::string::npos ||
              r.body.find("cannot be written") != std::string::npos)
            return schedule_.after(kSecond, [this, what, ids, done] { bulk(what, ids, done); });
          world_.reach(Reach::bulk);
          done();
        });
  }

  // One worker for all jobs.
  void poll() {
    const json::Value body = json::object({{"workerId", "op"},
                                           {"jobTypes", json::Array{"op-work", "op-limited"}},
                                           {"maxJobs", 1 + schedule_.roll(4)},
                                           {"leaseSeconds", 20},
                                           {"maxWaitMs", schedule_.roll(20'000)}});
    world_.call({"POST", "/v1/jobs/poll", json::print(body)},
                [this](std::optional<wire::Response> r) {
                  const json::Value answer = r && r->status == 200 ? body_of(*r) : json::Value();
                  const json::Value* jobs = answer.find("jobs");
                  if (jobs && jobs->is_array())
                    for (const json::Value& job : jobs->array())
                      take(job);
                  const Time pause = world_.calm() ? kSecond : world_.pause() / 4;
                  world_.later(pause, [this] { poll(); });
                });
  }

  void take(const json::Value& job) {
    const std::string id(job.string_or("id")), instance(job.string_or("instanceId"));
    const json::Value* variables = job.find("variables");
    const std::string kind(variables ? variables->string_or("kind") : "");
    if (job.string_or("stepId") == "l1") take_limited(id, instance, kind);
    if (world_.strikes(Fault::lost_lease, 10)) return;
    Time takes = static_cast<Time>(schedule_.roll(4 * kSecond));
    if (world_.strikes(Fault::late_answer, 10))
      takes += static_cast<Time>(schedule_.roll(60 * kSecond));
    const bool fails = !world_.calm() && schedule_.one_in(8);
    schedule_.after(takes, [this, id, fails] { settle(id, fails); });
  }

  // No more jobs of a key than its limit are open to workers at once. A job is open from its lease
  // until somebody sends its result, or its instance is paused.
  void take_limited(const std::string& id, const std::string& instance, const std::string& kind) {
    std::map<std::string, std::string>& open = open_[kind];
    std::erase_if(open, [this](const auto& job) { return was_paused(job.second); });
    if (!settled_.contains(id)) open[id] = instance;
    std::string all;
    for (const auto& [job, of] : open)
      all += job + " ";
    world_.expect(open.size() <= kConcurrent,
                  fmt::format("{} jobs of the limit of {} are open: {}", open.size(), kind, all));
    if (open.size() == kConcurrent) world_.reach(Reach::limited);
  }

  bool was_paused(const std::string& instance) const {
    for (const auto& [key, one] : cases_)
      if (one.id == instance) return one.was_paused;
    return true;  // its start is not answered yet
  }

  void settle(const std::string& id, bool fails) {
    settled_.insert(id);
    for (auto& [kind, open] : open_)
      open.erase(id);
    if (fails) {
      world_.call({"POST", "/v1/jobs/" + id + "/fail",
                   R"({"workerId":"op","errorMessage":"no luck","retryable":true})"},
                  [](const std::optional<wire::Response>&) {});
      return;
    }
    call_until_answered(world_, {"POST", "/v1/jobs/" + id + "/complete", R"({"workerId":"op"})"},
                        [this, id](const wire::Response& r) {
                          world_.expect(r.status == 204, fmt::format("complete of {} answers {} {}",
                                                                     id, r.status, r.body));
                        });
  }

  void check_end(const Case& one) {
    if (one.id.empty()) return world_.expect(false, one.key + " never started");
    world_.expect(one.last.string_or("status") == "COMPLETED",
                  fmt::format("{} ({}) is not complete long after the last fault: {}", one.id,
                              one.definition, json::print(one.last)));
    std::map<std::string, size_t> entered;
    const json::Value* items = one.history.find("items");
    if (items && items->is_array())
      for (const json::Value& item : items->array())
        ++entered[std::string(item.string_or("StepID"))];
    const std::set<std::string>& path = kPaths.at(one.definition);
    for (const auto& [step, times] : entered)
      world_.expect(
          path.contains(step) && times == 1,
          fmt::format("{} ({}) entered {} {} times", one.id, one.definition, step, times));
    world_.expect(
        entered.size() == path.size(),
        fmt::format("{} ({}) went through {}", one.id, one.definition, json::print(one.history)));
    if (one.definition != "op-named") return;
    const json::Value* variables = one.last.find("variables");
    world_.expect(variables && variables->string_or("went") == one.key,
                  one.id + " took the signal of another instance");
    const json::Value* kept = one.kept.find("items");
    world_.expect(
        kept && kept->is_array() && kept->array().empty(),
        fmt::format("the one signal of {} is still kept: {}", one.id, json::print(one.kept)));
  }

  Session& world_;
  Schedule& schedule_;
  std::map<std::string, Case> cases_;      // by business key
  std::map<std::string, Time> published_;  // when the signal of a key was sent
  std::set<std::string> settled_;          // jobs of which a result was sent
  // Jobs of `limited` that are open, with their instances, by kind.
  std::map<std::string, std::map<std::string, std::string>> open_;
  uint64_t starts_ = 0, operations_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_operations_client(Session& world) {
  return std::make_unique<OperationsClient>(world);
}

}  // namespace pawl::sim
