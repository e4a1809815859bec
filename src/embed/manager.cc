#include "pawl/lifecycle/manager.h"

#include <fmt/format.h>

#include "embed/local_store.h"
#include "embed/manager_core.h"
#include "embed/remote_store.h"
#include "faces/lifecycle/type/values.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

// Shared, because watches keep the function and may outlive the manager.
std::shared_ptr<const warn_function> log_or_stderr(warn_function log) {
  if (log) return std::make_shared<const warn_function>(std::move(log));
  return std::make_shared<const warn_function>(
      [](std::string_view text) { fmt::print(stderr, "pawl lifecycle: {}\n", text); });
}

// The write would replace the state that the running mutator started from, so the mutator's own
// write would conflict each time it ran.
failure reentrant(std::string_view workflow, std::string_view id_text) {
  return lifecycle::fail(
      errc::reentrant_update,
      fmt::format("a mutator of {} '{}' runs on this thread and may not write it again", workflow,
                  id_text));
}

}  // namespace

result<void> still_wanted(const call_options& options) {
  if (options.stop.stop_requested())
    return lifecycle::fail(errc::cancelled, "the stop token was asked before anything was written");
  if (options.until.passed())
    return lifecycle::fail(errc::deadline_exceeded, "nothing was written");
  return {};
}

manager::core::core() {
  std::random_device device;
  stamp_base_ = (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

result<std::shared_ptr<const dynamic_type>> manager::core::type(std::string_view workflow) const {
  std::shared_lock lock(types_mutex);
  auto it = types.find(std::string(workflow));
  if (it == types.end())
    return lifecycle::fail(errc::workflow_not_registered, fmt::format("'{}'", workflow));
  return it->second;
}

void manager::core::check_drift(const dynamic_type& type, std::string_view id_text,
                                std::string_view phase_name) {
  if (auto warning = drifts.warn_once(type, id_text, phase_name)) (*log)(*warning);
}

// The type of a snapshot may be registered with another manager only.
void manager::core::check_drift(const snapshot& one) {
  if (auto known = type(one.workflow)) check_drift(**known, one.id, one.phase);
}

// `stamped` is true for engines in this process only: a server names writes by their revision,
// which is not known before they are durable.
manager::manager() : log_(log_or_stderr({})), core_(std::make_unique<core>()) {
  auto engine = Engine::open();
  core_->own = *std::move(engine);  // an engine in memory cannot fail to open
  core_->on = open_local_store(core_->own->parts());
  core_->stamped = true;
  core_->log = log_;
}

manager::manager(Engine& engine, manager_options options)
    : manager(open_local_store(engine.parts()), std::move(options)) {
  core_->stamped = true;
}

manager::manager(std::shared_ptr<store> on, manager_options options)
    : log_(log_or_stderr(std::move(options.log))), core_(std::make_unique<core>()) {
  core_->on = std::move(on);
  core_->log = log_;
}

result<manager> manager::connect(std::string_view address, remote_options options) {
  auto on = connect_remote_store(address, options);
  if (!on) return lifecycle::fail(on.error());
  return manager(*std::move(on), manager_options{std::move(options.log)});
}

manager::~manager() {
  if (core_) core_->on.reset();
}
manager::manager(manager&&) noexcept = default;
manager& manager::operator=(manager&&) noexcept = default;

result<void> manager::register_type(const dynamic_type& type) {
  if (auto valid = validate(type); !valid) return lifecycle::fail(to_error(valid.error()));
  // The lock is held over put_type(), so that two threads that register one name cannot both
  // succeed.
  std::unique_lock lock(core_->types_mutex);
  if (core_->types.contains(type.name))
    return lifecycle::fail(errc::workflow_already_registered, fmt::format("'{}'", type.name));
  if (auto put = core_->on->put_type(type); !put) return put;
  core_->types.emplace(type.name, std::make_shared<const dynamic_type>(type));
  return {};
}

result<dynamic_type> manager::definition(std::string_view workflow) const {
  return core_->on->type(workflow);
}

result<std::vector<dynamic_type>> manager::definitions() const { return core_->on->types(); }

// definition() asks the store, so these also know types that another program has registered.
result<void> manager::rule_writable(std::string_view workflow, std::string_view field_name) const {
  auto kind_found = field_type(workflow, field_name);
  if (!kind_found) return lifecycle::fail(kind_found.error());
  return {};
}

result<kind> manager::field_type(std::string_view workflow, std::string_view field_name) const {
  auto type = definition(workflow);
  if (!type) return lifecycle::fail(type.error());
  const auto* f = type->find(field_name);
  if (!f || !has(f->t, operator_writable))
    return lifecycle::fail(errc::field_not_operator_writable,
                           fmt::format("'{}' of {}", field_name, workflow));
  return f->k;
}

// A type that was not registered with this manager is refused without a request to the store.
result<revision> manager::create_record(std::string_view workflow, std::string_view id_text,
                                        std::string bytes, const call_options& options) {
  if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  auto done = core_->on->create(workflow, id_text, std::move(bytes), options.until);
  if (!done) return lifecycle::fail(done.error());
  return done->rev;
}

result<instance> manager::get_record(std::string_view workflow, std::string_view id_text) const {
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  auto found = core_->on->get(workflow, id_text);
  if (found) core_->check_drift(**type, id_text, found->phase);
  return found;
}

// Checks from cheap to expensive, so that a call that cannot succeed never runs its mutator.
result<revision> manager::write(std::string_view workflow, std::string_view id_text,
                                std::string_view to, how why, const record_mutator& f, int tries,
                                const call_options& options) {
  // A call without a mutator is a plain transition. A call without either is a mistake.
  if (!f && to.empty())
    return lifecycle::fail(errc::mutator_required,
                           "update needs a function that changes the state");
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  if (!f) return transition_record(workflow, id_text, to, why, options);
  if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
  if (!to.empty() && !(*type)->declares(to))
    return lifecycle::fail(errc::invalid_transition,
                           fmt::format("'{}' is not a phase of {}", to, workflow));
  if (mutating(core_.get(), workflow, id_text)) return reentrant(workflow, id_text);
  const Update update{**type, id_text, to, why, f, options};
  auto done = tries > 0 ? core_->write_directly(update, tries) : core_->write_in_turn(update);
  if (done) wrote(workflow, id_text);
  return done;
}

result<revision> manager::update_record(std::string_view workflow, std::string_view id_text,
                                        const record_mutator& f, const call_options& options) {
  return write(workflow, id_text, {}, {}, f, 0, options);
}

// The expected stamp is 0, so the revision is compared. The write is not queued behind other
// writers: it must fail if any of them was first.
result<revision> manager::swap_record(std::string_view workflow, std::string_view id_text,
                                      std::string bytes, revision expected,
                                      const call_options& options) {
  if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  if (mutating(core_.get(), workflow, id_text)) return reentrant(workflow, id_text);
  auto done = core_->on
                  ->replace({workflow,
                             id_text,
                             0,
                             expected,
                             core_->new_stamp(),
                             std::move(bytes),
                             {},
                             {},
                             options.until})
                  ->wait(options.until);
  if (!done) return lifecycle::fail(done.error());
  wrote(workflow, id_text);
  return done->rev;
}

namespace {

// The checks of every write without a mutator: the call is still wanted, the type is
// registered here, and this thread is not inside a mutator of the instance.
template <class Core, class Call>
result<revision> guarded(Core& core, std::string_view workflow, std::string_view id_text,
                         const call_options& options, Call&& call) {
  if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
  auto type = core.type(workflow);
  if (!type) return lifecycle::fail(type.error());
  if (mutating(&core, workflow, id_text)) return reentrant(workflow, id_text);
  result<written> done = call();
  if (!done) return lifecycle::fail(done.error());
  wrote(workflow, id_text);
  if (!done->warning.empty()) (*core.log)(done->warning);
  return done->rev;
}

}  // namespace

result<revision> manager::remove_record(std::string_view workflow, std::string_view id_text,
                                        const call_options& options) {
  return guarded(*core_, workflow, id_text, options,
                 [&] { return core_->on->remove(workflow, id_text, options.until); });
}

result<revision> manager::transition_record(std::string_view workflow, std::string_view id_text,
                                            std::string_view to, const how& why,
                                            const call_options& options) {
  return guarded(*core_, workflow, id_text, options,
                 [&] { return core_->on->transition(workflow, id_text, to, why, options.until); });
}

// The public functions by name; the templates in the header call the private ones.
result<revision> manager::transition(std::string_view workflow, std::string_view id_text,
                                     std::string_view to, how why, const call_options& options) {
  return transition_record(workflow, id_text, to, why, options);
}

result<revision> manager::complete_record(std::string_view workflow, std::string_view id_text,
                                          std::string_view target, const call_options& options) {
  return guarded(*core_, workflow, id_text, options,
                 [&] { return core_->on->complete(workflow, id_text, target, options.until); });
}

result<revision> manager::fail_record(std::string_view workflow, std::string_view id_text,
                                      std::string_view reason, const call_options& options) {
  if (reason.empty()) return lifecycle::fail(errc::reason_required, "say why it failed");
  return guarded(*core_, workflow, id_text, options,
                 [&] { return core_->on->mark_failed(workflow, id_text, reason, options.until); });
}

result<revision> manager::patch_record(std::string_view workflow, std::string_view id_text,
                                       std::string_view json_object, const call_options& options) {
  return guarded(*core_, workflow, id_text, options,
                 [&] { return core_->on->patch(workflow, id_text, json_object, options.until); });
}

result<revision> manager::complete(std::string_view workflow, std::string_view id_text,
                                   std::string_view target, const call_options& options) {
  return complete_record(workflow, id_text, target, options);
}

result<revision> manager::fail(std::string_view workflow, std::string_view id_text,
                               std::string_view reason, const call_options& options) {
  return fail_record(workflow, id_text, reason, options);
}

result<revision> manager::remove(std::string_view workflow, std::string_view id_text,
                                 const call_options& options) {
  return remove_record(workflow, id_text, options);
}

result<revision> manager::operator_patch(std::string_view workflow, std::string_view id_text,
                                         std::string_view json_object,
                                         const call_options& options) {
  return patch_record(workflow, id_text, json_object, options);
}

// Every read reports drift: an instance may be in a phase that the registered type does not
// declare.
result<any_page> manager::list_records(std::string_view workflow, const any_query& ask) const {
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  auto page = core_->on->list(workflow, ask);
  if (page)
    for (const instance& item : page->items)
      core_->check_drift(**type, item.id, item.phase);
  return page;
}

result<history_log> manager::history_of(std::string_view workflow, std::string_view id_text) const {
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  return core_->on->history(workflow, id_text);
}

result<std::unique_ptr<subscription>> manager::watch_records(std::string_view workflow,
                                                             std::optional<revision> after) const {
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  return core_->on->watch(workflow, after);
}

result<std::vector<snapshot>> manager::children(std::string_view id_text) const {
  auto out = core_->on->children(id_text);
  if (out)
    for (const snapshot& one : *out)
      core_->check_drift(one);
  return out;
}

result<std::vector<snapshot>> manager::ancestors(std::string_view id_text) const {
  std::string warning;
  auto out = core_->on->ancestors(id_text, warning);
  if (!warning.empty()) warn(warning);
  if (out)
    for (const snapshot& one : *out)
      core_->check_drift(one);
  return out;
}

result<snapshot> manager::lookup(std::string_view id_text) const {
  auto out = core_->on->lookup(id_text);
  if (out) core_->check_drift(*out);
  return out;
}

result<revision> manager::create_json(std::string_view workflow, std::string_view id_text,
                                      std::string_view json_object, const call_options& options) {
  auto type = core_->type(workflow);
  if (!type) return lifecycle::fail(type.error());
  auto body = js::parse(json_object);
  if (!body) return lifecycle::fail(errc::type_mismatch, body.error().message);
  auto bytes = record_of(make_type(**type), id_text, *body);
  if (!bytes) return lifecycle::fail(to_error(bytes.error()));
  return create_record(workflow, id_text, *std::move(bytes), options);
}

result<snapshot> manager::get_json(std::string_view workflow, std::string_view id_text) const {
  auto found = get_record(workflow, id_text);
  if (!found) return lifecycle::fail(found.error());
  return to_snapshot(**core_->type(workflow), *found);
}

// An instance that does not fit its type is left out.
result<std::vector<snapshot>> manager::list_json(std::string_view workflow,
                                                 const any_query& ask) const {
  auto page = list_records(workflow, ask);
  if (!page) return lifecycle::fail(page.error());
  std::vector<snapshot> out;
  for (const instance& item : page->items)
    if (auto one = to_snapshot(**core_->type(workflow), item)) out.push_back(*std::move(one));
  return out;
}

result<void> manager::put_rule(std::string_view rule_name, std::string_view json_rule) {
  return core_->on->put_rule(rule_name, json_rule);
}

// The id may be of any type, so the workflow is left empty in the checks.
result<revision> manager::run_action(std::string_view id_text, std::string_view json_action,
                                     const rule_context& context, const call_options& options) {
  if (auto may = still_wanted(options); !may) return lifecycle::fail(may.error());
  if (mutating(core_.get(), {}, id_text)) return reentrant("the entity", id_text);
  auto done = core_->on->run_action(id_text, json_action, context, options.until);
  if (!done) return lifecycle::fail(done.error());
  wrote({}, id_text);
  if (!done->warning.empty()) warn(done->warning);
  return done->rev;
}

result<std::string> manager::substitute(std::string_view id_text, std::string_view text,
                                        const rule_context& context) const {
  return core_->on->substitute(id_text, text, context);
}

}  // namespace pawl::lifecycle
