//! One event for three workflows: audit counts it, stock takes the quantity off the shelf of its sku,
//! mail sends a message. When the shelf runs low, stock emits a LowStock event, which reaches mail
//! after the steps that are queued already. The same as fanout.cc.

use pawl_world::step;

const SHELF: i64 = 10;
const LOW: i64 = 3;

step! {
    fn audit(input, out) {
        let seen = input.state().get("seen").number() + 1;
        out.state(|w| { w.map(2).text("seen").number(seen).text("last").text(input.event().get("order").text()); });
    }
}

step! {
    fn stock(input, out) {
        let event = input.event();
        let before = if input.has_state() { input.state().get("on_hand").integer() } else { SHELF };
        let left = before - event.get("qty").number() as i64;
        out.state(|w| { w.map(1).text("on_hand").integer(left); });
        if left < LOW {
            out.event("fan/LowStock@1", |w| { w.map(2).text("sku").text(event.get("sku").text()).text("left").integer(left); });
        }
    }
}

step! {
    fn mail(input, out) {
        let state = input.state();
        let (mut sent, mut open) = (state.get("sent").number(), state.get("open").number());
        if input.arm() == "Receipt" {
            sent += 1;
            open = open.saturating_sub(1);
        } else {
            open += 1;
            let url = if input.arm() == "Low" { "https://mail.example/low" } else { "https://mail.example/placed" };
            out.effect("sys/http.request@1", |w| { w.map(3).text("method").text("POST").text("url").text(url).text("headers").map(0); });
        }
        out.state(|w| { w.map(2).text("sent").number(sent).text("open").number(open); });
    }
}
