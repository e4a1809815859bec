#pragma once
// The answers of the routes of worlds, and their operations.

#include "faces/worlds/http/shapes.h"

namespace pawl::worlds::http {

constexpr wire::Member hash(std::string_view name, std::string_view doc = {}) {
  return text(name, doc).example(kSampleHash);
}

inline constexpr AnswerShape kError{
    "WorldError",
    {text("code", "A word for programs.").example(R"("not_found")"),
     text("message", "What happened and what to do, for people."), any("detail").optional()}};

// Paths.
inline constexpr RequestShape kWorldPath{"", {text("id", "The id of the world.")}};
inline constexpr RequestShape kBindingPath{"", {text("id", "The id of the binding.")}};
inline constexpr RequestShape kBindingVersionPath{
    "", {text("id", "The id of the binding."), integer("version", "From 1 on.")}};
inline constexpr RequestShape kRootPath{"", {text("root", "The hash of a root.")}};
inline constexpr RequestShape kBlobPath{"", {text("sha", "sha256:hex, or the hex.")}};
inline constexpr RequestShape kDefPath{
    "",
    {text("id", "The id of the world."), text("kind", "defschema, or schema."),
     text("name", "demo/Placed@1")}};
inline constexpr RequestShape kCommandPath{
    "", {text("id", "The id of the world."), text("command", "The id of the command.")}};
inline constexpr RequestShape kStatePath{
    "",
    {text("id", "The id of the world."),
     text("workflow", "The workflow; with /cells at the end, its cells.")}};
inline constexpr RequestShape kGovernPath{
    "",
    {text("id", "The id of the world."),
     choice("action", {"propose", "shadow", "approve", "reject", "apply"})}};

// Answers.
inline constexpr AnswerShape kHealth{
    "WorldsHealth",
    {choice("status", {"ok"}), text("service"), text("version"), count("durable_seq")}};
inline constexpr AnswerShape kRuntime{
    "WorldRuntime",
    {text("world_id").example(R"("orders")"), text("universe_id"), integer("created_at_ns"),
     hash("manifest_hash"), count("active_baseline_height"), count("notify_counter"),
     flag("has_pending_inbox"), flag("has_pending_effects"), flag("has_pending_maintenance")}};
inline constexpr AnswerShape kLimitsShown{"WorldLimitsShown",
                                          {count("fuel"), count("memory_bytes")}};
inline constexpr AnswerShape kParent{
    "WorldParent", {text("world_id"), count("height"), choice("effects", {"detached", "live"})}};
inline constexpr AnswerShape kWorld{
    "World",
    kRuntime,
    {count("height"), count("world_epoch"), text("snapshot_ref"), count("snapshot_height"),
     count("retained_from", "The height of the oldest record."), text("engine"),
     object("limits", "Of a step.", kLimitsShown), object("parent", "", kParent).optional()}};
inline constexpr AnswerShape kBaseline{
    "WorldBaseline",
    {text("snapshot_ref"), count("height"), text("universe_id"), count("logical_time_ns"),
     count("receipt_horizon_height"), hash("manifest_hash")}};
inline constexpr AnswerShape kWorldPage{
    "WorldPage",
    kWorld,
    {object("runtime", "", kRuntime), object("active_baseline", "", kBaseline)}};
inline constexpr AnswerShape kAccepted{
    "Accepted", {text("submission_id"), count("submission_offset"), count("effective_partition")}};
inline constexpr AnswerShape kCreated{
    "CreatedWorld",
    kAccepted,
    {text("world_id").example(R"("orders")"), hash("manifest_hash"), count("height"),
     text("snapshot_ref"), integer("created_at_ns")}};
inline constexpr AnswerShape kCompacted{"CompactedWorld", {count("retained_from")}};
inline constexpr AnswerShape kForked{
    "ForkedWorld",
    kAccepted,
    {text("world_id"), text("parent"), count("height"), hash("manifest_hash"),
     count("stub_receipts"), choice("effects", {"detached", "live"})}};
inline constexpr AnswerShape kMeta{
    "ReadMeta",
    {count("journal_height"), hash("manifest_hash"), text("snapshot_hash"),
     count("active_baseline_height"), count("active_baseline_receipt_horizon_height")}};
inline constexpr AnswerShape kRouteRow{
    "EventRoute", {text("event"), text("workflow"), text("key_field").optional()}};
inline constexpr AnswerShape kManifestSummary{
    "ManifestSummary",
    {count("schema_count"), count("module_count"), count("workflow_count"), count("effect_count"),
     count("secret_count"), count("routing_subscription_count"), list("routes", "", kRouteRow)}};
inline constexpr AnswerShape kManifest{
    "WorldManifest",
    {count("journal_head"), hash("manifest_hash"), object("summary", "", kManifestSummary),
     document("manifest", "", "AirNode"), hash("routing_pre_hash")}};
inline constexpr AnswerShape kDefRow{"DefinitionRef", {text("kind"), text("name"), hash("hash")}};
inline constexpr AnswerShape kDefs{
    "DefinitionRefs", {count("journal_head"), hash("manifest_hash"), list("defs", "", kDefRow)}};
inline constexpr AnswerShape kDef{
    "WorldDefinition",
    {count("journal_head"), hash("manifest_hash"), text("kind"), text("name"), hash("hash"),
     hash("node_hash"), document("def", "", "AirNode")}};
inline constexpr AnswerShape kWorkflowCounts{
    "WorkflowCounts",
    {count("total"), count("running"), count("waiting"), count("completed"), count("failed"),
     count("inflight_intents")}};
inline constexpr AnswerShape kQuiescence{
    "Quiescence",
    {count("non_terminal_workflow_instances"), count("inflight_workflow_intents"),
     count("pending_workflow_receipts"), count("queued_effects"), flag("workflow_queue_pending"),
     count("mailbox_len"), count("scheduled_timers"), flag("runtime_quiescent"),
     flag("strictly_quiescent")}};
inline constexpr AnswerShape kPending{
    "PendingReceipt",
    {hash("intent_hash"), text("instance_id"), text("origin_module_id"),
     formatted("origin_instance_key_b64", "byte").optional(), text("effect"),
     count("emitted_at_seq"), count("last_stream_seq"), count("age_events"), any("params")}};
inline constexpr AnswerShape kInflight{
    "InflightIntent",
    {hash("intent_hash"), text("origin_module_id"),
     formatted("origin_instance_key_b64", "byte").or_null(), text("effect"),
     count("emitted_at_seq"), count("last_stream_seq"), count("age_events")}};
inline constexpr wire::Choices kInstanceStatuses{"running", "waiting", "completed", "failed"};
inline constexpr AnswerShape kInstance{
    "WorkflowInstance",
    {text("instance_id"), choice("status", kInstanceStatuses), count("last_processed_event_seq"),
     text("module_version"), list("inflight_intents", "", kInflight), text("failure").optional()}};
inline constexpr AnswerShape kRuntimePage{
    "WorldRuntimePage",
    kRuntime,
    {count("height"), count("logical_now_ns"), object("workflows", "", kWorkflowCounts),
     object("quiescence", "", kQuiescence), count("steps"), count("steps_failed"),
     list("pending_workflow_receipts", "", kPending), list("workflow_instances", "", kInstance)}};
inline constexpr AnswerShape kRecord{
    "JournalRecord",
    {count("seq"), text("kind").optional(), variables("record").optional(),
     formatted("payload_b64", "byte").optional()}};
inline constexpr AnswerShape kHead{
    "JournalHead",
    {count("journal_head"), count("next_seq"), count("retained_from"), hash("manifest_hash"),
     object("meta", "", kMeta)}};
inline constexpr AnswerShape kRecords{
    "JournalPage",
    {count("from"), count("next_from"), count("next_seq"), count("head"), count("retained_from"),
     list("entries", "", kRecord)}};
inline constexpr AnswerShape kWaited{
    "JournalWait",
    {text("world_id"), count("requested_from").or_null(), count("from"), count("next_from"),
     count("head"), count("retained_from"), flag("gap"), flag("timed_out"),
     list("entries", "", kRecord)}};
inline constexpr AnswerShape kPlainTrace{
    "WorldTrace",
    {variables("query"), any("root"), any("root_event"), text("terminal_state"),
     object("meta", "", kMeta), variables("journal_bounds"), variables("journal_window"),
     variables("live_wait")}};
inline constexpr AnswerShape kTraceSummary{
    "WorldTraceSummary",
    {variables("totals"), list("continuations", "", kPending), any("adapter_routes"),
     variables("runtime_wait"), object("strict_quiescence", "", kQuiescence),
     variables("journal_bounds")}};
inline constexpr AnswerShape kDiagnosis{
    "WorldDiagnosis",
    {text("terminal_state"), text("cause"), text("hint"), count("root_seq"), count("records_seen"),
     object("strict_quiescence", "", kQuiescence)}};
inline constexpr AnswerShape kFailure{"CommandError",
                                      {text("code"), text("message"), any("detail").optional()}};
inline constexpr AnswerShape kCommand{
    "GovernanceCommand",
    {text("command_id"), text("command"), choice("status", {"running", "succeeded", "failed"}),
     text("poll_url"), integer("submitted_at_ns"), integer("started_at_ns"),
     integer("finished_at_ns"), count("journal_height"), hash("manifest_hash"),
     variables("result_payload").optional(), any("result").optional(),
     object("error", "", kFailure).optional()}};
inline constexpr AnswerShape kProposal{
    "Proposal",
    {count("proposal_id"),
     choice("state", {"Submitted", "Shadowed", "Approved", "Rejected", "Applied"}),
     hash("patch_hash"), hash("manifest_hash"), text("description").or_null(),
     text("approver").optional(), any("shadow_report").optional()}};
inline constexpr AnswerShape kProposals{"Proposals", {list("proposals", "", kProposal)}};
inline constexpr AnswerShape kCell{
    "WorldCell",
    {count("journal_head"), text("workflow"), formatted("key_b64", "byte"), any("key"),
     list("key_hash", "", Kind::integer), list("key_bytes", "", Kind::integer), hash("state_hash"),
     count("size"), count("last_active_ns"), choice("status", kInstanceStatuses),
     count("inflight_intents")}};
inline constexpr AnswerShape kState{
    "CellState",
    {count("journal_head"), text("workflow"), formatted("key_b64", "byte").optional(),
     choice("status", kInstanceStatuses).optional(), count("last_processed_event_seq").optional(),
     text("module_version").optional(), text("failure").optional(),
     object("cell", "", kCell).optional(), flag("exists").optional(),
     formatted("state_b64", "byte").or_null().optional(), any("state").optional(),
     text("state_hash").or_null().optional(), count("size").or_null().optional(),
     list("cells", "Of a path that ends with /cells.", kCell).optional(),
     formatted("next_after_b64", "byte").optional(), text("cell_index_root").optional(),
     object("meta", "", kMeta)}};
inline constexpr AnswerShape kResolved{
    "ResolvedWorkspace",
    {text("workspace"), flag("exists"), count("resolved_version").or_null(),
     count("head").or_null(), text("root_hash").or_null()}};
inline constexpr AnswerShape kSent{
    "AcceptedEvent",
    kAccepted,
    {hash("event_hash"), count("seq"), count("height"), count("queued"),
     choice("status", {"accepted"}), count("world_epoch"), text("correlation_id").optional()}};
inline constexpr AnswerShape kSentOne{"EventRef", {hash("event_hash"), count("seq")}};
inline constexpr AnswerShape kSentAll{
    "AcceptedEvents", {list("events", "", kSentOne), count("height"), count("queued")}};
inline constexpr AnswerShape kSettled{"SettledIntent",
                                      kAccepted,
                                      {text("status").example(R"("settled")"), count("height"),
                                       count("world_epoch"), text("correlation_id").optional()}};
inline constexpr AnswerShape kIgnored{"IgnoredReceipt",
                                      {choice("status", {"ignored"}), text("reason")}};
inline constexpr AnswerShape kFramed{"AcceptedFrame",
                                     {text("status").example(R"("accepted")"), count("height")}};
inline constexpr AnswerShape kWork{
    "OpenIntent",
    {text("world_id"), hash("intent_hash"), text("effect"), text("effect_hash"),
     text("executor_module"), text("executor_module_hash"), text("executor_entrypoint"),
     text("origin_module_id"), text("origin_workflow_hash"),
     formatted("origin_instance_key_b64", "byte").optional(), count("emitted_at_seq"),
     formatted("idempotency_key_b64", "byte"),
     formatted("requested_idempotency_key_b64", "byte").optional(), any("issuer_ref").optional(),
     integer("leased_until_ns"), any("params").optional(),
     formatted("params_cbor_b64", "byte").optional(), object("error", "", kFailure).optional()}};
inline constexpr AnswerShape kWorkList{"OpenIntents", {list("work", "", kWork)}};
inline constexpr AnswerShape kReleased{"ReleasedIntent", {choice("status", {"released"})}};
inline constexpr AnswerShape kVersionRef{"SecretVersionRef",
                                         {integer("version"), integer("created_at_ns")}};
inline constexpr AnswerShape kBinding{
    "SecretBinding",
    {text("binding_id"), choice("source_kind", {"node_secret_store", "worker_env"}),
     text("env_var").optional(), integer("latest_version").optional(), integer("created_at_ns"),
     integer("updated_at_ns"), choice("status", {"active", "disabled"}),
     list("versions", "", kVersionRef)}};
inline constexpr AnswerShape kVersion{
    "SecretVersion",
    {text("binding_id"), integer("version"), text("digest").optional(), text("enc_alg"),
     integer("created_at_ns"), choice("status", {"active", "superseded"})}};
inline constexpr AnswerShape kNewRoot{"WorkspaceRoot", {hash("root_hash")}};
inline constexpr AnswerShape kEntry{
    "WorkspaceEntry",
    {text("kind").example(R"("file")"), hash("hash"), count("size"), count("mode")}};
inline constexpr AnswerShape kListedEntry{"WorkspaceListedEntry", kEntry, {text("path")}};
inline constexpr AnswerShape kEntries{
    "WorkspaceEntries", {list("entries", "", kListedEntry), text("next_cursor").or_null()}};
inline constexpr AnswerShape kAnnotations{"WorkspaceAnnotations", {any("annotations")}};
inline constexpr AnswerShape kApplied{"WorkspaceApplied",
                                      {hash("base_root_hash"), hash("new_root_hash")}};
inline constexpr AnswerShape kChange{
    "WorkspaceChange",
    {text("path"), text("kind"), text("old_hash").or_null(), text("new_hash").or_null()}};
inline constexpr AnswerShape kChanges{"WorkspaceChanges", {list("changes", "", kChange)}};
inline constexpr AnswerShape kBlob{"StoredBlob", {hash("hash"), count("size")}};
inline constexpr AnswerShape kCollected{"CollectedGarbage",
                                        {count("kept"), count("erased"), count("young")}};

// Operations. Every change of a world may meet one that came first (409).
inline constexpr Operation kGetHealth{.id = "getWorldsHealth",
                                      .replies = {{200, "Worlds are served.", kHealth}}};
inline constexpr Operation kListWorlds{.id = "listWorlds",
                                       .query = &kWorldsQuery,
                                       .replies = {{200, "A page.", wire::list_of(kWorld)}}};
inline constexpr Operation kCreateWorld{.id = "createWorld",
                                        .body = {kNewWorld},
                                        .replies = {{201, "The world.", kCreated}},
                                        .errors = {404, 409, 422}};
constexpr Operation reading(std::string_view id, const wire::AnyShape& answer,
                            const wire::AnyShape* query = nullptr,
                            const wire::AnyShape& path = kWorldPath) {
  return {.id = id,
          .path = &path,
          .query = query,
          .replies = {{200, "What is asked for.", answer}},
          .errors = {409, 410, 422}};
}
inline constexpr Operation kGetWorld = reading("getWorld", kWorldPage);
inline constexpr Operation kCheckpoint{.id = "checkpointWorld",
                                       .path = &kWorldPath,
                                       .replies = {{200, "The world.", kWorldPage}},
                                       .errors = {409, 422}};
inline constexpr Operation kCompactWorld{.id = "compactWorld",
                                         .path = &kWorldPath,
                                         .body = {kCompact},
                                         .replies = {{200, "What is left.", kCompacted}},
                                         .errors = {409, 422}};
inline constexpr Operation kForkWorld{.id = "forkWorld",
                                      .path = &kWorldPath,
                                      .body = {kFork},
                                      .replies = {{201, "The new world.", kForked}},
                                      .errors = {409, 422}};
inline constexpr Operation kGetManifest = reading("getWorldManifest", kManifest);
inline constexpr Operation kListDefs = reading("listWorldDefinitions", kDefs, &kDefsQuery);
inline constexpr Operation kGetDef = reading("getWorldDefinition", kDef, nullptr, kDefPath);
inline constexpr Operation kGetRuntime = reading("getWorldRuntime", kRuntimePage);
inline constexpr Operation kTrace = reading("traceWorld", kPlainTrace, &kTraceQuery);
inline constexpr Operation kSummarize =
    reading("summarizeWorldTrace", kTraceSummary, &kSummaryQuery);
inline constexpr Operation kDiagnose = reading("diagnoseWorld", kDiagnosis, &kTraceQuery);
inline constexpr Operation kJournalHead = reading("getWorldJournalHead", kHead);
inline constexpr Operation kJournal{
    .id = "listWorldRecords",
    .path = &kWorldPath,
    .query = &kRecordsQuery,
    .replies = {{200, "The records.", kRecords}, {200, "", Kind::octets, "application/cbor"}},
    .errors = {410}};
inline constexpr Operation kJournalWait = reading("waitForWorldRecords", kWaited, &kWaitQuery);
inline constexpr Operation kJournalStream{
    .id = "streamWorldRecords",
    .path = &kWorldPath,
    .query = &kRecordsQuery,
    .headers = &kStreamHeaders,
    .replies = {{200, "Events, without end.", Kind::octets, wire::kEventStream}},
    .errors = {410}};
inline constexpr Operation kGetCommand =
    reading("getGovernanceCommand", kCommand, nullptr, kCommandPath);
inline constexpr Operation kGetState = reading("getCellState", kState, &kStateQuery, kStatePath);
inline constexpr Operation kResolve = reading("resolveWorkspace", kResolved, &kResolveQuery);
inline constexpr Operation kSendEvent{
    .id = "sendEvent",
    .path = &kWorldPath,
    .headers = &wire::kIdempotencyHeader,
    .body = {wire::either(kEvent, kEvents)},
    .replies = {{202, "The event, or the events, are accepted.", wire::either(kSent, kSentAll)}},
    .errors = {409, 422}};
inline constexpr Operation kSendReceipt{.id = "sendReceipt",
                                        .path = &kWorldPath,
                                        .body = {kReceipt},
                                        .replies = {{202, "The intent is settled.", kSettled},
                                                    {200, "It was settled before.", kIgnored}},
                                        .errors = {409, 422}};
inline constexpr Operation kSendFrame{.id = "sendFrame",
                                      .path = &kWorldPath,
                                      .body = {kFrame},
                                      .replies = {{202, "What came of it.", kFramed}},
                                      .errors = {409, 422}};
inline constexpr Operation kListProposals = reading("listProposals", kProposals);
inline constexpr Operation kGovernWorld{.id = "governWorld",
                                        .path = &kGovernPath,
                                        .query = &kModeQuery,
                                        .body = {kGovern},
                                        .replies = {{200, "The command.", kCommand}},
                                        .errors = {409, 422}};
inline constexpr Operation kPollEffects{
    .id = "pollEffects", .body = {kPoll}, .replies = {{200, "Leased intents.", kWorkList}}};
inline constexpr Operation kReleaseEffect{.id = "releaseEffect",
                                          .body = {kRelease},
                                          .replies = {{200, "The lease has ended.", kReleased}},
                                          .errors = {404, 422}};
inline constexpr Operation kListSecrets{
    .id = "listSecretBindings", .replies = {{200, "The bindings.", wire::list_of(kBinding)}}};
inline constexpr Operation kPutSecret{.id = "createSecretBinding",
                                      .body = {kSecret},
                                      .replies = {{200, "The binding.", kBinding}},
                                      .errors = {409, 422}};
inline constexpr Operation kGetSecret =
    reading("getSecretBinding", kBinding, nullptr, kBindingPath);
inline constexpr Operation kSetSecret{.id = "putSecretBinding",
                                      .path = &kBindingPath,
                                      .body = {kSecret},
                                      .replies = {{200, "The binding.", kBinding}},
                                      .errors = {409, 422}};
inline constexpr Operation kDeleteSecret{.id = "deleteSecretBinding",
                                         .path = &kBindingPath,
                                         .replies = {{200, "What it was.", kBinding}},
                                         .errors = {409, 422}};
inline constexpr Operation kListSecretVersions{
    .id = "listSecretVersions",
    .path = &kBindingPath,
    .replies = {{200, "The versions.", wire::list_of(kVersion)}}};
inline constexpr Operation kAddSecretVersion{.id = "addSecretVersion",
                                             .path = &kBindingPath,
                                             .body = {kSecret},
                                             .replies = {{200, "The version.", kVersion}},
                                             .errors = {409, 422}};
inline constexpr Operation kGetSecretVersion =
    reading("getSecretVersion", kVersion, nullptr, kBindingVersionPath);
inline constexpr Operation kNewRootOp{.id = "createWorkspaceRoot",
                                      .body = wire::optional_body(kApply),
                                      .replies = {{201, "An empty root.", kNewRoot}},
                                      .errors = {409, 422}};
inline constexpr Operation kListEntries =
    reading("listWorkspaceEntries", kEntries, &kEntriesQuery, kRootPath);
inline constexpr Operation kGetEntry = reading("getWorkspaceEntry", kEntry, &kPathQuery, kRootPath);
inline constexpr Operation kGetBytes{.id = "readWorkspaceFile",
                                     .path = &kRootPath,
                                     .query = &kBytesQuery,
                                     .replies = {{200, "The bytes.", Kind::octets, wire::kOctets}},
                                     .errors = {422}};
inline constexpr Operation kGetAnnotations =
    reading("getWorkspaceAnnotations", kAnnotations, &kPathQuery, kRootPath);
inline constexpr Operation kApplyOp{.id = "applyToWorkspace",
                                    .path = &kRootPath,
                                    .body = {kApply},
                                    .replies = {{200, "The new root.", kApplied}},
                                    .errors = {409, 422}};
inline constexpr Operation kDiffOp{.id = "diffWorkspaces",
                                   .body = {kDiff},
                                   .replies = {{200, "What differs.", kChanges}},
                                   .errors = {404, 422}};
inline constexpr Operation kPutBlob{.id = "storeBlob",
                                    .body = {Kind::octets, wire::kOctets},
                                    .replies = {{201, "Its hash.", kBlob}},
                                    .errors = {409, 422}};
inline constexpr Operation kPutNamedBlob{.id = "storeNamedBlob",
                                         .path = &kBlobPath,
                                         .body = {Kind::octets, wire::kOctets},
                                         .replies = {{201, "Its hash.", kBlob}},
                                         .errors = {409, 422}};
inline constexpr AnswerShape kBlobHeaders{
    "", {text("ETag", "The hash in quotes.").example(R"("\"sha256:00\"")")}};
inline constexpr Operation kGetBlob{
    .id = "getBlob",
    .path = &kBlobPath,
    .replies = {{200, "The bytes.", Kind::octets, wire::kOctets, &kBlobHeaders}}};
inline constexpr Operation kCollectOp{.id = "collectGarbage",
                                      .body = wire::optional_body(kCollect),
                                      .replies = {{200, "The counts.", kCollected}},
                                      .errors = {409, 422}};

}  // namespace pawl::worlds::http
