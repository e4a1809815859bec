#pragma once
// A command is what a caller wants written: one or more items that succeed or fail as one
// transaction. It travels as the body of an input, so it can be read back from the frame.

#include <string>
#include <vector>

#include "json/value.h"
#include "kernel/cell.h"

namespace pawl::entities {

struct Item {
  enum Op : uint8_t {
    create = 1,  // model, version, data
    update,      // id, data: the document is replaced
    patch,       // id, data: RFC 7386 over the document
    fire,        // id: the transition with the document as it is
    due,         // id: a scheduled transition whose time has come
  };
  Op op = create;
  std::string model{};
  int32_t version = 0;
  std::string id{};
  std::string data{};        // compact JSON, names sorted
  json::Value value{};       // the same, parsed; not encoded
  std::string transition{};  // empty: loopback
  std::string if_match{};    // the transaction id that the caller last read
};

struct Command {
  std::vector<Item> items{};
  bool lenient = false;   // a stale if_match fails its item only
  bool warnings = false;  // the answer lists them
  std::string tx{};       // of the transaction that it joins; empty for its own
};

Bytes encode(const Command& command);
Result<Command> decode_command(BytesView bytes);
Result<Command> decode_command(Reader& reader);

}  // namespace pawl::entities
