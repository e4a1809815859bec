//! The smallest keyed workflow: counts by `inc`; an inc of 0 deletes the cell.

use pawl_world::step;

step! {
    fn step(input, out) {
        let inc = input.event().get("inc").number();
        if inc == 0 {
            return out.erase();
        }
        let count = input.state().get("count").number() + inc;
        out.state(|w| { w.map(1).text("count").number(count); });
    }
}
