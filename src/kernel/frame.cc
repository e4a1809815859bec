#include "kernel/frame.h"

#include <fmt/format.h>

#include "kernel/delivery.h"

namespace pawl {

// The version is 1 plus these bits. With kBehind the stale reads follow, and with kDelivery the
// delivery that began the turn; both are written only when there are some.
static constexpr uint8_t kPlain = 1, kBehind = 1, kOnceWaits = 2, kDelivery = 4;
static constexpr uint8_t kNewest = kPlain + (kBehind | kOnceWaits | kDelivery);

static void encode_input(Writer& w, const Input& in) {
  w.str(in.verb);
  w.str(in.body);
  w.str(in.caller.tenant);
  w.str(in.caller.user);
  w.str(in.caller.roles);
  w.sint(in.stamp.now);
  w.fixed64(in.stamp.dice[0]);
  w.fixed64(in.stamp.dice[1]);
  w.str(in.settles);
  w.uint(in.joins);
  w.str(in.once);
}

static void encode_delivery_of(Writer& w, const Delivery& delivery) {
  w.uint(delivery.source);
  w.uint(delivery.number);
  w.uint(delivery.below);
  w.str(delivery.effect);
}

static std::shared_ptr<const Delivery> decode_delivery_of(Reader& r) {
  Delivery delivery;
  delivery.source = static_cast<uint32_t>(r.uint());
  delivery.number = r.uint();
  delivery.below = r.uint();
  delivery.effect = r.str();
  return std::make_shared<const Delivery>(std::move(delivery));
}

static Bytes encode(const Frame& f, size_t room) {
  size_t size = room + 64 + f.program.size();
  for (const Input& in : f.inputs)
    size += in.body.size() + in.verb.size() + in.settles.size() + 96;
  for (const auto& write : f.writes)
    size += write.key.size() + (write.value ? write.value->bytes.size() : 0) + 24;
  for (const Bytes& note : f.notes)
    size += note.size() + 4;
  Bytes out;
  out.reserve(size);
  out.append(room, '\0');
  Writer w(out);
  w.u8(static_cast<uint8_t>(kPlain + (f.stale_reads.empty() ? 0 : kBehind) +
                            (f.once_waits ? kOnceWaits : 0) + (f.delivery() ? kDelivery : 0)));
  w.str(f.program);
  w.uint(f.inputs.size());
  for (const Input& in : f.inputs)
    encode_input(w, in);
  w.uint(f.writes.size());
  for (const auto& write : f.writes) {
    w.str(write.key);
    w.uint(write.before);
    w.u8(write.value ? 1 : 0);
    if (write.value) w.str(write.value->bytes);
  }
  w.uint(f.notes.size());
  for (const Bytes& note : f.notes)
    w.str(note);
  if (!f.stale_reads.empty()) {
    w.uint(f.stale_reads.size());
    for (const auto& b : f.stale_reads) {
      w.str(b.key);
      w.uint(b.version);
    }
  }
  if (f.delivery()) encode_delivery_of(w, *f.delivery());
  return out;
}

Bytes encode_body(const Frame& frame) { return encode(frame, 0); }
Bytes encode_entry(const Frame& frame) { return encode(frame, sizeof(Digest)); }

void seal(Bytes& entry, const Digest& before) {
  std::memcpy(entry.data(), before.data(), before.size());
}

Result<Sealed> unseal(BytesView entry) {
  Sealed s;
  if (entry.size() < s.before.size() + 1)
    return fail(Code::corrupt, "BAD_FRAME",
                fmt::format("a frame of {} bytes is too short", entry.size()));
  std::memcpy(s.before.data(), entry.data(), s.before.size());
  s.own = sha256(entry, {});
  s.body = entry.substr(s.before.size());
  return s;
}

static Input decode_input(Reader& r) {
  Input in;
  in.verb = r.str();
  in.body = r.str();
  in.caller.tenant = r.str();
  in.caller.user = r.str();
  in.caller.roles = r.str();
  in.stamp.now = r.sint();
  in.stamp.dice[0] = r.fixed64();
  in.stamp.dice[1] = r.fixed64();
  in.settles = r.str();
  in.joins = r.uint();
  in.once = r.str();
  return in;
}

// Skips an input but keeps its timestamp, and the caller of the first input.
static Time skip_input(Reader& r, Caller* caller) {
  r.str();
  r.str();
  BytesView tenant = r.str(), user = r.str(), roles = r.str();
  if (caller) {
    caller->tenant = tenant;
    caller->user = user;
    caller->roles = roles;
  }
  Time now = r.sint();
  r.fixed64();
  r.fixed64();
  r.str();
  r.uint();
  r.str();
  return now;
}

static Result<void> decode(Seq seq, BytesView body, bool whole, Frame& f) {
  Reader r(body);
  uint8_t version = r.u8();
  if (r.ok() && (version < kPlain || version > kNewest))
    return fail(
        Code::corrupt, "FRAME_VERSION",
        fmt::format(
            "frame {} has version {}; this binary reads up to {}: use the newer pawl that wrote it",
            seq, version, kNewest));
  const uint8_t bits = static_cast<uint8_t>(version - kPlain);
  f.seq = seq;
  f.once_waits = bits & kOnceWaits;
  f.program = r.str();
  size_t inputs = r.count();
  f.inputs.resize(whole || inputs == 0 ? 0 : 1);
  for (size_t i = 0; i < inputs && r.ok(); ++i) {
    if (!whole) {
      f.inputs[0].stamp.now = skip_input(r, i == 0 ? &f.inputs[0].caller : nullptr);
      continue;
    }
    f.inputs.push_back(decode_input(r));
    f.inputs.back().program = f.program;
    f.inputs.back().records_first_answer = !f.once_waits;
  }
  size_t writes = r.count();
  f.writes.resize(writes);
  for (Frame::Write& w : f.writes) {
    w.key = r.str();
    w.before = r.uint();
    w.value = r.u8() ? std::make_shared<const Stored>(Bytes(r.str())) : nullptr;
    if (!r.ok()) break;
  }
  const size_t notes = r.count();
  f.notes.resize(std::min(notes, f.notes.size()));
  for (size_t i = 0; i < notes && r.ok(); ++i)
    (i < f.notes.size() ? f.notes[i] : f.notes.emplace_back()) = r.str();
  f.stale_reads.clear();
  for (size_t n = bits & kBehind ? r.count() : 0; n-- > 0 && r.ok();) {
    Key key(r.str());
    f.stale_reads.push_back({std::move(key), r.uint()});
  }
  if (bits & kDelivery) {
    auto delivery = decode_delivery_of(r);
    if (whole && !f.inputs.empty()) f.inputs.front().delivery = std::move(delivery);
  }
  if (!r.done())
    return fail(Code::corrupt, "BAD_FRAME", fmt::format("frame {} does not decode", seq));
  return {};
}

Result<Frame> decode_frame(Seq seq, BytesView body) {
  Frame frame;
  TRY_OK(decode(seq, body, true, frame));
  return frame;
}

Result<void> decode_outcome(Seq seq, BytesView body, Frame& into) {
  return decode(seq, body, false, into);
}

}  // namespace pawl
