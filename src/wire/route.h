#pragma once
// A route is one row of a face's table: method, pattern, handler, documentation, and the operation
// with its parameters and shapes. The OpenAPI document is printed from the rows.

#include <span>

#include "wire/message.h"
#include "wire/operation.h"

namespace pawl::wire {

using Handler = std::function<void(Request request, Respond respond)>;

struct Route {
  std::string method;
  std::string pattern;  // "/v1/jobs/{id}/complete"; a final "{rest...}" matches all that is left
  Handler handle;
  std::string doc;  // one sentence for the reference
  // Null: a second form of another route, which the OpenAPI document leaves out.
  const Operation* operation = nullptr;
  bool open = false;  // true: no authentication (health, token endpoints)
  // True: the handler may read many rows or compute for long. It runs on a thread for long reads
  // and not on the I/O thread, which would serve nobody else meanwhile.
  bool slow = false;
};

inline Route open(Route route) {
  route.open = true;
  return route;
}
inline Route slow(Route route) {
  route.slow = true;
  return route;
}

// The CORS answer for one origin. With an empty `allow_origin` no CORS header is sent.
struct Cors {
  std::string allow_origin;  // "*" or the origin itself
  std::string methods;
  std::string headers;
  int max_age_seconds = 0;
  int preflight_status = 204;
  bool vary_origin = false;  // `Vary: Origin` on every reply
};

// A dialect covers the paths below one prefix. It words the errors that happen there before a
// handler runs: not found, wrong method, too large, unauthenticated, overload.
struct Dialect {
  std::string prefix;  // "/api/", "/v1/", "/workflows"
  // Makes the answer. `allow` lists the methods of the path for a 405 answer, and is empty
  // otherwise.
  std::function<Response(const Request&, const Error&, std::string_view allow)> refuse;
  // Returns the CORS policy for an origin (empty when the request names none). Unset: no CORS here.
  std::function<Cors(std::string_view origin)> cors{};
  ErrorForm errors{};  // how its answers look, for the OpenAPI document
};

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> params;
  std::string allow;  // set when the path exists with other methods only
};

// Finds the row for a method and a path. Literal segments win over parameters. Built once at start.
class Router {
 public:
  Router() = default;
  void add(std::vector<Route> routes, Dialect dialect);
  // Adds routes and the dialects of their prefixes. The longest prefix of a path decides its
  // dialect.
  void add(std::vector<Route> routes, std::vector<Dialect> dialects);
  Match find(std::string_view method, std::string_view path) const;
  // Matches the request and calls its handler, or refuses it in the dialect of its prefix. HEAD is
  // handled as GET without the body. CORS preflight (OPTIONS) is answered by the server, not here.
  void dispatch(Request request, Respond respond) const;
  Response refuse(const Request& request, const Error& error, std::string_view allow = {}) const;
  // Refuses a request that find() did not match: 404, or 405 when the path has other methods.
  Response refuse_unmatched(const Request& request, const Match& match) const;
  // Returns the CORS policy for the request's path and origin, if there is one.
  std::optional<Cors> cors(const Request& request) const;
  std::vector<const Route*> rows() const;
  // The dialect of the longest prefix that covers the path; null when none does.
  const Dialect* dialect_of(std::string_view path) const;

 private:
  struct Node;
  // Shared, because a Router is copied as a value and `Match` points at the rows.
  std::vector<std::shared_ptr<const Route>> routes_;
  std::vector<Dialect> dialects_;  // longest prefix first
  std::shared_ptr<Node> root_;
};

}  // namespace pawl::wire
