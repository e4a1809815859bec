// Notes, one cell for each. Creating a note twice and editing with an outdated revision change
// nothing. Tags are added to the set of tags. Archiving deletes the cell.

#include "pawl_world.hpp"

using pawl::Item;
using pawl::View;
using pawl::Writer;

namespace {

struct Note {
  View title, body;
  uint64_t revision = 1;
  Item tags{}, more{};  // the state's tags, and those to unite
};

void write(pawl::Out& out, const Note& n) {
  out.state([&](Writer& w) {
    w.map(4)
        .text("title")
        .text(n.title)
        .text("body")
        .text(n.body)
        .text("revision")
        .number(n.revision);
    w.text("tags").list(n.tags.count() +
                        n.more.count());  // the host sorts a set and drops duplicates
    for (uint32_t i = 0; i < n.tags.count(); ++i)
      w.text(n.tags.at(i).text());
    for (uint32_t i = 0; i < n.more.count(); ++i)
      w.text(n.more.at(i).text());
  });
}

}  // namespace

PAWL_STEP(step) {
  const View arm = in.arm();
  const Item event = in.event(), state = in.state();
  if (arm == "Archived") return out.erase();
  if (!in.has_state()) {
    if (arm == "Created") write(out, {event.get("title").text(), event.get("body").text()});
    return;
  }
  Note note{state.get("title").text(), state.get("body").text(), state.get("revision").number(),
            state.get("tags")};
  if (arm == "Edited") {
    const Item expected = event.get("expect_revision");
    if (expected.is_null() || expected.number() == note.revision)
      note.body = event.get("body").text(), ++note.revision;
  } else if (arm == "Tagged") {
    note.more = event.get("tags");
  }
  write(out, note);
}
