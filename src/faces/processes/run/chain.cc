// Chaining: the workflow that follows an END. It starts in the same turn as far as the limits of a
// turn allow, and in the next one beyond them; a workflow that does not exist yet is waited for,
// and starts when it is uploaded.

#include "faces/processes/limits.h"
#include "faces/processes/run/program.h"

namespace pawl::processes {

namespace {

// Goes on behind an instance that has ended; `depth` instances have followed each other by then.
Effect chain_effect(const std::string& tenant, std::string_view instance_id, size_t depth) {
  Bytes body;
  Writer w(body);
  w.str(instance_id);
  w.uint(depth);
  return {std::string(kProgram) + ":chain:" + std::string(instance_id),
          To::cell,
          std::string(kProgram),
          tenant,
          std::string(verb::chain),
          0,
          std::move(body)};
}

}  // namespace

std::string Scene::chain_refused() const {
  if (chain_depth + chained <= kChainInARow) return {};
  return "ChainLimitReached: more than " + std::to_string(kChainInARow) +
         " workflows followed each other without waiting for anybody; is there a cycle with no "
         "WAIT, USER_TASK or SERVICE_TASK in it?";
}

Result<void> Scene::chain(Instance& ended, const Definition& definition, Note& note) {
  if (chained >= kChainPerTurn)
    return turn.open(chain_effect(tenant, ended.id, chain_depth + chained)), Result<void>();
  ++chained;
  auto next = start({.definition_id = definition.next_workflow,
                     .variables = ended.variables,
                     .previous_id = ended.id},
                    nullptr);
  if (next) return ended.next_id = (*next)->id, Result<void>();
  if (next.error().code != Code::not_found) return std::unexpected(std::move(next.error()));
  note.facts.push_back({.kind = Fact::Kind::event,
                        .text = "the next workflow waits: " + next.error().message +
                                "; it starts when that is uploaded"});
  turn.write(awaited_key(tenant, definition.next_workflow, ended.id), "\x01");
  return {};
}

Result<void> Scene::start_awaited(std::string_view definition_id) {
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

Result<Bytes> chain_on(Scene& scene) {
  Reader r(scene.input.body);
  std::string id(r.str());
  scene.chain_depth = r.uint();
  if (!r.done()) return fail(Code::corrupt, "BAD_CHAIN", "a stored chain cannot be read");
  TRY(auto before, scene.instance(id));
  TRY(auto definition, scene.definition(before->definition_id, before->version));
  Instance instance = *before;
  Walk walk(scene, scene.turn.now(), scene.tenant, instance, *definition, scene.steps);
  Note note = walk.finish(static_cast<uint8_t>(before->status));
  TRY_OK(scene.chain(instance, *definition, note));
  scene.put(std::move(instance), std::move(note));
  return Bytes();
}

}  // namespace pawl::processes
