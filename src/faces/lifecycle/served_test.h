#pragma once
// An engine in memory and its lifecycle routes on a local HTTP server, for managers that connect.

#include "embed/engine_parts.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/missions_test.h"
#include "server/auth/guarded_test.h"
#include "server/http/server.h"

namespace pawl::lifecycle {

struct Served {
  std::unique_ptr<Engine> engine = *Engine::open();
  BackgroundThreads background;
  Face face{*engine->parts().shard, background};
  wire::Router router;
  server::GuardedRouter guarded;
  std::string roles = "program";
  std::atomic<int> busy{0};  // this many watches are refused with 503
  std::unique_ptr<server::HttpServer> http;

  std::string start(server::HttpOptions options = {}) {
    router.add(face.routes(), face.dialects());
    guarded.guard(router);
    options.address = *server::parse_address("127.0.0.1:0");
    http =
        *server::HttpServer::start(options, [this](wire::Request request, wire::Respond respond) {
          request.caller = {engine->options().tenant, "remote", roles};
          if (request.query.starts_with("stream=") && busy > 0 && busy-- > 0)
            return respond(wire::text_response(503, "come back later"));
          guarded.dispatch(std::move(request), std::move(respond));
        });
    return "http://" + http->address().text();
  }
};

}  // namespace pawl::lifecycle
