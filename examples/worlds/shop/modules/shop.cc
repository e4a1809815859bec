// Orders are charged, then shipped. A charge that fails is repeated after a pause; a customer may
// cancel until the order is paid. Money that was taken for an order that is not shipped goes back.
// The ledger counts orders that are closed.

#include "pawl_world.hpp"

using pawl::In;
using pawl::Out;
using pawl::View;
using pawl::Writer;

namespace {

constexpr uint64_t kAttempts = 3;
constexpr uint64_t kSecond = 1'000'000'000;

struct Order {
  View pc{};  // Charging, Backoff, Shipping, Refunding; at the end Shipped, Cancelled or Failed
  uint64_t amount = 0, attempts = 0;
  bool cancelled = false, charged = false, refunded = false;
};

Order read(const In& in) {
  Order o;
  if (!in.has_state()) return o;
  o.pc = in.state().get("pc").get("$tag").text();
  o.amount = in.state().get("amount_cents").number();
  o.attempts = in.state().get("attempts").number();
  o.cancelled = in.state().get("cancelled").boolean();
  o.charged = in.state().get("charged").boolean();
  o.refunded = in.state().get("refunded").boolean();
  return o;
}

void write(Out& out, const Order& o) {
  out.state([&](Writer& w) {
    w.map(6).text("pc").arm(o.pc).text("amount_cents").number(o.amount);
    w.text("attempts").number(o.attempts).text("cancelled").boolean(o.cancelled);
    w.text("charged").boolean(o.charged).text("refunded").boolean(o.refunded);
  });
}

bool is_over(const Order& o) {
  return o.pc == "Shipped" || o.pc == "Cancelled" || o.pc == "Failed";
}

// The key is canonical CBOR of the order's id.
View order_id(const In& in) {
  return pawl::Item(in.key().data, in.key().data + in.key().size).text();
}

void money(const In& in, Out& out, Order& o, View effect, View pc) {
  o.pc = pc;
  out.effect(effect, [&](Writer& w) {
    w.map(2).text("order_id").text(order_id(in)).text("amount_cents").number(o.amount);
  });
}

void charge(const In& in, Out& out, Order& o) {
  ++o.attempts;
  money(in, out, o, "shop/charge@1", "Charging");
}

void close(const In& in, Out& out, Order& o, View pc) {
  o.pc = pc;
  out.event("shop/OrderClosed@1", [&](Writer& w) {
    w.map(3).text("order_id").text(order_id(in)).text("shipped").boolean(pc == "Shipped");
    w.text("amount_cents").number(o.amount);
  });
}

// The order will not be shipped: money that was taken goes back first.
void give_up(const In& in, Out& out, Order& o) {
  if (o.charged && !o.refunded) return money(in, out, o, "shop/refund@1", "Refunding");
  close(in, out, o, o.cancelled ? View("Cancelled") : View("Failed"));
}

void charged(const In& in, Out& out, Order& o, bool ok) {
  o.charged = ok && in.event().get("receipt_payload").inside().get("code").integer() == 0;
  if (o.cancelled) return give_up(in, out, o);
  if (o.charged) {
    o.pc = "Shipping";
    return out.effect("shop/ship@1",
                      [&](Writer& w) { w.map(1).text("order_id").text(order_id(in)); });
  }
  if (o.attempts >= kAttempts) return give_up(in, out, o);
  o.pc = "Backoff";
  const uint64_t at = in.now_ns() + 30 * kSecond * o.attempts;
  out.effect("sys/timer.set@1", [&](Writer& w) {
    w.map(2).text("deliver_at_ns").number(at).text("key").text(order_id(in));
  });
}

// `ok` is false for an error, a timeout, and a receipt that does not fit its schema.
void receipt(const In& in, Out& out, Order& o, bool ok) {
  if (o.pc == "Charging") return charged(in, out, o, ok);
  if (o.pc == "Backoff") return o.cancelled ? give_up(in, out, o) : charge(in, out, o);
  if (o.pc == "Shipping") return ok ? close(in, out, o, "Shipped") : give_up(in, out, o);
  o.refunded = ok;
  give_up(in, out, o);
}

}  // namespace

PAWL_STEP(order) {
  Order o = read(in);
  const View arm = in.arm();
  if (arm == "Placed" && !in.has_state()) {
    o.amount = in.event().get("amount_cents").number();
    charge(in, out, o);
  } else if (!in.has_state()) {
    return out.erase();  // nobody placed this order
  } else if (arm == "Cancelled" && (o.pc == "Charging" || o.pc == "Backoff")) {
    o.cancelled = true;
  } else if ((arm == "Receipt" || arm == "Rejected") && !is_over(o)) {
    receipt(in, out, o, arm == "Receipt" && in.event().get("status").text() == "ok");
  }
  write(out, o);
  if (is_over(o)) out.complete();
}

PAWL_STEP(ledger) {
  const bool shipped = in.event().get("shipped").boolean();
  const uint64_t amount = in.event().get("amount_cents").number();
  out.state([&](Writer& w) {
    w.map(3).text("closed").number(in.state().get("closed").number() + 1);
    w.text("shipped").number(in.state().get("shipped").number() + (shipped ? 1 : 0));
    w.text("revenue_cents")
        .number(in.state().get("revenue_cents").number() + (shipped ? amount : 0));
  });
}
