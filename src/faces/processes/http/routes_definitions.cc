// Routes of definitions.

#include "faces/processes/definition/diff.h"
#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

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
      service.definitions(request.caller.tenant, request.query_param("keyword").value_or(""),
                          page.page, page.size));
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
Result<uint32_t> version_of(const wire::Request& request, std::string_view name,
                            size_t default_value) {
  std::string text = request.query_param(name).value_or("");
  uint32_t version = 0;
  if (text.empty()) return static_cast<uint32_t>(default_value);
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (failed != std::errc() || end != text.data() + text.size() || version == 0)
    return fail(Code::invalid, "BAD_VERSION",
                std::string(name) + " must be a version from 1 on, got \"" + text + "\"");
  return version;
}

// Without `to` the last version, without `from` the one before it.
Result<std::string> compare(Service& service, const wire::Request& request) {
  const std::string& tenant = request.caller.tenant;
  const std::string& id = request.params[0];
  TRY(auto head, service.head(tenant, id));
  TRY(uint32_t to, version_of(request, "to", head->versions.size()));
  TRY(uint32_t from, version_of(request, "from", to > 1 ? to - 1 : 1));
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
  auto version = body->integer("version", 0);
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
                 std::string(body->value().string_or("reason")),
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
       "Uploads a definition; equal content keeps its version."},
      wire::slow({"GET", "/v1/definitions",
                  [&service](wire::Request r, wire::Respond respond) {
                    respond_with(respond, [&] { return list(service, r); });
                  },
                  "Lists definitions by id, with keyword, page and pageSize."}),
      {"GET", "/v1/definitions/{id}", show_definition, "Shows the latest version of a definition."},
      {"GET", "/v1/definitions/{id}/versions/{version}", show_definition,
       "Shows one version of a definition."},
      {"GET", "/pawl/v1/processes/definitions/{id}/versions",
       [&service](wire::Request r, wire::Respond respond) {
         respond_with(respond, [&] { return versions(service, r); });
       },
       "Lists the versions of a definition and says which one is active."},
      {"GET", "/pawl/v1/processes/definitions/{id}/diff",
       [&service](wire::Request r, wire::Respond respond) {
         respond_with(respond, [&] { return compare(service, r); });
       },
       "Lists what changed between the versions `from` and `to` of a definition."},
      {"POST", "/pawl/v1/processes/definitions/{id}/activate",
       [&service](wire::Request r, wire::Respond respond) {
         activate(service, std::move(r), std::move(respond));
       },
       "Makes a version the one that starts use; also ends a retirement."},
      {"POST", "/pawl/v1/processes/definitions/{id}/retire",
       [&service](wire::Request r, wire::Respond respond) {
         retire(service, std::move(r), std::move(respond));
       },
       "Refuses new instances of a definition until a version is activated."},
      {"DELETE", "/pawl/v1/processes/definitions/{id}",
       [&service](wire::Request r, wire::Respond respond) {
         service.delete_definition(submitter_of(r), r.params[0],
                                   reply_with(std::move(respond), 200));
       },
       "Deletes a definition of which no instance runs."},
  };
}

}  // namespace pawl::processes
