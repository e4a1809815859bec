// The path of a request to its route, and of its answer back.

#include "server/http/front.h"

#include <time.h>

#include <exception>
#include <random>

#include "base/dice.h"
#include "base/log.h"

namespace pawl::server {
namespace {

constexpr size_t kRequestIdBytes = 128;
constexpr size_t kLoggedBodyBytes = 500;
// For web sites that may call paths whose face has no policy of its own.
constexpr char kCorsMethods[] = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
constexpr char kCorsHeaders[] =
    "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID";

Time steady_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

// A ticket names a failure in the log. It is random and never stored, so it needs no input's dice.
std::string new_ticket() {
  thread_local Dice dice = [] {
    std::random_device device;
    auto draw = [&] { return static_cast<uint64_t>(device()) << 32 | device(); };
    return Dice({draw(), draw()});
  }();
  return dice.uuid4();
}

void apply_cors(wire::Response& response, const wire::Cors& cors) {
  if (!cors.allow_origin.empty())
    response.headers.emplace_back("Access-Control-Allow-Origin", cors.allow_origin);
  if (cors.vary_origin) response.headers.emplace_back("Vary", "Origin");
}

bool is_preflight(const wire::Request& request) {
  return request.method == "OPTIONS" && request.has_header("Access-Control-Request-Method");
}

wire::Response preflight(const wire::Cors& cors) {
  wire::Response response;
  response.status = cors.preflight_status;
  if (!cors.allow_origin.empty()) {
    response.headers.emplace_back("Access-Control-Allow-Methods", cors.methods);
    response.headers.emplace_back("Access-Control-Allow-Headers", cors.headers);
    response.headers.emplace_back("Access-Control-Max-Age", std::to_string(cors.max_age_seconds));
  }
  return response;
}

}  // namespace

// The part of a request that is kept until its answer is sent.
struct HttpFront::Trace {
  Time began = 0;
  Histogram* duration = nullptr;
  std::string method;
  std::string path;
  std::string request_id;
  std::optional<wire::Cors> cors;
  std::string client;  // the machine client of the caller; empty: none
};

// A stream of a machine client. It ends when the client's tokens end.
class ClientStream final : public wire::Socket {
 public:
  ClientStream(ClientStreams& streams, std::string_view client,
               std::shared_ptr<wire::Stream> stream, std::shared_ptr<wire::Socket> socket)
      : streams_(streams), stream_(std::move(stream)), socket_(std::move(socket)) {
    id_ = streams_.add(client, [stream = stream_] { stream->end(); });
  }
  ~ClientStream() override { streams_.remove(id_); }
  bool write(BytesView piece) override { return stream_->write(piece); }
  void end() override { stream_->end(); }
  size_t buffered() const override { return stream_->buffered(); }
  void on_close(std::function<void()> closed) override { stream_->on_close(std::move(closed)); }
  void on_message(std::function<void(std::string)> text) override {
    if (socket_) socket_->on_message(std::move(text));
  }

 private:
  ClientStreams& streams_;
  const std::shared_ptr<wire::Stream> stream_;  // shared with the connection
  const std::shared_ptr<wire::Socket> socket_;  // the same object when it is a WebSocket, else null
  uint64_t id_ = 0;
};

// Makes the streams of the response end with the tokens of the client.
static void tie_to_client(ClientStreams& streams, const std::string& client,
                          wire::Response& response) {
  if (response.stream)
    response.stream = [&streams, client,
                       begin = std::move(response.stream)](std::shared_ptr<wire::Stream> stream) {
      begin(std::make_shared<ClientStream>(streams, client, std::move(stream), nullptr));
    };
  if (response.socket)
    response.socket = [&streams, client,
                       begin = std::move(response.socket)](std::shared_ptr<wire::Socket> socket) {
      begin(std::make_shared<ClientStream>(streams, client, socket, socket));
    };
}

// Sends the answer. When the handler drops it without answering, the destructor answers 500.
class HttpFront::Back {
 public:
  Back(HttpFront& front, Trace trace, wire::Respond respond)
      : front_(&front), trace_(std::move(trace)), respond_(std::move(respond)) {}
  Back(Back&& other) noexcept
      : front_(std::exchange(other.front_, nullptr)),
        trace_(std::move(other.trace_)),
        respond_(std::move(other.respond_)) {}
  Back& operator=(Back&&) = delete;
  ~Back() {
    if (front_)
      (*this)(wire::json_response(
          500, R"({"error":"NO_ANSWER","message":"the handler gave no answer"})"));
  }
  void operator()(wire::Response response) {
    HttpFront* front = std::exchange(front_, nullptr);
    if (!front) return;
    front->finish(trace_, response);
    respond_(std::move(response));
  }

 private:
  HttpFront* front_;
  Trace trace_;
  wire::Respond respond_;
};

HttpFront::HttpFront(const wire::Router& router, Authenticator& authenticator, Metrics& metrics,
                     FrontOptions options)
    : router_(router),
      authenticator_(authenticator),
      options_(std::move(options)),
      guard_(options_.browsers),
      unmatched_(metrics.histogram("pawl_http_request_seconds", {"", "unmatched"})),
      refusals_(metrics.counter("pawl_auth_refusals_total")),
      in_flight_(metrics.gauge("pawl_http_requests_in_flight")) {
  for (const wire::Route* route : router.rows()) {
    auto known = options_.permissions.find(route);
    Permission by_flag = route->open ? Permission::open : Permission::signed_in;
    rows_[route] = {
        &metrics.histogram("pawl_http_request_seconds", {route->method, route->pattern}),
        known == options_.permissions.end() ? by_flag : known->second};
  }
  for (size_t i = 1; i <= 5; ++i)
    by_class_[i] = &metrics.counter("pawl_http_responses_total", {std::to_string(i) + "xx"});
}

wire::Handler HttpFront::handler() {
  return [this](wire::Request request, wire::Respond respond) {
    handle(std::move(request), std::move(respond));
  };
}

std::function<wire::Response(const wire::Request&, const HttpFault&)> HttpFront::refuser() {
  return [this](const wire::Request& request, const HttpFault& fault) {
    wire::Response response = router_.refuse(request, fault.error);
    // The dialect of the path words the refusal. It may also choose another status for a body that
    // is too large.
    if (fault.error.code != Code::too_large || response.status < 400)
      response.status = fault.status;
    if (auto cors = cors_for(request)) apply_cors(response, *cors);
    return response;
  };
}

HttpFront::Trace HttpFront::trace_of(const wire::Request& request, const wire::Match& match) {
  Trace trace;
  trace.began = steady_now();
  trace.cors = cors_for(request);
  trace.request_id = request.header("X-Request-Id").substr(0, kRequestIdBytes);
  trace.method = request.method;
  trace.path = request.path;
  trace.duration = match.route ? rows_.at(match.route).duration : &unmatched_;
  return trace;
}

std::optional<wire::Response> HttpFront::decide_by_head(wire::Request& request,
                                                        const wire::Match& match, Trace& trace) {
  if (auto fault = guard_.check(request)) {
    wire::Response refusal = router_.refuse(request, fault->error);
    refusal.status = fault->status;
    return refusal;
  }
  if (!match.route && trace.cors && is_preflight(request)) return preflight(*trace.cors);
  if (!match.route) return router_.refuse_unmatched(request, match);
  const Permission needs = rows_.at(match.route).needs;
  if (needs == Permission::open) return std::nullopt;
  return admit(request, needs, trace.client);
}

std::function<std::optional<wire::Response>(const wire::Request&)> HttpFront::head_refuser() {
  return [this](const wire::Request& head) -> std::optional<wire::Response> {
    wire::Match match = router_.find(head.method, head.path);
    Trace trace = trace_of(head, match);
    // A copy: the caller is set again when the body is complete. The body so far is one read.
    wire::Request request = head;
    std::optional<wire::Response> refusal = decide_by_head(request, match, trace);
    if (!refusal) return std::nullopt;
    in_flight_.add(1);
    finish(trace, *refusal);
    return refusal;
  };
}

void HttpFront::handle(wire::Request request, wire::Respond respond) {
  wire::Match match = router_.find(request.method, request.path);
  Trace trace = trace_of(request, match);
  in_flight_.add(1);
  std::optional<wire::Response> early = decide_by_head(request, match, trace);
  Back back(*this, std::move(trace), std::move(respond));
  if (early) return back(*std::move(early));
  request.params = std::move(match.params);
  try {
    match.route->handle(std::move(request), std::move(back));
  } catch (const std::exception& thrown) {
    // Our handlers do not throw, but the standard library may, for example out of memory. The
    // dropped answer has sent 500.
    log(Level::error, "a handler threw",
        {{"what", thrown.what()}, {"route", match.route->pattern}});
  }
}

std::optional<wire::Cors> HttpFront::cors_for(const wire::Request& request) const {
  std::optional<wire::Cors> cors = router_.cors(request);
  if (guard_.allows_all()) return cors;
  std::string_view origin = request.header("Origin");
  if (!guard_.allows(origin)) {
    if (cors) cors->allow_origin.clear();
    return cors;
  }
  if (!cors) cors = wire::Cors{.methods = kCorsMethods, .headers = kCorsHeaders};
  cors->allow_origin = origin;
  cors->vary_origin = true;
  return cors;
}

std::optional<wire::Response> HttpFront::admit(wire::Request& request, Permission needs,
                                               std::string& client) {
  Result<Admitted> admitted = authenticator_.admit(request.header("Authorization"));
  if (!admitted) {
    refusals_.add();
    wire::Response refusal = router_.refuse(request, admitted.error());
    if (!wire::find_header(refusal.headers, "WWW-Authenticate"))
      refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  request.caller = std::move(admitted->caller);
  client = std::move(admitted->client);
  if (admitted->granted.has(needs)) return std::nullopt;
  refusals_.add();
  return router_.refuse(request, missing_permission(needs));
}

void HttpFront::finish(Trace& trace, wire::Response& response) {
  in_flight_.add(-1);
  Time took = steady_now() - trace.began;
  trace.duration->observe(took);
  size_t status_class = static_cast<size_t>(response.status) / 100;
  if (status_class >= 1 && status_class <= 5) by_class_[status_class]->add();
  if (!trace.client.empty()) tie_to_client(authenticator_.streams(), trace.client, response);
  if (trace.cors) apply_cors(response, *trace.cors);
  const bool retry = response.status == 429 || response.status == 503;
  if (retry && !wire::find_header(response.headers, "Retry-After"))
    response.headers.emplace_back("Retry-After", "1");
  if (!trace.request_id.empty()) response.headers.emplace_back("X-Request-Id", trace.request_id);
  if (response.status >= 500) {
    const std::string* given = wire::find_header(response.headers, "Pawl-Ticket");
    std::string ticket = given ? *given : new_ticket();
    if (!given) response.headers.emplace_back("Pawl-Ticket", ticket);
    // A 503 is not logged as a failure: under load there are many of them.
    if (response.status == 503) {
      log(Level::info, "request put off",
          {{"ticket", ticket},
           {"method", trace.method},
           {"path", trace.path},
           {"status", response.status},
           {"request_id", trace.request_id}});
      return;
    }
    log(Level::error, "request failed",
        {{"ticket", ticket},
         {"method", trace.method},
         {"path", trace.path},
         {"status", response.status},
         {"request_id", trace.request_id},
         {"body", std::string_view(response.body).substr(0, kLoggedBodyBytes)}});
  } else if (options_.log_requests || logs(Level::debug)) {
    log(options_.log_requests ? Level::info : Level::debug, "request",
        {{"method", trace.method},
         {"path", trace.path},
         {"status", response.status},
         {"us", took / kMicrosecond},
         {"request_id", trace.request_id}});
  }
}

}  // namespace pawl::server
