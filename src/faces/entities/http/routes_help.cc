#include <fmt/format.h>

#include <algorithm>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"
#include "reference_text.h"

// Help topics: one for each section of the reference and one for each error code, as JSON or
// Markdown.

namespace pawl::entities {

namespace {

struct Chapter {
  std::string_view name;
  std::string_view synopsis;
  std::string_view heading;  // in docs/reference/entities.md
};
constexpr Chapter kChapters[] = {
    {"auth", "machine clients, tokens and the keys that sign them", "Tokens and keys"},
    {"cli", "the commands of pawl", "Command line"},
    {"cloudevents", "the events of the gRPC service", "gRPC"},
    {"config", "settings: flags, variables and the file", "Configuration"},
    {"config.auth", "who may call, and the keys of tokens", "Configuration of authentication"},
    {"config.database", "where data is kept", "Configuration of storage"},
    {"crud", "writing, reading and deleting entities", "HTTP"},
    {"errors", "the error codes and their statuses", "Errors"},
    {"grpc", "the CloudEvents service and compute members", "gRPC"},
    {"models", "schemas inferred from sample documents", "HTTP"},
    {"openapi", "every HTTP path; GET /openapi.json lists them as OpenAPI, GET /docs as a page",
     "HTTP"},
    {"quickstart", "from nothing to the first entity", "Quickstart"},
    {"run", "starting, stopping and checking the server", "Running"},
    {"search", "conditions, paths and operators", "Conditions"},
    {"telemetry", "metrics, probes and the log", "Telemetry"},
    {"workflows", "states, transitions, processors and criteria", "Workflows"},
};

struct Topic {
  std::string name;
  std::string synopsis;
  std::string text;  // the description
  std::vector<std::string> children{};
};

std::string_view section(std::string_view heading) {
  std::string mark = fmt::format("\n## {}\n", heading);
  size_t at = kReference.find(mark);
  if (at == kReference.npos) return {};
  std::string_view rest = kReference.substr(at + mark.size());
  rest = rest.substr(0, rest.find("\n## "));
  while (!rest.empty() && rest.front() == '\n')
    rest.remove_prefix(1);
  while (!rest.empty() && rest.back() == '\n')
    rest.remove_suffix(1);
  return rest;
}

std::vector<Topic> make_topics() {
  std::vector<Topic> out;
  for (const Chapter& c : kChapters) {
    Topic& topic = out.emplace_back(
        Topic{std::string(c.name), std::string(c.synopsis), std::string(section(c.heading))});
    for (const Chapter& other : kChapters)
      if (other.name.starts_with(fmt::format("{}.", c.name)))
        topic.children.emplace_back(other.name);
    if (c.name != "errors") continue;
    std::vector<Topic> codes;
    for (const ErrorCode& e : error_codes())
      codes.push_back(
          {fmt::format("errors.{}", e.code),
           fmt::format("an error with status {} {}", e.status, wire::reason_phrase(e.status)),
           fmt::format("A refusal with `properties.errorCode` `{}` has status {}; its `detail` "
                       "says what was wrong with this request.",
                       e.code, e.status)});
    std::sort(codes.begin(), codes.end(),
              [](const Topic& a, const Topic& b) { return a.name < b.name; });
    for (const Topic& t : codes)
      topic.children.push_back(t.name);
    out.insert(out.end(), codes.begin(), codes.end());
  }
  return out;
}

const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = make_topics();
  return all;
}

std::string markdown(const Topic& t) {
  return fmt::format("# {}\n\n## NAME\n\n{} — {}\n\n## DESCRIPTION\n\n{}\n", t.name, t.name,
                     t.synopsis, t.text);
}

json::Value describe(const Topic& t) {
  json::Array path, children, see_also;
  for (std::string_view rest = t.name; !rest.empty();) {
    size_t dot = rest.find('.');
    path.emplace_back(rest.substr(0, dot));
    rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
  }
  for (const std::string& c : t.children)
    children.emplace_back(c);
  if (path.size() > 1) see_also.push_back(path.front());
  json::Array sections{
      json::object({{"name", "NAME"}, {"body", fmt::format("{} — {}", t.name, t.synopsis)}}),
      json::object({{"name", "DESCRIPTION"}, {"body", t.text}})};
  json::Value out = json::object({
      {"topic", t.name},
      {"path", std::move(path)},
      {"title", fmt::format("{} — {}", t.name, t.synopsis)},
      {"synopsis", t.synopsis},
      {"body", markdown(t)},
      {"sections", std::move(sections)},
      {"see_also", std::move(see_also)},
      {"stability", "stable"},
      {"actions", json::Array()},
  });
  if (!children.empty()) out.object().add("children", std::move(children));
  return out;
}

wire::Response shown(std::string body, std::string_view type) {
  wire::Response response;
  response.headers.emplace_back("Content-Type", type);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.body = std::move(body);
  return response;
}

bool well_formed(std::string_view name) {
  auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (name.empty() || !plain(name.front()) || !plain(name.back())) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    if (!plain(c) && c != '.' && c != '_' && c != '-') return false;
    if (c == '.' && name[i - 1] == '.') return false;
  }
  return true;
}

Result<void> one_topic(const HttpExchangePtr& http) {
  std::string name = http->param(0);
  std::replace(name.begin(), name.end(), '/', '.');
  if (!well_formed(name))
    return bad_request(fmt::format(
        "'{}' is not the name of a topic: letters, digits, '_' and '-', separated by dots",
        http->param(0)));
  bool text = name.ends_with(".md");
  if (text || name.ends_with(".json")) name.resize(name.rfind('.'));
  for (const Topic& t : topics()) {
    if (t.name != name) continue;
    http->answer(text ? shown(markdown(t), "text/markdown; charset=utf-8")
                      : shown(json::print(describe(t)), "application/json"));
    return {};
  }
  return fail(Code::not_found, "HELP_TOPIC_NOT_FOUND",
              fmt::format("there is no topic '{}'; GET /help lists them", name));
}

Result<void> all_topics(const HttpExchangePtr& http) {
  json::Array list;
  for (const Topic& t : topics())
    list.push_back(describe(t));
  http->answer(shown(json::print(json::object(
                         {{"schema", 1}, {"version", kVersion}, {"topics", std::move(list)}})),
                     "application/json"));
  return {};
}

}  // namespace

void add_help_routes(RouteTable& routes) {
  for (bool root : {true, false}) {
    routes.add_async("GET", "/help", all_topics, "Every help topic.",
                     root ? http::kHelp : http::kApiHelp, true, root);
    routes.add_async("GET", "/help/{topic...}", one_topic,
                     "One help topic, by dots or slashes; .md for its text alone.",
                     root ? http::kHelpTopic : http::kApiHelpTopic, true, root);
  }
}

}  // namespace pawl::entities
