#pragma once
// A compute member of the simulated entities. It joins again when its stream has ended or the
// server was started again; it loses calls, answers late and answers twice.

#include "faces/entities/members/members.h"
#include "sim/clients/client.h"

namespace pawl::sim {

class FalseMember final : public entities::MemberStream,
                          public std::enable_shared_from_this<FalseMember> {
 public:
  using Done = std::function<void(entities::CallResult)>;
  // Carries out the call of a processor and passes its result on, at once or later.
  using Work = std::function<void(const entities::MemberEvent& call, Done done)>;
  FalseMember(Session& world, std::string tag, Work work)
      : world_(world), tag_(std::move(tag)), work_(std::move(work)) {}

  void keep_joined();
  void send(entities::MemberEvent event) override;
  void end_unresponsive() override;

 private:
  entities::Members* joined() {
    return life_ && life_ == world_.life() ? world_.members() : nullptr;
  }
  using Act = std::function<void(FalseMember&, entities::Members&)>;
  // Nothing happens when the member has lost its stream meanwhile.
  void later(Time delay, Act act);
  void carry_out(const entities::MemberEvent& call);

  Session& world_;
  const std::string tag_;
  const Work work_;
  uint64_t life_ = 0;  // of the server that the member has joined
  std::string id_;
};

// The document of the entity that a call brings; null when there is none.
json::Value entity_of(const entities::MemberEvent& call);

}  // namespace pawl::sim
