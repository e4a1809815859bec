// The routes of all faces as one trie of path segments. At each segment a literal is tried before a
// parameter and a parameter before "the rest"; the search backtracks when a branch has no match.

#include "wire/route.h"

#include <algorithm>
#include <map>

#include "json/text.h"

namespace pawl::wire {
namespace {

using Segments = std::vector<std::string_view>;

// "/a/b/" -> "a", "b", "": a trailing slash is a segment of its own, so "/a" and "/a/" differ.
Segments split(std::string_view path) {
  Segments segments;
  if (!path.empty() && path.front() == '/') path.remove_prefix(1);
  while (true) {
    size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}
bool is_rest(std::string_view segment) {
  return is_parameter(segment) && segment.ends_with("...}");
}

// A dialect covers its prefix and the paths below it: "/workflows" covers "/workflows/x", not
// "/workflowsx".
// A prefix that ends in a slash also covers the path without it: "/v1/" covers "/v1".
bool owns(std::string_view prefix, std::string_view path) {
  if (!path.starts_with(prefix)) {
    return prefix.size() == path.size() + 1 && prefix.back() == '/' && prefix.starts_with(path);
  }
  return prefix.empty() || prefix.back() == '/' || path.size() == prefix.size() ||
         path[prefix.size()] == '/';
}

// The error dialect for paths that belong to no face.
Response plain_refusal(const Error& error, std::string_view allow) {
  if (allow.empty() && error.code == Code::not_found)
    return text_response(404, "404 page not found\n");
  int status = allow.empty() ? code_status(error.code).http : 405;
  std::string body = "{\"error\":" + json::quote(error.reason) +
                     ",\"message\":" + json::quote(error.message) + "}";
  Response response = json_response(status, std::move(body));
  if (!allow.empty()) response.headers.emplace_back("Allow", allow);
  return response;
}

}  // namespace

// One position in the trie. `here` has the rows whose pattern ends at this node.
struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> parameter;
  std::map<std::string, const Route*, std::less<>> here;  // by method
  // By method: rows whose next and last segment is "{rest...}".
  std::map<std::string, const Route*, std::less<>> rest;

  Node* step(std::string_view segment) {
    if (is_parameter(segment)) {
      if (!parameter) parameter = std::make_unique<Node>();
      return parameter.get();
    }
    auto& next = literals[percent_decode(segment, false)];
    if (!next) next = std::make_unique<Node>();
    return next.get();
  }
};

namespace {

// One search down the trie. The first matching row with the method wins; the methods of all rows
// that match the path are collected for the `Allow` header.
template <class Node>
class Search {
 public:
  Search(std::string_view method, const Segments& segments)
      : method_(method), segments_(segments) {}

  // True when a row was found below `node` for the segments from `at` on. A row with another method
  // does not count: the search goes on, since a less specific pattern may have the method.
  bool walk(const Node& node, size_t at) {
    if (at == segments_.size()) return take(node.here);
    // Literals are compared decoded. Most segments have no escape and are not copied.
    std::string_view segment = segments_[at];
    std::string decoded;
    if (segment.find('%') != std::string_view::npos) {
      decoded = percent_decode(segment, false);
      segment = decoded;
    }
    if (auto next = node.literals.find(segment);
        next != node.literals.end() && walk(*next->second, at + 1))
      return true;
    // An empty segment is not a value: "/jobs//complete" matches nothing.
    if (node.parameter && !segment.empty()) {
      params.emplace_back(segment);
      if (walk(*node.parameter, at + 1)) return true;
      params.pop_back();
    }
    if (node.rest.empty()) return false;
    params.push_back(joined(at));
    if (take(node.rest)) return true;
    params.pop_back();
    return false;
  }

  const Route* route = nullptr;
  std::vector<std::string> params;
  std::map<std::string, bool, std::less<>> methods;

 private:
  bool take(const std::map<std::string, const Route*, std::less<>>& rows) {
    auto row = rows.find(method_);
    if (row == rows.end() && method_ == "HEAD") row = rows.find(std::string_view("GET"));
    if (row != rows.end()) {
      route = row->second;
      return true;
    }
    for (const auto& [method, unused] : rows)
      methods[method] = true;
    return false;
  }

  std::string joined(size_t from) const {
    std::string out;
    for (size_t i = from; i < segments_.size(); ++i) {
      if (i > from) out.push_back('/');
      out += percent_decode(segments_[i], false);
    }
    return out;
  }

  std::string_view method_;
  const Segments& segments_;
};

}  // namespace

void Router::add(std::vector<Route> routes, Dialect dialect) {
  std::vector<Dialect> dialects;
  dialects.push_back(std::move(dialect));
  add(std::move(routes), std::move(dialects));
}

void Router::add(std::vector<Route> routes, std::vector<Dialect> dialects) {
  if (!root_) root_ = std::make_shared<Node>();
  for (Route& row : routes) {
    auto route = std::make_shared<const Route>(std::move(row));
    Node* node = root_.get();
    bool rest = false;
    for (std::string_view segment : split(route->pattern)) {
      CHECK(!rest);  // "{rest...}" must be the last segment
      rest = is_rest(segment);
      if (!rest) node = node->step(segment);
    }
    auto& rows = rest ? node->rest : node->here;
    CHECK(rows.emplace(route->method, route.get()).second);  // no two rows share method and pattern
    routes_.push_back(std::move(route));
  }
  // Sorted again after each add(), because faces are added one after the other and the longest
  // prefix must come first.
  for (Dialect& dialect : dialects)
    dialects_.push_back(std::move(dialect));
  std::stable_sort(dialects_.begin(), dialects_.end(), [](const Dialect& a, const Dialect& b) {
    return a.prefix.size() > b.prefix.size();
  });
}

// `allow` lists the methods of every row that matches the path, in alphabetical order; HEAD belongs
// to every GET.
Match Router::find(std::string_view method, std::string_view path) const {
  Match match;
  if (!root_) return match;
  Segments segments = split(path);
  Search<Node> search(method, segments);
  if (search.walk(*root_, 0)) {
    match.route = search.route;
    match.params = std::move(search.params);
    return match;
  }
  if (search.methods.contains("GET")) search.methods["HEAD"] = true;
  for (const auto& [known, unused] : search.methods) {
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += known;
  }
  return match;
}

const Dialect* Router::dialect_of(std::string_view path) const {
  // "//v1/x" is no route, but whoever asked for it speaks the dialect of "/v1".
  while (path.starts_with("//"))
    path.remove_prefix(1);
  for (const Dialect& dialect : dialects_) {
    if (owns(dialect.prefix, path)) return &dialect;
  }
  return nullptr;
}

Response Router::refuse(const Request& request, const Error& error, std::string_view allow) const {
  const Dialect* dialect = dialect_of(request.path);
  if (!dialect || !dialect->refuse) return plain_refusal(error, allow);
  return dialect->refuse(request, error, allow);
}

Response Router::refuse_unmatched(const Request& request, const Match& match) const {
  if (match.allow.empty()) {
    return refuse(request, {Code::not_found, "NOT_FOUND", "no route has the path " + request.path});
  }
  return refuse(request,
                {Code::unsupported, "METHOD_NOT_ALLOWED",
                 request.path + " does not take " + request.method + "; it takes " + match.allow},
                match.allow);
}

std::optional<Cors> Router::cors(const Request& request) const {
  const Dialect* dialect = dialect_of(request.path);
  if (!dialect || !dialect->cors) return std::nullopt;
  return dialect->cors(request.header("Origin"));
}

void Router::dispatch(Request request, Respond respond) const {
  Match match = find(request.method, request.path);
  if (!match.route) return respond(refuse_unmatched(request, match));
  request.params = std::move(match.params);
  match.route->handle(std::move(request), std::move(respond));
}

std::vector<const Route*> Router::rows() const {
  std::vector<const Route*> rows;
  for (const auto& route : routes_)
    rows.push_back(route.get());
  return rows;
}

}  // namespace pawl::wire
