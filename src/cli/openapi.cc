#include "cli/openapi.h"

#include <map>

#include "json/text.h"
#include "pawl/version.h"

namespace pawl::cli {

// Paths, methods and one sentence each. Bodies are described in the reference, not here.
std::string openapi(const wire::Router& router) {
  json::Object paths;
  for (const wire::Route* route : router.rows()) {
    std::string pattern = route->pattern;
    json::Array params;
    for (size_t at = pattern.find('{'); at != std::string::npos; at = pattern.find('{', at + 1)) {
      std::string name = pattern.substr(at + 1, pattern.find('}', at) - at - 1);
      // "{rest...}" is our own notation; OpenAPI knows only "{rest}".
      if (name.ends_with("...")) {
        name.resize(name.size() - 3);
        pattern.replace(at, name.size() + 5, "{" + name + "}");
      }
      params.push_back(json::object({{"name", name},
                                     {"in", "path"},
                                     {"required", true},
                                     {"schema", json::object({{"type", "string"}})}}));
    }
    json::Object operation;
    operation.add("summary", route->doc);
    if (!params.empty()) operation.add("parameters", std::move(params));
    operation.add(
        "responses",
        json::object({{"default", json::object({{"description", "see the reference"}})}}));
    std::string method = route->method;
    for (char& c : method)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    json::Value* entry = paths.find(pattern);
    if (!entry) entry = &paths.add(pattern, json::Object{});
    entry->object().set(method, std::move(operation));
  }
  return json::print(
      json::object({{"openapi", "3.1.0"},
                    {"info", json::object({{"title", "Pawl"}, {"version", PAWL_VERSION}})},
                    {"paths", std::move(paths)}}));
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
