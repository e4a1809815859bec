#include "sim/clients/member.h"

#include "json/text.h"

namespace pawl::sim {

void FalseMember::keep_joined() {
  if (entities::Members* members = world_.members(); members && life_ != world_.life()) {
    life_ = world_.life();
    id_ = members->join(shared_from_this(), world_.tenant(), {tag_});
    world_.note("a compute member joins");
  }
  // Now and then its connection is lost, and in a gap nobody is there.
  const uint64_t unit = world_.calm() ? 60 * kSecond : 5 * kSecond;
  const Time pause = world_.until_busy(static_cast<Time>(world_.schedule().roll(unit)));
  if (entities::Members* members = joined();
      members && (world_.strikes(Fault::client_left, 100) || pause > 60 * kSecond)) {
    members->leave(id_);
    life_ = 0;
  }
  world_.later(pause, [self = shared_from_this()] { self->keep_joined(); });
}

void FalseMember::send(entities::MemberEvent event) {
  if (event.type == "CalculationMemberKeepAliveEvent") {
    if (world_.strikes(Fault::lost_answer, 30)) return;
    return later(kMillisecond,
                 [](FalseMember& me, entities::Members& members) { members.alive(me.id_); });
  }
  if (event.type != "EntityProcessorCalculationRequest") return;
  if (world_.strikes(Fault::lost_lease, 10)) return;
  Time takes = static_cast<Time>(world_.schedule().roll(2 * kSecond));
  if (world_.strikes(Fault::late_answer, 10))
    takes += static_cast<Time>(world_.schedule().roll(10 * kSecond));
  later(takes,
        [event = std::move(event)](FalseMember& me, entities::Members&) { me.carry_out(event); });
}

void FalseMember::carry_out(const entities::MemberEvent& call) {
  const json::Value request = json::parse(call.payload).value_or(json::Value());
  const std::string id(request.string_or("requestId"));
  const bool twice = world_.strikes(Fault::twice_answered, 8);
  work_(call, [self = shared_from_this(), id, twice](const entities::CallResult& result) {
    const Act answer = [id, result](FalseMember& me, entities::Members& members) {
      members.answered(me.id_, id, entities::Call::processor, result);
    };
    self->later(0, answer);
    if (twice) self->later(kSecond, answer);
  });
}

// The session of a member answers the end of its stream with leave().
void FalseMember::end_unresponsive() {
  later(kMillisecond, [](FalseMember& me, entities::Members& members) {
    members.leave(me.id_);
    me.life_ = 0;
  });
}

void FalseMember::later(Time delay, Act act) {
  world_.schedule().after(delay, [self = shared_from_this(), life = life_, act = std::move(act)] {
    entities::Members* members = self->joined();
    if (members && life == self->life_) act(*self, *members);
  });
}

json::Value entity_of(const entities::MemberEvent& call) {
  const json::Value request = json::parse(call.payload).value_or(json::Value());
  const json::Value* payload = request.find("payload");
  const json::Value* data = payload ? payload->find("data") : nullptr;
  return data ? *data : json::Value();
}

}  // namespace pawl::sim
