// How a world's rules are changed over HTTP: commands, each with an outcome that is kept.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {

static std::unexpected<Error> bad(std::string why) {
  return fail(Code::invalid, "invalid_request", std::move(why));
}

static json::Value command_json(const std::string& world, const GovernanceCommand& c) {
  json::Object out;
  out.add("command_id", c.id);
  out.add("command", "gov-" + c.kind);
  out.add("status", !c.done ? "running" : c.code.empty() ? "succeeded" : "failed");
  out.add("poll_url", "/v1/worlds/" + world + "/commands/" + c.id);
  for (std::string_view name : {"submitted_at_ns", "started_at_ns", "finished_at_ns"})
    out.add(std::string(name), static_cast<int64_t>(c.at));
  out.add("journal_height", c.height);
  out.add("manifest_hash", c.manifest_hash);
  if (!c.receipt.empty()) out.add("result_payload", payload_envelope(c.receipt));
  auto result = c.result.empty() ? Result<json::Value>(json::Value()) : json::parse(c.result);
  if (c.code.empty()) {
    out.add("result", result ? *result : json::Value());
  } else {
    json::Object error;
    error.add("code", c.code);
    error.add("message", c.message);
    if (result && result->is_object()) error.add("detail", *result);
    out.add("error", json::Value(std::move(error)));
  }
  return json::Value(std::move(out));
}

// The same world under the manifest that a proposal brings: seed events are of its schemas.
Result<Service::WorldRef> Service::proposed(WorldRef at, uint64_t proposal) const {
  TRY(Cell cell, kernel_.read(proposal_key(at.world_id, proposal)));
  if (!cell.exists()) return at;  // the program says so
  TRY(Proposal p, decode_proposal(cell.value()));
  TRY(Bytes digest, parse_hash(p.patch_hash));
  auto stored = stored_blob(at.world_id.tenant, digest);
  if (!stored && stored.error().code == Code::not_found) return at;
  if (!stored) return fail(std::move(stored.error()));
  TRY(cbor::Value patch, cbor::decode(*stored));
  TRY(LoadedManifest next, load_stored(at.world_id.tenant, plain_json(patch)));
  at.loaded = std::make_shared<const LoadedManifest>(std::move(next));
  return at;
}

// A patch in JSON, or one arm of sys/GovPatchInput@1.
Result<Bytes> Service::patch_text(const std::string& tenant, const json::Value& patch) const {
  if (!patch.find("$tag")) return json::print(patch);
  TRY(PatchInput given,
      open_patch(to_cbor(patch), [&](BytesView digest) { return stored_blob(tenant, digest); }));
  if (given.document) return std::move(given.bytes);
  TRY(cbor::Value compiled, cbor::decode(given.bytes));
  return json::print(plain_json(compiled));
}

Result<Govern> Service::parse_govern(const WorldRef& s, const Request& request,
                                     const json::Value& body) {
  Govern out;
  out.world = s.world_id.world;
  out.action = request.params.at(1);
  static constexpr std::string_view kActions[] = {"propose", "shadow", "approve", "reject",
                                                  "apply"};
  if (std::find(std::begin(kActions), std::end(kActions), out.action) == std::end(kActions))
    return fail(
        Code::not_found, "not_found",
        "governance has propose, shadow, approve, reject and apply, not '" + out.action + "'");
  TRY(out.command, text_field(body, "command_id"));
  if (out.command.empty()) out.command = fresh_id("command");
  TRY(std::optional<uint64_t> proposal, number_field(body, "proposal_id"));
  if (!proposal && out.action != "propose")
    return bad(out.action + " wants {\"proposal_id\": number}");
  out.proposal = proposal.value_or(0);
  TRY(out.approver, text_field(body, "approver", request.caller.user));
  json::Object query;
  if (auto mode = request.query_param("mode")) query.add("mode", *mode);
  TRY(std::string mode,
      choice_field(query.find("mode") ? json::Value(query) : body, "mode", {"strict", "relaxed"}));
  out.strict = mode == "strict";
  const json::Value* tagged = body.find("decision");
  const json::Value said = tagged && tagged->is_object()
                               ? json::object({{"decision", arm_of(tagged->string_or("$tag"))}})
                               : json::Value();
  TRY(std::string decision,
      choice_field(said.is_object() ? said : body, "decision", {"approve", "reject"}));
  if (out.action == "approve") out.action = decision;
  if (const json::Value* d = body.find("description"); d && !d->is_null()) {
    TRY(out.description, text_field(body, "description"));
  }
  if (const json::Value* patch = body.find("patch")) {
    TRY(out.patch, patch_text(s.world_id.tenant, *patch));
  }
  if (out.action == "propose" && out.patch.empty())
    return bad("propose wants {\"patch\": a patch document, or {manifest, nodes}}");
  const json::Value* seeds = body.find("seed_events");
  if (!seeds || seeds->is_null() || out.action != "shadow") return out;
  if (!seeds->is_array()) return bad("'seed_events' is a list of events");
  TRY(WorldRef next, proposed(s, out.proposal));
  TRY(SendEvents all, parse_events(next, seeds->array()));
  out.seeds = std::move(all.events);
  return out;
}

void Service::govern(Request request, Respond respond) {
  auto s = world_ref(request);
  auto body = s ? body_of(request) : Result<json::Value>(fail(s.error()));
  auto out = body ? parse_govern(*s, request, *body) : Result<Govern>(fail(body.error()));
  if (!out) return respond(refuse(out.error()));
  submit(request, "govern", encode(*out),
         [world = out->world, respond = std::move(respond)](Result<Answer> answer) mutable {
           auto command = answer ? decode_command(answer->body)
                                 : Result<GovernanceCommand>(fail(answer.error()));
           if (!command) return respond(refuse(command.error()));
           respond(wire::json_response(200, json::print(command_json(world, *command))));
         });
}

Result<json::Value> Service::get_command(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  TRY(Cell cell, s.snapshot.read(command_key(s.world_id, request.params.at(1))));
  if (!cell.exists())
    return fail(Code::not_found, "not_found",
                "world '" + s.world.id + "' knows no command '" + request.params.at(1) + "'");
  TRY(GovernanceCommand command, decode_command(cell.value()));
  return command_json(s.world.id, command);
}

Result<json::Value> Service::list_proposals(const Request& request) {
  TRY(WorldSnapshot s, open_snapshot(request));
  json::Array list;
  TRY_OK(s.snapshot.scan(proposals_prefix(s.world_id), [&](BytesView, const Cell& cell) {
    if (auto p = decode_proposal(cell.value())) list.push_back(proposal_json(*p));
    return list.size() < 1000;
  }));
  return json::object({{"proposals", json::Value(std::move(list))}});
}

}  // namespace pawl::worlds
