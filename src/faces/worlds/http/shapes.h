#pragma once
// The shapes of bodies and queries of the routes of worlds, from which the handlers read.

#include "wire/operation.h"

namespace pawl::worlds::http {

using namespace wire::row;  // tables name their rows by type
using wire::AnswerShape;
using wire::Kind;
using wire::Operation;
using wire::RequestShape;

inline constexpr std::string_view kSampleHash =
    R"("sha256:0000000000000000000000000000000000000000000000000000000000000000")";

// Queries.
inline constexpr RequestShape kWorldsQuery{
    "",
    {count("limit", "How many, at most 1000.").by_default(100),
     text("after", "The id after which the page begins.")}};
inline constexpr RequestShape kKindsQuery{
    "", {texts("kind", "A kind; may be repeated."), text("kinds", "Kinds, separated by commas.")}};
inline constexpr RequestShape kDefsQuery{
    "", kKindsQuery, {text("prefix", "The beginning of the names; sys/ shows the built-in ones.")}};
inline constexpr RequestShape kRecordsQuery{
    "",
    kKindsQuery,
    {count("from", "The height of the first record; none: 0, or the head when waiting."),
     count("limit", "How many, at most 1000.").by_default(100)}};
inline constexpr RequestShape kWaitQuery{
    "",
    kRecordsQuery,
    {count("timeout_ms", "How long to wait, at most a minute.").by_default(30'000)}};
inline constexpr RequestShape kTraceQuery{
    "",
    {text("event_hash", "The event that the trace begins with."),
     text("schema", "Or: the schema of the event,"), text("correlate_by", "a field of its value,"),
     text("value", "and the value of the field."), text("workflow", "Or: the workflow of a cell"),
     formatted("key_b64", "byte", "and its key."),
     count("window_limit", "How many records to read.")}};
inline constexpr RequestShape kSummaryQuery{
    "", {count("recent_limit", "How many open intents, at most 1000.").by_default(100)}};
inline constexpr RequestShape kStateQuery{
    "",
    {formatted("key_b64", "byte", "The key of the cell; none: the empty key."),
     text("consistency", "head, exact:HEIGHT or at_least:HEIGHT.").by_default("head"),
     count("limit", "Of cells: how many, at most 1000.").by_default(100),
     formatted("prefix_b64", "byte", "Of cells: the beginning of the keys."),
     formatted("after_b64", "byte", "Of cells: the key after which the page begins.")}};
inline constexpr RequestShape kResolveQuery{
    "",
    {text("workspace", "The name of the workspace.").required().example(R"("notes")"),
     count("version", "Its version; none: the newest.")}};
inline constexpr RequestShape kEntriesQuery{
    "",
    {text("path", "A directory; none: the root."), text("scope", "subtree: all below it."),
     text("cursor", "The cursor of the page before."),
     count("limit", "How many, at most 10000.").by_default(1000)}};
inline constexpr RequestShape kPathQuery{"", {text("path", "A file or a directory.")}};
inline constexpr RequestShape kBytesQuery{"",
                                          kPathQuery,
                                          {count("start", "The first byte; wants an end too."),
                                           count("end", "The byte after the last.")}};
inline constexpr RequestShape kModeQuery{
    "", {choice("mode", {"strict", "relaxed"}, "Of apply: relaxed does not wait for quiescence.")}};

// Headers.
inline constexpr RequestShape kStreamHeaders{
    "", {text("Last-Event-ID", "The id of the last event, to resume after it.")}};

// Bodies.
inline constexpr RequestShape kLimits{
    "WorldLimits",
    {integer("fuel", "Instructions of one step.").range(1, 100'000'000'000).example("100000000"),
     integer("memory_bytes", "Memory of one step.").range(1, int64_t{4} << 30)}};
inline constexpr RequestShape kSource{
    "ManifestSource",
    {text("kind", "manifest."), text("manifest_hash", "A manifest in the store.")}};
inline constexpr RequestShape kNewWorld{
    "CreateWorldRequest",
    {text("world_id", "The id; none: the server chooses.").example(R"("orders")"),
     document("air", "The definitions: a list of AIR nodes.", "AirDocument"),
     document("manifest", "Or: a manifest", "AirNode"), any("nodes", "and its nodes."),
     text("manifest_hash", "Or: the hash of a manifest in the store."),
     object("source", "The same in the peer's form.", kSource),
     object("limits", "Limits of a step.", kLimits),
     flag("check_state", "Check the state of each step against its schema."),
     map("modules", "WASM in base64, by module name.", Kind::text)}};
inline constexpr RequestShape kCompact{
    "CompactRequest", {count("through", "The last height to forget.").required().example("10")}};
inline constexpr RequestShape kSnapshotChoice{
    "SnapshotChoice",
    {choice("kind", {"active_baseline", "by_height", "by_ref"}), count("height"),
     text("snapshot_ref")}};
inline constexpr RequestShape kFork{
    "ForkRequest",
    {text("world_id", "The id of the new world.").example(R"("orders-copy")"),
     text("new_world_id", "The same in the peer's form."),
     count("height", "The height to fork at; none: the head."),
     object("src_snapshot", "Or: a snapshot.", kSnapshotChoice),
     choice("effects", {"detached", "live"}, "Whether the fork's effects leave."),
     choice("receipts", {"open", "stub"}, "What happens to open intents.")}};
inline constexpr RequestShape kEvent{
    "EventRequest",
    {text("schema", "The schema of the event.").required().example(R"("demo/Placed@1")"),
     any("value", "The value as JSON,").example(R"({"id":"o1"})"), any("value_json", "the same,"),
     formatted("value_b64", "byte", "or as CBOR in base64,"),
     formatted("value_cbor_b64", "byte", "the same,"),
     any("value_cbor", "or as CBOR in a list of bytes."),
     formatted("key_b64", "byte", "The key of the cell, where the route does not have one."),
     count("expected_world_epoch", "Refuse the event when the manifest has changed."),
     text("submission_id", "Your id: the same id runs once."),
     text("correlation_id", "Repeated in the answer.")}};
inline constexpr RequestShape kEvents{"EventsRequest",
                                      {list("events", "Events, all or none.", kEvent).required()}};
inline constexpr RequestShape kReceipt{
    "ReceiptRequest",
    {any("intent_hash", "The intent: sha256:hex, hex, or a list of its bytes.")
         .required()
         .example(kSampleHash),
     text("intent_id", "The same."), text("status", "ok, error or timeout.").by_default("ok"),
     any("payload", "The payload as JSON,").example("{}"), any("payload_json", "the same,"),
     formatted("payload_b64", "byte", "or as CBOR in base64,"),
     formatted("payload_cbor_b64", "byte", "the same,"),
     any("payload_cbor", "or as CBOR in a list of bytes."), count("cost_cents", "What it cost."),
     any("signature", "Bytes of a signature,"), formatted("signature_b64", "byte", "or in base64."),
     text("correlation_id", "Repeated in the answer.")}};
inline constexpr RequestShape kFrame{
    "FrameRequest",
    {any("intent_hash", "The intent: sha256:hex, hex, or a list of its bytes.")
         .required()
         .example(kSampleHash),
     text("intent_id", "The same."),
     count("seq", "The number of the frame, from 1 on.").required().example("1"),
     any("payload", "The payload as JSON,").example("{}"),
     any("payload_json", "the same,"),
     formatted("payload_b64", "byte", "or as CBOR in base64,"),
     formatted("payload_cbor_b64", "byte", "the same,"),
     any("payload_cbor", "or as CBOR in a list of bytes."),
     formatted("origin_instance_key_b64", "byte"),
     formatted("signature_b64", "byte"),
     count("emitted_at_seq"),
     text("origin_module_id"),
     text("origin_workflow_hash"),
     text("effect"),
     text("effect_hash"),
     text("executor_module"),
     text("executor_module_hash"),
     text("executor_entrypoint"),
     text("kind"),
     text("payload_ref")}};
inline constexpr RequestShape kGovern{
    "GovernRequest",
    {text("command_id", "Your id of the command; none: the server chooses."),
     count("proposal_id", "The proposal; propose makes one.").example("1"),
     text("approver", "Of approve and reject: who; none: the caller."),
     choice("mode", {"strict", "relaxed"}, "Of apply: relaxed does not wait for quiescence."),
     any("decision", "Of approve: approve or reject.").example(R"("approve")"),
     text("description", "Of propose: what it is for."),
     any("patch", "Of propose: a patch document, or {manifest, nodes}."),
     list("seed_events", "Of shadow: events to run.", kEvent)}};
inline constexpr RequestShape kPoll{
    "EffectPollRequest",
    {text("worker", "The name of the executor.").example(R"("executor-1")"),
     texts("effects", "The effects that it executes.").required().example(R"(["demo/Charge@1"])"),
     count("limit", "How many intents to lease."), count("lease_ms", "For how long."),
     count("wait_ms", "How long to wait for the first one.")}};
inline constexpr RequestShape kRelease{
    "ReleaseRequest",
    {text("world_id", "The world.").example(R"("orders")"),
     text("intent_hash", "The intent.").required().example(kSampleHash)}};
inline constexpr RequestShape kSecret{
    "SecretRequest",
    {text("binding_id", "The id of the binding, when the path has none.").example(R"("payments")"),
     choice("source_kind", {"node_secret_store", "worker_env"}, "Where the value is."),
     text("env_var", "Of worker_env: the variable."), choice("status", {"active", "disabled"}),
     text("plaintext", "A value,").example(R"("s3cret")"),
     formatted("plaintext_b64", "byte", "or the value in base64."),
     text("expected_digest", "Refuse a value with another SHA-256.")}};
inline constexpr RequestShape kOperationRow{
    "WorkspaceOperation",
    {choice("op", {"write_bytes", "write_ref", "remove", "set_annotations"}).required(),
     text("path").example(R"("notes/a.txt")"), formatted("bytes_b64", "byte").example(R"("aGk=")"),
     text("blob_hash"), integer("mode"), any("annotations_patch")}};
inline constexpr RequestShape kApply{
    "WorkspaceApplyRequest", {list("operations", "Made one after the other.", kOperationRow)}};
inline constexpr RequestShape kDiff{
    "WorkspaceDiffRequest",
    {text("root_a", "The root before.").required().example(kSampleHash),
     text("root_b", "The root after.").required().example(kSampleHash),
     text("prefix", "Only paths below it.").or_null()}};
inline constexpr RequestShape kCollect{
    "GarbageRequest",
    {integer("grace_seconds", "Keep blobs that are younger.").range(0, 999'999'999).example("60")}};

}  // namespace pawl::worlds::http
