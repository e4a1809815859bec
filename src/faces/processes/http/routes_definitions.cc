// Routes of definitions.

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
  TRY(auto definition,
      service.definition(request.caller.tenant, request.params[0],
                         static_cast<uint32_t>(std::min<int64_t>(version, UINT32_MAX))));
  return document_text(*definition);
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
      {"GET", "/v1/definitions",
       [&service](wire::Request r, wire::Respond respond) {
         respond_with(respond, [&] { return list(service, r); });
       },
       "Lists definitions by id, with keyword, page and pageSize."},
      {"GET", "/v1/definitions/{id}", show_definition, "Shows the latest version of a definition."},
      {"GET", "/v1/definitions/{id}/versions/{version}", show_definition,
       "Shows one version of a definition."},
  };
}

}  // namespace pawl::processes
