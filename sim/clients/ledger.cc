// Several callers change the same entities at the same time, each under the condition that nobody
// else did since it read them (If-Match). Each change adds a mark of its own to the marks of the
// entity; some changes add the mark to a second entity too, in a callback of a compute member that
// joins the transaction. Marks that are lost, doubled, or in one of two entities only would show
// that transactions are not serialisable.

#include <fmt/format.h>

#include <map>
#include <set>

#include "json/text.h"
#include "sim/clients/member.h"

namespace pawl::sim {
namespace {

constexpr const char* kWorkflow = R"({"importMode":"REPLACE","workflows":[{"version":"1","name":"l",
  "initialState":"OPEN","active":true,"states":{"OPEN":{"transitions":[
    {"name":"both","next":"OPEN","manual":true,"processors":[{"type":"EXTERNAL","name":"carry-over",
      "executionMode":"SYNC","config":{"attachEntity":true,"calculationNodesTags":"ledger",
      "responseTimeoutMs":8000,"retryPolicy":"FIXED"}}]}]}}}]})";
constexpr size_t kPages = 3;

struct Page {
  std::string id;     // empty: it does not exist yet
  std::string known;  // its marks as they were last read or acknowledged
  std::string last;   // at the end
};

// A change of one page, or of two.
struct Change {
  std::string mark;
  size_t page = 0;
  std::optional<size_t> other;
  bool acknowledged = false;
};

json::Value document(std::string_view marks, std::string_view mark, std::string_view other) {
  return json::object({{"marks", marks}, {"mark", mark}, {"other", other}});
}

std::string marks_in(const wire::Response& r) {
  const json::Value body = body_of(r);
  const json::Value* data = body.find("data");
  return std::string(data ? data->string_or("marks") : "");
}

bool has_mark(std::string_view marks, std::string_view mark) {
  return fmt::format(" {}", marks).find(fmt::format(" {} ", mark)) != std::string::npos;
}

class LedgerClient final : public Client {
 public:
  explicit LedgerClient(Session& world) : world_(world), schedule_(world.schedule()) {}
  std::string_view name() const override { return "ledger"; }

  void begin() override {
    // Shared with the server, which holds the stream of a member until it leaves.
    member_ = std::make_shared<FalseMember>(
        world_, "ledger", [this](const entities::MemberEvent& call, const FalseMember::Done& done) {
          carry_over(call, done);
        });
    member_->keep_joined();
    const std::string model = "/api/model/import/JSON/SAMPLE_DATA/page/1";
    set_up({{"POST", model, json::print(document("", "", ""))},
            {"PUT", "/api/model/page/1/lock"},
            {"POST", "/api/model/page/1/workflow/import", kWorkflow}},
           0);
  }
  void finish() override {}

  void ask_everything() override {
    for (Page& page : pages_) {
      if (page.id.empty()) continue;
      call_until_answered(world_, {"GET", "/api/entity/" + page.id},
                          [this, &page](const wire::Response& r) {
                            world_.expect(r.status == 200, "a page is gone: " + r.body);
                            page.last = marks_in(r);
                          });
    }
  }

  void check() override {
    for (const Page& page : pages_) {
      world_.expect(page.last.starts_with(page.known),
                    fmt::format("a page had the marks {} and has {}", page.known, page.last));
      std::set<std::string_view> seen;
      for (size_t at = 0; at < page.last.size();) {
        const size_t end = page.last.find(' ', at);
        const std::string_view mark = std::string_view(page.last).substr(at, end - at);
        world_.expect(seen.insert(mark).second, fmt::format("a page has the mark {} twice", mark));
        at = end + 1;
      }
    }
    for (const auto& [mark, change] : changes_)
      check_change(change);
  }

 private:
  void check_change(const Change& change) {
    const bool here = has_mark(pages_[change.page].last, change.mark);
    world_.expect(here || !change.acknowledged,
                  fmt::format("the mark {} was acknowledged and is lost", change.mark));
    if (!change.other) return;
    const bool there = has_mark(pages_[*change.other].last, change.mark);
    world_.expect(here == there, fmt::format("the mark {} is in one of two pages", change.mark));
  }

  void set_up(std::vector<Sent> requests, size_t at) {
    if (at == requests.size()) {
      for (Page& page : pages_)
        create(page);
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

  void create(Page& page) {
    bool& busy = busy_[&page];
    call_once(world_, fmt::format("page-{}", ++keys_),
              {"POST", "/api/entity/JSON/page/1", json::print(document("", "", ""))}, busy,
              [this, &page](const wire::Response& r) {
                world_.expect(r.status == 200, "a page is refused: " + r.body);
                const json::Value body = body_of(r);
                if (!body.is_array() || body.array().empty()) return;
                const json::Value* ids = body.array()[0].find("entityIds");
                if (ids && ids->is_array() && !ids->array().empty())
                  page.id = ids->array()[0].string();
              });
  }

  // Reads a page, then changes it.
  void act() {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this] { act(); });
    const size_t chosen = schedule_.roll(kPages);
    Page& page = pages_[chosen];
    if (page.id.empty()) return;
    const std::string known = page.known;
    world_.call({"GET", "/api/entity/" + page.id},
                [this, chosen, known](std::optional<wire::Response> r) {
                  if (!r || r->status == 503 || r->status == 429) return;
                  world_.expect(r->status == 200 && marks_in(*r).starts_with(known),
                                fmt::format("a page had the marks {} before and answers {} {}",
                                            known, r->status, r->body));
                  learn(pages_[chosen], marks_in(*r));
                  const json::Value body = body_of(*r);
                  const json::Value* meta = body.find("meta");
                  change(chosen, marks_in(*r), std::string(meta->string_or("transactionId")));
                });
  }

  static void learn(Page& page, const std::string& marks) {
    if (marks.size() > page.known.size()) page.known = marks;
  }

  void change(size_t chosen, const std::string& marks, const std::string& transaction) {
    const std::string mark = fmt::format("m{}", ++marks_);
    Change& change = changes_[mark];
    change.mark = mark;
    change.page = chosen;
    const size_t second = (chosen + 1 + schedule_.roll(kPages - 1)) % kPages;
    if (schedule_.chance(50) && !pages_[second].id.empty()) change.other = second;
    const std::string path = "/api/entity/JSON/" + pages_[chosen].id;
    Sent sent{"PUT", change.other ? path + "/both" : path,
              json::print(document(marks + mark + " ", mark,
                                   change.other ? std::string_view(pages_[second].id) : ""))};
    sent.headers = {{"If-Match", transaction}};
    sent.patience = 60 * kSecond;
    call_once(world_, mark, std::move(sent), busy_[&change],
              [this, &change, marks](const wire::Response& r) { changed(change, marks, r); });
  }

  void changed(Change& change, const std::string& marks, const wire::Response& r) {
    if (r.status == 200) {
      change.acknowledged = true;
      return learn(pages_[change.page], marks + change.mark + " ");
    }
    // Another change came first, or the processor failed.
    const bool failed = r.status == 400 && r.body.find("WORKFLOW_FAILED") != std::string::npos;
    world_.expect(r.status == 409 || r.status == 412 || failed,
                  fmt::format("the change {} answers {} {}", change.mark, r.status, r.body));
    if (!failed) world_.reach(Reach::refused_conflict);
  }

  // The work of the compute member: the mark goes to the second page, in the same transaction. When
  // anything goes wrong, the call fails and nothing of it stays.
  void carry_over(const entities::MemberEvent& call, const FalseMember::Done& done) {
    std::string token;
    for (const auto& [name, value] : call.attributes)
      if (name == "cyodatxtoken") token = value;
    const json::Value data = entity_of(call);
    const std::string path = "/api/entity/" + std::string(data.string_or("other"));
    world_.expect(!token.empty(), "a call has no token");
    auto give_up = [done] {
      entities::CallResult failed;
      failed.kind = entities::CallResult::failed;
      failed.message = "the callback failed";
      done(failed);
    };
    Sent sent{"GET", path, {}, {{"X-Tx-Token", token}}};
    world_.call(std::move(sent), [this, token, data, done, give_up](auto r) {
      if (!r || r->status != 200) return give_up();
      const std::string mark(data.string_or("mark")), marks = marks_in(*r);
      Sent put{"PUT", "/api/entity/JSON/" + std::string(data.string_or("other"))};
      put.headers = {{"X-Tx-Token", token}, {"Content-Type", "application/json"}};
      // A late copy of the callback of an earlier attempt may have come through.
      put.body =
          json::print(document(has_mark(marks, mark) ? marks : marks + mark + " ", mark, ""));
      world_.call(std::move(put), [this, data, done, give_up](auto written) {
        if (!written || written->status != 200) return give_up();
        world_.reach(Reach::joined);
        entities::CallResult good;
        good.data = json::print(data);
        done(good);
      });
    });
  }

  Session& world_;
  Schedule& schedule_;
  std::shared_ptr<FalseMember> member_;
  std::array<Page, kPages> pages_;
  std::map<std::string, Change> changes_;  // by mark
  std::map<const void*, bool> busy_;       // requests under way, by page and change
  uint64_t keys_ = 0, marks_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_ledger_client(Session& world) {
  return std::make_unique<LedgerClient>(world);
}

}  // namespace pawl::sim
