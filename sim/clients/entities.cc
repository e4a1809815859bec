// The client of the entities face: owns entities of one model, changes each with one request at a
// time, and plays the two compute members that run the processors of the model's workflow.

#include <fmt/format.h>

#include <map>
#include <set>

#include "json/text.h"
#include "sim/clients/member.h"

namespace pawl::sim {
namespace {

// A message is under way for less than this time.
constexpr Time kCopiesAreGone = 300 * kSecond;
constexpr const char* kWorkflow = R"({"importMode":"REPLACE","workflows":[{"version":"1","name":"w",
  "initialState":"NEW","active":true,"states":{
  "NEW":{"transitions":[
    {"name":"take","next":"TAKEN","manual":true},
    {"name":"check","next":"CHECKED","manual":true,"processors":[{"type":"EXTERNAL","name":"stamp",
      "executionMode":"SYNC","config":{"attachEntity":true,"calculationNodesTags":"sim",
      "responseTimeoutMs":5000,"retryPolicy":"FIXED"}}]}]},
  "TAKEN":{"transitions":[
    {"name":"back","next":"NEW","manual":true},
    {"name":"ship","next":"SHIPPED","manual":true,"processors":[{"type":"EXTERNAL","name":"carry",
      "executionMode":"COMMIT_BEFORE_DISPATCH","config":{"attachEntity":true,
      "calculationNodesTags":"sim","responseTimeoutMs":5000}}]}]},
  "CHECKED":{"transitions":[{"name":"back","next":"NEW","manual":true}]},
  "SHIPPED":{}}}]})";

const std::map<std::string, std::vector<std::string>> kMoves{{"NEW", {"take", "check"}},
                                                             {"TAKEN", {"back", "ship"}},
                                                             {"CHECKED", {"back"}},
                                                             {"SHIPPED", {}}};
const std::map<std::string, std::string> kTargets{
    {"take", "TAKEN"}, {"check", "CHECKED"}, {"back", "NEW"}, {"ship", "SHIPPED"}};

struct Item {
  uint64_t number = 0;
  std::string id;     // empty: it does not exist yet
  std::string state;  // as the client knows it
  int64_t n = 0;
  std::string stamp = "none";  // what the last processor wrote; every other write removes it
  bool busy = false, deleted = false;
  bool may_be_deleted = false;  // a deletion was asked for
  // A shipment was asked for. Whatever the answer, it may still be carried out; until its first
  // transaction the item is as before.
  bool may_have_shipped = false;
  bool has_shipped = false;  // the answer said so
  int64_t n_before = 0;
};

json::Value document(int64_t n, std::string_view stamp) {
  return json::object({{"log", "made"}, {"n", n}, {"stamp", stamp}});
}

class EntitiesClient final : public Client {
 public:
  explicit EntitiesClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "entities"; }

  void begin() override {
    for (int i = 0; i < 2; ++i) {
      // Shared with the server, which holds the stream of a member until it leaves.
      members_.push_back(std::make_shared<FalseMember>(
          world_, "sim", [this](const entities::MemberEvent& call, const FalseMember::Done& done) {
            stamp(call, done);
          }));
      members_.back()->keep_joined();
    }
    const std::string model = "/api/model/import/JSON/SAMPLE_DATA/item/1";
    set_up({{"POST", model, json::print(document(1, "x"))},
            {"PUT", "/api/model/item/1/indexes", R"({"fields":["$.n"]})"},
            {"PUT", "/api/model/item/1/lock"},
            {"POST", "/api/model/item/1/workflow/import", kWorkflow}},
           0);
  }
  void finish() override {}

  void ask_everything() override {
    for (auto& [number, item] : items_)
      if (!item.id.empty())
        call_until_answered(world_, {"GET", "/api/entity/" + item.id},
                            [this, &item = item](const wire::Response& r) { compare(item, r); });
    call_until_answered(world_, {"GET", "/api/entity/stats/item/1"},
                        [this](const wire::Response& r) { stats_ = body_of(r); });
  }

  void check() override {
    int64_t count = 0;
    for (const auto& [number, item] : items_) {
      world_.expect(!item.busy,
                    fmt::format("item {} has no answer long after the last fault", number));
      if (!item.id.empty() && !item.deleted) ++count;
    }
    const json::Value* counted = stats_.find("count");
    world_.expect(
        counted && counted->as_int64() == count,
        fmt::format("there are {} items and the server counts {}", count, json::print(stats_)));
  }

 private:
  // The work of a compute member.
  void stamp(const entities::MemberEvent& call, const FalseMember::Done& done) {
    const json::Value data = entity_of(call);
    const json::Value* n = data.find("n");
    world_.expect(n && n->as_int64().has_value(), "a call came without its entity");
    if (!n) return;
    count_repetition(call);
    entities::CallResult result;
    if (!world_.calm() && schedule_.one_in(10)) {
      result.kind = entities::CallResult::failed;
      result.message = "no luck";
    } else {
      result.data = json::print(document(n->as_int64().value_or(0), "stamped"));
    }
    done(result);
  }

  // A call that is repeated has the id of the first one.
  void count_repetition(const entities::MemberEvent& call) {
    const json::Value request = json::parse(call.payload).value_or(json::Value());
    if (!calls_.insert(std::string(request.string_or("requestId"))).second)
      world_.reach(Reach::repeated_call);
  }

  // One request after the other; a copy that comes late may find the work done.
  void set_up(std::vector<Sent> requests, size_t at) {
    if (at == requests.size()) {
      for (int i = 0; i < 3; ++i)
        act();
      return;
    }
    call_until_answered(world_, requests[at], [this, requests, at](const wire::Response& r) {
      world_.expect(r.status == 200 || r.status == 409,
                    fmt::format("{} answers {} {}", requests[at].path, r.status, r.body));
      set_up(requests, at + 1);
    });
  }

  void act() {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this] { act(); });
    const uint64_t number = schedule_.roll(10 + items_.size() / 2);
    Item& item = items_[number];
    item.number = number;
    if (item.busy || item.deleted) return;
    if (item.id.empty()) return create(item);
    if (schedule_.one_in(12)) return start_search_job();
    switch (schedule_.roll(6)) {
      case 0:
      case 1: return move(item);
      case 2: return put(item);
      case 3: return search(item);
      case 4:
        if (schedule_.one_in(6) && !item.may_have_shipped) return remove(item);
        [[fallthrough]];
      default: return look(item);
    }
  }

  void once(Item& item, Sent sent, std::function<void(const wire::Response&)> done) {
    call_once(world_, fmt::format("item-{}", ++keys_), std::move(sent), item.busy, std::move(done));
  }

  void must(const Item& item, const char* what, const wire::Response& r, bool held) {
    world_.expect(held, fmt::format("{} of item {} ({} with {}) answers {} {}", what, item.number,
                                    item.state, item.n, r.status, r.body));
  }

  void create(Item& item) {
    const int64_t n = next_n();
    once(item, {"POST", "/api/entity/JSON/item/1", json::print(document(n, "none"))},
         [this, &item, n](const wire::Response& r) {
           must(item, "create", r, r.status == 200);
           const json::Value body = body_of(r);
           if (!body.is_array() || body.array().empty()) return;
           const json::Value* ids = body.array()[0].find("entityIds");
           if (!ids || !ids->is_array() || ids->array().empty()) return;
           item.id = ids->array()[0].string();
           world_.expect(ids_.insert(item.id).second, "two items have the id " + item.id);
           item.state = "NEW";
           item.n = n;
         });
  }

  void put(Item& item) {
    if (item.may_have_shipped) return look(item);
    const int64_t n = next_n();
    once(item, {"PUT", "/api/entity/JSON/" + item.id, json::print(document(n, "none"))},
         [this, &item, n](const wire::Response& r) {
           must(item, "put", r, r.status == 200);
           item.n = n;
           item.stamp = "none";
         });
  }

  void move(Item& item) {
    const auto& next = kMoves.at(item.state);
    if (next.empty() || item.may_have_shipped) return look(item);
    const std::string name = next[schedule_.roll(next.size())];
    const int64_t n = next_n();
    if (name == "ship") return ship(item, n);
    once(item,
         {"PUT", "/api/entity/JSON/" + item.id + "/" + name, json::print(document(n, "none"))},
         [this, &item, name, n](const wire::Response& r) { moved(item, name, n, r); });
  }

  // The answer comes after the processor has run, also to a repeated request. A refusal is not
  // recorded under the key, so a copy that is still under way may be carried out afterwards.
  // Nothing else happens to the item after it.
  void ship(Item& item, int64_t n) {
    item.may_have_shipped = true;
    item.n_before = std::exchange(item.n, n);
    once(item, {"PUT", "/api/entity/JSON/" + item.id + "/ship", json::print(document(n, "none"))},
         [this, &item](const wire::Response& r) {
           must(item, "ship", r, r.status == 200 || refused(r) || r.status == 409);
           item.has_shipped = r.status == 200;
         });
  }

  // A processor failed or came too late.
  static bool refused(const wire::Response& r) {
    return r.status == 400 && r.body.find("WORKFLOW_FAILED") != std::string::npos;
  }

  // The check was refused. A refusal is not recorded under the Idempotency-Key, so a copy of the
  // request that is still under way may be carried out. The item is left alone until none is.
  void find_out(Item& item, int64_t n) {
    item.busy = true;
    schedule_.after(kCopiesAreGone, [this, &item, n] {
      call_until_answered(world_, {"GET", "/api/entity/" + item.id},
                          [this, &item, n](const wire::Response& r) {
                            item.busy = false;
                            const json::Value body = body_of(r);
                            const json::Value* meta = body.find("meta");
                            if (meta && meta->string_or("state") == "CHECKED") {
                              item.state = "CHECKED";
                              item.n = n;
                              item.stamp = "stamped";
                            }
                            compare(item, r);
                          });
    });
  }

  void moved(Item& item, const std::string& name, int64_t n, const wire::Response& r) {
    if (name == "check" && refused(r)) return find_out(item, n);
    must(item, name.c_str(), r, r.status == 200);
    item.state = kTargets.at(name);
    item.n = n;
    item.stamp = name == "check" ? "stamped" : "none";
  }

  void remove(Item& item) {
    item.may_be_deleted = true;
    once(item, {"DELETE", "/api/entity/" + item.id}, [this, &item](const wire::Response& r) {
      must(item, "delete", r, r.status == 200);
      item.deleted = true;
    });
  }

  void look(Item& item) {
    item.busy = true;
    world_.call({"GET", "/api/entity/" + item.id}, [this, &item](std::optional<wire::Response> r) {
      item.busy = false;
      if (r && r->status != 503 && r->status != 429) compare(item, *r);
    });
  }

  void compare(const Item& item, const wire::Response& r) {
    if (item.deleted) return must(item, "get after delete", r, r.status == 404);
    const json::Value body = body_of(r);
    const json::Value* meta = body.find("meta");
    const json::Value* data = body.find("data");
    const json::Value* n = data ? data->find("n") : nullptr;
    const std::string_view state = meta ? meta->string_or("state") : std::string_view();
    if (item.may_have_shipped) {
      const bool untouched = state == "TAKEN" && n && n->as_int64() == item.n_before;
      const bool shipped = state == "SHIPPED" && data->string_or("stamp") == "stamped";
      const bool between = state == "TAKEN" && n && n->as_int64() == item.n;
      must(item, "get after ship", r, shipped || (!item.has_shipped && (untouched || between)));
      return;
    }
    must(item, "get", r,
         r.status == 200 && state == item.state && n && n->as_int64() == item.n &&
             data->string_or("stamp") == item.stamp);
  }

  void search(Item& item) {
    if (item.may_have_shipped) return look(item);
    item.busy = true;
    const json::Value condition = json::object(
        {{"type", "simple"}, {"jsonPath", "$.n"}, {"operatorType", "EQUALS"}, {"value", item.n}});
    world_.call({"POST", "/api/search/direct/item/1", json::print(condition)},
                [this, &item](std::optional<wire::Response> r) {
                  item.busy = false;
                  // A stream is not read here.
                  if (!r || r->status == 503 || r->status == 429 || r->stream) return;
                  must(item, "search", r.value(),
                       r->status == 200 && r->body.find(item.id) != std::string::npos);
                });
  }

  // A search job shows the items as they were at one moment between its request and the answer.
  struct SearchJob {
    std::string id;
    std::set<std::string> before;  // items that were there when it was asked for
    std::set<std::string> gone;    // items that were deleted by then
    std::set<std::string> must;    // items that were there all the time
    std::string first;             // the page as it was first read
    uint64_t life = 0;             // of the server when it was asked for
  };
  using SearchJobPtr = std::shared_ptr<SearchJob>;  // shared by the requests about it

  void start_search_job() {
    auto job = std::make_shared<SearchJob>();
    job->life = world_.life();
    for (const auto& [number, item] : items_)
      if (!item.id.empty()) (item.deleted ? job->gone : job->before).insert(item.id);
    world_.call({"POST", "/api/search/async/item/1",
                 R"({"type":"simple","jsonPath":"$.n","operatorType":"NOT_NULL"})"},
                [this, job](std::optional<wire::Response> r) {
                  if (!r || r->status == 503 || r->status == 429) return;
                  const json::Value body = body_of(*r);
                  world_.expect(r->status == 200 && body.is_string(),
                                fmt::format("a search job answers {} {}", r->status, r->body));
                  if (!body.is_string()) return;
                  job->id = body.string();
                  for (const auto& [number, item] : items_)
                    if (job->before.contains(item.id) && !item.may_be_deleted)
                      job->must.insert(item.id);
                  wait_for(job);
                });
  }

  void wait_for(const SearchJobPtr& job) {
    const std::string path = "/api/search/async/" + job->id;
    call_until_answered(world_, {"GET", path + "/status"}, [this, job](const wire::Response& r) {
      const json::Value body = body_of(r);
      const std::string_view status = body.string_or("searchJobStatus");
      if (r.status == 200 && status == "RUNNING")
        return schedule_.after(2 * kSecond, [this, job] { wait_for(job); });
      // A restart cuts a job off.
      if (r.status == 200 && status == "FAILED" && world_.life() != job->life) return;
      // So does a journal that cannot be written: then the server is started again before long.
      if (r.status == 200 && status == "FAILED")
        return schedule_.after(900 * kSecond, [this, job] {
          world_.expect(world_.life() != job->life,
                        fmt::format("search job {} failed and the server did not", job->id));
        });
      world_.expect(r.status == 200 && status == "SUCCESSFUL",
                    fmt::format("search job {} is {} {}", job->id, r.status, r.body));
      read_job(job);
    });
  }

  void read_job(const SearchJobPtr& job) {
    const std::string path = fmt::format("/api/search/async/{}?pageSize=5000", job->id);
    call_until_answered(world_, {"GET", path}, [this, job](const wire::Response& r) {
      if (!job->first.empty())
        return world_.expect(r.status == 200 && r.body == job->first,
                             "the pages of a search job change: " + r.body.substr(0, 300));
      job->first = r.body;
      check_job(*job, r);
      schedule_.after(60 * kSecond, [this, job] { read_job(job); });
    });
  }

  void check_job(const SearchJob& job, const wire::Response& r) {
    world_.reach(Reach::search_job);
    const json::Value body = body_of(r);
    const json::Value* content = body.find("content");
    std::set<std::string> found;
    if (content && content->is_array())
      for (const json::Value& one : content->array())
        if (const json::Value* meta = one.find("meta")) found.emplace(meta->string_or("id"));
    for (const std::string& id : job.must)
      world_.expect(found.contains(id), fmt::format("search job {} lacks {}", job.id, id));
    for (const std::string& id : job.gone)
      world_.expect(!found.contains(id),
                    fmt::format("search job {} shows {}, which was deleted", job.id, id));
  }

  int64_t next_n() { return ++last_n_; }

  Session& world_;
  Schedule& schedule_;
  std::vector<std::shared_ptr<FalseMember>> members_;
  std::map<uint64_t, Item> items_;
  std::set<std::string> ids_;
  std::set<std::string> calls_;  // ids of calls that the members got
  json::Value stats_;
  uint64_t keys_ = 0;
  int64_t last_n_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_entities_client(Session& world) {
  return std::make_unique<EntitiesClient>(world);
}

}  // namespace pawl::sim
