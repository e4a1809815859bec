//! Notes, one cell for each. Creating a note twice and editing with an outdated revision change nothing.
//! Tags are added to the set of tags. Archiving deletes the cell. The same as notes.cc.

use pawl_world::{step, Item, Out};

struct Note<'a> {
    title: &'a str,
    body: &'a str,
    revision: u64,
    tags: Item<'a>,
    more: Item<'a>, // to unite with them
}

fn write(out: &mut Out, note: &Note) {
    out.state(|w| {
        w.map(4).text("title").text(note.title).text("body").text(note.body).text("revision").number(note.revision);
        w.text("tags").list(note.tags.count() + note.more.count()); // the host sorts a set and drops duplicates
        for tag in note.tags.items().chain(note.more.items()) {
            w.text(tag.text());
        }
    });
}

step! {
    fn step(input, out) {
        let (event, state) = (input.event(), input.state());
        let none = Item::default();
        let mut note = if input.has_state() {
            Note {
                title: state.get("title").text(),
                body: state.get("body").text(),
                revision: state.get("revision").number(),
                tags: state.get("tags"),
                more: none,
            }
        } else if input.arm() == "Created" {
            Note { title: event.get("title").text(), body: event.get("body").text(), revision: 1, tags: none, more: none }
        } else {
            return out.erase();
        };
        match input.arm() {
            "Archived" => return out.erase(),
            "Edited" => {
                let expected = event.get("expect_revision");
                if expected.is_null() || expected.number() == note.revision {
                    note.body = event.get("body").text();
                    note.revision += 1;
                }
            }
            "Tagged" => note.more = event.get("tags"),
            _ => {}
        }
        write(out, &note);
    }
}
