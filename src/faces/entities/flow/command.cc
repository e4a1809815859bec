#include "faces/entities/flow/command.h"

#include "json/text.h"

namespace pawl::entities {

Bytes encode(const Command& command) {
  Bytes out;
  Writer w(out);
  w.uint(command.items.size());
  for (const Item& item : command.items) {
    w.u8(item.op);
    w.str(item.model);
    w.sint(item.version);
    w.str(item.id);
    w.str(item.data);
    w.str(item.transition);
    w.str(item.if_match);
  }
  w.boolean(command.lenient);
  w.boolean(command.warnings);
  w.str(command.tx);
  return out;
}

Result<Command> decode_command(Reader& r) {
  Command command;
  size_t count = r.count();
  for (size_t i = 0; i < count && r.ok(); ++i) {
    Item item;
    item.op = static_cast<Item::Op>(r.u8());
    item.model = r.str();
    item.version = static_cast<int32_t>(r.sint());
    item.id = r.str();
    item.data = r.str();
    item.transition = r.str();
    item.if_match = r.str();
    if (!item.data.empty()) {
      TRY(item.value, json::parse(item.data, {.max_bytes = limits::kCellBytes}));
    }
    command.items.push_back(std::move(item));
  }
  command.lenient = r.boolean();
  command.warnings = r.boolean();
  command.tx = r.str();
  if (!r.ok())
    return fail(Code::corrupt, "BAD_COMMAND",
                "an entity command cannot be read; run `pawl verify`");
  return command;
}

Result<Command> decode_command(BytesView bytes) {
  Reader r(bytes);
  return decode_command(r);
}

}  // namespace pawl::entities
