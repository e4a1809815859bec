// One event for three workflows: audit counts it, stock takes the quantity off the shelf of its
// sku, mail sends a message. When the shelf runs low, stock emits a LowStock event, which reaches
// mail after the steps that are queued already.

#include "pawl_world.hpp"

using pawl::View;
using pawl::Writer;

static constexpr int64_t kShelf = 10, kLow = 3;

PAWL_STEP(audit) {
  const uint64_t seen = in.state().get("seen").number() + 1;
  out.state([&](Writer& w) {
    w.map(2).text("seen").number(seen).text("last").text(in.event().get("order").text());
  });
}

PAWL_STEP(stock) {
  const int64_t before = in.has_state() ? in.state().get("on_hand").integer() : kShelf;
  const int64_t left = before - static_cast<int64_t>(in.event().get("qty").number());
  out.state([&](Writer& w) { w.map(1).text("on_hand").integer(left); });
  if (left < kLow)
    out.event("fan/LowStock@1", [&](Writer& w) {
      w.map(2).text("sku").text(in.event().get("sku").text()).text("left").integer(left);
    });
}

PAWL_STEP(mail) {
  uint64_t sent = in.state().get("sent").number(), open = in.state().get("open").number();
  if (in.arm() == "Receipt") {
    ++sent;
    if (open > 0) --open;
  } else {
    ++open;
    const View url =
        in.arm() == "Low" ? View("https://mail.example/low") : View("https://mail.example/placed");
    out.effect("sys/http.request@1", [&](Writer& w) {
      w.map(3).text("method").text("POST").text("url").text(url).text("headers").map(0);
    });
  }
  out.state([&](Writer& w) { w.map(2).text("sent").number(sent).text("open").number(open); });
}
