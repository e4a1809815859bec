// The time from an HTTP request to its durable answer, compared with a bare server that answers a
// constant.

#include <fmt/format.h>

#include "bench/load.h"
#include "bench/scenario.h"
#include "server/http/front.h"

namespace pawl::bench {

namespace {

// The smallest turn behind a route: the body of the request becomes the value of one cell.
class Put final : public Program {
 public:
  std::string_view name() const override { return "put"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    turn.write(key({"put", input.verb}), input.body);
    return Bytes("{\"ok\":true}");
  }
};

}  // namespace

std::unique_ptr<server::HttpServer> bare_server() {
  server::HttpOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  auto started = server::HttpServer::start(options, [](wire::Request, wire::Respond respond) {
    respond(wire::json_response(200, "{\"ok\":true}"));
  });
  CHECK(started);
  return std::move(*started);
}

// The same request as the durable one, answered by a handler that does nothing.
Loaded bare_load(size_t connections, double for_seconds, double pause_seconds) {
  auto bare = bare_server();
  std::string text = request("POST", "/put/1", std::string(300, 'x'));
  Loaded out = run({bare->address().text(), connections, for_seconds, [&](size_t) {
                      pause(pause_seconds);
                      return text;
                    }});
  bare->stop(100);
  return out;
}

void bench_http(Report& report, Facts& facts) {
  Put put;
  Folder folder("http");
  auto shard = open_shard(folder.path(), {&put});
  CHECK(shard->start());
  if (facts.append_us == 0) facts.append_us = raw_append_us();
  wire::Router router;
  router.add({{"POST", "/put/{name}",
               [&](wire::Request request, wire::Respond respond) {
                 Input input{.program = "put",
                             .verb = request.params[0],
                             .body = std::move(request.body),
                             .caller = std::move(request.caller)};
                 shard->submit(std::move(input),
                               [respond = std::move(respond)](Result<Answer> answer) mutable {
                                 respond(answer ? wire::json_response(200, std::move(answer->body))
                                                : wire::json_response(503, "{}"));
                               });
               },
               ""}},
             wire::Dialect{"/",
                           [](const wire::Request&, const Error&, std::string_view) {
                             return wire::text_response(404, "");
                           },
                           {}});
  auto nobody = *server::Authenticator::make({}, system_now);
  server::Metrics metrics;
  server::HttpFront front(router, *nobody, metrics);
  server::HttpOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  auto http = *server::HttpServer::start(options, front.handler());
  std::string text = request("POST", "/put/1", std::string(300, 'x'));
  // Bare and durable runs alternate, so that both see the same load of the machine. The bars are at
  // 1 connection (latency) and at 64 (throughput); the other two are for information.
  for (size_t connections : {1, 16, 64, 256}) {
    Loaded bare = bare_load(connections, 1.5, 0);
    Loaded durable =
        run({http->address().text(), connections, 2, [&](size_t c) {
               return request("POST", fmt::format("/put/c{}", c), std::string(300, 'x'));
             }});
    CHECK(durable.failures == 0);
    report.line(fmt::format("bare HTTP, {} connections", connections), bare.rps,
                fmt::format("/s  p50 {:.0f} p99 {:.0f} us", bare.p50_us, bare.p99_us));
    report.line(fmt::format("durable HTTP write, {} connections", connections), durable.rps,
                fmt::format("/s  p50 {:.0f} p99 {:.0f} us", durable.p50_us, durable.p99_us));
    if (connections == 1) {
      facts.bare_us = bare.p50_us;
      report.bar({"durable p50 at 1 connection / (raw append + bare round trip)",
                  durable.p50_us / (facts.append_us + bare.p50_us), 2.5, false, ""});
    }
    if (connections == 64) {
      facts.bare_rps = bare.rps;
      report.bar({"durable / bare requests a second, 64 connections", durable.rps / bare.rps, 0.40,
                  true, ""});
    }
  }
  http->stop(100);
  shard->stop();
}

}  // namespace pawl::bench
