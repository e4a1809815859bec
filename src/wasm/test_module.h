#pragma once
// Builds WASM modules in tests, section by section. The module that echo() returns is valid: its
// step returns the input. Tests add sections or replace them.

#include <map>

#include "base/bytes.h"

namespace pawl::wasm {

// An unsigned LEB128 number.
inline Bytes leb(uint64_t n) {
  Bytes out;
  do {
    const uint8_t byte = n & 0x7f;
    n >>= 7;
    out.push_back(static_cast<char>(n ? byte | 0x80 : byte));
  } while (n);
  return out;
}

inline Bytes hex_bytes(std::string_view text) { return *unhex(text); }
inline Bytes sized(const Bytes& content) { return leb(content.size()) + content; }

struct TestModule {
  std::map<uint8_t, Bytes> sections{};  // by number; written in the order of the specification

  Bytes bytes() const {
    Bytes out = hex_bytes("0061736d01000000");
    // The section of data counts (12) stands before the code (10).
    for (uint8_t id : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11})
      if (auto it = sections.find(id); it != sections.end())
        out += static_cast<char>(id) + sized(it->second);
    return out;
  }
};

// Types: 0 is (i32) -> (i32), 1 is (i32, i32) -> (i32, i32), 2 is () -> ().
// Functions: 0 is alloc, 1 is step, 2 is `extra` of type 2, which nothing calls.
inline TestModule echo(const Bytes& extra = hex_bytes("000b")) {
  TestModule m;
  m.sections[1] = hex_bytes("0360017f017f60027f7f027f7f600000");
  m.sections[3] = hex_bytes("03000102");
  m.sections[5] = hex_bytes("010001");  // one memory of one page
  m.sections[7] = hex_bytes("03066d656d6f7279020005616c6c6f6300000473746570") + hex_bytes("0001");
  m.sections[10] = hex_bytes("03") + sized(hex_bytes("004180080b")) +
                   sized(hex_bytes("00200020010b")) + sized(extra);
  return m;
}

// A module whose functions `step` and `trap` return the input. Modules with other marks have other
// bytes.
inline Bytes step_and_trap(const Bytes& mark = {}) {
  TestModule m = echo();
  m.sections[7] = hex_bytes("04066d656d6f7279020005616c6c6f6300000473746570000104747261700001");
  return m.bytes() + '\0' + sized(sized("mark") + mark);
}

}  // namespace pawl::wasm
