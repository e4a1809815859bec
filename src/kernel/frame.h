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
    Seq before = 0;   // version that this write replaced; 0: none
    StoredPtr value;  // null: erased
  };
  Seq seq = 0;
  std::string program;
  std::vector<Input> inputs;  // the first began the turn; later ones are receipts and joins
  std::vector<Write> writes;  // in key order
  std::vector<Bytes> notes;
  // Cells that the turn stands on as it read them although others had changed them when it was
  // committed.
  struct StaleRead {
    Key key;
    Seq version = 0;  // that it read; 0: it was not there
  };
  std::vector<StaleRead> stale_reads;  // in key order
  Time now() const { return inputs.empty() ? 0 : inputs.back().stamp.now; }
};

// The body is what verify compares; a journal entry is the link to the frame before and the body.
Bytes encode_body(const Frame& frame);
Bytes encode_entry(const Frame& frame);  // its link is still to come
void seal(Bytes& entry, const Digest& before);
inline BytesView body_of(BytesView entry) { return entry.substr(sizeof(Digest)); }
struct Sealed {
  Digest before;
  Digest own;  // the link for the next frame
  BytesView body;
};
Result<Sealed> unseal(BytesView entry);
Result<Frame> decode_frame(Seq seq, BytesView body);
// Only what replay needs: writes, notes, who began it and when it ended. Its inputs are one input
// without verb and body. Into a frame that was used before, whose memory serves again.
Result<void> decode_outcome(Seq seq, BytesView body, Frame& into);

}  // namespace pawl
