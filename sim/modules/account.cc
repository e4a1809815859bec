// The module of the simulated worlds. An account counts what happened to it, so that everything
// that is lost or happens twice shows in its state. Built with: sdk/wasm/build
// sim/modules/account.cc

#include "pawl_world.hpp"

using pawl::In;
using pawl::Item;
using pawl::Out;
using pawl::View;
using pawl::Writer;

namespace {

struct Account {
  uint64_t balance = 0, adds = 0, told = 0, paid = 0, refused = 0, frames = 0;
  // Timers: how many are set, how many fired, how many of them too early, and a time before which
  // none may fire.
  uint64_t set = 0, fired = 0, early = 0, due = 0;
};

Account read(const In& in) {
  const Item s = in.state();
  return {s.get("balance").number(), s.get("adds").number(),    s.get("told").number(),
          s.get("paid").number(),    s.get("refused").number(), s.get("frames").number(),
          s.get("set").number(),     s.get("fired").number(),   s.get("early").number(),
          s.get("due").number()};
}

void write(Out& out, const Account& a, uint64_t version) {
  out.state([&](Writer& w) {
    w.map(11).text("balance").number(a.balance).text("adds").number(a.adds);
    w.text("told").number(a.told).text("paid").number(a.paid).text("refused").number(a.refused);
    w.text("frames").number(a.frames).text("set").number(a.set).text("fired").number(a.fired);
    w.text("early").number(a.early).text("due").number(a.due).text("version").number(version);
  });
}

// The key is canonical CBOR of the account's id.
View id_of(const In& in) { return Item(in.key().data, in.key().data + in.key().size).text(); }

void add(const In& in, Out& out, Account& a) {
  const Item event = in.event();
  const uint64_t n = event.get("n").number();
  a.balance += n;
  ++a.adds;
  for (uint64_t i = 0; i < event.get("pays").number(); ++i)
    out.effect("sim/pay@1", [&](Writer& w) {
      w.map(3).text("id").text(id_of(in)).text("n").number(n).text("index").number(i);
    });
  if (const uint64_t wait = event.get("wait_ns").number()) {
    const uint64_t due = in.now_ns() + wait;
    if (a.set == a.fired || due < a.due) a.due = due;
    ++a.set;
    out.effect("sys/timer.set@1", [&](Writer& w) { w.map(1).text("deliver_at_ns").number(due); });
  }
  if (const View to = event.get("tell").text(); to.size)
    out.event("sim/Told@1", [&](Writer& w) { w.map(2).text("id").text(to).text("n").number(n); });
}

void receipt(const In& in, Account& a) {
  const Item event = in.event();
  if (event.get("effect").text() == "sys/timer.set@1") {
    ++a.fired;
    if (in.now_ns() < a.due) ++a.early;
    return;
  }
  const Item payload = event.get("receipt_payload").inside();
  const bool ok = event.get("status").text() == "ok" && payload.get("code").integer() == 0;
  ++(ok ? a.paid : a.refused);
}

void step_of(const In& in, Out& out, uint64_t version) {
  Account a = read(in);
  const View arm = in.arm();
  if (arm == "Add") {
    const View how = in.event().get("how").text();
    if (how == "trap") pawl::trap();
    if (how == "erase") return out.erase();
    if (how == "complete") out.complete();
    add(in, out, a);
  } else if (arm == "Told") {
    ++a.told;
  } else if (arm == "Receipt") {
    receipt(in, a);
  } else if (arm == "Rejected") {
    ++a.refused;
  } else if (arm == "Frame") {
    ++a.frames;
  }
  write(out, a, version);
}

}  // namespace

PAWL_STEP(step) { step_of(in, out, 1); }
// The same under a later manifest.
PAWL_STEP(step2) { step_of(in, out, 2); }

// One cell of the world counts the additions of all accounts.
PAWL_STEP(total) {
  const uint64_t adds = in.state().get("adds").number() + 1;
  const uint64_t sum = in.state().get("sum").number() + in.event().get("n").number();
  out.state([&](Writer& w) { w.map(2).text("adds").number(adds).text("sum").number(sum); });
}
