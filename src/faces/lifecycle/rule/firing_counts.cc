// Counts how often a rule or an action has fired for an instance, and forgets the counts of removed
// rules.

#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/rule/rule_firing.h"

namespace pawl::lifecycle {

namespace {

// A rule that is removed and stored again under its name starts with new counts. The cell at this
// key holds the generation: how often the name was removed. Counts of another generation are
// invalid.
Key generation_key(std::string_view tenant, std::string_view rule) {
  return key({"lifecycle", tenant, "c", rule});
}

Result<uint64_t> generation_of(Turn& turn, std::string_view tenant, std::string_view rule) {
  TRY(Cell cell, turn.read(generation_key(tenant, rule)));
  return cell.exists() ? Reader(cell.value()).uint() : 0;
}

Key counts_prefix(std::string_view tenant, std::string_view rule) {
  return prefix({"lifecycle", tenant, "c", rule});
}

Result<bool> has_counts(Turn& turn, std::string_view tenant, std::string_view rule) {
  bool any = false;
  TRY_OK(turn.scan(counts_prefix(tenant, rule), [&](BytesView, const Cell&) {
    any = true;
    return false;
  }));
  return any;
}

struct Count {
  uint64_t times = 0, generation = 0;
};
Count count_in(const Cell& cell) {
  Reader r(cell.value());
  Count out;
  if (cell.exists()) out.times = r.uint();
  // Cells of generation 0 do not write it.
  if (!r.rest().empty()) out.generation = r.uint();
  return out;
}

// Erases the invalid counts that follow the key `last` in the next turns, page by page.
void deliver_forget(Turn& turn, std::string_view tenant, std::string_view rule,
                    std::string_view last) {
  Command forget;
  forget.id = last;
  forget.note = rule;
  deliver(turn, tenant, "forget", forget);
}

// Adds one firing to the count at this key and returns the new count. A count above `max` is not
// stored.
Result<uint64_t> count_firing(RuleFiring& firing, const Rule& rule, const Key& at, uint64_t max) {
  TRY(uint64_t generation, generation_of(firing.turn, firing.tenant, rule.name));
  TRY(Cell cell, firing.turn.read(at));
  Count before = count_in(cell);
  uint64_t count = before.generation == generation ? before.times : 0;
  if (++count > max) return count;
  Bytes bytes;
  Writer w(bytes);
  w.uint(count);
  if (generation) w.uint(generation);
  firing.turn.write(at, std::move(bytes));
  return count;
}

}  // namespace

Result<bool> count_action(RuleFiring& firing, const Rule& rule, size_t index) {
  const js::Value* limit = rule.then[index].find("max_iterations");
  uint64_t max = limit && limit->is_number() ? limit->as_uint64().value_or(0) : 0;
  if (max == 0) return true;
  Key at = key({"lifecycle", firing.tenant, "c", rule.name, rule.workflow,
                firing.variables.entity_id, std::to_string(index)});
  TRY(uint64_t count, count_firing(firing, rule, at, max));
  return count <= max;
}

Result<bool> count_rule(RuleFiring& firing, const Rule& rule) {
  if (!rule.counted) return true;
  uint64_t max = rule.max_iterations ? rule.max_iterations : std::numeric_limits<uint64_t>::max();
  TRY(uint64_t count, count_firing(firing, rule,
                                   key({"lifecycle", firing.tenant, "c", rule.name, rule.workflow,
                                        firing.variables.entity_id}),
                                   max));
  firing.variables.state =
      js::object({{"iteration", count}, {"max_iterations", rule.max_iterations}});
  return count <= max;
}

Result<void> drop_counts(Turn& turn, std::string_view tenant, std::string_view rule) {
  TRY(bool counted, has_counts(turn, tenant, rule));
  if (!counted) return {};
  TRY(uint64_t generation, generation_of(turn, tenant, rule));
  Bytes bytes;
  Writer(bytes).uint(generation + 1);
  turn.write(generation_key(tenant, rule), std::move(bytes));
  deliver_forget(turn, tenant, rule, {});
  return {};
}

Result<Outcome> forget(CommandContext& context) {
  std::string_view rule = context.command.note;
  TRY(uint64_t generation, generation_of(context.turn, context.tenant, rule));
  const Key lead = counts_prefix(context.tenant, rule);
  std::vector<Key> invalid;
  Key last;
  size_t visited = 0;
  TRY_OK(context.turn.scan(
      lead,
      [&](BytesView at, const Cell& cell) {
        if (++visited > limits::kSweepPage) return false;
        last = at;
        if (count_in(cell).generation != generation) invalid.push_back(last);
        return true;
      },
      // The next page begins behind the last key: a zero byte makes the smallest key after it.
      context.command.id.empty() ? Key() : lead + Key(context.command.id) + '\0'));
  for (const Key& one : invalid)
    context.turn.erase(one);
  if (visited > limits::kSweepPage) {
    deliver_forget(context.turn, context.tenant, rule, BytesView(last).substr(lead.size()));
    return Outcome{.result = "forgetting"};
  }
  // Without counts and without a rule of this name, the generation is not needed any more.
  TRY(bool counted, has_counts(context.turn, context.tenant, rule));
  TRY(auto again, read_rule(context.turn, context.tenant, rule));
  if (!counted && !again) context.turn.erase(generation_key(context.tenant, rule));
  return Outcome{.result = "forgotten"};
}

}  // namespace pawl::lifecycle
