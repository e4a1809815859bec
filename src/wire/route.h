#pragma once
// A route is one row of a face's table: method, pattern, handler, documentation. The OpenAPI
// document and the reference are printed from the rows.

#include <span>

#include "wire/message.h"

namespace pawl::wire {

using Handler = std::function<void(Request request, Respond respond)>;

struct Route {
  std::string method;
  std::string pattern;  // "/v1/jobs/{id}/complete"; "{rest...}" at the end takes all that is left
  Handler handle;
  std::string doc;    // one sentence for the reference
  bool open = false;  // true: no authentication (health, token endpoints)
};

// What a corner answers to browsers from one origin. An empty `allow_origin` means: not this
// origin, no CORS header is sent.
struct Cors {
  std::string allow_origin;  // "*" or the origin itself
  std::string methods;
  std::string headers;
  int max_age_seconds = 0;
  int preflight_status = 204;
  bool vary_origin = false;  // `Vary: Origin` on every reply
};

// What a face says about its own corner: which prefix is its own, and how it words the errors that
// happen before a handler runs (not found, wrong method, too large, unauthenticated, overload).
struct Dialect {
  std::string prefix;  // "/api/", "/v1/", "/workflows"
  // `allow` lists the methods that the path has, for 405.
  std::function<Response(const Request&, const Error&, std::string_view allow)> refuse;
  // The policy for an origin (empty when the request names none); unset: no CORS in this corner.
  std::function<Cors(std::string_view origin)> cors{};
};

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> params;
  std::string allow;  // when the path is known under other methods only
};

// Finds the row for a method and a path: literal segments win over parameters. Built once at start.
class Router {
 public:
  Router() = default;
  void add(std::vector<Route> routes, Dialect dialect);
  // A face with several corners: of all dialects known, the longest prefix of the path decides.
  void add(std::vector<Route> routes, std::vector<Dialect> dialects);
  Match find(std::string_view method, std::string_view path) const;
  // The whole walk: matches, then handles or refuses in the corner's dialect. HEAD is GET without
  // the body; OPTIONS of a known path answers CORS by the server, not here.
  void dispatch(Request request, Respond respond) const;
  Response refuse(const Request& request, const Error& error, std::string_view allow = {}) const;
  // Refuses a path that `find` did not match: 404, or 405 when other methods have it.
  Response refuse_unmatched(const Request& request, const Match& match) const;
  // The CORS policy of the path's corner for the request's origin; nothing when it has none.
  std::optional<Cors> cors(const Request& request) const;
  std::vector<const Route*> rows() const;

 private:
  struct Node;
  const Dialect* corner(std::string_view path) const;
  // Shared, because a Router is copied as a value and the rows must stay where `Match` points.
  std::vector<std::shared_ptr<const Route>> routes_;
  std::vector<Dialect> corners_;  // longest prefix first
  std::shared_ptr<Node> root_;
};

}  // namespace pawl::wire
