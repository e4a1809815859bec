#include "faces/entities/program.h"

#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr VerbRow kVerbs[] = {
    {"get", get_entity},
    {"find", find_entities},
    {"transitions", list_transitions},
    {"trail", own_trail},
    {"moves", own_state_changes},
    {"groups", group_entities},
    {"remove", remove_one},
    {"remove.some", remove_some},
    {"remove.all", remove_all},
    {"model.import", import_model},
    {"model.lock", lock_model},
    {"model.unlock", unlock_model},
    {"model.level", set_change_level},
    {"model.delete", delete_model},
    {"model.indexes", set_indexes},
    {"model.fill", fill_indexes},
    {"model.unique", set_unique_keys},
    {"flows.import", import_flows},
    {"message.new", new_message},
    {"message.delete", delete_messages},
    {"message.delete.one", delete_message},
    {"job.new", new_search_job},
    {"job.page", add_search_page},
    {"job.end", end_search_job},
    {"client.put", put_client},
    {"client.delete", delete_client},
    {"key.put", put_trusted_key},
    {"key.delete", delete_trusted_key},
    {"pair.put", put_key_pair},
    {"pair.delete", delete_key_pair},
};

}  // namespace

std::string_view Program::name() const { return kProgram; }
bool Program::keeps_history(BytesView key) const { return is_entity_key(key); }
bool Program::conflicts_after_begin(BytesView key) const { return is_entity_key(key); }

bool Program::accepts_stale_read(Turn& turn, BytesView key, const Cell& read,
                                 const Cell& current) const {
  if (is_flows_key(key)) return true;
  if (!is_model_key(key)) return false;
  auto before = read.as<Model>(decode_model);
  auto after = current.as<Model>(decode_model);
  if (!before || !after || !*before || !*after || !only_grew(**before, **after)) return false;
  rewrite_index_cells(turn, parts_of(key)[1], **after);
  return true;
}

Result<Bytes> Program::run(Turn& turn, const Input& input) const {
  if (!input.settles.empty()) return receipt(turn, input);
  if (input.verb == "write") return write(turn, input);
  for (const VerbRow& row : kVerbs) {
    if (row.name != input.verb) continue;
    if (input.decoded)
      return row.run(turn, input.caller.tenant,
                     *std::static_pointer_cast<const json::Value>(input.decoded));
    TRY(json::Value body, json::parse(input.body, {.max_depth = 2 * limits::kJsonDepth,
                                                   .max_bytes = limits::kFrameBytes}));
    return row.run(turn, input.caller.tenant, body);
  }
  return fail(Code::unsupported, "UNKNOWN_VERB",
              fmt::format("the entities face has no verb '{}'", input.verb));
}

Result<Bytes> Program::write(Turn& turn, const Input& input) const {
  auto transaction = std::make_shared<Transaction>();
  if (input.decoded) {
    transaction->command = std::static_pointer_cast<const Command>(input.decoded);
  } else {
    TRY(Command command, decode_command(input.body));
    transaction->command = std::make_shared<const Command>(std::move(command));
  }
  transaction->tenant = input.caller.tenant;
  transaction->user = input.caller.user;
  transaction->roles = input.caller.roles;
  transaction->joined = input.joins != 0;
  transaction->tx = transaction->joined ? transaction->command->tx : turn.dice().uuid1(turn.now());
  transaction->entry_tx = transaction->tx;
  turn.scratch() = transaction;
  return Machine(turn, *transaction, options_).run();
}

Result<Bytes> Program::receipt(Turn& turn, const Input& input) const {
  if (auto transaction = std::static_pointer_cast<Transaction>(turn.scratch())) {
    TRY(CallResult result, decode_call_result(input.body));
    return Machine(turn, *transaction, options_).resume(result);
  }
  if (input.verb == "timer") return timer(turn, input);
  Key key = pending_key(input.caller.tenant, input.settles);
  TRY(Cell waiting, turn.read(key));
  if (!waiting.exists()) return Bytes();
  TRY(CallResult result, decode_call_result(input.body));
  TRY(Transaction decoded, decode_transaction(waiting.value()));
  auto transaction = std::make_shared<Transaction>(std::move(decoded));
  turn.scratch() = transaction;
  turn.erase(key);
  return Machine(turn, *transaction, options_).run_second_transaction(result, input.settles);
}

Result<Bytes> Program::timer(Turn& turn, const Input& input) const {
  if (input.settles.starts_with(kSearchJobTimer)) return expire_search_job(turn, input.settles);
  TRY(TimerId timer_id, parse_timer_id(input.settles));
  Command command;
  Item item{.op = Item::due};
  item.id = timer_id.entity;
  item.transition = timer_id.transition;
  item.if_match = input.settles;
  command.items.push_back(std::move(item));
  auto transaction = std::make_shared<Transaction>();
  transaction->command = std::make_shared<const Command>(std::move(command));
  transaction->tenant = timer_id.tenant;
  transaction->user = "system";
  transaction->tx = turn.dice().uuid1(turn.now());
  transaction->entry_tx = transaction->tx;
  transaction->settles = true;
  turn.scratch() = transaction;
  return Machine(turn, *transaction, options_).run();
}

}  // namespace pawl::entities
