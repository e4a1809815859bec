// An order is charged at once. A failed charge is repeated after a growing pause, and the third
// failure closes the order as failed. Closing emits an event for other workflows. Events that come
// after it are ignored, so duplicates do no harm.

#include "pawl_world.hpp"

using pawl::In;
using pawl::Out;
using pawl::View;
using pawl::Writer;

namespace {

constexpr uint64_t kAttempts = 3;
constexpr uint64_t kSecond = 1'000'000'000;

// `pc` is the state of the order: Idle, AwaitingCharge, Backoff, Done or Failed.
struct Order {
  View pc = "Idle";
  uint64_t amount = 0, attempts = 0;
  View last_status{};
};

Order read(const In& in) {
  Order o;
  if (!in.has_state()) return o;
  o.pc = in.state().get("pc").get("$tag").text();
  o.amount = in.state().get("amount_cents").number();
  o.attempts = in.state().get("attempts").number();
  o.last_status = in.state().get("last_status").text();
  return o;
}

void write(Out& out, const Order& o) {
  out.state([&](Writer& w) {
    w.map(4)
        .text("pc")
        .arm(o.pc)
        .text("amount_cents")
        .number(o.amount)
        .text("attempts")
        .number(o.attempts)
        .text("last_status");
    if (o.last_status.size)
      w.text(o.last_status);
    else
      w.null();
  });
}

// The key is canonical CBOR of the order's id.
View order_id(const In& in) {
  return pawl::Item(in.key().data, in.key().data + in.key().size).text();
}

void charge(const In& in, Out& out, Order& o) {
  o.pc = "AwaitingCharge";
  ++o.attempts;
  const View id = order_id(in);
  // The idempotency key names the attempt, so that the payment service runs each attempt once.
  const uint8_t digit = static_cast<uint8_t>('0' + o.attempts);
  Writer key;
  key.raw("charge:").raw(id).raw(":").raw({&digit, 1});
  out.effect(
      "shop/charge@1",
      [&](Writer& w) {
        w.map(3)
            .text("order_id")
            .text(id)
            .text("amount_cents")
            .number(o.amount)
            .text("attempt")
            .number(o.attempts);
      },
      "payments", key.view());
}

void close(const In& in, Out& out, Order& o, bool ok) {
  o.pc = ok ? View("Done") : View("Failed");
  out.event("shop/OrderClosed@1", [&](Writer& w) {
    w.map(2).text("order_id").text(order_id(in)).text("ok").boolean(ok);
  });
}

void charged(const In& in, Out& out, Order& o) {
  const View status = in.event().get("status").text();
  o.last_status = status;
  if (status == "ok" && in.event().get("receipt_payload").inside().get("code").integer() == 0)
    return close(in, out, o, true);
  if (o.attempts >= kAttempts) return close(in, out, o, false);
  o.pc = "Backoff";
  // 2 s after the first attempt, 4 s after the second.
  const uint64_t at = in.now_ns() + (kSecond << o.attempts);
  out.effect("sys/timer.set@1", [&](Writer& w) {
    w.map(2).text("deliver_at_ns").number(at).text("key").text(order_id(in));
  });
}

}  // namespace

PAWL_STEP(step) {
  Order o = read(in);
  const View arm = in.arm();
  const bool over = o.pc == "Done" || o.pc == "Failed";
  if (over && arm == "Cancelled") return out.erase();
  if (arm == "Created" && !in.has_state()) {
    o.amount = in.event().get("amount_cents").number();
    if (o.amount > 0)
      charge(in, out, o);
    else
      close(in, out, o, true);
  } else if (arm == "Receipt" && o.pc == "AwaitingCharge") {
    charged(in, out, o);
  } else if (arm == "Receipt" && o.pc == "Backoff") {
    charge(in, out, o);
  } else if (arm == "Rejected" && !over && in.has_state()) {
    close(in, out, o, false);
  } else if (!in.has_state()) {
    return out.erase();
  }
  write(out, o);
}
