// The path of a request to its route, and of its answer back.

#include "server/http/front.h"

#include <exception>
#include <random>

#include "base/dice.h"
#include "base/log.h"
#include "runtime/monotonic.h"

namespace pawl::server {
namespace {

constexpr size_t kRequestIdBytes = 128;
constexpr size_t kLoggedBodyBytes = 500;
// For web sites that may call paths whose face has no policy of its own.
constexpr char kCorsMethods[] = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
constexpr char kCorsHeaders[] =
    "Accept, Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID";

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
  wire::Match match;
  std::string client;      // the machine client of the caller; empty: none
  std::string generation;  // of the client's secret
  Time until = INT64_MAX;  // when the caller's token expires
  TenantPtr tenant;        // of the caller; null: not known
  bool close = false;      // the refusal ends the connection
};

// A stream of a caller: counted for its tenant until it is over, and ended with its token.
class CallerStream final : public wire::Socket {
 public:
  CallerStream(TokenStreams& streams, const std::string& client, Time until,
               std::shared_ptr<StreamSeat> seat, std::shared_ptr<wire::Stream> stream,
               std::shared_ptr<wire::Socket> socket)
      : streams_(streams),
        seat_(std::move(seat)),
        stream_(std::move(stream)),
        socket_(std::move(socket)) {
    if (until != INT64_MAX)
      id_ = streams_.add(client, until, [stream = stream_] { stream->end(); });
    on_close({});
  }
  ~CallerStream() override {
    if (id_) streams_.remove(id_);
  }
  bool write(BytesView piece) override { return stream_->write(piece); }
  void end() override { stream_->end(); }
  void cut() override { stream_->cut(); }
  size_t buffered() const override { return stream_->buffered(); }
  // The seat is free when the connection is done, even if the writer keeps the stream.
  void on_close(std::function<void()> closed) override {
    stream_->on_close([seat = seat_, closed = std::move(closed)] {
      seat->release();
      if (closed) closed();
    });
  }
  void on_message(std::function<void(std::string)> text) override {
    if (socket_) socket_->on_message(std::move(text));
  }

 private:
  TokenStreams& streams_;
  const std::shared_ptr<StreamSeat> seat_;      // shared with the callback of the connection
  const std::shared_ptr<wire::Stream> stream_;  // shared with the connection
  const std::shared_ptr<wire::Socket> socket_;  // the same object when it is a WebSocket, else null
  uint64_t id_ = 0;
};

// Sends the answer. When the handler drops it without answering, the destructor answers 500.
class HttpFront::Back {
 public:
  Back(HttpFront& front, TracePtr trace, wire::Respond respond)
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
    front->finish(*trace_, response);
    respond_(std::move(response));
  }

 private:
  HttpFront* front_;
  TracePtr trace_;
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
        known == options_.permissions.end() ? by_flag : known->second, leases_jobs(route->pattern)};
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

HttpFront::TracePtr HttpFront::trace_of(const wire::Request& request) {
  auto trace = std::make_shared<Trace>();
  trace->match = router_.find(request.method, request.path);
  trace->began = monotonic_now();
  trace->cors = cors_for(request);
  trace->request_id = request.header("X-Request-Id").substr(0, kRequestIdBytes);
  trace->method = request.method;
  trace->path = request.path;
  trace->duration = trace->match.route ? rows_.at(trace->match.route).duration : &unmatched_;
  return trace;
}

std::optional<wire::Response> HttpFront::decide_by_head(wire::Request& request, Trace& trace) {
  if (auto fault = guard_.check(request)) {
    wire::Response refusal = router_.refuse(request, fault->error);
    refusal.status = fault->status;
    return refusal;
  }
  const wire::Match& match = trace.match;
  if (!match.route && trace.cors && is_preflight(request)) return preflight(*trace.cors);
  const bool open = match.route && rows_.at(match.route).needs == Permission::open;
  if (!match.route || open) {
    if (auto refusal = count_stranger(request, trace)) return refusal;
    if (open) return std::nullopt;
    return router_.refuse_unmatched(request, match);
  }
  if (auto refusal = admit(request, trace)) return refusal;
  return check_limits(request, trace);
}

std::optional<wire::Response> HttpFront::count_stranger(const wire::Request& request,
                                                        Trace& trace) {
  const bool counted_here = options_.limit_strangers && request.peer;
  if (authenticator_.mode() == AuthMode::none || !counted_here) return std::nullopt;
  auto counted = authenticator_.tenants().count_stranger(network_of(request.peer->address()));
  if (counted) return std::nullopt;
  trace.close = true;
  return router_.refuse(request, counted.error());
}

// A tenant that stores too much may still read, delete, finish its work and operate.
static bool stores_more(Permission needs, std::string_view method) {
  if (method == "GET" || method == "HEAD" || method == "DELETE") return false;
  return adds_data(needs);
}

std::optional<wire::Response> HttpFront::check_limits(const wire::Request& request,
                                                      const Trace& trace) {
  Tenants& tenants = authenticator_.tenants();
  const RouteRow& row = rows_.at(trace.match.route);
  Result<void> good = tenants.count_request(trace.tenant);
  if (good && trace.tenant->stores_too_much() && stores_more(row.needs, request.method))
    good = fail(tenants.refuse(Limit::bytes));
  if (good && row.polls && options_.before_poll) {
    good = options_.before_poll(request.caller);
    if (!good) tenants.count_refusal(good.error());
  }
  if (good) return std::nullopt;
  return router_.refuse(request, good.error());
}

std::function<Judged(wire::Request&)> HttpFront::judge() {
  return [this](wire::Request& request) { return judge(request); };
}

Judged HttpFront::judge(wire::Request& request) {
  TracePtr trace = trace_of(request);
  std::optional<wire::Response> refusal = decide_by_head(request, *trace);
  if (refusal) {
    in_flight_.add(1);
    finish(*trace, *refusal);
    return {std::move(refusal), trace->close, trace->tenant, {}};
  }
  TenantPtr tenant = trace->tenant;
  auto handle = [this, trace = std::move(trace)](wire::Request complete,
                                                 wire::Respond respond) mutable {
    run(std::move(trace), std::move(complete), std::move(respond));
  };
  return {.tenant = std::move(tenant), .handle = std::move(handle)};
}

void HttpFront::handle(wire::Request request, wire::Respond respond) {
  Judged judged = judge(request);
  if (judged.refusal) return respond(*std::move(judged.refusal));
  judged.handle(std::move(request), std::move(respond));
}

void HttpFront::run(TracePtr trace, wire::Request request, wire::Respond respond) {
  trace->began = monotonic_now();  // the body came after the head
  in_flight_.add(1);
  const wire::Route& route = *trace->match.route;
  request.params = std::move(trace->match.params);
  try {
    route.handle(std::move(request), Back(*this, std::move(trace), std::move(respond)));
  } catch (const std::exception& thrown) {
    // Our handlers do not throw, but the standard library may, for example out of memory. The
    // dropped answer has sent 500.
    log(Level::error, "a handler threw", {{"what", thrown.what()}, {"route", route.pattern}});
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

std::optional<wire::Response> HttpFront::admit(wire::Request& request, Trace& trace) {
  const Permission needs = rows_.at(trace.match.route).needs;
  Result<Admitted> admitted = authenticator_.admit(request.header("Authorization"));
  if (!admitted) {
    refusals_.add();
    if (auto refusal = count_stranger(request, trace)) return refusal;
    wire::Response refusal = router_.refuse(request, admitted.error());
    if (!wire::find_header(refusal.headers, "WWW-Authenticate"))
      refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refusal;
  }
  request.caller = std::move(admitted->caller);
  trace.client = std::move(admitted->client);
  trace.until = admitted->until;
  trace.tenant = std::move(admitted->tenant);
  trace.generation = std::move(admitted->generation);
  if (admitted->granted.has(needs)) return std::nullopt;
  refusals_.add();
  return router_.refuse(request, missing_permission(needs));
}

void HttpFront::tie_stream(const Trace& trace, wire::Response& response) {
  Result<std::shared_ptr<StreamSeat>> seat = authenticator_.tenants().open_stream(trace.tenant);
  if (!seat) {
    wire::Request request;
    request.method = trace.method;
    request.path = trace.path;
    response = router_.refuse(request, seat.error());
    return;
  }
  // A stream may begin long after its request was admitted, behind slow answers of the same
  // connection: it ends at once when the client is gone by then.
  auto tied = [&auth = authenticator_, client = trace.client, generation = trace.generation,
               until = trace.until, seat = *std::move(seat)](const auto& begin, auto stream,
                                                             std::shared_ptr<wire::Socket> socket) {
    auto held = std::make_shared<CallerStream>(auth.streams(), client, until, seat, stream,
                                               std::move(socket));
    if (client.empty() || auth.has_client(client, generation))
      begin(std::move(held));
    else
      held->end();
  };
  if (response.stream)
    response.stream = [tied, begin = std::move(response.stream)](
                          std::shared_ptr<wire::Stream> stream) { tied(begin, stream, nullptr); };
  if (response.socket)
    response.socket = [tied, begin = std::move(response.socket)](
                          std::shared_ptr<wire::Socket> socket) { tied(begin, socket, socket); };
}

void HttpFront::finish(Trace& trace, wire::Response& response) {
  in_flight_.add(-1);
  Time took = monotonic_now() - trace.began;
  trace.duration->observe(took);
  if ((response.stream || response.socket) && trace.tenant) tie_stream(trace, response);
  size_t status_class = static_cast<size_t>(response.status) / 100;
  if (status_class >= 1 && status_class <= 5) by_class_[status_class]->add();
  if (trace.cors) apply_cors(response, *trace.cors);
  const bool retry = response.status == 429 || response.status == 503;
  if (retry && !wire::find_header(response.headers, "Retry-After"))
    response.headers.emplace_back("Retry-After", "1");
  if (!trace.request_id.empty()) response.headers.emplace_back("X-Request-Id", trace.request_id);
  log_answer(trace, response, took);
}

void HttpFront::log_answer(const Trace& trace, wire::Response& response, Time took) const {
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
