#include "faces/entities/flow/command.h"

#include "base/codec.h"
#include "json/text.h"

namespace pawl::entities {

template <class F, FieldsOf<Item> T>
void fields(F& f, T& item) {
  f(item.op);
  f(item.model);
  f(item.version);
  f(item.id);
  f(item.data);
  f(item.transition);
  f(item.if_match);
}

template <class F, FieldsOf<Command> T>
void fields(F& f, T& command) {
  f(command.items);
  f(command.lenient);
  f(command.warnings);
  f(command.tx);
}

Bytes encode(const Command& command) { return encode_fields(command); }

Result<Command> decode_command(BytesView bytes) {
  TRY(Command command, decode_fields<Command>(bytes, "an entity command"));
  for (Item& item : command.items) {
    if (item.data.empty()) continue;
    TRY(item.value, json::parse(item.data, {.max_bytes = limits::kCellBytes}));
  }
  return command;
}

}  // namespace pawl::entities
