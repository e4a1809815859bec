// The table of the lifecycle routes, and the answers to requests that match no route.

#include "faces/lifecycle/face.h"

#include <fmt/format.h>

#include "faces/lifecycle/http/answers.h"
#include "faces/lifecycle/http/shapes.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Respond;
using wire::Response;

constinit const Face::Row Face::kRows[] = {
    {"GET", "/workflows", &Face::index,
     "Lists the workflow types with their phases, edges, writable fields and counts by phase.",
     &http::kIndex},
    {"GET", "/workflows/{type}", &Face::list,
     "Lists instances of a type; match.FIELD=VALUE filters by a field. With stream=true it watches "
     "(WebSocket or text/event-stream).",
     &http::kList},
    {"GET", "/workflows/{type}/{id}", &Face::get,
     "Shows the state of an instance. ETag is its revision.", &http::kGet},
    {"GET", "/workflows/{type}/{id}/history", &Face::history,
     "Lists every phase change of an instance, with source, note and caller.", &http::kHistory},
    {"GET", "/workflows/{type}/{id}/children", &Face::children,
     "Lists the instances of any type whose parent this is.", &http::kChildren},
    {"POST", "/workflows/{type}/{id}/state", &Face::patch,
     "Sets operator_writable fields: all of them, or none if one is refused.", &http::kPatch},
    {"POST", "/workflows/{type}/{id}/transition", &Face::transition,
     "Moves an instance along a declared edge: {\"phase\", \"note\"}.", &http::kTransitionOp},
    {"GET", "/pawl/v1/lifecycle/types", &Face::list_types, "Lists the definitions of all types.",
     &http::kListTypes},
    {"GET", "/pawl/v1/lifecycle/types/{type}", &Face::get_type, "Shows the definition of a type.",
     &http::kGetType},
    {"PUT", "/pawl/v1/lifecycle/types/{type}", &Face::put_type,
     "Registers a type that is sent as data.", &http::kPutType},
    {"GET", "/pawl/v1/lifecycle/instances/{type}", &Face::list_instances,
     "Lists instances like /workflows/{type}, each with its id, phase, revision and times.",
     &http::kListInstances},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}", &Face::create,
     "Creates an instance. The body holds its fields.", &http::kCreate},
    {"PUT", "/pawl/v1/lifecycle/instances/{type}/{id}", &Face::replace,
     "Replaces the state of an instance if If-Match is its newest revision.", &http::kReplace},
    {"DELETE", "/pawl/v1/lifecycle/instances/{type}/{id}", &Face::remove,
     "Removes an instance; its history stays.", &http::kRemove},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/transition", &Face::transition_as,
     "Moves an instance along a declared edge, with source=framework, rule, operator or "
     "component.",
     &http::kTransitionAs},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/complete", &Face::complete,
     "Ends an instance in a terminal phase: {\"target\"}.", &http::kCompleteOp},
    {"POST", "/pawl/v1/lifecycle/instances/{type}/{id}/fail", &Face::fail_instance,
     "Moves an instance to 'failed': {\"reason\"}.", &http::kFailOp},
    {"GET", "/pawl/v1/lifecycle/lookup/{id}", &Face::lookup,
     "Finds the instance with this id, of any type.", &http::kLookup},
    {"GET", "/pawl/v1/lifecycle/ancestors/{id}", &Face::ancestors,
     "Lists the ancestors of an instance: parent first, root last.", &http::kAncestors},
    {"GET", "/pawl/v1/lifecycle/children", &Face::children_of,
     "Lists the instances of any type that have no parent, each with its type.", &http::kRoots},
    {"GET", "/pawl/v1/lifecycle/children/{id}", &Face::children_of,
     "Lists the instances of any type whose parent this is, each with its type.",
     &http::kChildrenOf},
    {"GET", "/pawl/v1/lifecycle/rules", &Face::list_rules,
     "Lists all rules and how often each has fired.", &http::kListRules},
    {"GET", "/pawl/v1/lifecycle/rules/{name}", &Face::get_rule,
     "Shows a rule and how often it has fired.", &http::kGetRule},
    {"PUT", "/pawl/v1/lifecycle/rules/{name}", &Face::put_rule,
     "Stores a rule: {\"workflow\", \"on\", \"when\", \"then\"}.", &http::kPutRule},
    {"DELETE", "/pawl/v1/lifecycle/rules/{name}", &Face::remove_rule,
     "Removes a rule and its timer.", &http::kRemoveRule},
    {"POST", "/pawl/v1/lifecycle/rules/{name}/run", &Face::run_rule,
     "Runs a rule now for one instance: {\"entity_id\", \"message\"}.", &http::kRunRuleOp},
    {"POST", "/pawl/v1/lifecycle/actions", &Face::action,
     "Runs one rule action now: {\"entity_id\", \"action\", \"message\"}.", &http::kAction},
    {"POST", "/pawl/v1/lifecycle/substitute", &Face::substitute,
     "Resolves the variables of a text: {\"entity_id\", \"text\"}.", &http::kSubstituteOp},
};

namespace {

Response only(std::string_view method) {
  Response out = error_response(405, std::string(method) + " only");
  out.headers.emplace_back("Allow", method);
  return out;
}

// "/workflows//x/../y" -> "/workflows/y"; the same text when it is clean.
std::string clean(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    std::string_view part = path.substr(at, end - at);
    if (part == ".." && !parts.empty())
      parts.pop_back();
    else if (!part.empty() && part != "." && part != "..")
      parts.push_back(part);
    at = end + 1;
  }
  std::string out;
  for (std::string_view part : parts)
    out.append("/").append(part);
  if (path.ends_with('/') && !out.empty()) out.push_back('/');
  return out.empty() ? "/" : out;
}

// A redirect to the clean path, when the path of the request is not clean.
std::optional<Response> redirect_to_clean_path(const Request& request) {
  if (request.path.find("//") == std::string::npos && request.path.find("/.") == std::string::npos)
    return std::nullopt;
  std::string cleaned = clean(request.path);
  if (cleaned == request.path) return std::nullopt;
  Response out = error_response(307, "moved to " + cleaned);
  out.headers.emplace_back("Location",
                           cleaned + (request.query.empty() ? "" : "?" + request.query));
  return out;
}

std::string no_such_route(std::string_view path) {
  std::vector<std::string_view> parts;
  for (size_t at = 1; at < path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  if (path.starts_with("/workflows") && parts.size() == 4)
    return fmt::format(
        "unknown subresource \"{}\" (want one of: history, children, state, transition)", parts[3]);
  return fmt::format("no route for path {}", path);
}

Response refuse_unrouted(const Request& request, const Error& error, std::string_view allow) {
  if (!allow.empty()) {
    // HEAD is not offered: the original API refuses it.
    std::string methods;
    for (std::string_view method : {"GET", "POST", "PUT", "DELETE"})
      if (wire::lists_token(allow, method))
        methods += (methods.empty() ? "" : ", ") + std::string(method);
    return only(methods);
  }
  if (error.code == Code::not_found) {
    if (auto redirect = redirect_to_clean_path(request)) return *std::move(redirect);
    return error_response(404, no_such_route(request.path));
  }
  return error_response(wire::code_status(error.code).http, error.message);
}

}  // namespace

constinit const Face::Handle Face::kScans[] = {
    &Face::index,          &Face::list,       &Face::history,
    &Face::children,       &Face::ancestors,  &Face::children_of,
    &Face::list_instances, &Face::list_rules, &Face::list_types};

void Face::head(Request&, Respond& respond) { respond(only("GET")); }

std::vector<wire::Route> Face::routes() {
  std::vector<wire::Route> out;
  auto add = [&](std::string_view method, std::string pattern, Handle handle, std::string_view doc,
                 const wire::Operation* operation) {
    auto handler = [this, handle](Request request, Respond respond) {
      if (auto redirect = redirect_to_clean_path(request)) return respond(*std::move(redirect));
      (this->*handle)(request, respond);
    };
    out.push_back(
        {std::string(method), std::move(pattern), std::move(handler), std::string(doc), operation});
    // Reads of more than one instance scan rows.
    const auto* many = std::find(std::begin(kScans), std::end(kScans), handle);
    out.back().slow = many != std::end(kScans);
  };
  for (const Row& row : kRows) {
    std::string pattern(row.pattern);
    add(row.method, pattern, row.handle, row.doc, row.operation);
    if (!pattern.starts_with("/workflows")) continue;
    // One slash at the end of a path is accepted.
    add(row.method, pattern + "/", row.handle, "", nullptr);
    if (row.method != "GET") continue;
    for (const std::string& either : {pattern, pattern + "/"})
      add("HEAD", either, &Face::head, "", nullptr);
  }
  return out;
}

std::vector<wire::Dialect> Face::dialects() const {
  const wire::ErrorForm errors{.shape = &http::kError, .tag = "lifecycle"};
  return {{"/workflows", refuse_unrouted, {}, errors},
          {"/pawl/v1/lifecycle", refuse_unrouted, {}, errors}};
}

}  // namespace pawl::lifecycle
