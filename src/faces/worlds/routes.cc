// The table of this face: each row is a method, a path, who answers, and a sentence for the reference.

#include "faces/worlds/service.h"

namespace pawl::worlds {

std::vector<wire::Route> Service::routes() {
  auto on = [this](auto what) { return bind(what); };
  return {
      {"GET", "/v1/health", on(&Service::health), "Whether worlds are served.", true},
      {"GET", "/v1/worlds", on(&Service::list_worlds), "Lists worlds."},
      {"POST", "/v1/worlds", on(&Service::create_world), "Creates a world from AIR, a manifest, or the hash of one in the store."},
      {"GET", "/v1/worlds/{id}", on(&Service::get_world), "One world: manifest, height, snapshot, limits."},
      {"POST", "/v1/worlds/{id}/checkpoint", on(&Service::checkpoint), "Takes a snapshot."},
      {"POST", "/v1/worlds/{id}/compact", on(&Service::compact), "Forgets records up to a height before the newest snapshot."},
      {"POST", "/v1/worlds/{id}/fork", on(&Service::fork_world), "Makes another world that is as this one was at a height."},
      {"GET", "/v1/worlds/{id}/manifest", on(&Service::get_manifest), "The manifest and its hash."},
      {"GET", "/v1/worlds/{id}/defs", on(&Service::list_defs), "Definitions by kinds and prefix."},
      {"GET", "/v1/worlds/{id}/defs/{kind}/{name...}", on(&Service::get_def), "One definition."},
      {"GET", "/v1/worlds/{id}/runtime", on(&Service::get_runtime), "Instances, open intents and quiescence."},
      {"GET", "/v1/worlds/{id}/trace", on(&Service::trace), "What followed from an event, by hash or correlation, or a cell's timeline."},
      {"GET", "/v1/worlds/{id}/trace-summary", on(&Service::trace_summary), "Totals and open work."},
      {"GET", "/v1/worlds/{id}/diagnose", on(&Service::diagnose), "The cause of what a trace shows, with a hint."},
      {"GET", "/v1/worlds/{id}/journal/head", on(&Service::journal_head), "The journal's height."},
      {"GET", "/v1/worlds/{id}/journal", on(&Service::journal), "Records from a height."},
      {"GET", "/v1/worlds/{id}/journal/wait", on(&Service::journal_wait), "The next records, when they come."},
      {"GET", "/v1/worlds/{id}/journal/stream", on(&Service::journal_stream), "All records from a height on, as Server-Sent Events."},
      {"GET", "/v1/worlds/{id}/commands/{command}", on(&Service::get_command), "What a governance command came to."},
      {"GET", "/v1/worlds/{id}/state/{workflow...}", on(&Service::get_state), "A cell's state by key_b64; with /cells at the end, the cells."},
      {"GET", "/v1/worlds/{id}/workspace/resolve", on(&Service::workspace_resolve), "The root of a workspace's newest version, or of one by number."},
      {"POST", "/v1/worlds/{id}/events", on(&Service::send_event), "Sends a domain event."},
      {"POST", "/v1/worlds/{id}/receipts", on(&Service::send_receipt), "Settles an intent."},
      {"POST", "/v1/worlds/{id}/frames", on(&Service::send_frame), "Sends a stream frame of an open intent."},
      {"GET", "/v1/worlds/{id}/governance", on(&Service::list_proposals), "Lists proposals with their shadow reports."},
      {"POST", "/v1/worlds/{id}/governance/{action}", on(&Service::govern), "propose, shadow, approve, reject or apply (?mode=relaxed)."},
      {"POST", "/v1/effects/poll", on(&Service::poll), "Open work for an executor, under a lease."},
      {"POST", "/v1/effects/release", on(&Service::release), "Gives leased work back at once."},
      {"GET", "/v1/secrets/bindings", on(&Service::list_secrets), "Secret bindings, without values."},
      {"POST", "/v1/secrets/bindings", on(&Service::put_secret), "Makes a secret binding."},
      {"GET", "/v1/secrets/bindings/{id}", on(&Service::get_secret), "One binding and its versions."},
      {"PUT", "/v1/secrets/bindings/{id}", on(&Service::put_secret), "Makes or changes a binding."},
      {"DELETE", "/v1/secrets/bindings/{id}", on(&Service::delete_secret), "Forgets a binding with its values."},
      {"GET", "/v1/secrets/bindings/{id}/versions", on(&Service::list_secret_versions), "A binding's versions."},
      {"POST", "/v1/secrets/bindings/{id}/versions", on(&Service::put_secret), "Adds a value."},
      {"GET", "/v1/secrets/bindings/{id}/versions/{version}", on(&Service::get_secret_version), "One version, without its value."},
      {"POST", "/v1/workspace/roots", on(&Service::workspace_apply), "An empty tree."},
      {"GET", "/v1/workspace/roots/{root}/entries", on(&Service::workspace_entries), "What is in a directory, or with scope=subtree below it."},
      {"GET", "/v1/workspace/roots/{root}/entry", on(&Service::workspace_entry), "One file or directory."},
      {"GET", "/v1/workspace/roots/{root}/bytes", on(&Service::workspace_bytes), "A file's bytes, or those from start to end."},
      {"GET", "/v1/workspace/roots/{root}/annotations", on(&Service::workspace_annotations), "What is said about a path."},
      {"POST", "/v1/workspace/roots/{root}/apply", on(&Service::workspace_apply), "Writes, removes and annotates; gives the new root."},
      {"POST", "/v1/workspace/diffs", on(&Service::workspace_diff), "What differs between two roots."},
      {"POST", "/v1/cas/blobs", on(&Service::put_blob), "Stores bytes under their hash."},
      {"PUT", "/v1/cas/blobs/{sha}", on(&Service::put_blob), "Stores bytes that must have this hash."},
      {"GET", "/v1/cas/blobs/{sha}", on(&Service::get_blob), "The bytes again."},
      {"POST", "/v1/cas/gc", on(&Service::collect), "Erases blobs that nothing leads to."},
  };
}

}  // namespace pawl::worlds
