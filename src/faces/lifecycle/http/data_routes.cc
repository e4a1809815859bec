// Types, instances and rules as data: what the C++ library offers, for programs in other languages.

#include <fmt/format.h>

#include <charconv>

#include "faces/lifecycle/face.h"
#include "faces/lifecycle/http/answers.h"
#include "faces/lifecycle/http/shapes.h"
#include "faces/lifecycle/rule/rules.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Respond;
using wire::Response;

namespace {

Response written_response(int status, const Outcome& outcome, Seq version) {
  js::Object body;
  body.add("ok", true);
  if (!outcome.phase.empty()) body.add("phase", outcome.phase);
  if (!outcome.result.empty()) body.add("result", outcome.result);
  if (!outcome.warning.empty()) body.add("warning", outcome.warning);
  body.add("revision", version);
  Response out = json_answer(status, js::Value(std::move(body)));
  out.headers.emplace_back("ETag", "\"" + std::to_string(version) + "\"");
  return out;
}

// The source of a change: the query parameter `source`, or the default.
Result<source> source_of(const Request& request, source default_source) {
  auto named = request.query_param(http::kSourceQuery["source"]);
  if (!named) return default_source;
  for (size_t i = 0; i < std::size(kSources); ++i)
    if (kSources[i] == *named) return static_cast<source>(i);
  return refuse(errc::invalid_transition,
                fmt::format("the source must be framework, rule, operator or component, not {}",
                            js::quote(*named)));
}

js::Value linked_json(const TypedInstance& one) {
  std::string state;
  js::Object out;
  out.add("workflow", one.type->def.name);
  out.add("id", one.found.id);
  out.add("phase", std::string(one.found.stored.phase));
  out.add("terminal", one.type->def.is_terminal(one.found.stored.phase));
  out.add("revision", one.found.version);
  if (append_instance(state, *one.type, one.found))
    if (auto parsed = js::parse(state)) out.add("state", std::move(*parsed));
  return out;
}

}  // namespace

void Face::put_type(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "register"));
  auto def = parse_type(request.params[0], body->value());
  Result<void> valid = def ? validate(*def) : Result<void>(fail(def.error()));
  if (!valid) {
    Response out = refusal_response("register", valid.error());
    out.status = 400;
    return respond(std::move(out));
  }
  std::string text = js::print(body->value());
  bool code = request.header(http::kTypeHeaders["X-Pawl-Definition"]) == "code";
  Command command{.type = request.params[0], .to = code ? "code" : "data", .text = text};
  submit("register", "put_type", command, request, respond,
         [json_text = js::print(type_json(*def))](const Outcome& outcome, Seq) {
           return wire::json_response(outcome.result == "same" ? 200 : 201, json_text);
         });
}

void Face::get_type(Request& request, Respond& respond) {
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return respond(refusal_response("type", type.error()));
  respond(json_answer(200, type_json((*type)->def)));
}

void Face::list_types(Request& request, Respond& respond) {
  auto types = reads_.types(request.caller.tenant);
  if (!types) return respond(refusal_response("types", types.error()));
  js::Array out;
  for (const WorkflowTypePtr& type : *types)
    out.push_back(type_json(type->def));
  respond(json_answer(200, js::Value(std::move(out))));
}

void Face::list_instances(Request& request, Respond& respond) {
  auto asked = page_of(request);
  if (auto* refused = std::get_if<Response>(&asked)) return respond(std::move(*refused));
  Page& page = std::get<Page>(asked);
  std::string items;
  for (const FoundInstance& found : page.list.items) {
    std::string state;
    if (!append_instance(state, *page.type, found)) {
      ++page.list.skipped;
      continue;
    }
    items += fmt::format(
        "{}{{\"id\":{},\"phase\":{},\"revision\":{},\"created\":\"{}\",\"updated\":\"{}\","
        "\"state\":{}}}",
        items.empty() ? "" : ",", js::quote(found.id), js::quote(found.stored.phase), found.version,
        rfc3339(found.stored.created), rfc3339(found.stored.updated), state);
  }
  respond(
      wire::json_response(200, fmt::format("{{\"instances\":[{}],\"skipped\":{},\"cursor\":{}}}",
                                           items, page.list.skipped, js::quote(page.list.cursor))));
}

void Face::transition_as(Request& request, Respond& respond) {
  auto by = source_of(request, source::component);
  if (!by) return respond(refusal_response("transition", by.error()));
  move(request, respond, *by);
}

void Face::create(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "create"));
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return respond(refusal_response("create", type.error()));
  auto bytes = record_of(**type, request.params[1], body->value());
  if (!bytes) return respond(refusal_response("create", bytes.error()));
  Command command{.type = request.params[0], .id = request.params[1], .record = *bytes};
  submit("create", "create", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(201, o, v); });
}

// Replaces the whole state if its revision is the one in If-Match. ?to=PHASE also moves the
// instance.
void Face::replace(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "replace"));
  std::string_view tag = request.header(http::kReplaceHeaders["If-Match"]);
  while (!tag.empty() && (tag.front() == '"' || tag.front() == ' '))
    tag.remove_prefix(1);
  uint64_t expected = 0;
  auto [end, bad] = std::from_chars(tag.data(), tag.data() + tag.size(), expected);
  std::string_view rest(end, static_cast<size_t>(tag.data() + tag.size() - end));
  if (bad != std::errc() || (!rest.empty() && rest != "\""))
    return respond(
        error_response(400, "replace: If-Match must carry the revision that GET gave as ETag"));
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return respond(refusal_response("replace", type.error()));
  auto bytes = record_of(**type, request.params[1], body->value());
  if (!bytes) return respond(refusal_response("replace", bytes.error()));
  std::string to = request.query_param(http::kReplaceQuery["to"]).value_or(""),
              note = request.query_param(http::kReplaceQuery["note"]).value_or("");
  auto by = source_of(request, source::component);
  if (!by) return respond(refusal_response("replace", by.error()));
  Command command{.type = request.params[0],
                  .id = request.params[1],
                  .to = to,
                  .note = note,
                  .record = *bytes,
                  .triggered = *by,
                  .expected_version = expected};
  submit("replace", "replace", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::remove(Request& request, Respond& respond) {
  auto by = source_of(request, source::op);
  if (!by) return respond(refusal_response("delete", by.error()));
  Command command{.type = request.params[0], .id = request.params[1], .triggered = *by};
  submit("delete", "remove", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::complete(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "complete"));
  auto target =
      body->text(body->value().find(http::kComplete["target"]) ? http::kComplete["target"]
                                                               : http::kComplete["phase"]);
  if (!target) return respond(body_refusal(target.error(), "complete"));
  Command command{.type = request.params[0], .id = request.params[1], .to = *target};
  submit("complete", "complete", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::fail_instance(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "fail"));
  auto reason = body->text(http::kFail["reason"]);
  if (!reason) return respond(body_refusal(reason.error(), "fail"));
  Command command{.type = request.params[0], .id = request.params[1], .note = *reason};
  submit("fail", "fail", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::children_of(Request& request, Respond& respond) {
  size_t skipped = 0;
  auto linked = reads_.children(
      request.caller.tenant, request.params.empty() ? std::string() : request.params[0], skipped);
  if (!linked) return respond(refusal_response("children", linked.error()));
  js::Array out;
  for (const TypedInstance& one : *linked) {
    check_drift(*one.type, one.found);
    out.push_back(linked_json(one));
  }
  Response answer = json_answer(200, js::Value(std::move(out)));
  if (skipped) answer.headers.emplace_back("X-Pawl-Skipped", std::to_string(skipped));
  respond(std::move(answer));
}

void Face::ancestors(Request& request, Respond& respond) {
  std::string warning;
  auto linked = reads_.ancestors(request.caller.tenant, request.params[0], warning);
  if (!linked) return respond(refusal_response("ancestors", linked.error()));
  js::Array out;
  for (const TypedInstance& one : *linked) {
    check_drift(*one.type, one.found);
    out.push_back(linked_json(one));
  }
  Response answer = json_answer(200, js::Value(std::move(out)));
  if (!warning.empty()) answer.headers.emplace_back("Warning", "199 - " + js::quote(warning));
  respond(std::move(answer));
}

void Face::lookup(Request& request, Respond& respond) {
  auto one = reads_.lookup(request.caller.tenant, request.params[0]);
  if (!one) return respond(refusal_response("lookup", one.error()));
  check_drift(*one->type, one->found);
  respond(json_answer(200, linked_json(*one)));
}

void Face::put_rule(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "rule"));
  std::string text = js::print(body->value());
  Command command{.id = request.params[0], .text = text};
  submit("rule", "put_rule", command, request, respond, [](const Outcome& o, Seq v) {
    return written_response(o.result == "created" ? 201 : 200, o, v);
  });
}

void Face::get_rule(Request& request, Respond& respond) {
  auto cell = kernel_.read(rule_key(request.caller.tenant, request.params[0]));
  if (!cell) return respond(refusal_response("rule", cell.error()));
  if (!cell->exists())
    return respond(
        error_response(404, fmt::format("rule: no rule is called '{}'", request.params[0])));
  auto rule = decode_rule(cell->value());
  if (!rule) return respond(refusal_response("rule", rule.error()));
  respond(json_answer(200, rule_json(*rule)));
}

void Face::list_rules(Request& request, Respond& respond) {
  js::Array out;
  auto scanned =
      kernel_.snapshot().scan(rule_prefix(request.caller.tenant), [&](BytesView, const Cell& cell) {
        if (auto rule = decode_rule(cell.value())) out.push_back(rule_json(*rule));
        return true;
      });
  if (!scanned) return respond(refusal_response("rules", scanned.error()));
  respond(json_answer(200, js::Value(std::move(out))));
}

void Face::remove_rule(Request& request, Respond& respond) {
  Command command{.id = request.params[0]};
  submit("rule", "remove_rule", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::run_rule(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "rule"));
  std::string entity(body->value().string_or(http::kRunRule["entity_id"]));
  const js::Value* message = body->value().find(http::kRunRule["message"]);
  std::string text = message ? js::print(*message) : "{}";
  Command command{.id = entity, .note = request.params[0], .text = text};
  submit("rule", "run_rule", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::action(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "action"));
  std::string entity(body->value().string_or(http::kAct["entity_id"]));
  std::string text = js::print(body->value());
  Command command{.id = entity, .text = text};
  submit("action", "action", command, request, respond,
         [](const Outcome& o, Seq v) { return written_response(200, o, v); });
}

void Face::substitute(Request& request, Respond& respond) {
  auto body = wire::BodyReader::of(request, kDataBody);
  if (!body) return respond(body_refusal(body.error(), "substitute"));
  auto given = body->text(http::kSubstitute["text"]);
  if (!given) return respond(body_refusal(given.error(), "substitute"));
  Variables variables;
  set_variables(variables, body->value());
  auto text = reads_.substitute(request.caller.tenant,
                                body->value().string_or(http::kSubstitute["entity_id"]), *given,
                                std::move(variables));
  if (!text) return respond(refusal_response("substitute", text.error()));
  respond(json_answer(200, js::object({{"text", *text}})));
}

}  // namespace pawl::lifecycle
