#include "faces/worlds/stage_test.h"

#include <gtest/gtest.h>

#include <future>

namespace pawl::worlds {
namespace {

// The value inside a variant, or the value.
const cbor::Value* inside(const cbor::Value& value, std::string& tag) {
  tag = value.text_or("$tag", "-");
  const cbor::Value* inner = value.find("$value");
  return inner ? inner : &value;
}

}  // namespace

Result<Bytes> Scripted::step(std::string_view entrypoint, BytesView input) const {
  TRY(StepInput in, decode_input(input));
  TRY(cbor::Value event, cbor::decode(in.event.value));
  std::string tag;
  const cbor::Value* inner = inside(event, tag);
  if (entrypoint == "trap")
    return fail(Code::unprocessable, "wasm.error",
                "wasm runtime error: step trap: unreachable code reached");
  const cbor::Value* out = inner->find("out");
  if (out && out->is_bytes() && !out->bytes().empty()) return out->bytes();
  cbor::Array log;
  if (in.state) {
    TRY(cbor::Value state, cbor::decode(*in.state));
    if (const cbor::Value* old = state.find("log")) log = old->array();
  }
  const cbor::Value* word = inner->find("word");
  if (word && word->is_text() && word->text() == "ctx" && in.context)
    log.push_back(hex(*in.context));
  else
    log.push_back(word && word->is_text() ? cbor::Value(word->text()) : cbor::Value(tag));
  return encode_output(
      {cbor::encode(cbor::Map{{"log", cbor::Value(std::move(log))}}), {}, {}, {}, false});
}

Result<Bytes> VectorScript::step(std::string_view, BytesView input) const {
  TRY(StepInput in, decode_input(input));
  TRY(cbor::Value event, cbor::decode(in.event.value));
  std::string tag;
  const cbor::Value* inner = inside(event, tag);
  const cbor::Value* out = inner->find("out");
  if (out && out->is_bytes() && !out->bytes().empty()) return out->bytes();
  const cbor::Value* wants = inner->find("ctx");
  if (wants && wants->is_bool() && wants->boolean() && in.context)
    return encode_output({*in.context, {}, {}, {}, false});
  return encode_output({in.state.value_or("") + tag + ";", {}, {}, {}, false});
}

Stage::Stage(wasm::Runner* runner, bool scripts) : modules(runner) {
  if (scripts) {
    modules.add("t/scripted@1", std::make_unique<Scripted>());
    modules.add("w/script_wasm@1", std::make_unique<VectorScript>());
  }
  program = std::make_unique<Lab>(modules);
  kernel = std::make_unique<Kernel>(
      cache, [this] { return snapshot(); }, std::vector<const Program*>{program.get()}, 0);
  committer = std::make_unique<Committer>(journal, rows, cache, Digest{});
  face = std::make_unique<Face>(*this, *this, program->worlds, background);
}

void Stage::submit(Input input, Reply reply) {
  std::lock_guard lock(mutex_);
  input.stamp.dice = {dice++, 7};
  kernel->tick(clock += kMillisecond);
  kernel->run(std::move(input), std::move(reply));
  flush();
}

void Stage::flush() {
  while (!kernel->idle()) {
    Group group = kernel->take();
    std::span one(&group, 1);
    CHECK(committer->append(one));
    committer->publish(one);
    std::vector<std::string> deliver;
    for (auto& moved : group.moved) {
      if (!moved.opened)
        open.erase(moved.effect->id);
      else if (moved.effect->to == To::cell)
        deliver.push_back(moved.effect->id);
      else
        open[moved.effect->id] = moved.effect;
    }
    for (auto& [reply, answer] : group.answers)
      reply(std::move(answer));
    held.insert(held.end(), deliver.begin(), deliver.end());
    while (!holds && !held.empty())
      run_held();
  }
}

void Stage::run_held() {
  Input input;
  input.settles = held.front();
  held.pop_front();
  input.stamp.dice = {dice++, 7};
  kernel->tick(clock += kMillisecond);
  kernel->run(std::move(input), [](Result<Answer>) {});
}

void Stage::deliver_next() {
  std::lock_guard lock(mutex_);
  run_held();
  flush();
}

uint64_t Stage::poll(Poll poll, Polled done) {
  std::vector<Leased> out;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, effect] : open)
      if (effect->to == To::worker &&
          std::find(poll.queues.begin(), poll.queues.end(), effect->queue) != poll.queues.end() &&
          out.size() < poll.limit && leases[id] <= clock)
        out.push_back({effect, leases[id] = clock + poll.lease});
  }
  done(std::move(out));
  return 0;
}

Result<json::Value> Stage::say(std::string verb, Bytes body, std::string settles) {
  Input input;
  input.program = kProgram;
  input.verb = std::move(verb);
  input.body = std::move(body);
  input.caller.tenant = "t";
  input.settles = std::move(settles);
  std::optional<Result<Answer>> heard;
  submit(std::move(input), [&](Result<Answer> a) { heard.emplace(std::move(a)); });
  CHECK(heard.has_value());
  if (!*heard) return fail((*heard).error());
  if ((*heard)->body.empty()) return json::Value();
  auto parsed = json::parse((*heard)->body);
  return parsed ? *parsed : json::Value((*heard)->body);
}

Result<json::Value> Stage::create(const std::string& world, const json::Value& air,
                                  AuthorOptions options, bool check_state) {
  TRY(Authored authored, author(air, program->worlds.builtins(), options));
  return say("create",
             encode(CreateWorld{
                 world, encode_bundle(authored.manifest, authored.nodes), {}, check_state, {}}));
}

Result<json::Value> Stage::send(const std::string& world, const std::string& schema,
                                const cbor::Value& value, std::optional<Bytes> key) {
  return say("event", encode(SendEvent{world, {schema, cbor::encode(value), std::move(key)}, 0}));
}

Result<json::Value> Stage::settle(const std::string& world, BytesView intent,
                                  const cbor::Value& payload, std::string status) {
  return say(
      "receipt",
      encode(SendReceipt{
          world, {Bytes(intent), std::move(status), cbor::encode(payload), {}, Bytes(64, '\0')}}),
      effect_id({"t", world}, hex(intent)));
}

Result<json::Value> Stage::govern(const std::string& world, Govern g) {
  g.world = world;
  g.command = "c" + std::to_string(dice);
  TRY(json::Value raw, say("govern", encode(g)));
  TRY(GovernanceCommand command, decode_command(raw.is_string() ? raw.string() : std::string()));
  if (!command.code.empty())
    return fail(Code::conflict, command.code, command.message, command.result);
  return json::parse(command.result);
}

wire::Response Stage::http(std::string method, std::string path, std::string body,
                           wire::Headers headers) {
  wire::Router router;
  router.add(face->routes(), face->dialects());
  wire::Request request;
  request.method = std::move(method);
  const size_t question = path.find('?');
  request.path = path.substr(0, question);
  if (question != std::string::npos) request.query = path.substr(question + 1);
  request.headers = std::move(headers);
  request.body = std::move(body);
  request.caller.tenant = "t";
  // Requests that bring modules are answered by the thread that compiles them.
  std::promise<wire::Response> answered;
  router.dispatch(std::move(request), [&](wire::Response r) { answered.set_value(std::move(r)); });
  return answered.get_future().get();
}

Result<Bytes> Stage::lab(std::function<Result<Bytes>(Turn&)> experiment) {
  program->experiment = std::move(experiment);
  Input input;
  input.program = kProgram;
  input.verb = "lab";
  input.caller.tenant = "t";
  std::optional<Result<Answer>> heard;
  submit(std::move(input), [&](Result<Answer> a) { heard.emplace(std::move(a)); });
  if (!*heard) return fail((*heard).error());
  return (*heard)->body;
}

Instance Stage::cell(const std::string& world, const std::string& workflow, BytesView key) const {
  auto cell = read(cell_key({"t", world}, workflow, key));
  if (!cell->exists()) return {};
  return *decode_instance(cell->value());
}

std::vector<std::string> Stage::log(const std::string& world, const std::string& workflow,
                                    BytesView key) const {
  const Instance instance = cell(world, workflow, key);
  std::vector<std::string> out;
  if (!instance.state) return out;
  auto state = cbor::decode(*instance.state);
  for (const cbor::Value& item : state->find("log")->array())
    out.push_back(item.text());
  return out;
}

WorldHead Stage::head(const std::string& world) const {
  return *decode_head(read(head_key({"t", world}))->value());
}

std::vector<cbor::Value> Stage::records(const std::string& world) const {
  std::vector<cbor::Value> out;
  CHECK(scan_records(snapshot(), {"t", world}, 0, [&](uint64_t, BytesView payload) {
    out.push_back(*cbor::decode(payload));
    return true;
  }));
  return out;
}

std::vector<std::string> Stage::kinds(const std::string& world) const {
  std::vector<std::string> out;
  for (const cbor::Value& r : records(world))
    out.emplace_back(record_kind(r));
  return out;
}

std::vector<PendingIntent> Stage::pending(const std::string& world) const {
  std::vector<PendingIntent> out;
  CHECK(snapshot().scan(pending_prefix({"t", world}), [&](BytesView, const Cell& cell) {
    out.push_back(*decode_pending(cell.value()));
    return true;
  }));
  std::sort(out.begin(), out.end(), [](const PendingIntent& a, const PendingIntent& b) {
    return a.emitted_at_seq < b.emitted_at_seq;
  });
  return out;
}

Bytes Stage::dump(const std::string& world) const {
  const ReadSnapshot now = snapshot();
  const WorldId world_id{"t", world};
  Bytes out;
  Writer w(out);
  WorldHead head = *decode_head(now.read(head_key(world_id))->value());
  head.marks = 0;
  w.str(encode(head));
  w.str(now.read(air_key(world_id))->value());
  CHECK(now.scan(cells_prefix(world_id), [&](BytesView at, const Cell& cell) {
    Instance i = *decode_instance(cell.value());
    const CellAt where = cell_at(world_id, at);
    w.str(where.workflow);
    w.str(where.key);
    w.boolean(i.state.has_value());
    w.str(i.state.value_or(""));
    w.str(encode_for_snapshot(i));
    return true;
  }));
  for (const Key& lead :
       {pending_prefix(world_id), proposals_prefix(world_id), queued_prefix(world_id)}) {
    CHECK(now.scan(lead, [&](BytesView at, const Cell& cell) {
      w.str(at.substr(lead.size()));
      w.str(cell.value());
      return true;
    }));
  }
  return out;
}

Verified Stage::verify_all() const {
  MemoryRows scratch;
  const Program* programs[] = {program.get()};
  auto verified = verify(journal, scratch, programs);
  CHECK(verified.has_value());
  return *verified;
}

json::Value vector_file(const std::string& name) {
  std::ifstream in("tests/vectors/worlds/" + name);
  std::stringstream text;
  text << in.rdbuf();
  auto parsed = json::parse(text.str());
  CHECK(parsed.has_value());
  return *parsed;
}

json::Value test_air() {
  static constexpr std::string_view kText = R"([
{"$kind":"defschema","name":"t/Id@1","type":{"text":{}}},
{"$kind":"defschema","name":"t/State@1","type":{"record":{"log":{"list":{"text":{}}}}}},
{"$kind":"defschema","name":"t/Do@1","type":{"record":{"id":{"ref":"t/Id@1"},"out":{"option":{"bytes":{}}},"word":{"option":{"text":{}}}}}},
{"$kind":"defschema","name":"t/Tell@1","type":{"record":{"id":{"ref":"t/Id@1"},"out":{"option":{"bytes":{}}},"word":{"option":{"text":{}}}}}},
{"$kind":"defschema","name":"t/Half@1","type":{"record":{"id":{"ref":"t/Id@1"},"out":{"option":{"bytes":{}}},"word":{"option":{"text":{}}}}}},
{"$kind":"defschema","name":"t/Deaf@1","type":{"record":{"id":{"ref":"t/Id@1"},"out":{"option":{"bytes":{}}},"word":{"option":{"text":{}}}}}},
{"$kind":"defschema","name":"t/Boom@1","type":{"record":{"id":{"ref":"t/Id@1"}}}},
{"$kind":"defschema","name":"t/Lonely@1","type":{"record":{}}},
{"$kind":"defschema","name":"t/Event@1","type":{"variant":{"Do":{"ref":"t/Do@1"},"Receipt":{"ref":"sys/EffectReceiptEnvelope@1"},"Rejected":{"ref":"sys/EffectReceiptRejected@1"},"Frame":{"ref":"sys/EffectStreamFrame@1"}}}},
{"$kind":"defschema","name":"t/TellEvent@1","type":{"variant":{"Tell":{"ref":"t/Tell@1"},"Do":{"ref":"t/Do@1"}}}},
{"$kind":"defschema","name":"t/HalfEvent@1","type":{"variant":{"Half":{"ref":"t/Half@1"},"Fired":{"ref":"sys/TimerFired@1"}}}},
{"$kind":"defschema","name":"t/DeafEvent@1","type":{"variant":{"Deaf":{"ref":"t/Deaf@1"}}}},
{"$kind":"defschema","name":"t/ChargeParams@1","type":{"record":{"amount":{"nat":{}}}}},
{"$kind":"defschema","name":"t/ChargeReceipt@1","type":{"record":{"code":{"int":{}}}}},
{"$kind":"defeffect","name":"t/charge@1","params":"t/ChargeParams@1","receipt":"t/ChargeReceipt@1","impl":{"module":"sys/builtin_effects@1","entrypoint":"charge"}},
{"$kind":"defmodule","name":"t/scripted@1","runtime":{"kind":"wasm","artifact":{"kind":"wasm_module"}}},
{"$kind":"defworkflow","name":"t/main@1","state":"t/State@1","event":"t/Event@1","context":"sys/WorkflowContext@1","key_schema":"t/Id@1","effects_emitted":["sys/timer.set@1","t/charge@1","sys/blob.put@1","sys/blob.get@1","sys/introspect.journal_head@1","sys/http.request@1","sys/governance.propose@1","sys/governance.shadow@1","sys/governance.approve@1"],"impl":{"module":"t/scripted@1","entrypoint":"step"}},
{"$kind":"defworkflow","name":"t/teller@1","state":"t/State@1","event":"t/TellEvent@1","effects_emitted":[],"impl":{"module":"t/scripted@1","entrypoint":"step"}},
{"$kind":"defworkflow","name":"t/half@1","state":"t/State@1","event":"t/HalfEvent@1","key_schema":"t/Id@1","effects_emitted":["sys/timer.set@1","t/charge@1"],"impl":{"module":"t/scripted@1","entrypoint":"step"}},
{"$kind":"defworkflow","name":"t/deaf@1","state":"t/State@1","event":"t/DeafEvent@1","key_schema":"t/Id@1","effects_emitted":["t/charge@1"],"impl":{"module":"t/scripted@1","entrypoint":"step"}},
{"$kind":"defworkflow","name":"t/boom@1","state":"t/State@1","event":"t/Boom@1","key_schema":"t/Id@1","effects_emitted":[],"impl":{"module":"t/scripted@1","entrypoint":"trap"}},
{"$kind":"manifest","air_version":"2",
 "schemas":[{"name":"t/Id@1"},{"name":"t/State@1"},{"name":"t/Do@1"},{"name":"t/Tell@1"},{"name":"t/Half@1"},{"name":"t/Deaf@1"},{"name":"t/Boom@1"},{"name":"t/Lonely@1"},{"name":"t/Event@1"},{"name":"t/TellEvent@1"},{"name":"t/HalfEvent@1"},{"name":"t/DeafEvent@1"},{"name":"t/ChargeParams@1"},{"name":"t/ChargeReceipt@1"}],
 "modules":[{"name":"t/scripted@1"}],
 "workflows":[{"name":"t/main@1"},{"name":"t/teller@1"},{"name":"t/half@1"},{"name":"t/deaf@1"},{"name":"t/boom@1"}],
 "effects":[{"name":"t/charge@1"}],
 "routing":{"subscriptions":[
  {"event":"t/Do@1","workflow":"t/main@1","key_field":"id"},
  {"event":"t/Tell@1","workflow":"t/teller@1"},
  {"event":"t/Half@1","workflow":"t/half@1","key_field":"id"},
  {"event":"t/Deaf@1","workflow":"t/deaf@1","key_field":"id"},
  {"event":"t/Boom@1","workflow":"t/boom@1","key_field":"id"}]}}
])";
  auto parsed = json::parse(kText);
  CHECK(parsed.has_value());
  return *parsed;
}

Bytes state_of(std::vector<std::string> log) {
  return cbor::canonical(cbor::Map{{"log", cbor::Value(cbor::Array(log.begin(), log.end()))}});
}

cbor::Value tell(const std::string& id, const std::optional<StepOutput>& out) {
  cbor::Map value{{"id", id}};
  if (out) value.emplace_back("out", cbor::octets(encode_output(*out)));
  return cbor::Value(std::move(value));
}

Bytes key_of(const std::string& id) { return cbor::canonical(cbor::Value(id)); }

StepOutput output(std::vector<std::string> log, std::vector<EmittedEffect> effects,
                  std::vector<Event> events) {
  return {state_of(std::move(log)), std::move(events), std::move(effects), {}, false};
}

EmittedEffect timer(uint64_t at, std::optional<Bytes> key) {
  return {"sys/timer.set@1", cbor::encode(cbor::Map{{"deliver_at_ns", at}}), {}, std::move(key)};
}

Event event_to(const std::string& schema, const std::string& id,
               const std::optional<StepOutput>& out) {
  return {schema, cbor::encode(tell(id, out)), {}};
}

}  // namespace pawl::worlds
