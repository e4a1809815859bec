#include "kernel/effect.h"

namespace pawl {

Bytes encode(const Effect& e) {
  Bytes out;
  out.reserve(e.id.size() + e.program.size() + e.tenant.size() + e.queue.size() + e.body.size() +
              32);
  Writer w(out);
  w.u8(static_cast<uint8_t>(e.to));
  w.str(e.id);
  w.str(e.program);
  w.str(e.tenant);
  w.str(e.queue);
  w.sint(e.due);
  w.str(e.body);
  // Left out by default, as before these fields existed.
  const bool shard = e.to == To::shard;
  if (e.priority != 0 || !e.fairness_key.empty() || !e.once.empty() || shard) {
    w.sint(e.priority);
    w.str(e.fairness_key);
  }
  if (!e.once.empty() || shard) w.str(e.once);
  if (!shard) return out;
  w.uint(e.address->shard);
  w.str(e.address->program);
  w.str(e.address->user);
  w.str(e.address->roles);
  w.uint(e.address->number);
  return out;
}

Result<Effect> decode_effect(BytesView bytes) {
  Reader r(bytes);
  Effect e;
  e.to = static_cast<To>(r.u8());
  e.id = r.str();
  e.program = r.str();
  e.tenant = r.str();
  e.queue = r.str();
  e.due = r.sint();
  e.body = r.str();
  if (r.ok() && !r.done()) {
    e.priority = static_cast<int32_t>(r.sint());
    e.fairness_key = r.str();
  }
  if (r.ok() && !r.done()) e.once = r.str();
  if (e.to == To::shard) {
    Effect::Address to;
    to.shard = static_cast<uint32_t>(r.uint());
    to.program = r.str();
    to.user = r.str();
    to.roles = r.str();
    to.number = r.uint();
    e.address = std::make_shared<const Effect::Address>(std::move(to));
  }
  if (!r.done()) return fail(Code::corrupt, "BAD_EFFECT", "an open effect's cell does not decode");
  return e;
}

Key effect_key(std::string_view id) {
  Key out(kEffectPrefix);
  out.append(id);
  return out;
}

}  // namespace pawl
