// The client of the worlds face: one or two worlds with a real WASM module. It adds to accounts,
// one event at a time for each account, and so knows what every account must be. Executors carry
// out the payments that the module asks for, readers follow the journal, and an operator takes
// snapshots, forks, compacts, and upgrades the workflow through proposals.

#include <fmt/format.h>

#include "json/text.h"
#include "sim/clients/bank.h"
#include "sim/clients/client.h"

namespace pawl::sim {
namespace {

class WorldsClient final : public Client {
 public:
  explicit WorldsClient(Session& world)
      : world_(world), schedule_(world.schedule()), executors_(world, banks_) {}
  std::string_view name() const override { return "worlds"; }

  void begin() override {
    // Payments and timers block an upgrade, so the second world has none.
    for (const char* id : {"bank", "quiet"}) {
      Bank& bank = banks_[id];
      bank.id = id;
      readers_.emplace(id, RecordReaders(world_, bank));
      create(bank);
    }
    for (int i = 0; i < 2; ++i)
      executors_.poll();
  }

  void finish() override {}

  void ask_everything() override {
    for (auto& [id, bank] : banks_) {
      read(bank, bank.path("/runtime"), runtime_[id]);
      read(bank, total_path(bank), totals_[id]);
      for (auto& [name, account] : bank.accounts)
        if (account.adds + account.told > 0 || account.erased_by)
          read(bank, state_path(bank, account), account.last);
      readers_.at(id).read_all();
      fork(bank);
    }
  }

  void check() override {
    for (auto& [id, bank] : banks_) {
      for (const auto& [name, account] : bank.accounts) {
        world_.expect(!account.busy,
                      fmt::format("{} has no answer long after the last fault", name));
        if (!account.last.is_null()) check_end(account, account.last);
      }
      const json::Value* total = totals_[id].find("state");
      world_.expect(bank.additions == 0 || (total && number_in(*total, "adds") == bank.additions &&
                                            number_in(*total, "sum") == bank.sum),
                    fmt::format("{} additions of {} were acknowledged for {} and the total is {}",
                                bank.additions, bank.sum, id, json::print(totals_[id])));
      world_.expect(number_in(runtime_[id], "steps_failed") == bank.traps,
                    fmt::format("{} steps of {} trapped and the server counts {}", bank.traps, id,
                                number_in(runtime_[id], "steps_failed")));
      world_.expect(number_in(runtime_[id], "height") >= bank.height,
                    fmt::format("{} lost records: {} were acknowledged", id, bank.height));
      readers_.at(id).check(number_in(runtime_[id], "height"));
      compare_fork(bank);
    }
  }

 private:
  static std::string state_path(const Bank& bank, const Account& account) {
    return bank.path(fmt::format("/state/{}?key_b64={}", kAccountWorkflow, key_b64(account.id)));
  }
  static std::string total_path(const Bank& bank) {
    return bank.path(fmt::format("/state/{}", kTotalWorkflow));
  }

  void read(const Bank& bank, const std::string& path, json::Value& into) {
    call_until_answered(world_, {"GET", path}, [this, &bank, path, &into](const wire::Response& r) {
      world_.expect(r.status == 200,
                    fmt::format("{} of {} answers {} {}", path, bank.id, r.status, r.body));
      into = body_of(r);
    });
  }

  // A copy that comes late may find the world made.
  void create(Bank& bank) {
    const json::Value body =
        json::object({{"world_id", bank.id},
                      {"air", bank_air()},
                      {"modules", json::object({{"sim/account_wasm@1", account_module()}})}});
    call_until_answered(
        world_, {"POST", "/v1/worlds", json::print(body)}, [this, &bank](const wire::Response& r) {
          world_.expect(
              r.status == 201 || r.status == 409,
              fmt::format("the world is refused: {} {}", r.status, r.body.substr(0, 500)));
          readers_.at(bank.id).begin();
          act(bank);
          act(bank);
          operate(bank);
        });
  }

  void act(Bank& bank) {
    if (world_.calm()) return;
    schedule_.after(world_.pause(), [this, &bank] { act(bank); });
    switch (schedule_.roll(10)) {
      case 0: return readers_.at(bank.id).read_page();
      case 1: return readers_.at(bank.id).wait();
      case 2:
      case 3: return look(some(bank), bank);
      case 4: return snapshot(bank);
      default: return add(some(bank), bank);
    }
  }

  Account& some(Bank& bank) {
    static constexpr const char* kIds[] = {"a0", "a1", "a2", "a3", "e0", "e1", "t0", "c0"};
    const std::string id = kIds[schedule_.roll(std::size(kIds))];
    Account& account = bank.accounts[id];
    account.id = id;
    return account;
  }

  struct Addition {
    uint64_t n = 0, pays = 0;
    Time wait = 0;
    std::string tell, how;
    uint64_t upgrades = 0;  // that were acknowledged when it was sent
    bool upgrading = false;
  };

  Addition some_addition(const Account& account, const Bank& bank) {
    Addition out;
    out.n = ++last_n_;
    out.upgrades = upgrades_[bank.id];
    out.upgrading = upgrading_[bank.id];
    const char kind = account.id[0];
    if (kind == 'e' && schedule_.one_in(6)) out.how = "erase";
    if (kind == 't' && schedule_.one_in(4)) out.how = "trap";
    if (kind == 'c' && schedule_.one_in(4)) out.how = "complete";
    if (kind == 'a' && schedule_.one_in(4)) out.tell = fmt::format("a{}", schedule_.roll(4));
    if (bank.id == "quiet" || kind == 'c') return out;
    if (schedule_.one_in(2)) out.pays = 1 + schedule_.roll(2);
    if (kind != 'e' && schedule_.one_in(4))
      out.wait = static_cast<Time>(1 + schedule_.roll(600)) * kSecond;
    return out;
  }

  void add(Account& account, Bank& bank) {
    if (account.busy) return look(account, bank);
    account.busy = true;
    const Addition a = some_addition(account, bank);
    if (!a.tell.empty()) ++bank.accounts[a.tell].tellers;
    const json::Value value = json::object({{"id", account.id},
                                            {"n", a.n},
                                            {"pays", a.pays},
                                            {"wait_ns", static_cast<uint64_t>(a.wait)},
                                            {"tell", a.tell},
                                            {"how", a.how}});
    const json::Value body = json::object(
        {{"schema", "sim/Add@1"}, {"value", value}, {"submission_id", fmt::format("add-{}", a.n)}});
    call_until_answered(world_, {"POST", bank.path("/events"), json::print(body)},
                        [this, &account, &bank, a](const wire::Response& r) {
                          account.busy = false;
                          world_.expect(r.status == 202,
                                        fmt::format("an addition answers {} {}", r.status, r.body));
                          bank.height = std::max(bank.height, number_in(body_of(r), "height"));
                          added(account, bank, a);
                        });
  }

  void added(Account& account, Bank& bank, const Addition& a) {
    ++bank.additions;
    bank.sum += a.n;
    if (a.how == "trap") {
      ++bank.traps;
      return;
    }
    if (a.how == "erase") {
      account = Account{.id = account.id, .erased_by = a.n, .erased = schedule_.elapsed()};
      return;
    }
    account.exists = true;
    account.balance += a.n;
    ++account.adds;
    account.pays += a.pays;
    if (a.wait) ++account.timers;
    const bool known = !a.upgrading && !upgrading_[bank.id] && a.upgrades == upgrades_[bank.id];
    account.version = known ? 1 + a.upgrades % 2 : 0;
    if (a.tell.empty()) return;
    Account& told = bank.accounts[a.tell];
    told.id = a.tell;
    ++told.told;
    --told.tellers;
    told.exists = true;
    told.version = 0;
  }

  // Nothing but the account's own events is known exactly while others may tell it something.
  void look(Account& account, Bank& bank) {
    if (account.busy) return;
    account.busy = true;
    world_.call(
        {"GET", state_path(bank, account)}, [this, &account](std::optional<wire::Response> r) {
          account.busy = false;
          if (!r || r->status == 503 || r->status == 429) return;
          world_.expect(r->status == 200, fmt::format("a state answers {} {}", r->status, r->body));
          check_now(account, body_of(*r));
        });
  }

  void check_now(const Account& account, const json::Value& seen) {
    const json::Value* state = seen.find("state");
    if (!state || state->is_null())
      return world_.expect(!account.exists, account.id + " is gone: " + json::print(seen));
    auto must = [&](std::string_view name, uint64_t least, uint64_t most) {
      const uint64_t n = number_in(*state, name);
      world_.expect(n >= least && n <= most,
                    fmt::format("{} of {} must be {} to {}: {}", name, account.id, least, most,
                                json::print(seen)));
    };
    must("balance", account.balance, account.balance);
    must("adds", account.adds, account.adds);
    must("told", account.told, UINT64_MAX);
    must("early", 0, 0);
    if (account.version && !account.tellers) must("version", account.version, account.version);
    const uint64_t settled = number_in(*state, "paid") + number_in(*state, "refused");
    world_.expect(settled <= account.pays && number_in(*state, "fired") <= account.timers,
                  fmt::format("{} asked for {} payments and {} timers: {}", account.id,
                              account.pays, account.timers, json::print(seen)));
  }

  void check_end(const Account& account, const json::Value& seen) {
    check_now(account, seen);
    if (!account.exists) return;
    const json::Value* found = seen.find("state");
    const json::Value state = found ? *found : json::Value();
    const uint64_t frames = number_in(state, "frames");
    world_.expect(
        number_in(state, "told") == account.told &&
            number_in(state, "paid") + number_in(state, "refused") == account.pays &&
            number_in(state, "fired") == account.timers && frames <= account.frames_sent,
        fmt::format("{} was told {} times, asked for {} payments and {} timers, and is {}",
                    account.id, account.told, account.pays, account.timers, json::print(seen)));
  }

  void snapshot(Bank& bank) {
    if (schedule_.chance(70)) return;
    world_.call({"POST", bank.path("/checkpoint"), "{}"}, [this, &bank](auto r) {
      if (!r || r->status == 503 || r->status == 429) return;
      world_.expect(r->status == 200, fmt::format("a snapshot answers {} {}", r->status, r->body));
      const uint64_t height = number_in(body_of(*r), "height");
      bank.height = std::max(bank.height, height);
      // Records before the snapshot are not needed any more.
      if (schedule_.one_in(4)) compact(bank, number_in(body_of(*r), "snapshot_height"));
    });
  }

  void compact(Bank& bank, uint64_t height) {
    if (height < 2) return;
    bank.compacted = true;
    world_.call({"POST", bank.path("/compact"), fmt::format(R"({{"through":{}}})", height - 1)},
                [this](std::optional<wire::Response> r) {
                  if (!r || r->status == 503 || r->status == 429) return;
                  world_.expect(r->status == 200 || r->status == 409 || r->status == 400,
                                fmt::format("a compaction answers {} {}", r->status, r->body));
                });
  }

  // An operator upgrades the workflow again and again: propose, shadow, approve, apply.
  void operate(Bank& bank) {
    if (world_.calm()) return;
    schedule_.after(60 * kSecond + 8 * world_.pause(), [this, &bank] { operate(bank); });
    if (std::exchange(proposing_[bank.id], true)) return;
    const std::string definition = bank.path(fmt::format("/defs/workflow/{}", kAccountWorkflow));
    world_.call({"GET", definition}, [this, &bank](std::optional<wire::Response> r) {
      if (r && r->status == 200) return propose(bank, body_of(*r));
      proposing_[bank.id] = false;
    });
  }

  void propose(Bank& bank, const json::Value& now) {
    const uint64_t next = upgrades_[bank.id] + 1;
    const json::Value replace =
        json::object({{"kind", "defworkflow"},
                      {"name", kAccountWorkflow},
                      {"new_node", account_workflow(next % 2 ? "step2" : "step")},
                      {"pre_hash", now.string_or("hash")}});
    const json::Value patch =
        json::object({{"version", "2"},
                      {"base_manifest_hash", now.string_or("manifest_hash")},
                      {"patches", json::Array{json::object({{"replace_def", replace}})}}});
    govern(bank, "propose", json::object({{"patch", patch}}),
           [this, &bank](const json::Value& done) {
             const json::Value* result = done.find("result");
             if (done.string_or("status") != "succeeded" || !result)
               return world_.expect(false, "a proposal failed: " + json::print(done));
             go_on(bank, number_in(*result, "proposal_id"));
           });
  }

  void go_on(Bank& bank, uint64_t proposal) {
    const json::Value named = json::object({{"proposal_id", proposal}, {"approver", "ann"}});
    govern(bank, "shadow", named, [this, &bank, named](const json::Value& shadowed) {
      world_.expect(shadowed.string_or("status") == "succeeded",
                    "a shadow run failed: " + json::print(shadowed));
      govern(bank, "approve", named, [this, &bank, named](const json::Value& approved) {
        world_.expect(approved.string_or("status") == "succeeded",
                      "an approval failed: " + json::print(approved));
        upgrading_[bank.id] = true;
        govern(bank, "apply?mode=relaxed", named, [this, &bank](const json::Value& applied) {
          upgrading_[bank.id] = proposing_[bank.id] = false;
          if (applied.string_or("status") == "succeeded") {
            ++upgrades_[bank.id];
            return;
          }
          // Work that is under way refuses an upgrade; the next proposal tries again.
          world_.expect(json::print(applied).find("apply_inflight") != std::string::npos,
                        "an upgrade failed: " + json::print(applied));
        });
      });
    });
  }

  // A command is carried out once under its id, and its outcome never changes.
  void govern(Bank& bank, const std::string& action, json::Value body,
              std::function<void(const json::Value&)> done) {
    const std::string command = fmt::format("command-{}", ++commands_);
    body.object().set("command_id", command);
    call_until_answered(
        world_, {"POST", bank.path("/governance/" + action), json::print(body)},
        [this, &bank, action, command, done = std::move(done)](const wire::Response& r) {
          world_.expect(r.status == 200, fmt::format("{} answers {} {}", action, r.status, r.body));
          const json::Value outcome = body_of(r);
          schedule_.after(120 * kSecond, [this, &bank, command, outcome] {
            look_at_command(bank, command, outcome);
          });
          done(outcome);
        });
  }

  void look_at_command(const Bank& bank, const std::string& command, const json::Value& told) {
    world_.call({"GET", bank.path("/commands/" + command)},
                [this, command, told](std::optional<wire::Response> r) {
                  if (!r || r->status == 503 || r->status == 429) return;
                  world_.expect(r->status == 200 && body_of(*r) == told,
                                fmt::format("the outcome of {} was {} and is {} {}", command,
                                            json::print(told), r->status, r->body));
                });
  }

  // A fork at the head is as the world itself.
  void fork(Bank& bank) {
    const std::string copy = bank.id + "-fork";
    call_until_answered(
        world_, {"POST", bank.path("/fork"), json::print(json::object({{"world_id", copy}}))},
        [this, &bank, copy](const wire::Response& r) {
          world_.expect(r.status == 201, fmt::format("a fork answers {} {}", r.status, r.body));
          for (const auto& [name, account] : bank.accounts) {
            if (!account.exists) continue;
            const Bank forked{.id = copy};
            read(bank, state_path(forked, account), forks_[copy][name]);
          }
        });
  }

  void compare_fork(const Bank& bank) {
    for (const auto& [name, seen] : forks_[bank.id + "-fork"]) {
      const json::Value& live = bank.accounts.at(name).last;
      world_.expect(seen.string_or("state_b64") == live.string_or("state_b64"),
                    fmt::format("{} of a fork of {} is {} and not {}", name, bank.id,
                                json::print(seen), json::print(live)));
    }
  }

  Session& world_;
  Schedule& schedule_;
  std::map<std::string, Bank> banks_;
  std::map<std::string, RecordReaders> readers_;
  Executors executors_;
  std::map<std::string, json::Value> totals_, runtime_;
  std::map<std::string, std::map<std::string, json::Value>> forks_;  // by world, then account
  std::map<std::string, uint64_t> upgrades_;  // that were acknowledged, by world
  std::map<std::string, bool> proposing_;     // one proposal at a time
  std::map<std::string, bool> upgrading_;     // it is being applied
  uint64_t last_n_ = 0, commands_ = 0;
};

}  // namespace

std::unique_ptr<Client> make_worlds_client(Session& world) {
  return std::make_unique<WorldsClient>(world);
}

}  // namespace pawl::sim
