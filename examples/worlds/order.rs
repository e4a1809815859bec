//! An order is charged at once. A failed charge is repeated after a growing pause, and the third failure
//! closes the order as failed. Closing emits an event for other workflows. Events
//! that come after it are ignored, so duplicates do no harm. The same as order.cc.

use pawl_world::{step, In, Item, Out, Terms};

const ATTEMPTS: u64 = 3;
const SECOND: u64 = 1_000_000_000;

struct Order<'a> {
    pc: &'a str,
    amount: u64,
    attempts: u64,
    last_status: &'a str,
}

impl<'a> Order<'a> {
    fn read(input: &In<'a>) -> Order<'a> {
        let state = input.state();
        Order {
            pc: if input.has_state() { state.get("pc").get("$tag").text() } else { "Idle" },
            amount: state.get("amount_cents").number(),
            attempts: state.get("attempts").number(),
            last_status: state.get("last_status").text(),
        }
    }

    fn write(&self, out: &mut Out) {
        out.state(|w| {
            w.map(4).text("pc").arm(self.pc).text("amount_cents").number(self.amount);
            w.text("attempts").number(self.attempts).text("last_status");
            match self.last_status {
                "" => w.null(),
                status => w.text(status),
            };
        });
    }

    fn is_over(&self) -> bool {
        self.pc == "Done" || self.pc == "Failed"
    }

    fn charge(&mut self, input: &In, out: &mut Out) {
        self.pc = "AwaitingCharge";
        self.attempts += 1;
        let id = order_id(input);
        let key = format!("charge:{}:{}", id, self.attempts);
        out.effect_on(
            "shop/charge@1",
            |w| {
                w.map(3).text("order_id").text(id).text("amount_cents").number(self.amount);
                w.text("attempt").number(self.attempts);
            },
            Terms { issuer: "payments", idempotency_key: key.as_bytes() },
        );
    }

    fn close(&mut self, input: &In, out: &mut Out, ok: bool) {
        self.pc = if ok { "Done" } else { "Failed" };
        out.event("shop/OrderClosed@1", |w| {
            w.map(2).text("order_id").text(order_id(input)).text("ok").boolean(ok);
        });
    }

    fn charged(&mut self, input: &In<'a>, out: &mut Out) {
        let event = input.event();
        self.last_status = event.get("status").text();
        if self.last_status == "ok" && event.get("receipt_payload").inside().get("code").integer() == 0 {
            return self.close(input, out, true);
        }
        if self.attempts >= ATTEMPTS {
            return self.close(input, out, false);
        }
        self.pc = "Backoff";
        let at = input.now_ns() + (SECOND << self.attempts);
        out.effect("sys/timer.set@1", |w| {
            w.map(2).text("deliver_at_ns").number(at).text("key").text(order_id(input));
        });
    }
}

/// The key is canonical CBOR of the order's id.
fn order_id<'a>(input: &In<'a>) -> &'a str {
    Item::new(input.key()).text()
}

step! {
    fn step(input, out) {
        let mut order = Order::read(input);
        match (input.arm(), order.pc) {
            ("Cancelled", _) if order.is_over() => return out.erase(),
            ("Created", _) if !input.has_state() => {
                order.amount = input.event().get("amount_cents").number();
                if order.amount > 0 {
                    order.charge(input, out)
                } else {
                    order.close(input, out, true)
                }
            }
            ("Receipt", "AwaitingCharge") => order.charged(input, out),
            ("Receipt", "Backoff") => order.charge(input, out),
            ("Rejected", _) if !order.is_over() && input.has_state() => order.close(input, out, false),
            _ if !input.has_state() => return out.erase(),
            _ => {}
        }
        order.write(out);
    }
}
