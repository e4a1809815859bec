#pragma once
// A frame is a committed turn: its inputs and everything they changed. Its bytes are described in
// docs/formats/frame.md.

#include <vector>

#include "base/hash.h"
#include "kernel/effect.h"
#include "kernel/input.h"

namespace pawl {

struct Frame {
  struct Write {
    Key key;
    Seq before = 0;   // the version that this write replaced; 0: none
    StoredPtr value;  // null: erased
  };
  Seq seq = 0;
  std::string program;
  std::vector<Input> inputs;  // the first began the turn; the others are receipts and joins
  std::vector<Write> writes;  // in key order
  std::vector<Bytes> notes;
  // Reads that were out of date at commit and that the program accepted
  // (Program::accepts_stale_read).
  struct StaleRead {
    Key key;
    Seq version = 0;  // the version that was read; 0: the cell was absent
  };
  std::vector<StaleRead> stale_reads;  // in key order
  // The answer under the Idempotency-Key waits for an effect that this frame opened.
  bool once_waits = false;
  // The effect of another shard that began the turn; null for other turns.
  const Delivery* delivery() const {
    return inputs.empty() ? nullptr : inputs.front().delivery.get();
  }
  Time now() const { return inputs.empty() ? 0 : inputs.back().stamp.now; }
};

// A journal entry is a link to the previous frame followed by the body. `pawl verify` compares
// bodies.
Bytes encode_body(const Frame& frame);
Bytes encode_entry(const Frame& frame);  // with room for the link, which seal() fills in
void seal(Bytes& entry, const Digest& before);
inline BytesView body_of(BytesView entry) { return entry.substr(sizeof(Digest)); }
struct Sealed {
  Digest before;
  Digest own;  // the link for the next frame
  BytesView body;
};
Result<Sealed> unseal(BytesView entry);
Result<Frame> decode_frame(Seq seq, BytesView body);
// Decodes only what replay needs: writes, notes, the caller and the last timestamp. The frame gets
// a single input without verb and body. Reuses the memory of `into`.
Result<void> decode_outcome(Seq seq, BytesView body, Frame& into);

}  // namespace pawl
