#include "faces/worlds/govern/shadow.h"

#include "base/utf8.h"
#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::octets;
using cbor::Value;

constexpr size_t kMaxListed = 1000;           // items of each list in a report
constexpr size_t kMaxShownBytes = 16 * 1024;  // params of an effect, or a state, that are shown
constexpr size_t kMaxReportBytes = 4u << 20;  // of a report: it is part of a cell and of a record
constexpr size_t kMaxStubRounds = 16;         // answers to answers, before the run is ended
// Values of one stub receipt. A type may hold another one twice, and that one a third one twice.
constexpr size_t kMaxStubValues = 10'000;

// The smallest value of a type. At most `left` values are made, counting nested ones.
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
        // The receipt of a timer holds its time as a nat; 0 would be a timer that fired in 1970.
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

Value error_text(const Error& error) {
  return Value(as_utf8(error.message.substr(0, kMaxReportedError)));
}

}  // namespace

// The lists of a report, in the order in which they are added. A list with no item is left out.
class Shadow::Report {
 public:
  explicit Report(cbor::Map lead) : out_(std::move(lead)) {}

  // False when the list or the report is full: the item is left out.
  bool add(cbor::Array& list, Value item) {
    const size_t bytes = cbor::encode(item).size();
    if (list.size() >= kMaxListed || bytes > bytes_left_) return false;
    bytes_left_ -= bytes;
    list.push_back(std::move(item));
    return true;
  }
  void add_list(std::string_view name, cbor::Array list) {
    if (!list.empty()) out_.emplace_back(name, Value(std::move(list)));
  }
  Bytes encode() && { return cbor::canonical(Value(std::move(out_))); }

 private:
  cbor::Map out_;
  size_t bytes_left_ = kMaxReportBytes;
};

Result<Bytes> Shadow::run(uint64_t id, const ShadowOptions& options) {
  TRY_OK(turn_.refuse_while_busy());
  if (turn_.shadow)
    return fail(Code::conflict, "governance.proposal_state", "a shadow run cannot start another");
  TRY(Proposal p, governance_.proposal(id));
  if (p.state == ProposalState::rejected || p.state == ProposalState::applied)
    return wrong_state(p, "not rejected");
  std::optional<Bytes> report = recorded_report(id);
  if (!report) {
    TRY(Patch patch, governance_.stored_patch(p));
    TRY(LoadedManifest next, turn_.load_manifest(patch.manifest, patch.nodes));
    TRY(report, run_aside(p, std::move(next), options));
  }
  TRY(Value body, cbor::decode(*report));
  p.state = ProposalState::shadowed;
  p.report = *report;
  governance_.save(p);
  ++turn_.head.shadowed;
  TRY_OK(turn_.record(governance_record("ShadowReport", body)));
  return *std::move(report);
}

// A replay does not run the shadow again, because the run saw seeds and a clock of its own. It
// takes the report that was recorded.
std::optional<Bytes> Shadow::recorded_report(uint64_t id) const {
  const Value record = turn_.recorded_here();
  const Value* report = record.find("ShadowReport");
  const Value* of = report ? report->find("proposal_id") : nullptr;
  if (!of || of->as_uint64() != id) return {};
  return cbor::canonical(*report);
}

// Runs the shadow and takes everything back but its report.
Result<Bytes> Shadow::run_aside(const Proposal& p, LoadedManifest next,
                                const ShadowOptions& options) {
  Report report(
      cbor::Map{{"proposal_id", p.id}, {"patch_hash", p.patch_hash}, {"manifest_hash", next.hash}});
  const WorldTurn::Savepoint before = turn_.savepoint();
  // The run makes records that no journal has: a replay must not compare them.
  const RecordedJournal* recorded = std::exchange(turn_.recorded, nullptr);
  ShadowLog log;
  turn_.shadow = &log;
  auto ran = try_out(std::move(next), options, report);
  turn_.rewind(before);
  turn_.recorded = recorded;
  turn_.mail = {};
  turn_.shadow = nullptr;
  // The turn goes on after the run, with a full budget.
  turn_.budget.steps = 0;
  turn_.budget.fuel = 0;
  TRY_OK(ran);
  // After the rewind: `before` is read from the live cells, `after` from the log.
  TRY_OK(list_deltas(log, report));
  return std::move(report).encode();
}

Result<void> Shadow::try_out(LoadedManifest next, const ShadowOptions& options, Report& report) {
  std::vector<Value> unmigrated;
  TRY_OK(Migration(turn_, next, &unmigrated).run());
  turn_.borrow_manifest(std::move(next));
  TRY_OK(send_seeds(options.seeds, report));
  TRY_OK(list_waiting(report));
  TRY_OK(answer_with_stubs());
  list_predicted(report);
  cbor::Array failures;
  for (Value& failure : unmigrated)
    report.add(failures, std::move(failure));
  report.add_list("migration_failures", std::move(failures));
  return {};
}

Result<void> Shadow::send_seeds(const std::vector<Event>& seeds, Report& report) {
  cbor::Array errors;
  for (const Event& seed : seeds) {
    // A refused seed is reported and does not end the run.
    auto accepted = ingress_.accept_event(seed);
    TRY_OK(stepper_.drain_fully());
    if (!accepted)
      report.add(errors,
                 cbor::Map{{"schema", seed.schema}, {"error", error_text(accepted.error())}});
  }
  report.add_list("seed_errors", std::move(errors));
  return {};
}

// Answers all open intents again and again, until none is left or the rounds are over. A workflow
// that asks for ever would otherwise never end.
Result<void> Shadow::answer_with_stubs() {
  for (size_t round = 0; round < kMaxStubRounds; ++round) {
    TRY(std::vector<PendingIntent> open, turn_.all_pending(kMaxListed));
    if (open.empty()) return {};
    for (const PendingIntent& intent : open) {
      // An earlier stub of this round may have ended its instance, which settles all of its
      // intents.
      TRY(auto still_open, turn_.pending(intent.intent));
      const LoadedManifest& loaded = turn_.loaded();
      const DeclaredEffect* effect = loaded.effect(intent.identity.effect);
      TypePtr type = effect ? loaded.schemas.find(effect->def.receipt) : nullptr;
      if (!still_open || !type) continue;
      size_t left = kMaxStubValues;
      const Value stub =
          stub_of(*type, loaded.schemas, static_cast<uint64_t>(turn_.kernel.now()), left);
      TRY_OK(ingress_.accept_receipt(
          {intent.intent, "ok", cbor::canonical(stub), {}, no_signature()}));
      TRY_OK(stepper_.drain_fully());
    }
  }
  return {};
}

// The effects that the world waits for after the seed events, before any stub is answered.
Result<void> Shadow::list_waiting(Report& report) {
  cbor::Array pending, instances, allowlists;
  TRY_OK(turn_.kernel.scan(pending_prefix(turn_.id), [&](BytesView, const Cell& cell) {
    auto i = decode_pending(cell.value());
    if (!i) return true;
    cbor::Map item{{"instance_id", instance_id(i->workflow, i->key)},
                   {"origin_module_id", i->workflow},
                   {"intent_hash", hash_text(i->intent)},
                   {"effect", i->identity.effect},
                   {"emitted_at_seq", i->emitted_at_seq}};
    if (i->keyed) item.emplace_back("origin_instance_key_b64", base64(i->key));
    return report.add(pending, Value(std::move(item)));
  }));
  TRY_OK(turn_.kernel.scan(cells_prefix(turn_.id), [&](BytesView at, const Cell& cell) {
    auto i = decode_instance(cell.value());
    const CellAt where = cell_at(turn_.id, at);
    return !i ||
           report.add(instances, cbor::Map{{"instance_id", instance_id(where.workflow, where.key)},
                                           {"status", name_of(i->status)},
                                           {"last_processed_event_seq", i->last_seq},
                                           {"module_version", i->module_version},
                                           {"inflight_intents", uint64_t{i->inflight.size()}}});
  }));
  for (const auto& [name, w] : turn_.loaded().workflows) {
    cbor::Map item{{"module", name}};
    if (!w.may_emit.empty())
      item.emplace_back("effects_emitted",
                        Value(cbor::Array(w.may_emit.begin(), w.may_emit.end())));
    report.add(allowlists, Value(std::move(item)));
  }
  report.add_list("pending_workflow_receipts", std::move(pending));
  report.add_list("workflow_instances", std::move(instances));
  report.add_list("module_effect_allowlists", std::move(allowlists));
  return {};
}

// Effects of the whole run, also those that were answered with stubs.
void Shadow::list_predicted(Report& report) {
  cbor::Array predicted;
  for (const PendingIntent& i : turn_.shadow->predicted) {
    cbor::Map item{{"op", i.identity.effect}, {"intent_hash", hex(i.intent)}};
    if (auto params = cbor::decode(i.params); params && i.params.size() <= kMaxShownBytes)
      item.emplace_back("params_json", std::move(*params));
    if (!report.add(predicted, Value(std::move(item)))) break;
  }
  report.add_list("effects_predicted", std::move(predicted));
}

// The cells that the run created, changed or deleted.
Result<void> Shadow::list_deltas(const ShadowLog& log, Report& report) {
  auto hash = [](const std::optional<Bytes>& state) {
    return state ? Value(hash_text(sha256(*state))) : Value();
  };
  auto shown = [](const std::optional<Bytes>& state) {
    auto value =
        state && state->size() <= kMaxShownBytes ? cbor::decode(*state) : Result<Value>(Value());
    return value ? *value : Value();
  };
  cbor::Array deltas;
  for (const auto& [cell, after] : log.touched) {
    const auto& [workflow, key] = cell;
    TRY(auto now,
        turn_.kernel.read_as<Instance>(cell_key(turn_.id, workflow, key), decode_instance));
    const std::optional<Bytes> before = now ? now->state : std::nullopt;
    if (before == after) continue;
    const bool listed = report.add(deltas, cbor::Map{{"instance_id", instance_id(workflow, key)},
                                                     {"change", !before  ? "created"
                                                                : !after ? "deleted"
                                                                         : "changed"},
                                                     {"before_hash", hash(before)},
                                                     {"after_hash", hash(after)},
                                                     {"before", shown(before)},
                                                     {"after", shown(after)}});
    if (!listed) break;
  }
  report.add_list("state_deltas", std::move(deltas));
  return {};
}

}  // namespace pawl::worlds
