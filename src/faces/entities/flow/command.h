#pragma once
// A Command is a request to write entities: one or more items that succeed or fail as one
// transaction. It is the body of an input, so the journal holds it in the frame.

#include <string>
#include <vector>

#include "json/value.h"
#include "kernel/cell.h"

namespace pawl::entities {

struct Item {
  enum Op : uint8_t {
    create = 1,  // needs model, version, data
    update,      // needs id, data: replaces the document
    patch,       // needs id, data: an RFC 7386 merge patch of the document
    fire,        // needs id, transition: fires the transition and keeps the document
    due,         // needs id, transition: fires a scheduled transition; if_match names its timer
  };
  Op op = create;
  std::string model{};
  int32_t version = 0;
  std::string id{};
  std::string data{};        // compact JSON with sorted names
  json::Value value{};       // `data` parsed; not encoded
  std::string transition{};  // empty: loopback, a save without a transition
  std::string if_match{};    // the transaction that the caller last read; empty: not checked
};

struct Command {
  std::vector<Item> items{};
  bool lenient = false;   // true: a stale if_match fails only its item
  bool warnings = false;  // true: the answer lists the warnings
  std::string tx{};       // the open transaction to join; empty: a new one
};

Bytes encode(const Command& command);
Result<Command> decode_command(BytesView bytes);

}  // namespace pawl::entities
