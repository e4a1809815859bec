// A shadow run is the world as it would be: the patched manifest over the live cells, seed events
// and stub receipts, inside the turn and taken back at its end. It reports what it saw and no more.

#include <algorithm>

#include "base/utf8.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/step/engine.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

constexpr size_t kListed = 1000;             // items of each list in a report
constexpr size_t kShown = 16 * 1024;         // of the params of an effect, or of a state, in bytes
constexpr size_t kReport = 4 * 1024 * 1024;  // of all of it: it is part of a cell and of a record
constexpr size_t kStubRounds = 16;           // answers to answers, before the run is called done

constexpr size_t kStubValues =
    10'000;  // of one receipt: a type may hold another twice, and that one another twice

// The least value of a type, of no more values than `left`.
Value stub_of(const Type& type, const Schemas& schemas, uint64_t now, size_t& left) {
  auto resolved = schemas.resolve(type);
  if (!resolved || left == 0) return {};
  --left;
  const Type& t = **resolved;
  switch (t.form) {
    case Form::boolean: return Value(false);
    case Form::integer:
    case Form::nat: return Value(uint64_t{0});
    case Form::time: return Value(now);
    case Form::duration: return Value(uint64_t{0});
    case Form::dec128: return Value("0");
    case Form::bytes: return octets("");
    case Form::text: return Value("");
    case Form::hash: return Value(kNoHash);
    case Form::uuid: return Value("00000000-0000-0000-0000-000000000000");
    case Form::list:
    case Form::set: return Value(cbor::Array{});
    case Form::map: return Value(cbor::Map{});
    case Form::record: {
      cbor::Map out;
      for (const Field& f : t.fields)
        out.emplace_back(f.name, f.name == "delivered_at_ns"
                                     ? Value(now)
                                     : stub_of(*f.type, schemas, now, left));
      return Value(std::move(out));
    }
    case Form::variant: {
      if (t.fields.empty()) return {};
      return Value(cbor::Map{{"$tag", t.fields[0].name},
                             {"$value", stub_of(*t.fields[0].type, schemas, now, left)}});
    }
    default: return {};
  }
}

void add_list(cbor::Map& report, std::string_view name, cbor::Array list) {
  if (!list.empty()) report.emplace_back(name, Value(std::move(list)));
}

}  // namespace

bool Engine::report(cbor::Array& list, Value item) {
  const size_t bytes = cbor::encode(item).size();
  if (list.size() >= kListed || bytes > report_left_) return false;
  report_left_ -= bytes;
  list.push_back(std::move(item));
  return true;
}

Result<void> Engine::answer_with_stubs() {
  for (size_t round = 0; round < kStubRounds; ++round) {
    std::vector<Pending> open;
    TRY_OK(turn_.scan(pending_prefix(place_), [&](BytesView, const Cell& cell) {
      if (auto intent = decode_pending(cell.value())) open.push_back(std::move(*intent));
      return open.size() < kListed;
    }));
    if (open.empty()) return {};
    for (const Pending& intent : open) {
      TRY(auto still, turn_.read_as<Pending>(pending_key(place_, intent.intent), decode_pending));
      const DeclaredEffect* effect = loaded_->effect(intent.identity.effect);
      TypePtr type = effect ? loaded_->schemas.find(effect->def.receipt) : nullptr;
      if (!still || !type) continue;
      size_t left = kStubValues;
      TRY_OK(accept_receipt({intent.intent,
                             "ok",
                             cbor::canonical(stub_of(*type, loaded_->schemas,
                                                     static_cast<uint64_t>(turn_.now()), left)),
                             {},
                             Bytes(64, '\0')}));
      TRY_OK(finish());
    }
  }
  return {};
}

Result<cbor::Map> Engine::shadow_report(const Proposal& p, cbor::Array seed_errors) {
  cbor::Map out{
      {"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_hash", loaded_->hash}};
  add_list(out, "seed_errors", std::move(seed_errors));
  cbor::Array pending, instances, allowlists;
  TRY_OK(turn_.scan(pending_prefix(place_), [&](BytesView, const Cell& cell) {
    auto i = decode_pending(cell.value());
    if (!i) return true;
    cbor::Map item{{"instance_id", instance_id(i->workflow, i->key)},
                   {"origin_module_id", i->workflow},
                   {"intent_hash", hash_text(i->intent)},
                   {"effect", i->identity.effect},
                   {"emitted_at_seq", i->emitted_at_seq}};
    if (i->keyed) item.emplace_back("origin_instance_key_b64", base64(i->key));
    return report(pending, Value(std::move(item)));
  }));
  TRY_OK(turn_.scan(cells_prefix(place_), [&](BytesView at, const Cell& cell) {
    auto i = decode_instance(cell.value());
    const CellAt where = cell_at(place_, at);
    return !i ||
           report(instances, cbor::Map{{"instance_id", instance_id(where.workflow, where.key)},
                                       {"status", name_of(i->status)},
                                       {"last_processed_event_seq", i->last_seq},
                                       {"module_version", i->module_version},
                                       {"inflight_intents", uint64_t{i->inflight.size()}}});
  }));
  for (const auto& [name, w] : loaded_->workflows) {
    cbor::Map item{{"module", name}};
    add_list(item, "effects_emitted", cbor::Array(w.may_emit.begin(), w.may_emit.end()));
    report(allowlists, Value(std::move(item)));
  }
  add_list(out, "pending_workflow_receipts", std::move(pending));
  add_list(out, "workflow_instances", std::move(instances));
  add_list(out, "module_effect_allowlists", std::move(allowlists));
  return out;
}

Result<Bytes> Engine::run_shadow(const Proposal& p, Loaded next, const ShadowOptions& options) {
  const Turn::Mark mark = turn_.mark();
  const Head head = head_;
  const auto world = world_;
  const auto live = loaded_;
  const Recorded* recorded = std::exchange(recorded_, nullptr);
  shadowing_ = true;
  touched_.clear();
  predicted_.clear();
  report_left_ = kReport;

  auto run = [&]() -> Result<cbor::Map> {
    std::vector<Value> unmigrated;
    TRY_OK(migrate(next, &unmigrated));
    loaded_ = std::make_shared<const Loaded>(std::move(next));
    edit().manifest_hash = loaded_->hash;
    cbor::Array seed_errors;
    for (const Event& seed : options.seeds) {
      auto accepted = accept_event(seed);
      TRY_OK(finish());
      if (!accepted)
        report(seed_errors,
               cbor::Map{{"schema", seed.schema},
                         {"error", as_utf8(accepted.error().message.substr(0, kReportedError))}});
    }
    TRY(cbor::Map out, shadow_report(p, std::move(seed_errors)));
    TRY_OK(answer_with_stubs());
    cbor::Array predicted;
    for (const Pending& i : predicted_) {
      cbor::Map item{{"op", i.identity.effect}, {"intent_hash", hex(i.intent)}};
      if (auto params = cbor::decode(i.params); params && i.params.size() <= kShown)
        item.emplace_back("params_json", std::move(*params));
      if (!report(predicted, Value(std::move(item)))) break;
    }
    add_list(out, "effects_predicted", std::move(predicted));
    cbor::Array failures;
    for (Value& failure : unmigrated)
      this->report(failures, std::move(failure));
    add_list(out, "migration_failures", std::move(failures));
    return out;
  };
  auto ran = run();

  turn_.rewind(mark);
  head_ = head;
  world_ = world;
  loaded_ = live;
  recorded_ = recorded;
  mail_ = {};
  shadowing_ = false;
  steps_ = 0, fuel_ = 0;
  if (!ran) return fail(std::move(ran.error()));
  TRY_OK(add_deltas(*ran, touched_));
  return cbor::canonical(Value(std::move(*ran)));
}

// What would differ from the head: cells made, changed and gone.
Result<void> Engine::add_deltas(cbor::Map& out,
                                const std::map<Named, std::optional<Bytes>>& after) {
  cbor::Array deltas;
  for (const auto& [slot, state] : after) {
    TRY(auto now,
        turn_.read_as<Instance>(cell_key(place_, slot.first, slot.second), decode_instance));
    const std::optional<Bytes> before = now ? now->state : std::nullopt;
    if (before == state) continue;
    auto hash = [](const std::optional<Bytes>& s) {
      return s ? Value(hash_text(sha256(*s))) : Value();
    };
    auto show = [](const std::optional<Bytes>& s) {
      auto value = s && s->size() <= kShown ? cbor::decode(*s) : Result<Value>(Value());
      return value ? *value : Value();
    };
    const bool listed =
        report(deltas, cbor::Map{{"instance_id", instance_id(slot.first, slot.second)},
                                 {"change", !before  ? "created"
                                            : !state ? "deleted"
                                                     : "changed"},
                                 {"before_hash", hash(before)},
                                 {"after_hash", hash(state)},
                                 {"before", show(before)},
                                 {"after", show(state)}});
    if (!listed) break;
  }
  add_list(out, "state_deltas", std::move(deltas));
  return {};
}

}  // namespace pawl::worlds
