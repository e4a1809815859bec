// The table of routes: each row is a method, a path, a handler and a sentence for the reference.

#include <iterator>

#include "faces/worlds/http/http_routes.h"

namespace pawl::worlds {

// Worlds as a whole.
std::vector<wire::Route> HttpRoutes::world_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"GET", "/v1/health", on(&HttpRoutes::health), "Whether worlds are served.", true},
      wire::slow({"GET", "/v1/worlds", on(&HttpRoutes::list_worlds), "Lists worlds."}),
      {"POST", "/v1/worlds", on(&HttpRoutes::create_world),
       "Creates a world from AIR, a manifest, or the hash of one in the store."},
      {"GET", "/v1/worlds/{id}", on(&HttpRoutes::get_world),
       "One world: manifest, height, snapshot, limits."},
      {"POST", "/v1/worlds/{id}/checkpoint", on(&HttpRoutes::checkpoint), "Takes a snapshot."},
      {"POST", "/v1/worlds/{id}/compact", on(&HttpRoutes::compact),
       "Forgets records up to a height before the newest snapshot."},
      {"POST", "/v1/worlds/{id}/fork", on(&HttpRoutes::fork_world),
       "Makes another world that is as this one was at a height."},
  };
}

// Routes of a world and of its records.
std::vector<wire::Route> HttpRoutes::read_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"GET", "/v1/worlds/{id}/manifest", on(&HttpRoutes::get_manifest),
       "The manifest and its hash."},
      wire::slow({"GET", "/v1/worlds/{id}/defs", on(&HttpRoutes::list_defs),
                  "Definitions by kinds and prefix."}),
      {"GET", "/v1/worlds/{id}/defs/{kind}/{name...}", on(&HttpRoutes::get_def), "One definition."},
      wire::slow({"GET", "/v1/worlds/{id}/runtime", on(&HttpRoutes::get_runtime),
                  "Instances, open intents and quiescence."}),
      wire::slow({"GET", "/v1/worlds/{id}/trace", on(&HttpRoutes::trace),
                  "What followed from an event, by hash or correlation, or a cell's timeline."}),
      wire::slow({"GET", "/v1/worlds/{id}/trace-summary", on(&HttpRoutes::trace_summary),
                  "Totals and open work."}),
      wire::slow({"GET", "/v1/worlds/{id}/diagnose", on(&HttpRoutes::diagnose),
                  "The cause of what a trace shows, with a hint."}),
      {"GET", "/v1/worlds/{id}/journal/head", on(&HttpRoutes::journal_head),
       "The journal's height."},
      wire::slow(
          {"GET", "/v1/worlds/{id}/journal", on(&HttpRoutes::journal), "Records from a height."}),
      {"GET", "/v1/worlds/{id}/journal/wait", on(&HttpRoutes::journal_wait),
       "The next records, when they come."},
      {"GET", "/v1/worlds/{id}/journal/stream", on(&HttpRoutes::journal_stream),
       "All records from a height on, as Server-Sent Events."},
      {"GET", "/v1/worlds/{id}/commands/{command}", on(&HttpRoutes::get_command),
       "What a governance command came to."},
      wire::slow({"GET", "/v1/worlds/{id}/state/{workflow...}", on(&HttpRoutes::get_state),
                  "A cell's state by key_b64; with /cells at the end, the cells."}),
      {"GET", "/v1/worlds/{id}/workspace/resolve", on(&HttpRoutes::workspace_resolve),
       "The root of a workspace's newest version, or of one by number."},
  };
}

// Inputs of a world, governance, and work for executors.
std::vector<wire::Route> HttpRoutes::input_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"POST", "/v1/worlds/{id}/events", on(&HttpRoutes::send_event), "Sends a domain event."},
      {"POST", "/v1/worlds/{id}/receipts", on(&HttpRoutes::send_receipt), "Settles an intent."},
      {"POST", "/v1/worlds/{id}/frames", on(&HttpRoutes::send_frame),
       "Sends a stream frame of an open intent."},
      wire::slow({"GET", "/v1/worlds/{id}/governance", on(&HttpRoutes::list_proposals),
                  "Lists proposals with their shadow reports."}),
      {"POST", "/v1/worlds/{id}/governance/{action}", on(&HttpRoutes::govern),
       "propose, shadow, approve, reject or apply (?mode=relaxed)."},
      {"POST", "/v1/effects/poll", on(&HttpRoutes::poll),
       "Open work for an executor, under a lease."},
      {"POST", "/v1/effects/release", on(&HttpRoutes::release), "Gives leased work back at once."},
  };
}

// Secrets, workspaces and blobs.
std::vector<wire::Route> HttpRoutes::store_routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      wire::slow({"GET", "/v1/secrets/bindings", on(&HttpRoutes::list_secrets),
                  "Secret bindings, without values."}),
      {"POST", "/v1/secrets/bindings", on(&HttpRoutes::put_secret), "Makes a secret binding."},
      {"GET", "/v1/secrets/bindings/{id}", on(&HttpRoutes::get_secret),
       "One binding and its versions."},
      {"PUT", "/v1/secrets/bindings/{id}", on(&HttpRoutes::put_secret),
       "Makes or changes a binding."},
      {"DELETE", "/v1/secrets/bindings/{id}", on(&HttpRoutes::delete_secret),
       "Forgets a binding with its values."},
      {"GET", "/v1/secrets/bindings/{id}/versions", on(&HttpRoutes::list_secret_versions),
       "A binding's versions."},
      {"POST", "/v1/secrets/bindings/{id}/versions", on(&HttpRoutes::put_secret), "Adds a value."},
      {"GET", "/v1/secrets/bindings/{id}/versions/{version}", on(&HttpRoutes::get_secret_version),
       "One version, without its value."},
      {"POST", "/v1/workspace/roots", on(&HttpRoutes::workspace_apply), "An empty tree."},
      wire::slow({"GET", "/v1/workspace/roots/{root}/entries", on(&HttpRoutes::workspace_entries),
                  "What is in a directory, or with scope=subtree below it."}),
      {"GET", "/v1/workspace/roots/{root}/entry", on(&HttpRoutes::workspace_entry),
       "One file or directory."},
      {"GET", "/v1/workspace/roots/{root}/bytes", on(&HttpRoutes::workspace_bytes),
       "A file's bytes, or those from start to end."},
      wire::slow({"GET", "/v1/workspace/roots/{root}/annotations",
                  on(&HttpRoutes::workspace_annotations), "What is said about a path."}),
      {"POST", "/v1/workspace/roots/{root}/apply", on(&HttpRoutes::workspace_apply),
       "Writes, removes and annotates; gives the new root."},
      wire::slow({"POST", "/v1/workspace/diffs", on(&HttpRoutes::workspace_diff),
                  "What differs between two roots."}),
      {"POST", "/v1/cas/blobs", on(&HttpRoutes::put_blob), "Stores bytes under their hash."},
      {"PUT", "/v1/cas/blobs/{sha}", on(&HttpRoutes::put_blob),
       "Stores bytes that must have this hash."},
      {"GET", "/v1/cas/blobs/{sha}", on(&HttpRoutes::get_blob), "The bytes again."},
      wire::slow(
          {"POST", "/v1/cas/gc", on(&HttpRoutes::collect), "Erases blobs that nothing leads to."}),
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
