#include "embed/local_store.h"

#include <fmt/format.h>

#include "embed/subscription.h"
#include "json/text.h"
#include "runtime/ready_signal.h"

namespace pawl::lifecycle {

namespace {

// A write that was submitted to the shard. While the caller waits for the answer, its thread runs
// and commits the writes that are queued.
class Pending final : public pending_write {
 public:
  // The answer is written before the signal is set, so the waiting thread may read it without a
  // lock.
  struct Slot {
    std::optional<Result<Answer>> answer;
    ReadySignal answered;
  };
  Pending(Shard& shard, std::shared_ptr<Slot> slot) : shard_(shard), slot_(std::move(slot)) {}
  // Must be called: without work() the queued write may not run. See Shard::post().
  result<written> wait(deadline until) override {
    // Callers with a deadline never block on fdatasync.
    shard_.work(until.never() ? Shard::Commit::here : Shard::Commit::elsewhere);
    if (until.never())
      slot_->answered.wait();
    else if (!slot_->answered.wait_until(until.at()))
      return lifecycle::fail(
          errc::deadline_exceeded,
          "the write was submitted and may still happen: read the instance to know");
    if (!*slot_->answer) return lifecycle::fail(to_error(slot_->answer->error()));
    auto out = decode_written(**slot_->answer);
    if (!out) return lifecycle::fail(to_error(out.error()));
    return std::move(*out);
  }

 private:
  Shard& shard_;
  // Shared with the reply, which may still use the slot when the caller wakes.
  std::shared_ptr<Slot> slot_;
};

// Converts the error of a Result to the error type of the public API.
template <class T>
failure failed(const Result<T>& from) {
  return lifecycle::fail(to_error(from.error()));
}

}  // namespace

js::Value object_or_empty(std::string_view text) {
  auto parsed = js::parse(text);
  return parsed && parsed->is_object() ? std::move(*parsed) : js::Value(js::Object());
}

// The views of an instance point into bytes that `keep` owns: the cell's value, and a copy of the
// id.
instance to_instance(const FoundInstance& found) {
  instance out;
  struct Kept {
    std::shared_ptr<const void> bytes;
    std::string id;
  };
  auto kept = std::make_shared<Kept>(Kept{found.keep, found.id});
  out.id = kept->id;
  out.keep = std::move(kept);
  out.phase = found.stored.phase;
  out.parent = found.stored.parent;
  out.record = found.stored.record;
  out.rev = found.version;
  out.stamp = found.stored.stamp;
  out.created_ns = found.stored.created;
  out.updated_ns = found.stored.updated;
  return out;
}

// Fails with corrupt_value when the stored record does not fit the definition any more.
result<snapshot> to_snapshot(const dynamic_type& def, const instance& from) {
  snapshot out;
  out.workflow = def.name;
  out.id = from.id;
  out.phase = from.phase;
  out.terminal = def.is_terminal(from.phase);
  out.rev = from.rev;
  out.record = from.record;
  if (!append_state(out.json, def, from.record))
    return lifecycle::fail(errc::corrupt_value,
                           def.name + " '" + out.id + "' does not fit its type");
  return out;
}

// An instance that does not fit its type is left out: one damaged instance must not hide the
// others.
static result<std::vector<snapshot>> snapshots(const Result<std::vector<TypedInstance>>& linked) {
  if (!linked) return failed(linked);
  std::vector<snapshot> out;
  for (const TypedInstance& one : *linked) {
    auto made = to_snapshot(one.type->def, to_instance(one.found));
    if (made) out.push_back(*std::move(made));
  }
  return out;
}

// Reads use the engine's memory directly. Each write is one input for the program, named by its
// verb.
class LocalStore final : public store {
 public:
  explicit LocalStore(Engine::Parts& parts) : parts_(parts), reads_(*parts.shard) {}

  result<void> put_type(const dynamic_type& type) override {
    // `to` says where the definition comes from: "code" is a struct of a program.
    std::string text = js::print(type_json(type));
    auto done = run("put_type", {.type = type.name, .to = "code", .text = text}, {});
    if (!done) return lifecycle::fail(done.error());
    return {};
  }

  result<dynamic_type> type(std::string_view workflow) override {
    auto found = reads_.type(tenant(), workflow);
    if (!found) return failed(found);
    return (*found)->def;
  }

  result<std::vector<dynamic_type>> types() override {
    auto found = reads_.types(tenant());
    if (!found) return failed(found);
    std::vector<dynamic_type> out;
    for (const WorkflowTypePtr& one : *found)
      out.push_back(one->def);
    return out;
  }

  result<instance> get(std::string_view workflow, std::string_view id_text) override {
    auto found = reads_.get(tenant(), workflow, id_text);
    if (!found) return failed(found);
    return to_instance(*found);
  }

  result<written> create(std::string_view workflow, std::string_view id_text, std::string bytes,
                         deadline until) override {
    return run("create", {.type = workflow, .id = id_text, .record = bytes}, until);
  }

  std::unique_ptr<pending_write> replace(replace_request r) override {
    return submit("replace", {.type = r.workflow,
                              .id = r.id,
                              .to = r.to,
                              .note = r.why.note,
                              .record = r.record,
                              .triggered = r.why.triggered,
                              .stamp = r.stamp,
                              .expected_stamp = r.expected_stamp,
                              .expected_version = r.expected_rev});
  }

  result<written> transition(std::string_view workflow, std::string_view id_text,
                             std::string_view to, const how& why, deadline until) override {
    return run(
        "transition",
        {.type = workflow, .id = id_text, .to = to, .note = why.note, .triggered = why.triggered},
        until);
  }

  result<written> complete(std::string_view workflow, std::string_view id_text,
                           std::string_view target, deadline until) override {
    return run("complete", {.type = workflow, .id = id_text, .to = target}, until);
  }

  result<written> mark_failed(std::string_view workflow, std::string_view id_text,
                              std::string_view reason, deadline until) override {
    return run("fail", {.type = workflow, .id = id_text, .note = reason}, until);
  }

  result<written> remove(std::string_view workflow, std::string_view id_text,
                         deadline until) override {
    return run("remove", {.type = workflow, .id = id_text, .triggered = source::component}, until);
  }

  result<written> patch(std::string_view workflow, std::string_view id_text,
                        std::string_view json_object, deadline until) override {
    return run("patch",
               {.type = workflow, .id = id_text, .text = json_object, .triggered = source::op},
               until);
  }

  // The type is read first, because the reads need it to interpret filters and records.
  result<any_page> list(std::string_view workflow, const any_query& query) override {
    auto found_type = reads_.type(tenant(), workflow);
    if (!found_type) return failed(found_type);
    auto listed = reads_.list(tenant(), **found_type, query);
    if (!listed) return failed(listed);
    any_page out;
    out.items.reserve(listed->items.size());
    for (const FoundInstance& found : listed->items)
      out.items.push_back(to_instance(found));
    out.skipped = listed->skipped;
    out.cursor = std::move(listed->cursor);
    return out;
  }

  result<history_log> history(std::string_view workflow, std::string_view id_text) override {
    auto found_type = reads_.type(tenant(), workflow);
    if (!found_type) return failed(found_type);
    auto out = reads_.history(tenant(), **found_type, id_text);
    if (!out) return failed(out);
    return std::move(*out);
  }

  // The number of skipped instances is not part of this call's result.
  result<std::vector<snapshot>> children(std::string_view id_text) override {
    size_t skipped = 0;
    return snapshots(reads_.children(tenant(), id_text, skipped));
  }

  result<std::vector<snapshot>> ancestors(std::string_view id_text, std::string& warning) override {
    return snapshots(reads_.ancestors(tenant(), id_text, warning));
  }

  result<snapshot> lookup(std::string_view id_text) override {
    auto one = reads_.lookup(tenant(), id_text);
    if (!one) return failed(one);
    return to_snapshot(one->type->def, to_instance(one->found));
  }

  result<std::unique_ptr<subscription>> watch(std::string_view workflow,
                                              std::optional<revision> after) override {
    auto found_type = reads_.type(tenant(), workflow);
    if (!found_type) return failed(found_type);
    // The watch keeps the definition of this moment.
    auto out = std::make_unique<LocalSubscription>(parts_.hub, reads_, tenant(), *found_type);
    if (auto begun = out->begin(after); !begun) return failed(begun);
    return std::unique_ptr<subscription>(std::move(out));
  }

  result<void> put_rule(std::string_view name, std::string_view json_rule) override {
    auto done = run("put_rule", {.id = name, .text = json_rule}, {});
    if (!done) return lifecycle::fail(done.error());
    return {};
  }

  result<written> run_action(std::string_view id_text, std::string_view json_action,
                             const rule_context& context, deadline until) override {
    auto action = parse_or(errc::invalid_rule, json_action);
    if (!action) return failed(action);
    std::string text = js::print(js::object({{"action", std::move(*action)},
                                             {"message", object_or_empty(context.message)},
                                             {"caller", object_or_empty(context.caller)},
                                             {"schedule", object_or_empty(context.schedule)},
                                             {"state", object_or_empty(context.state)}}));
    return run("action", {.id = id_text, .text = text, .triggered = source::rule}, until);
  }

  result<std::string> substitute(std::string_view id_text, std::string_view text,
                                 const rule_context& context) override {
    Variables variables;
    variables.message = object_or_empty(context.message);
    variables.caller = object_or_empty(context.caller);
    variables.schedule = object_or_empty(context.schedule);
    variables.state = object_or_empty(context.state);
    auto out = reads_.substitute(tenant(), id_text, text, std::move(variables));
    if (!out) return failed(out);
    return std::move(*out);
  }

 private:
  // Queues the input and returns at once. The reply comes on whatever thread commits it.
  std::unique_ptr<pending_write> submit(std::string verb, const Command& command) {
    auto slot = std::make_shared<Pending::Slot>();
    parts_.shard->post(make_input(std::move(verb), command, parts_.caller()),
                       [slot](Result<Answer> answer) {
                         slot->answer.emplace(std::move(answer));
                         slot->answered.set();
                       });
    return std::make_unique<Pending>(*parts_.shard, std::move(slot));
  }

  result<written> run(std::string verb, const Command& command, deadline until) {
    return submit(std::move(verb), command)->wait(until);
  }
  const std::string& tenant() const { return parts_.options.tenant; }

  Engine::Parts& parts_;
  Reads reads_;
};

std::shared_ptr<store> open_local_store(Engine::Parts& parts) {
  return std::make_shared<LocalStore>(parts);
}

}  // namespace pawl::lifecycle
