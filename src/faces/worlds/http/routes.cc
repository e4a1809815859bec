// The table of routes: each row is a method, a path, a handler and a sentence for the reference.

#include <iterator>

#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/operations.h"

namespace pawl::worlds {

// Worlds as a whole.
std::vector<wire::Route> HttpRoutes::world_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      wire::open({"GET", "/v1/health", on(&HttpRoutes::health), "Whether worlds are served.",
                  &http::kGetHealth}),
      wire::slow(
          {"GET", "/v1/worlds", on(&HttpRoutes::list_worlds), "Lists worlds.", &http::kListWorlds}),
      {"POST", "/v1/worlds", on(&HttpRoutes::create_world),
       "Creates a world from AIR, a manifest, or the hash of one in the store.",
       &http::kCreateWorld},
      {"GET", "/v1/worlds/{id}", on(&HttpRoutes::get_world),
       "One world: manifest, height, snapshot, limits.", &http::kGetWorld},
      {"POST", "/v1/worlds/{id}/checkpoint", on(&HttpRoutes::checkpoint), "Takes a snapshot.",
       &http::kCheckpoint},
      {"POST", "/v1/worlds/{id}/compact", on(&HttpRoutes::compact),
       "Forgets records up to a height before the newest snapshot.", &http::kCompactWorld},
      {"POST", "/v1/worlds/{id}/fork", on(&HttpRoutes::fork_world),
       "Makes another world that is as this one was at a height.", &http::kForkWorld},
  };
}

// Routes of a world and of its records.
std::vector<wire::Route> HttpRoutes::read_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"GET", "/v1/worlds/{id}/manifest", on(&HttpRoutes::get_manifest),
       "The manifest and its hash.", &http::kGetManifest},
      wire::slow({"GET", "/v1/worlds/{id}/defs", on(&HttpRoutes::list_defs),
                  "Definitions by kinds and prefix.", &http::kListDefs}),
      {"GET", "/v1/worlds/{id}/defs/{kind}/{name...}", on(&HttpRoutes::get_def), "One definition.",
       &http::kGetDef},
      wire::slow({"GET", "/v1/worlds/{id}/runtime", on(&HttpRoutes::get_runtime),
                  "Instances, open intents and quiescence.", &http::kGetRuntime}),
      wire::slow({"GET", "/v1/worlds/{id}/trace", on(&HttpRoutes::trace),
                  "What followed from an event, by hash or correlation, or a cell's timeline.",
                  &http::kTrace}),
      wire::slow({"GET", "/v1/worlds/{id}/trace-summary", on(&HttpRoutes::trace_summary),
                  "Totals and open work.", &http::kSummarize}),
      wire::slow({"GET", "/v1/worlds/{id}/diagnose", on(&HttpRoutes::diagnose),
                  "The cause of what a trace shows, with a hint.", &http::kDiagnose}),
      {"GET", "/v1/worlds/{id}/journal/head", on(&HttpRoutes::journal_head),
       "The journal's height.", &http::kJournalHead},
      wire::slow({"GET", "/v1/worlds/{id}/journal", on(&HttpRoutes::journal),
                  "Records from a height.", &http::kJournal}),
      {"GET", "/v1/worlds/{id}/journal/wait", on(&HttpRoutes::journal_wait),
       "The next records, when they come.", &http::kJournalWait},
      {"GET", "/v1/worlds/{id}/journal/stream", on(&HttpRoutes::journal_stream),
       "All records from a height on, as Server-Sent Events.", &http::kJournalStream},
      {"GET", "/v1/worlds/{id}/commands/{command}", on(&HttpRoutes::get_command),
       "What a governance command came to.", &http::kGetCommand},
      wire::slow({"GET", "/v1/worlds/{id}/state/{workflow...}", on(&HttpRoutes::get_state),
                  "A cell's state by key_b64; with /cells at the end, the cells.",
                  &http::kGetState}),
      {"GET", "/v1/worlds/{id}/workspace/resolve", on(&HttpRoutes::workspace_resolve),
       "The root of a workspace's newest version, or of one by number.", &http::kResolve},
  };
}

// Inputs of a world, governance, and work for executors.
std::vector<wire::Route> HttpRoutes::input_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"POST", "/v1/worlds/{id}/events", on(&HttpRoutes::send_event), "Sends a domain event.",
       &http::kSendEvent},
      {"POST", "/v1/worlds/{id}/receipts", on(&HttpRoutes::send_receipt), "Settles an intent.",
       &http::kSendReceipt},
      {"POST", "/v1/worlds/{id}/frames", on(&HttpRoutes::send_frame),
       "Sends a stream frame of an open intent.", &http::kSendFrame},
      wire::slow({"GET", "/v1/worlds/{id}/governance", on(&HttpRoutes::list_proposals),
                  "Lists proposals with their shadow reports.", &http::kListProposals}),
      {"POST", "/v1/worlds/{id}/governance/{action}", on(&HttpRoutes::govern),
       "propose, shadow, approve, reject or apply (?mode=relaxed).", &http::kGovernWorld},
      {"POST", "/v1/effects/poll", on(&HttpRoutes::poll),
       "Open work for an executor, under a lease.", &http::kPollEffects},
      {"POST", "/v1/effects/release", on(&HttpRoutes::release), "Gives leased work back at once.",
       &http::kReleaseEffect},
  };
}

// Secrets, workspaces and blobs.
std::vector<wire::Route> HttpRoutes::store_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      wire::slow({"GET", "/v1/secrets/bindings", on(&HttpRoutes::list_secrets),
                  "Secret bindings, without values.", &http::kListSecrets}),
      {"POST", "/v1/secrets/bindings", on(&HttpRoutes::put_secret), "Makes a secret binding.",
       &http::kPutSecret},
      {"GET", "/v1/secrets/bindings/{id}", on(&HttpRoutes::get_secret),
       "One binding and its versions.", &http::kGetSecret},
      {"PUT", "/v1/secrets/bindings/{id}", on(&HttpRoutes::put_secret),
       "Makes or changes a binding.", &http::kSetSecret},
      {"DELETE", "/v1/secrets/bindings/{id}", on(&HttpRoutes::delete_secret),
       "Forgets a binding with its values.", &http::kDeleteSecret},
      {"GET", "/v1/secrets/bindings/{id}/versions", on(&HttpRoutes::list_secret_versions),
       "A binding's versions.", &http::kListSecretVersions},
      {"POST", "/v1/secrets/bindings/{id}/versions", on(&HttpRoutes::put_secret), "Adds a value.",
       &http::kAddSecretVersion},
      {"GET", "/v1/secrets/bindings/{id}/versions/{version}", on(&HttpRoutes::get_secret_version),
       "One version, without its value.", &http::kGetSecretVersion},
      {"POST", "/v1/workspace/roots", on(&HttpRoutes::workspace_apply), "An empty tree.",
       &http::kNewRootOp},
      wire::slow({"GET", "/v1/workspace/roots/{root}/entries", on(&HttpRoutes::workspace_entries),
                  "What is in a directory, or with scope=subtree below it.", &http::kListEntries}),
      {"GET", "/v1/workspace/roots/{root}/entry", on(&HttpRoutes::workspace_entry),
       "One file or directory.", &http::kGetEntry},
      {"GET", "/v1/workspace/roots/{root}/bytes", on(&HttpRoutes::workspace_bytes),
       "A file's bytes, or those from start to end.", &http::kGetBytes},
      wire::slow({"GET", "/v1/workspace/roots/{root}/annotations",
                  on(&HttpRoutes::workspace_annotations), "What is said about a path.",
                  &http::kGetAnnotations}),
      {"POST", "/v1/workspace/roots/{root}/apply", on(&HttpRoutes::workspace_apply),
       "Writes, removes and annotates; gives the new root.", &http::kApplyOp},
      wire::slow({"POST", "/v1/workspace/diffs", on(&HttpRoutes::workspace_diff),
                  "What differs between two roots.", &http::kDiffOp}),
      {"POST", "/v1/cas/blobs", on(&HttpRoutes::put_blob), "Stores bytes under their hash.",
       &http::kPutBlob},
      {"PUT", "/v1/cas/blobs/{sha}", on(&HttpRoutes::put_blob),
       "Stores bytes that must have this hash.", &http::kPutNamedBlob},
      {"GET", "/v1/cas/blobs/{sha}", on(&HttpRoutes::get_blob), "The bytes again.",
       &http::kGetBlob},
      wire::slow({"POST", "/v1/cas/gc", on(&HttpRoutes::collect),
                  "Erases blobs that nothing leads to.", &http::kCollectOp}),
  };
}

std::vector<wire::Route> HttpRoutes::routes() {
  std::vector<wire::Route> out;
  for (auto rows : {world_routes(), read_routes(), input_routes(), store_routes()})
    out.insert(out.end(), std::make_move_iterator(rows.begin()),
               std::make_move_iterator(rows.end()));
  return out;
}

}  // namespace pawl::worlds
