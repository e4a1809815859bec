// The operator API: reading types and instances, and the two writes that an operator may make.

#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/http/answers.h"
#include "faces/lifecycle/http/shapes.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Respond;
using wire::Response;

Face::Face(KernelAccess& kernel, Background& background, FaceOptions options)
    : kernel_(kernel),
      options_(std::move(options)),
      reads_(kernel),
      phase_counts_(kernel),
      hub_(std::make_shared<WatchHub>(kernel)),
      catch_up_(background) {}

static std::string version_tag(Seq version) { return "\"" + std::to_string(version) + "\""; }

void Face::submit(std::string_view operation, std::string verb, const Command& command,
                  Request& request, Respond& respond, Done done) {
  Input input = make_input(std::move(verb), command, request.caller);
  input.once = request.header("Idempotency-Key");
  kernel_.submit(std::move(input),
                 [respond = std::move(respond), done = std::move(done),
                  operation = std::string(operation)](Result<Answer> answer) mutable {
                   if (!answer) return respond(refusal_response(operation, answer.error()));
                   auto outcome = decode_outcome(answer->body);
                   if (!outcome) return respond(refusal_response(operation, outcome.error()));
                   Seq version = outcome->version ? outcome->version : answer->seq;
                   respond(done(*outcome, version));
                 });
}

void Face::index(Request& request, Respond& respond) {
  auto types = reads_.types(request.caller.tenant);
  if (!types) return respond(refusal_response("index", types.error()));
  js::Array out;
  auto strings = [](const std::vector<std::string>& from) {
    js::Array list;
    for (const std::string& s : from)
      list.emplace_back(s);
    return list;
  };
  for (const WorkflowTypePtr& type : *types) {
    js::Object one;
    one.add("workflow", type->def.name);
    one.add("kv_bucket", type->def.bucket);
    one.add("phases", strings(type->def.phases()));
    one.add("terminal_phases", strings(type->def.phases(true)));
    one.add("operator_writable_fields", strings(type->def.operator_writable_fields()));
    one.add("transitions", transitions_json(type->def));
    js::Object counts;
    auto counted = phase_counts_.of(request.caller.tenant, type->def.name);
    if (counted)
      for (const auto& [phase_name, count] : counted->by_phase)
        counts.add(phase_name, static_cast<uint64_t>(count));
    one.add("counts_by_phase", std::move(counts));
    if (!counted)
      one.add("counts_error", counted.error().message);
    else if (size_t n = counted->unreadable)
      one.add("counts_error", fmt::format("{} instance{} cannot be read and {} not counted", n,
                                          n == 1 ? "" : "s", n == 1 ? "is" : "are"));
    out.emplace_back(std::move(one));
  }
  respond(json_answer(200, js::Value(std::move(out))));
}

namespace {

// Parses decimal digits, with an optional plus sign. Empty text is 0.
std::optional<int64_t> paging_number(std::string_view text) {
  if (text.empty()) return 0;
  if (text.front() == '+') text.remove_prefix(1);
  int64_t n = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (bad != std::errc() || end != text.data() + text.size() || text.empty() || n < 0)
    return std::nullopt;
  return n;
}

struct ListQuery {
  any_query query;
  std::vector<std::pair<std::string, std::string>> match;  // field and value, still as text
  std::string problem;                                     // why the query is refused, or empty
};

// When a parameter is repeated, the first one counts, as in the original API.
ListQuery read_list_query(std::string_view raw) {
  ListQuery out;
  std::map<std::string, std::string> given;
  for (auto& [name, text] : query_pairs(raw)) {
    if (!given.emplace(name, text).second) continue;
    if (name.starts_with("match.")) out.match.emplace_back(name.substr(6), text);
  }
  auto text_of = [&](const wire::Member& row) { return given[std::string(row.name)]; };
  auto limit = paging_number(text_of(http::kListQuery["limit"])),
       offset = paging_number(text_of(http::kListQuery["offset"]));
  if (!limit)
    out.problem = "invalid limit (must be a non-negative integer)";
  else if (!offset)
    out.problem = "invalid offset (must be a non-negative integer)";
  out.query.limit = limit.value_or(0);
  out.query.offset = offset.value_or(0);
  out.query.phase = text_of(http::kListQuery["phase"]);
  out.query.active = text_of(http::kListQuery["active"]) == "true";
  out.query.cursor = text_of(http::kListQuery["cursor"]);
  if (std::string after = text_of(http::kListQuery["updated_after"]); !after.empty()) {
    auto t = parse_rfc3339_clamped(after);
    if (t)
      out.query.updated_after = time_point(
          std::chrono::duration_cast<time_point::duration>(std::chrono::nanoseconds(*t)));
    else if (out.problem.empty())
      out.problem = "invalid updated_after (must be an RFC 3339 time)";
  }
  return out;
}

}  // namespace

std::variant<Face::Page, Response> Face::page_of(const Request& request) {
  ListQuery list = read_list_query(request.query);
  if (!list.problem.empty()) return error_response(400, list.problem);
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return refusal_response("list", type.error());
  for (const auto& [name, text] : list.match) {
    const auto* f = (*type)->def.find(name);
    if (!f)
      return refusal_response(
          "list", refusal(errc::unknown_field,
                          fmt::format("'{}' is not a field of {}", name, request.params[0])));
    auto v = coerce_text(name, f->k, text);
    if (!v) return refusal_response("list", v.error());
    list.query.match.emplace_back(name, std::move(*v));
  }
  auto listed = reads_.list(request.caller.tenant, **type, list.query);
  if (!listed) return refusal_response("list", listed.error());
  for (const FoundInstance& found : listed->items)
    check_drift(**type, found);
  return Page{*type, *std::move(listed)};
}

void Face::check_drift(const WorkflowType& type, const FoundInstance& found) {
  if (auto warning = drifts_.warn_once(type.def, found.id, found.stored.phase))
    log(Level::warn, *warning,
        {{"workflow", type.def.name}, {"id", found.id}, {"phase", found.stored.phase}});
}

void Face::list(Request& request, Respond& respond) {
  if (request.query_param(http::kWatchQuery["stream"]).value_or("") == "true")
    return respond(watch(request));
  auto asked = page_of(request);
  if (auto* refused = std::get_if<Response>(&asked)) return respond(std::move(*refused));
  const Page& page = std::get<Page>(asked);
  std::vector<std::pair<WorkflowTypePtr, const FoundInstance*>> states;
  for (const FoundInstance& found : page.list.items)
    states.emplace_back(page.type, &found);
  Response out = states_response(states, page.list.skipped);
  if (!page.list.cursor.empty()) out.headers.emplace_back("X-Pawl-Cursor", page.list.cursor);
  respond(std::move(out));
}

void Face::get(Request& request, Respond& respond) {
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return respond(refusal_response("get", type.error()));
  auto found = reads_.get(request.caller.tenant, request.params[0], request.params[1]);
  if (!found) return respond(refusal_response("get", found.error()));
  check_drift(**type, *found);
  std::string body;
  if (!append_instance(body, **type, *found))
    return respond(refusal_response(
        "get", refusal(errc::corrupt_value, fmt::format("{} '{}' does not fit its type",
                                                        request.params[0], request.params[1]))));
  Response out = wire::json_response(200, std::move(body));
  out.headers.emplace_back("ETag", version_tag(found->version));
  respond(std::move(out));
}

void Face::history(Request& request, Respond& respond) {
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  if (!type) return respond(refusal_response("history", type.error()));
  auto log = reads_.history(request.caller.tenant, **type, request.params[1]);
  if (!log) return respond(refusal_response("history", log.error()));
  js::Array out;
  for (const transition_event& event : log->events)
    out.push_back(event_json(event));
  respond(json_answer(200, js::Value(std::move(out))));
}

void Face::children(Request& request, Respond& respond) {
  size_t skipped = 0;
  auto linked = reads_.children(request.caller.tenant, request.params[1], skipped);
  if (!linked) return respond(refusal_response("children", linked.error()));
  std::vector<std::pair<WorkflowTypePtr, const FoundInstance*>> states;
  for (const TypedInstance& one : *linked) {
    check_drift(*one.type, one.found);
    states.emplace_back(one.type, &one.found);
  }
  respond(states_response(states, skipped));
}

void Face::patch(Request& request, Respond& respond) {
  wire::BodyRules rules = kOperatorBody;
  rules.null_is_object = true;  // as in the original API: a patch of nothing
  auto body = wire::BodyReader::of(request, rules);
  if (!body) return respond(body_refusal(body.error()));
  std::string text = js::print(body->value());
  Command command{
      .type = request.params[0], .id = request.params[1], .text = text, .triggered = source::op};
  submit("state_patch", "patch", command, request, respond, [](const Outcome&, Seq version) {
    Response out = wire::json_response(200, R"({"ok":true})");
    out.headers.emplace_back("ETag", version_tag(version));
    return out;
  });
}

void Face::transition(Request& request, Respond& respond) { move(request, respond, source::op); }

void Face::move(Request& request, Respond& respond, source by) {
  auto body = wire::BodyReader::of(request, kOperatorBody);
  if (!body) return respond(body_refusal(body.error()));
  auto phase = body->text(http::kTransition["phase"]);
  if (!phase) return respond(body_refusal(phase.error()));
  auto note = body->text(http::kTransition["note"]);
  if (!note) return respond(body_refusal(note.error()));
  if (phase->find_first_not_of(" \t\r\n") == std::string::npos)
    return respond(error_response(400, "phase is required"));
  Command command{.type = request.params[0],
                  .id = request.params[1],
                  .to = *phase,
                  .note = *note,
                  .triggered = by};
  submit("transition", "transition", command, request, respond,
         [](const Outcome& outcome, Seq version) {
           Response out =
               wire::json_response(200, "{\"ok\":true,\"phase\":" + js::quote(outcome.phase) + "}");
           out.headers.emplace_back("ETag", version_tag(version));
           return out;
         });
}

}  // namespace pawl::lifecycle
