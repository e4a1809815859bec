// The other way: a world from its snapshot, then the records after it, run again. Every record made
// must be the one recorded; a world that disagrees does not open.

#include "faces/worlds/step/engine.h"

#include "faces/worlds/air/normalize.h"

namespace pawl::worlds {
namespace {

using cbor::Value;

std::unexpected<Error> bad_snapshot(std::string why) {
  return fail(Code::corrupt, "snapshot.decode", "snapshot cannot be restored: " + std::move(why));
}

Result<const cbor::Array*> list_of(const Value& blob, std::string_view name) {
  const Value* list = blob.find(name);
  if (!list || !list->is_array()) return bad_snapshot("it lacks '" + std::string(name) + "'");
  return &list->array();
}

}  // namespace

Result<void> Engine::restore(std::string_view ref) {
  TRY(Bytes digest, parse_hash(ref));
  TRY(Bytes bytes, blobs_.get(digest));
  TRY(Value blob, cbor::decode(bytes));
  const Value* manifest = blob.find("manifest_hash");
  const Value* complete = blob.find("root_completeness");
  const Value* roots = blob.find("workflow_index_roots");
  const Value* head = blob.find("head");
  if (!manifest || !manifest->is_bytes()) return bad_snapshot("it names no manifest");
  if (!complete || !complete->find("manifest_hash") ||
      *complete->find("manifest_hash") != *manifest)
    return bad_snapshot("root completeness is missing or names another manifest");
  if (!roots || !complete->find("cell_index_roots") ||
      *complete->find("cell_index_roots") != *roots)
    return bad_snapshot("root completeness names other roots");
  if (!head || !head->is_bytes()) return bad_snapshot("it has no head");
  TRY(head_, decode_head(head->bytes()));

  TRY(Bytes manifest_bytes, blobs_.get(manifest->bytes()));
  TRY(Value manifest_value, cbor::decode(manifest_bytes));
  TRY(Manifest parsed, parse_manifest(plain_json(manifest_value)));
  TRY(Loaded loaded, load_manifest(parsed, {}));
  TRY_OK(use_manifest(std::move(loaded)));

  World& world = edit();
  world.roots.clear();
  world.snapshot_ref = ref;
  world.snapshot_height = head_.height;
  world.epoch = 1 + head_.applied;
  const IndexStore store = index_store();
  for (const Value& root : roots->array()) {
    TRY(world.roots[root.array()[0].text()].cells, parse_digest_array(&root.array()[1]));
  }
  TRY(const cbor::Array* instance_roots, list_of(blob, "workflow_instance_roots"));
  for (const Value& root : *instance_roots) {
    const std::string& workflow = root.array()[0].text();
    TRY(Bytes at, parse_digest_array(&root.array()[1]));
    const Bytes cells = world.roots[workflow].cells;
    world.roots[workflow].instances = at;
    TRY_OK(walk_index(store, at, [&](const Value& entry) -> Result<bool> {
      const Value* key = entry.find("key_bytes");
      const Value* stored = entry.find("record");
      if (!key || !key->is_bytes() || !stored || !stored->is_bytes())
        return bad_snapshot("an instance entry is damaged");
      TRY(Instance instance, decode_instance(stored->bytes()));
      TRY(std::optional<Value> cell, find_in_index(store, cells, view(sha256(key->bytes()))));
      if (cell) {
        TRY(Bytes state, parse_digest_array(cell->find("state_hash")));
        TRY(instance.state, blobs_.get(state));
      }
      turn_.write(cell_key(place_, workflow, key->bytes()), encode(instance));
      return true;
    }));
  }
  TRY_OK(walk_list(store, blob, "pending_workflow_receipts", [&](BytesView item) -> Result<void> {
    TRY(Pending intent, decode_pending(item));
    turn_.write(pending_key(place_, intent.intent), encode(intent));
    return {};
  }));
  TRY_OK(walk_list(store, blob, "proposals", [&](BytesView item) -> Result<void> {
    TRY(Proposal p, decode_proposal(item));
    turn_.write(proposal_key(place_, p.id), encode(p));
    return {};
  }));
  // The snapshot's own record has this height.
  return record_snapshot();
}

Value Engine::recorded_here() const {
  const Bytes* payload = recorded_ ? recorded_->at(head_.height) : nullptr;
  auto rec = payload ? cbor::decode(*payload) : Result<Value>(Value());
  return rec ? std::move(*rec) : Value();
}

Result<void> Engine::replay(uint64_t until) {
  while (head_.height < until) {
    const Bytes* payload = recorded_ ? recorded_->at(head_.height) : nullptr;
    if (!payload)
      return fail(Code::corrupt, "journal.error",
                  "journal.error: record " + std::to_string(head_.height) + " is missing");
    TRY(Value rec, cbor::decode(*payload));
    const Turn::Mark mark = turn_.mark();
    const Head head = head_;
    const auto world = world_;
    const auto loaded = loaded_;
    TRY_OK(replay_one(rec));
    TRY_OK(finish());
    if (head_.height <= until) continue;
    // The height lies within what one input did: stand before it.
    turn_.rewind(mark);
    head_ = head, world_ = world, loaded_ = loaded;
    return {};
  }
  return {};
}

Result<void> Engine::replay_one(const Value& rec) {
  const std::string_view kind = record_kind(rec);
  const uint64_t before = head_.height;
  if (kind == "domain_event") {
    const Value* value = rec.find("value");
    const Value* key = rec.find("key");
    Event event{std::string(rec.text_or("schema")),
                value && value->is_bytes() ? value->bytes() : Bytes(),
                {}};
    if (key && key->is_bytes() && !loaded_->routes.contains(event.schema)) event.key = key->bytes();
    TRY(Accepted unused, accept_event(std::move(event)));
    (void)unused;
  } else if (kind == "effect_receipt") {
    TRY(Receipt receipt, receipt_of(rec));
    TRY_OK(accept_receipt(std::move(receipt)));
  } else if (kind == "stream_frame") {
    TRY(StreamFrame frame, frame_of(rec));
    TRY(bool unused, accept_frame(std::move(frame)));
    (void)unused;
  } else if (kind == "custom" && rec.text_or("tag") == "workflow.stream_gap") {
    const Bytes* next = recorded_->at(head_.height + 1);
    TRY(Value frame_record, next ? cbor::decode(*next) : Result<Value>(Value()));
    TRY(StreamFrame frame, frame_of(frame_record));
    TRY(bool unused, accept_frame(std::move(frame)));
    (void)unused;
  } else if (kind == "custom" && rec.text_or("tag") == "workflow.stream_drop") {
    TRY_OK(record(*recorded_->at(head_.height)));
  } else if (kind == "snapshot") {
    TRY(std::string unused, snapshot());
    (void)unused;
  } else if (kind == "manifest" || kind == "governance") {
    TRY_OK(replay_governance(rec));
  }
  if (head_.height > before) return {};
  return fail(Code::corrupt, "journal.error",
              "journal.error: a record of kind '" + std::string(kind) + "' at height " +
                  std::to_string(before) + " follows from no input");
}

Result<void> Engine::replay_governance(const Value& rec) {
  auto id_of = [](const Value& body) {
    const Value* id = body.find("proposal_id");
    return id ? id->as_uint64().value_or(0) : 0;
  };
  if (record_kind(rec) == "manifest") {
    const Bytes* next = recorded_->at(head_.height + 1);
    TRY(Value applied, next ? cbor::decode(*next) : Result<Value>(Value()));
    const Value* body = applied.find("Applied");
    if (!body) return {};  // the first record of a world: nothing to do here
    TRY(Proposal unused, apply(id_of(*body), false));
    (void)unused;
    return {};
  }
  if (const Value* body = rec.find("Proposed")) {
    Proposal p;
    p.patch_hash = body->text_or("patch_hash");
    TRY(Patch patch, stored_patch(p));
    const Value* description = body->find("description");
    TRY(Proposal unused, propose(patch, description && description->is_text()
                                            ? std::optional<std::string>(description->text())
                                            : std::nullopt));
    (void)unused;
    return {};
  }
  if (const Value* body = rec.find("ShadowReport")) {
    TRY(Bytes unused, shadow(id_of(*body), {}));
    (void)unused;
    return {};
  }
  if (const Value* body = rec.find("Approved")) {
    TRY(Proposal unused, decide(id_of(*body), std::string(body->text_or("approver")),
                                body->text_or("decision") == "approve"));
    (void)unused;
  }
  return {};
}

}  // namespace pawl::worlds
