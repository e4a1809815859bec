// Chaining: an END step may start the next workflow. It starts in the same turn unless a limit of
// the turn is reached; then it starts in a later turn. When the next workflow does not exist, the
// chain waits until it is uploaded.

#include "base/codec.h"
#include "faces/processes/limits.h"
#include "faces/processes/run/program.h"

namespace pawl::processes {

namespace {

// The body of a delivery that continues a chain.
struct ChainCommand {
  std::string instance_id;  // the instance that has ended
  uint64_t depth = 0;       // instances that were chained before, without a wait
};
template <class F, FieldsOf<ChainCommand> T>
void fields(F& f, T& c) {
  f(c.instance_id);
  f(c.depth);
}

Effect chain_effect(const std::string& tenant, std::string_view instance_id, size_t depth) {
  return {std::string(kProgram) + ":chain:" + std::string(instance_id),
          To::cell,
          std::string(kProgram),
          tenant,
          std::string(verb::chain),
          0,
          encode_fields(ChainCommand{std::string(instance_id), depth})};
}

}  // namespace

std::string TurnContext::chain_refused() const {
  if (chain_depth + chained <= kChainInARow) return {};
  return "ChainLimitReached: more than " + std::to_string(kChainInARow) +
         " workflows followed each other without waiting for anybody; is there a cycle with no "
         "WAIT, USER_TASK or SERVICE_TASK in it?";
}

Result<void> TurnContext::chain(Instance& ended, const Definition& definition, Note& note) {
  if (chained >= kChainPerTurn || budget.work > kWorkPerTurn / 2) {
    turn.open(chain_effect(tenant, ended.id, chain_depth + chained));
    return {};
  }
  ++chained;
  auto next = start({.definition_id = definition.next_workflow,
                     .variables = ended.variables,
                     .previous_id = ended.id},
                    nullptr, &ended);
  if (next) {
    ended.next_id = (*next)->id;
    return {};
  }
  if (next.error().code != Code::not_found) return std::unexpected(std::move(next.error()));
  note.facts.push_back({.kind = Fact::Kind::event,
                        .text = "the next workflow waits: " + next.error().message +
                                "; it starts when that is uploaded"});
  turn.write(awaited_key(tenant, definition.next_workflow, ended.id), "\x01");
  return {};
}

Result<void> TurnContext::start_awaited(std::string_view definition_id) {
  std::vector<Key> found;
  TRY_OK(turn.scan(awaited_prefix(tenant, definition_id), [&](BytesView key, const Cell&) {
    found.emplace_back(key);
    return found.size() < kAwaitedPerUpload;
  }));
  for (const Key& key : found) {
    turn.erase(key);
    turn.open(chain_effect(tenant, parts_of(key).back(), 0));
  }
  return {};
}

Result<Bytes> chain_on(TurnContext& context) {
  TRY(ChainCommand command, decode_fields<ChainCommand>(context.input.body, "a stored chain"));
  context.chain_depth = command.depth;
  auto found = context.instance(command.instance_id);
  // The instance was deleted meanwhile, and with it its chain.
  if (!found && found.error().is(kNoInstance)) return Bytes();
  TRY(auto before, std::move(found));
  TRY(auto definition, context.definition(before->definition_id, before->version));
  Instance instance = *before;
  Walk walk(context, context.turn.now(), context.tenant, instance, *definition, context.budget);
  Note note = walk.finish(static_cast<uint8_t>(before->status));
  TRY_OK(context.chain(instance, *definition, note));
  context.put(std::move(instance), std::move(note));
  return Bytes();
}

}  // namespace pawl::processes
