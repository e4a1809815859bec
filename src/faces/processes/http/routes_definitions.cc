// Routes of definitions.

#include "faces/processes/definition/diff.h"
#include "faces/processes/definition/shapes.h"
#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr AnswerShape kDefinitionSummary{
    "DefinitionSummary",
    {text("id").example(R"("loan")"), integer("version").range(1, std::nullopt),
     text("name").example(R"("Loan")"), time("uploadedAt"),
     flag("activated", "The text of an earlier version was uploaded: it is active again.")
         .optional(),
     texts("warnings").optional()}};
constexpr AnswerShape kDefinitionPage{
    "DefinitionPage",
    {list("items", "Null when there are none.", kDefinitionSummary).or_null(), count("total")}};
constexpr RequestShape kDefinitionsQuery{
    "", kPageQuery, {text("keyword", "Only definitions whose id or name has this text.")}};
constexpr RequestShape kVersionPath{
    "", {text("id", "The id of the definition."), integer("version", "The version, from 1 on.")}};
constexpr AnswerShape kVersion{"DefinitionVersion",
                               {integer("version"), text("name"), time("uploadedAt"),
                                flag("active", "New instances use this version.")}};
constexpr AnswerShape kVersions{
    "DefinitionVersions",
    {text("definitionId").example(R"("loan")"), flag("retired"), flag("paused"),
     list("items", "The versions, the oldest first.", kVersion)}};
constexpr RequestShape kDiffQuery{
    "",
    {integer("from", "A version; without it the one before `to`.").range(1, std::nullopt),
     integer("to", "A version; without it the last one.").range(1, std::nullopt)}};
constexpr AnswerShape kChange{
    "DefinitionChange",
    {text("path", "The place in the document.").example(R"("/steps/review/retryCount")"),
     any("from", "The value before; absent: there was none.").optional().example("3"),
     any("to", "The value after; absent: there is none.").optional().example("5")}};
constexpr AnswerShape kDiff{"DefinitionDiff",
                            {text("definitionId").example(R"("loan")"), integer("from"),
                             integer("to"), list("changes", "", kChange)}};
constexpr RequestShape kActivate{
    "ActivateRequest",
    {integer("version", "The version to activate.").required().range(1, INT32_MAX)}};
constexpr AnswerShape kActivated{"ActivatedDefinition",
                                 {text("definitionId").example(R"("loan")"), integer("version"),
                                  flag("activated", "False: the version was active already.")}};
constexpr AnswerShape kRetired{"RetiredDefinition", {text("definitionId"), flag("retired")}};
constexpr AnswerShape kDeleted{"DeletedDefinition", {text("definitionId"), flag("deleted")}};

constexpr wire::Type kDocument = document::kExample;
constexpr Operation kUpload{.id = "uploadDefinition",
                            .headers = &wire::kIdempotencyHeader,
                            .body = {kDocument},
                            .replies = {{201, "The stored version.", kDefinitionSummary}},
                            .errors = {409, 415, 422}};
constexpr Operation kList{.id = "listDefinitions",
                          .query = &kDefinitionsQuery,
                          .replies = {{200, "A page of definitions.", kDefinitionPage}}};
constexpr Operation kShow{.id = "getDefinition",
                          .path = &kDefinitionPath,
                          .replies = {{200, "The document of the active version.", kDocument}}};
constexpr Operation kShowVersion{.id = "getDefinitionVersion",
                                 .path = &kVersionPath,
                                 .replies = {{200, "The document.", kDocument}}};
constexpr Operation kListVersions{.id = "listDefinitionVersions",
                                  .path = &kDefinitionPath,
                                  .replies = {{200, "All versions.", kVersions}}};
constexpr Operation kCompare{.id = "diffDefinitionVersions",
                             .path = &kDefinitionPath,
                             .query = &kDiffQuery,
                             .replies = {{200, "What changed.", kDiff}}};
constexpr Operation kActivateVersion{.id = "activateDefinitionVersion",
                                     .path = &kDefinitionPath,
                                     .headers = &wire::kIdempotencyHeader,
                                     .body = {kActivate},
                                     .replies = {{200, "The active version.", kActivated}},
                                     .errors = {409, 422}};
constexpr Operation kRetire{.id = "retireDefinition",
                            .path = &kDefinitionPath,
                            .headers = &wire::kIdempotencyHeader,
                            .body = wire::optional_body(kReason),
                            .replies = {{200, "The definition is retired.", kRetired}},
                            .errors = {409, 422}};
constexpr Operation kDelete{.id = "deleteDefinition",
                            .path = &kDefinitionPath,
                            .headers = &wire::kIdempotencyHeader,
                            .replies = {{200, "The definition is deleted.", kDeleted}},
                            .errors = {409, 422}};

void upload(Service& service, wire::Request request, wire::Respond respond) {
  std::string_view type = request.header("Content-Type");
  if (type.contains("application/xml") || type.contains("text/xml"))
    return respond(refusal(
        {Code::unsupported, "UNSUPPORTED_FORMAT", "definitions are JSON; XML is not supported"}));
  auto body = wire::BodyReader::of(request, kBody);
  if (!body)
    return respond(
        refusal({body.error().code, body.error().reason, "parse error: " + body.error().message}));
  service.upload(submitter_of(request), std::move(*body).take(),
                 reply_with(std::move(respond), 201));
}

Result<std::string> list(Service& service, const wire::Request& request) {
  TRY(PageRequest page, page_of(request));
  TRY(auto found,
      service.definitions(request.caller.tenant,
                          request.query_param(kDefinitionsQuery["keyword"]).value_or(""), page.page,
                          page.size));
  std::string out = "{\"items\":";
  out += found.first.empty() ? "null" : "[";
  bool first = true;
  for (const Service::DefinitionSummary& s : found.first) {
    if (!first) out += ',';
    first = false;
    out += "{\"id\":\"" + s.id + "\",\"version\":" + std::to_string(s.version) + ",\"name\":";
    json::append_string(out, s.name);
    append_time(out += ",\"uploadedAt\":", s.uploaded);
    out += '}';
  }
  if (!first) out += ']';
  return out += ",\"total\":" + std::to_string(found.second) + "}";
}

Result<std::string> show(Service& service, const wire::Request& request) {
  int64_t version = 0;
  if (request.params.size() > 1) {
    const std::string& text = request.params[1];
    auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
    bool whole = end == text.data() + text.size() && !text.empty();
    if (failed == std::errc::result_out_of_range && whole)
      version = UINT32_MAX;
    else if (failed != std::errc() || !whole)
      return fail(Code::invalid, "BAD_VERSION", "version must be a number, got \"" + text + "\"");
    if (version <= 0)
      return fail(Code::not_found, "NO_DEFINITION",
                  "version " + text + " of definition \"" + request.params[0] +
                      "\" not found: versions begin at 1");
  }
  // Documents of a deleted definition are kept for its instances only.
  TRY_OK(service.head(request.caller.tenant, request.params[0]));
  TRY(auto definition,
      service.definition(request.caller.tenant, request.params[0],
                         static_cast<uint32_t>(std::min<int64_t>(version, UINT32_MAX))));
  return document_text(*definition);
}

Result<std::string> versions(Service& service, const wire::Request& request) {
  TRY(auto head, service.head(request.caller.tenant, request.params[0]));
  json::Array items;
  for (size_t i = 0; i < head->versions.size(); ++i)
    items.push_back(json::object({{"version", static_cast<int64_t>(i + 1)},
                                  {"name", head->versions[i].name},
                                  {"uploadedAt", rfc3339(head->versions[i].uploaded, 6)},
                                  {"active", i + 1 == head->current()}}));
  return json::print(json::object({{"definitionId", request.params[0]},
                                   {"retired", head->retired},
                                   {"paused", head->paused},
                                   {"items", json::Value(std::move(items))}}));
}

// A version from the query; the default is given.
Result<uint32_t> version_of(const wire::Request& request, const wire::Member& name,
                            size_t default_value) {
  std::string text = request.query_param(name).value_or("");
  uint32_t version = 0;
  if (text.empty()) return static_cast<uint32_t>(default_value);
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (failed != std::errc() || end != text.data() + text.size() || version == 0)
    return fail(Code::invalid, "BAD_VERSION",
                std::string(name.name) + " must be a version from 1 on, got \"" + text + "\"");
  return version;
}

// Without `to` the last version, without `from` the one before it.
Result<std::string> compare(Service& service, const wire::Request& request) {
  const std::string& tenant = request.caller.tenant;
  const std::string& id = request.params[0];
  TRY(auto head, service.head(tenant, id));
  TRY(uint32_t to, version_of(request, kDiffQuery["to"], head->versions.size()));
  TRY(uint32_t from, version_of(request, kDiffQuery["from"], to > 1 ? to - 1 : 1));
  TRY(auto before, service.definition(tenant, id, from));
  TRY(auto after, service.definition(tenant, id, to));
  return json::print(json::object({{"definitionId", id},
                                   {"from", static_cast<int64_t>(from)},
                                   {"to", static_cast<int64_t>(to)},
                                   {"changes", json::Value(diff(*before, *after))}}));
}

void activate(Service& service, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kBody);
  if (!body) return respond(refusal(body.error()));
  auto version = body->integer(kActivate["version"]);
  if (!version) return respond(refusal(version.error()));
  if (*version < 1 || *version > INT32_MAX)
    return respond(refusal({Code::invalid, "BAD_VERSION", "version is required, from 1 on"}));
  service.activate(submitter_of(request), request.params[0], static_cast<uint32_t>(*version),
                   reply_with(std::move(respond), 200));
}

void retire(Service& service, wire::Request request, wire::Respond respond) {
  auto body = wire::BodyReader::of(request, kOptionalBody);
  if (!body) return respond(refusal(body.error()));
  service.retire(submitter_of(request), request.params[0],
                 std::string(body->value().string_or(kReason["reason"])),
                 reply_with(std::move(respond), 200));
}

}  // namespace

std::vector<wire::Route> definition_routes(Service& service) {
  auto show_definition = [&service](wire::Request request, wire::Respond respond) {
    respond_with(respond, [&] { return show(service, request); });
  };
  return {
      {"POST", "/v1/definitions",
       [&service](wire::Request r, wire::Respond respond) {
         upload(service, std::move(r), std::move(respond));
       },
       "Uploads a definition; equal content keeps its version.", &kUpload},
      wire::slow({"GET", "/v1/definitions",
                  [&service](wire::Request r, wire::Respond respond) {
                    respond_with(respond, [&] { return list(service, r); });
                  },
                  "Lists definitions by id.", &kList}),
      {"GET", "/v1/definitions/{id}", show_definition, "Shows the latest version of a definition.",
       &kShow},
      {"GET", "/v1/definitions/{id}/versions/{version}", show_definition,
       "Shows one version of a definition.", &kShowVersion},
      {"GET", "/pawl/v1/processes/definitions/{id}/versions",
       [&service](wire::Request r, wire::Respond respond) {
         respond_with(respond, [&] { return versions(service, r); });
       },
       "Lists the versions of a definition and says which one is active.", &kListVersions},
      {"GET", "/pawl/v1/processes/definitions/{id}/diff",
       [&service](wire::Request r, wire::Respond respond) {
         respond_with(respond, [&] { return compare(service, r); });
       },
       "Lists what changed between the versions `from` and `to` of a definition.", &kCompare},
      {"POST", "/pawl/v1/processes/definitions/{id}/activate",
       [&service](wire::Request r, wire::Respond respond) {
         activate(service, std::move(r), std::move(respond));
       },
       "Makes a version the one that starts use; also ends a retirement.", &kActivateVersion},
      {"POST", "/pawl/v1/processes/definitions/{id}/retire",
       [&service](wire::Request r, wire::Respond respond) {
         retire(service, std::move(r), std::move(respond));
       },
       "Refuses new instances of a definition until a version is activated.", &kRetire},
      {"DELETE", "/pawl/v1/processes/definitions/{id}",
       [&service](wire::Request r, wire::Respond respond) {
         service.delete_definition(submitter_of(r), r.params[0],
                                   reply_with(std::move(respond), 200));
       },
       "Deletes a definition of which no instance runs.", &kDelete},
  };
}

}  // namespace pawl::processes
