#pragma once
// The front stands between the sockets and the routes. For each request it refuses what a browser
// sends for another web site, answers CORS, names the caller, checks that the caller has the
// permission of the route, and runs the route's handler. To each answer it adds the request id and,
// after a failure, a ticket; then it records the metrics.

#include "server/auth/auth.h"
#include "server/auth/operations.h"
#include "server/http/browser_guard.h"
#include "server/http/server.h"
#include "server/ops/metrics.h"

namespace pawl::server {

struct FrontOptions {
  bool log_requests = false;  // log every request at level info; failures are always logged
  // The permission that each route needs. A route that is not in the map is open when it says so,
  // and needs any valid token when it does not.
  RoutePermissions permissions{};
  BrowserRules browsers{};
  // Whether requests without a valid token are limited by address, in mode jwt. Health probes are
  // not, so that nobody makes a server look ill.
  bool limit_strangers = true;
  // Called before a request that leases jobs or waits for them: an error refuses it. May be empty.
  std::function<Result<void>(const Caller&)> before_poll{};
};

// The router, the authenticator and the metrics must outlive the front.
class HttpFront {
 public:
  HttpFront(const wire::Router& router, Authenticator& authenticator, Metrics& metrics,
            FrontOptions options = {});

  wire::Handler handler();
  // For HttpOptions::judge_head: names the caller of a request by its head. Refuses a request
  // without a route or without a caller, and one that exceeds a limit of its tenant.
  std::function<Judged(wire::Request&)> judge();
  // For HttpOptions::refuse: words a refusal in the dialect of its path, with CORS headers.
  std::function<wire::Response(const wire::Request&, const HttpFault&)> refuser();

 private:
  struct Trace;
  using TracePtr = std::shared_ptr<Trace>;  // shared by the request and its answer
  class Back;
  void handle(wire::Request request, wire::Respond respond);
  void run(TracePtr trace, wire::Request request, wire::Respond respond);
  Judged judge(wire::Request& request);
  // The CORS headers for the request. Only a web site that may call gets leave to read the answer.
  std::optional<wire::Cors> cors_for(const wire::Request& request) const;
  // Names the caller of the request. Returns the refusal when there is one: 401, 403 or 429.
  std::optional<wire::Response> admit(wire::Request& request, Trace& trace);
  // Counts a request without a valid token. Returns the refusal when its address sends too many.
  std::optional<wire::Response> count_stranger(const wire::Request& request, Trace& trace);
  // The limits of the tenant that the request reaches. Returns the refusal.
  std::optional<wire::Response> check_limits(const wire::Request& request, const Trace& trace);
  TracePtr trace_of(const wire::Request& request);
  // The answer to a request that its head decides: a preflight, no route, no caller. Otherwise sets
  // the caller of the request and returns nothing.
  std::optional<wire::Response> decide_by_head(wire::Request& request, Trace& trace);
  void finish(Trace& trace, wire::Response& response);
  // Counts the stream of the response for its tenant and ends it with its token.
  void tie_stream(const Trace& trace, wire::Response& response);
  void log_answer(const Trace& trace, wire::Response& response, Time took) const;

  const wire::Router& router_;
  Authenticator& authenticator_;
  const FrontOptions options_;
  const BrowserGuard guard_;
  struct RouteRow {
    Histogram* duration;
    Permission needs;
    bool polls;  // leases jobs
  };
  std::unordered_map<const wire::Route*, RouteRow> rows_;
  Histogram& unmatched_;
  std::array<Counter*, 6> by_class_{};  // by class of status, 1xx to 5xx
  Counter& refusals_;
  Gauge& in_flight_;
};

}  // namespace pawl::server
