#pragma once
// The front is what every API request passes between the socket and its route: CORS, who is
// calling, the route's own handler, and on the way back the ticket of a failure, the request id and
// the measures.

#include "server/auth/auth.h"
#include "server/http/server.h"
#include "server/ops/metrics.h"

namespace pawl::server {

struct FrontOptions {
  bool log_requests = false;  // one line a request at level info; failures are always logged
};

// All three must outlive the front.
class HttpFront {
 public:
  HttpFront(const wire::Router& router, Authenticator& authenticator, Metrics& metrics,
            FrontOptions options = {});

  wire::Handler handler();
  // For HttpOptions::refuse: the corner's own words, with CORS.
  std::function<wire::Response(const wire::Request&, const HttpFault&)> refuser();

 private:
  struct Trace;
  class Back;
  void handle(wire::Request request, wire::Respond respond);
  void finish(Trace& trace, wire::Response& response);

  const wire::Router& router_;
  Authenticator& authenticator_;
  const FrontOptions options_;
  std::map<const wire::Route*, Histogram*> durations_;
  Histogram& unmatched_;
  std::array<Counter*, 6> by_class_{};  // of status: 1xx to 5xx
  Counter& refusals_;
  Gauge& in_flight_;
};

}  // namespace pawl::server
