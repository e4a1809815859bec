#include "cli/openapi.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "cli/openapi_schema.h"
#include "json/text.h"
#include "pawl/version.h"
#include "server/auth/permissions.h"

namespace pawl::cli {
namespace {

using wire::AnyShape;
using wire::Member;
using wire::Route;

constexpr wire::AnswerShape kPlainError{
    "PlainError",
    {wire::row::text("error", "A word for programs.").example(R"("NOT_FOUND")"),
     wire::row::text("reason", "What happened and what to do, for people.")}};

// "{rest...}" is our own notation; OpenAPI knows only "{rest}".
std::string parameter_name(std::string_view segment) {
  segment = segment.substr(1, segment.size() - 2);
  if (segment.ends_with("...")) segment.remove_suffix(3);
  return std::string(segment);
}
bool is_parameter(std::string_view segment) { return segment.starts_with('{'); }

std::vector<std::string> segments_of(std::string_view pattern) {
  std::vector<std::string> out;
  while (!pattern.empty()) {
    const size_t end = std::min(pattern.find('/', 1), pattern.size());
    out.emplace_back(pattern.substr(1, end - 1));
    pattern.remove_prefix(end);
  }
  return out;
}

// Paths that differ only in the names of their parameters are one path for OpenAPI: its parameters
// have both names, "{idOrFormat}".
class Paths {
 public:
  void add(std::string_view pattern) {
    auto& names = names_[hierarchy(pattern)];
    size_t nth = 0;
    for (const std::string& segment : segments_of(pattern)) {
      if (!is_parameter(segment)) continue;
      std::string name = parameter_name(segment);
      if (nth == names.size()) names.emplace_back();
      std::vector<std::string>& known = names[nth++];
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  // The name of the parameter at a place.
  std::string name(std::string_view pattern, size_t nth) const {
    std::string out;
    for (std::string one : names_.at(hierarchy(pattern))[nth]) {
      if (!out.empty())
        one[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(one[0])));
      out += (out.empty() ? "" : "Or") + one;
    }
    return out;
  }
  std::string path(std::string_view pattern) const {
    std::string out;
    size_t nth = 0;
    for (const std::string& segment : segments_of(pattern))
      out += "/" + (is_parameter(segment) ? "{" + name(pattern, nth++) + "}" : segment);
    return out;
  }

 private:
  static std::string hierarchy(std::string_view pattern) {
    std::string out;
    for (const std::string& segment : segments_of(pattern))
      out += "/" + (is_parameter(segment) ? "{}" : segment);
    return out;
  }
  std::map<std::string, std::vector<std::vector<std::string>>> names_;
};

class DocumentPrinter {
 public:
  DocumentPrinter(const wire::Router& router, const server::RoutePermissions& permissions)
      : router_(router), permissions_(permissions) {
    for (const Route* route : router.rows()) {
      if (route->operation)
        names_.add(route->pattern);
      else if (!route->doc.empty())
        mistakes_.insert(fmt::format("{} {} has no operation", route->method, route->pattern));
    }
  }

  Result<std::string> print(std::string_view title) {
    json::Object paths;
    for (const Route* route : router_.rows())
      if (route->operation) add(paths, *route);
    json::Object bearer, basic, schemes;
    bearer.add("type", "http");
    bearer.add("scheme", "bearer");
    bearer.add("bearerFormat", "JWT");
    basic.add("type", "http");
    basic.add("scheme", "basic");
    schemes.add("bearer", std::move(bearer));
    schemes.add("basic", std::move(basic));
    json::Object responses;
    for (auto& [name, response] : errors_)
      responses.add(name, response);
    json::Value document = json::object(
        {{"openapi", "3.1.0"},
         {"info", json::object({{"title", title},
                                {"version", PAWL_VERSION},
                                {"description",
                                 "Every HTTP operation of this server. A server that runs without "
                                 "authentication ignores the security of operations."}})},
         {"servers", json::Array{json::object({{"url", "/"}})}},
         {"paths", std::move(paths)},
         {"components", json::object({{"schemas", schemas_.components()},
                                      {"responses", std::move(responses)},
                                      {"securitySchemes", std::move(schemes)}})}});
    mistakes_.insert(schemas_.mistakes().begin(), schemas_.mistakes().end());
    if (mistakes_.empty()) return json::print(document);
    return fail(Code::internal, "BAD_OPERATIONS", fmt::format("{}", fmt::join(mistakes_, "; ")));
  }

 private:
  void add(json::Object& paths, const Route& route) {
    const std::string path = names_.path(route.pattern);
    std::string method = route.method;
    for (char& c : method)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    json::Value* entry = paths.find(path);
    if (!entry) entry = &paths.add(path, json::Object{});
    entry->object().add(method, operation_of(route));
  }

  json::Value operation_of(const Route& route) {
    const wire::Operation& operation = *route.operation;
    if (!ids_.insert(std::string(operation.id)).second)
      mistakes_.insert(fmt::format("two operations have the id {}", operation.id));
    json::Object out;
    out.add("operationId", operation.id);
    out.add("summary", route.doc);
    auto needs = permissions_.find(&route);
    if (needs != permissions_.end() && !route.open)
      out.add("description", fmt::format("Needs the permission `{}`.",
                                         server::permission_row(needs->second).name));
    if (const wire::Dialect* dialect = router_.dialect_of(route.pattern))
      if (!dialect->errors.tag.empty()) out.add("tags", json::Array{dialect->errors.tag});
    if (json::Array all = parameters_of(route); !all.empty()) out.add("parameters", std::move(all));
    if (operation.body.present) out.add("requestBody", body_of(operation.body));
    out.add("responses", responses_of(route));
    json::Array security;
    if (operation.basic)
      security.push_back(json::object({{"basic", json::Array()}}));
    else if (!route.open)
      security.push_back(json::object({{"bearer", json::Array()}}));
    out.add("security", std::move(security));
    return out;
  }

  json::Value parameter_of(const Member& row, std::string name, std::string_view in,
                           bool required) {
    json::Object out;
    out.add("name", std::move(name));
    out.add("in", in);
    if (required) out.add("required", true);
    if (!row.doc.empty()) out.add("description", row.doc);
    Member bare = row;
    bare.doc = {};
    out.add("schema", schemas_.of(bare));
    return out;
  }

  json::Array parameters_of(const Route& route) {
    const wire::Operation& operation = *route.operation;
    json::Array out;
    size_t nth = 0, described = 0;
    for (const std::string& segment : segments_of(route.pattern)) {
      if (!is_parameter(segment)) continue;
      const std::string name = parameter_name(segment);
      Member row = wire::row::text(name);
      if (operation.path)
        for (const Member& one : *operation.path)
          if (one.name == name) {
            row = one;
            ++described;
          }
      out.push_back(parameter_of(row, names_.name(route.pattern, nth++), "path", true));
      // OpenAPI has no word for a parameter that holds slashes.
      if (segment.ends_with("...}")) out.back().object().add("x-multi-segment", true);
    }
    if (operation.path && described != operation.path->count)
      mistakes_.insert(fmt::format("{} describes a parameter that its path {} does not have",
                                   operation.id, route.pattern));
    for (auto [shape, in] : {std::pair(operation.query, "query"), {operation.headers, "header"}})
      for (const AnyShape* part = shape; part; part = part->base)
        for (const Member& row : *part)
          out.push_back(parameter_of(row, std::string(row.name), in, is_required(*part, row)));
    return out;
  }

  json::Value content_of(const wire::Type& type, std::string_view media) {
    json::Object out;
    const bool text =
        media.ends_with("xml") || (type.kind == wire::Kind::octets && media.starts_with("text/"));
    out.add("schema", schemas_.of(text ? wire::Type(wire::Kind::text) : type));
    if (auto example = example_of(type); example && !text) out.add("example", *std::move(example));
    return out;
  }

  json::Value body_of(const wire::Body& body) {
    json::Object content;
    for (std::string_view media : body.media)
      if (!media.empty()) content.add(std::string(media), content_of(body.type, media));
    json::Object out;
    if (body.required) out.add("required", true);
    out.add("content", std::move(content));
    return out;
  }

  json::Value reply_of(const wire::Reply& reply) {
    json::Object out;
    out.add("description", reply.doc);
    if (reply.headers) {
      json::Object headers;
      for (const Member& row : *reply.headers) {
        json::Object header;
        header.add("description", row.doc);
        if (is_required(*reply.headers, row)) header.add("required", true);
        Member bare = row;
        bare.doc = {};
        header.add("schema", schemas_.of(bare));
        headers.add(std::string(row.name), std::move(header));
      }
      out.add("headers", std::move(headers));
    }
    if (!reply.media.empty())
      out.add("content", json::object({{reply.media, content_of(reply.type, reply.media)}}));
    return out;
  }

  json::Value responses_of(const Route& route) {
    const wire::Operation& operation = *route.operation;
    std::map<int, json::Value> all;
    for (const wire::Reply& reply : operation.replies) {
      if (!reply.status) continue;
      auto [known, added] = all.emplace(reply.status, reply_of(reply));
      if (added) continue;
      // Another media type of the same status.
      json::Value* content = known->second.find("content");
      CHECK(content && !reply.media.empty());
      content->object().set(std::string(reply.media), content_of(reply.type, reply.media));
    }
    if (all.empty()) mistakes_.insert(fmt::format("{} has no answer", operation.id));
    std::vector<int> errors{400, 429, 500, 503};
    if (!route.open || operation.basic) errors.push_back(401);
    if (!route.open) errors.push_back(403);
    if (route.pattern.contains('{')) errors.push_back(404);
    if (operation.body.present) errors.push_back(413);
    errors.insert(errors.end(), std::begin(operation.errors), std::end(operation.errors));
    for (int status : errors)
      if (status && !all.contains(status)) all[status] = refer_error(route, status);
    json::Object out;
    for (auto& [status, response] : all)
      out.add(std::to_string(status), std::move(response));
    return out;
  }

  json::Value refer_error(const Route& route, int status) {
    const wire::Dialect* dialect = router_.dialect_of(route.pattern);
    const wire::ErrorForm form =
        dialect && dialect->errors.shape ? dialect->errors : wire::ErrorForm{.shape = &kPlainError};
    std::string name = fmt::format("{}{}", form.shape->name, status);
    if (!errors_.contains(name)) {
      wire::Reply reply(status, wire::reason_phrase(status), *form.shape, form.media);
      json::Value response = reply_of(reply);
      if (status == 404 && form.plain_404)
        response.find("content")->object().add(std::string(wire::kPlainText),
                                               content_of(wire::Kind::octets, wire::kPlainText));
      errors_.emplace(name, std::move(response));
    }
    return json::object({{"$ref", "#/components/responses/" + name}});
  }

  const wire::Router& router_;
  const server::RoutePermissions& permissions_;
  Paths names_;
  SchemaPrinter schemas_;
  std::map<std::string, json::Value> errors_;
  std::set<std::string> ids_, mistakes_;
};

}  // namespace

const wire::ErrorForm kPlainErrors{.shape = &kPlainError, .tag = "server"};

Result<std::string> openapi(const wire::Router& router, const server::RoutePermissions& permissions,
                            std::string_view title) {
  return DocumentPrinter(router, permissions).print(title);
}

// `allow` is set when the path exists with other methods.
wire::Response plain_refusal(const wire::Request&, const Error& error, std::string_view allow) {
  int status = wire::code_status(error.code).http;
  if (!allow.empty()) status = 405;
  wire::Response r = wire::json_response(
      status, json::print(json::object({{"error", error.reason}, {"reason", error.message}})));
  if (!allow.empty()) r.headers.emplace_back("Allow", allow);
  return r;
}

}  // namespace pawl::cli
