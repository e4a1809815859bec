// Executors of the payments of simulated worlds.

#include <fmt/format.h>

#include "json/text.h"
#include "sim/clients/bank.h"
#include "sim/clients/client.h"

namespace pawl::sim {

// One executor: it asks for work all the time.
void Executors::poll() {
  Schedule& schedule = world_.schedule();
  const Time asked = schedule.elapsed();
  const uint64_t life = world_.life();
  const uint64_t lease_ms = 5000 + schedule.roll(60'000);
  const uint64_t wait = world_.calm() ? 30'000 : schedule.chance(30) ? 0 : schedule.roll(30'000);
  const json::Value body = json::object({{"worker", fmt::format("x{}", schedule.roll(3))},
                                         {"effects", json::Array{std::string(kPayEffect)}},
                                         {"limit", 1 + schedule.roll(4)},
                                         {"lease_ms", lease_ms},
                                         {"wait_ms", wait}});
  world_.call({"POST", "/v1/effects/poll", json::print(body)},
              [this, asked, life, lease_ms](std::optional<wire::Response> r) {
                if (r && r->status == 200) {
                  const json::Value answer = body_of(*r);
                  const json::Value* work = answer.find("work");
                  if (work && work->is_array())
                    for (const json::Value& item : work->array())
                      take(item, asked, life, lease_ms);
                }
                const Time pause = world_.calm() ? kSecond : world_.pause() / 4;
                world_.later(pause, [this] { poll(); });
              });
}

void Executors::take(const json::Value& work, Time asked, uint64_t life, uint64_t lease_ms) {
  const std::string intent(work.string_or("intent_hash"));
  auto bank = banks_.find(std::string(work.string_or("world_id")));
  const json::Value* params = work.find("params");
  if (bank == banks_.end() || !params)
    return world_.expect(false, "work of a world that is not ours: " + json::print(work));
  const std::string account(params->string_or("id"));
  // An addition that is carried out again would ask for its payments again.
  const std::string name =
      fmt::format("{}/{}/{}", account, number_in(*params, "n"), number_in(*params, "index"));
  const std::string& first = bank->second.intents.emplace(name, intent).first->second;
  world_.expect(first == intent, fmt::format("{} of {} was asked for twice: {} and {}", name,
                                             bank->first, first, intent));
  Payment& payment = bank->second.payments[intent];
  payment.account = account;
  payment.n = number_in(*params, "n");
  check_offer(bank->second, work, payment, asked, life, lease_ms);
  carry_out(bank->second, work);
}

void Executors::check_offer(Bank& bank, const json::Value& work, Payment& payment, Time asked,
                            uint64_t life, uint64_t lease_ms) {
  const std::string intent(work.string_or("intent_hash"));
  const Time ends = static_cast<Time>(number_in(work, "leased_until_ns"));
  const Time leased = ends - static_cast<Time>(lease_ms) * kMillisecond;
  world_.expect(!payment.settled || asked < payment.settled,
                intent + " was settled and is offered again");
  const Account& account = bank.accounts[payment.account];
  world_.expect(payment.n >= account.erased_by || asked < account.erased,
                fmt::format("{} is offered although {} was erased", intent, payment.account));
  // A restart forgets leases; the poll may have waited over one.
  const bool same_life = payment.life == life && life == world_.life();
  if (payment.told && same_life && asked > payment.told && !payment.released)
    world_.expect(leased + kSecond >= payment.ends,
                  fmt::format("{} was given to a second executor {} ms before its lease ended",
                              intent, (payment.ends - leased) / kMillisecond));
  payment.ends = same_life ? std::max(payment.ends, ends) : ends;
  payment.told = world_.schedule().elapsed();
  payment.life = life == world_.life() ? life : 0;
}

void Executors::carry_out(Bank& bank, const json::Value& work) {
  Schedule& schedule = world_.schedule();
  const std::string intent(work.string_or("intent_hash"));
  if (world_.strikes(Fault::lost_lease, 10)) return;
  Time takes = static_cast<Time>(schedule.roll(4 * kSecond));
  if (world_.strikes(Fault::late_answer, 10))
    takes += static_cast<Time>(schedule.roll(180 * kSecond));
  if (!world_.calm() && schedule.one_in(12))
    return schedule.after(takes, [this, &bank, intent] { release(bank, intent); });
  if (schedule.one_in(4)) send_frame(bank, work);
  const bool good = schedule.chance(70);
  schedule.after(takes, [this, &bank, intent, good] { settle(bank, intent, good); });
  if (world_.strikes(Fault::twice_answered, 6))
    schedule.after(takes + static_cast<Time>(schedule.roll(20 * kSecond)),
                   [this, &bank, intent, good] { settle(bank, intent, !good); });
}

// The first frame of the intent. A repetition of it is dropped.
void Executors::send_frame(Bank& bank, const json::Value& work) {
  json::Value body = json::object({{"seq", 1}, {"kind", "progress"}, {"payload", "half"}});
  for (const char* name : {"intent_hash", "effect", "effect_hash", "executor_module",
                           "executor_module_hash", "executor_entrypoint", "origin_module_id",
                           "origin_workflow_hash", "origin_instance_key_b64", "emitted_at_seq"})
    if (const json::Value* value = work.find(name)) body.object().set(name, *value);
  Account& account =
      bank.accounts[bank.payments[std::string(work.string_or("intent_hash"))].account];
  ++account.frames_sent;
  world_.call({"POST", bank.path("/frames"), json::print(body)},
              [this, &account](std::optional<wire::Response> r) {
                if (!r || r->status == 503 || r->status == 429) return;
                world_.expect(r->status == 202,
                              fmt::format("a frame answers {} {}", r->status, r->body));
                if (body_of(*r).string_or("status") == "accepted") ++account.frames_accepted;
              });
}

void Executors::release(Bank& bank, const std::string& intent) {
  bank.payments[intent].released = true;
  const json::Value body = json::object({{"world_id", bank.id}, {"intent_hash", intent}});
  world_.call({"POST", "/v1/effects/release", json::print(body)}, [this](auto r) {
    if (r && r->status != 503)
      world_.expect(r->status == 200, fmt::format("release answers {} {}", r->status, r->body));
  });
}

void Executors::settle(Bank& bank, const std::string& intent, bool good) {
  json::Value body = json::object({{"intent_hash", intent}, {"status", "ok"}});
  const uint64_t how = world_.schedule().roll(4);
  if (good || how < 2)
    body.object().set("payload", json::object({{"code", good ? 0 : 7}}));
  else
    body.object().set("status", how == 2 ? "error" : "timeout");
  call_until_answered(world_, {"POST", bank.path("/receipts"), json::print(body)},
                      [this, &bank, intent](const wire::Response& r) {
                        // Records that are compacted away may have taken the memory of the intent
                        // with them.
                        const bool known = r.status == 202 || r.status == 200 ||
                                           (r.status == 404 && bank.compacted);
                        world_.expect(known, fmt::format("the receipt of {} answers {} {}", intent,
                                                         r.status, r.body));
                        Payment& payment = bank.payments[intent];
                        if (!payment.settled) payment.settled = world_.schedule().elapsed();
                      });
}

}  // namespace pawl::sim
