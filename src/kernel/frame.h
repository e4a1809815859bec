#pragma once
// A frame is a committed turn: its inputs and everything they changed. docs/formats/frame.md is the
// page for its bytes.

#include <vector>

#include "base/hash.h"
#include "kernel/effect.h"
#include "kernel/input.h"

namespace pawl {

struct Frame {
  struct Write {
    Key key;
    Seq before = 0;  // version that this write replaced; 0: none
    StoredPtr value;  // null: erased
  };
  Seq seq = 0;
  std::string program;
  std::vector<Input> inputs;   // the first began the turn; later ones are receipts and joins
  std::vector<Write> writes;   // in key order
  std::vector<Bytes> notes;
  Time now() const { return inputs.empty() ? 0 : inputs.back().stamp.now; }
};

// The body is what verify compares; the entry adds the link to the frame before.
Bytes encode_body(const Frame& frame);
Bytes seal(BytesView body, const Digest& before);  // body + chain -> journal entry
struct Sealed {
  Digest before;
  Digest own;  // the link for the next frame
  BytesView body;
};
Result<Sealed> unseal(BytesView entry);
Result<Frame> decode_frame(Seq seq, BytesView body);
// Only what replay needs: writes, notes, who began it and when it ended. Its inputs are one input
// without verb and body.
Result<Frame> decode_outcome(Seq seq, BytesView body);

}  // namespace pawl
