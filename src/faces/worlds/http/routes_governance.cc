// Governance over HTTP: commands, whose outcomes are kept.

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "faces/worlds/http/peer_forms.h"
#include "json/text.h"

namespace pawl::worlds {

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

// A patch in JSON, or one arm of sys/GovPatchInput@1.
Result<Bytes> HttpRoutes::patch_text(const std::string& tenant, const json::Value& patch) const {
  if (!patch.find("$tag")) return json::print(patch);
  TRY(PatchInput given,
      open_patch(to_cbor(patch), [&](BytesView digest) { return service_.blob(tenant, digest); }));
  if (given.document) return std::move(given.bytes);
  TRY(cbor::Value compiled, cbor::decode(given.bytes));
  return json::print(plain_json(compiled));
}

// `mode` of the query, else of the body.
static Result<bool> parse_strict(const wire::Request& request, const wire::MemberReader& body) {
  const wire::Member& row = http::kModeQuery["mode"];
  auto query = request.query_param(row);
  const json::Value given = query ? json::object({{row, *query}}) : json::Value();
  TRY(std::string mode, (query ? members_of(given) : body).choice(http::kGovern["mode"]));
  return mode == "strict";
}

// `decision` as text, or as the arm {"$tag": ...} of the effect's schema.
static Result<std::string> parse_decision(const wire::MemberReader& body) {
  static constexpr wire::Member kArm =
      wire::row::choice(http::kGovern["decision"], {"approve", "reject"});
  const json::Value* given = body.find(kArm);
  if (!given || !given->is_object()) return body.choice(kArm);
  const json::Value arm = json::object({{kArm, arm_of(given->string_or("$tag"))}});
  return members_of(arm).choice(kArm);
}

Result<Govern> HttpRoutes::parse_govern(const WorldRef& world, const Request& request,
                                        const MemberReader& body) const {
  static constexpr std::string_view kActions[] = {"propose", "shadow", "approve", "reject",
                                                  "apply"};
  Govern out;
  out.world = world.world_id.world;
  out.action = request.params.at(1);
  if (std::find(std::begin(kActions), std::end(kActions), out.action) == std::end(kActions))
    return fail(
        Code::not_found, "not_found",
        "governance has propose, shadow, approve, reject and apply, not '" + out.action + "'");
  TRY(out.command, body.text(http::kGovern["command_id"]));
  // Repetitions under one Idempotency-Key are one command.
  if (const std::string_view key = request.header("Idempotency-Key");
      out.command.empty() && !key.empty())
    out.command = hex(view(sha256(key))).substr(0, 32);
  out.named = !out.command.empty();
  if (!out.named) out.command = service_.new_id("command");
  TRY(std::optional<uint64_t> proposal, body.count(http::kGovern["proposal_id"]));
  if (!proposal && out.action != "propose")
    return bad_request(out.action + " wants {\"proposal_id\": number}");
  out.proposal = proposal.value_or(0);
  TRY(out.approver, body.text(http::kGovern["approver"].name, request.caller.user));
  TRY(out.strict, parse_strict(request, body));
  TRY(std::string decision, parse_decision(body));
  if (out.action == "approve") out.action = decision;
  if (body.has(http::kGovern["description"])) {
    TRY(out.description, body.text(http::kGovern["description"]));
  }
  if (const json::Value* patch = body.value().find(http::kGovern["patch"])) {
    TRY(out.patch, patch_text(world.world_id.tenant, *patch));
  }
  if (out.action == "propose" && out.patch.empty())
    return bad_request("propose wants {\"patch\": a patch document, or {manifest, nodes}}");
  if (out.action == "shadow") {
    TRY(out.seeds, parse_seeds(world, out.proposal, body));
  }
  return out;
}

Result<std::vector<Event>> HttpRoutes::parse_seeds(const WorldRef& world, uint64_t proposal,
                                                   const MemberReader& body) const {
  const json::Value* seeds = body.find(http::kGovern["seed_events"]);
  if (!seeds) return std::vector<Event>();
  if (!seeds->is_array()) return bad_request("'seed_events' is a list of events");
  TRY(WorldRef next, service_.under_proposal(world, proposal));
  TRY(SendEvents all, parse_events(next, seeds->array()));
  return std::move(all.events);
}

void HttpRoutes::govern(Request request, Respond respond) {
  auto world = world_of(request);
  auto body = world ? body_of(request) : Result<wire::BodyReader>(fail(world.error()));
  auto action = body ? parse_govern(*world, request, *body) : Result<Govern>(fail(body.error()));
  if (!action) return respond(refuse(action.error()));
  const std::string name = action->world;
  const std::string id = action->command;
  service_.govern(
      request.caller, std::move(*action),
      [name, id, respond = std::move(respond)](Result<GovernanceCommand> command) mutable {
        if (!command && command.error().is(kIdempotencyKeyReused))
          command = fail(Code::conflict, "conflict",
                         "command '" + id + "' was another command: use a new command_id");
        if (!command) return respond(refuse(command.error()));
        respond(wire::json_response(200, json::print(command_json(name, *command))));
      });
}

Result<json::Value> HttpRoutes::get_command(const Request& request) {
  const WorldId world_id{request.caller.tenant, request.params.at(0)};
  TRY(GovernanceCommand command, service_.command(world_id, request.params.at(1)));
  return command_json(world_id.world, command);
}

Result<json::Value> HttpRoutes::list_proposals(const Request& request) {
  TRY(std::vector<Proposal> proposals,
      service_.proposals({request.caller.tenant, request.params.at(0)}));
  json::Array list;
  for (const Proposal& p : proposals)
    list.push_back(proposal_json(p));
  return json::object({{"proposals", json::Value(std::move(list))}});
}

}  // namespace pawl::worlds
