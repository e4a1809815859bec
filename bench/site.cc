#include "bench/site.h"

#include <fmt/format.h>

#include "faces/processes/state/job.h"

namespace pawl::bench {

Site::Site(const std::string& name) : folder_(name) {
  shard_ = open_shard(folder_.path(), {&processes_program_, &entities_program_});
  clock_ = std::make_unique<Clock>(*shard_, background_);
  workers_ = std::make_unique<Workers>(*shard_, background_, processes::created_at);
  processes_ = std::make_unique<processes::Face>(*shard_, *workers_);
  entities_ = std::make_unique<entities::Face>(*shard_, background_, entities::FaceOptions{});
  // As in cli/host.cc: outboxes first, then the shard, then the threads, then the listeners.
  shard_->connect(To::clock, *clock_);
  shard_->connect(To::worker, *workers_);
  shard_->connect(To::member, entities_->members());
  CHECK(shard_->start());
  clock_->start();
  workers_->start();
  CHECK(entities_->start());
  router_.add(processes_->routes(), processes_->dialects());
  router_.add(entities_->routes(), entities_->dialect());
  nobody_ = *server::Authenticator::make({}, system_now);
  gate_ = std::make_unique<server::CallGate>(*nobody_, server::BrowserRules{});
  server::FrontOptions front{.permissions = *server::route_permissions(router_)};
  front_ = std::make_unique<server::HttpFront>(router_, *nobody_, metrics_, std::move(front));
  server::HttpOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  options.judge_head = front_->judge();
  http_ = *server::HttpServer::start(options, front_->handler());
  processes_grpc_ = std::make_unique<processes::GrpcServices>(
      processes_->service(), [this](const wire::Call& call) { return gate_->admit(call); });
  grpc_ =
      *server::GrpcServer::start({.address = options.address, .services = processes_grpc_->all()});
}

// Polls and member calls are ended first, or the listeners would wait for them.
Site::~Site() {
  workers_->stop();
  entities_->stop();
  http_->stop(500);
  grpc_->stop(500);
  clock_->stop();
  shard_->stop();
}

// Uses the load generator with one connection, which sends one request and ends with its answer.
json::Value Site::call(std::string_view method, std::string_view path, std::string_view body) {
  std::string answer;
  int status = 0;
  bool sent = false;
  Load load{address(), 1, 30,
            [&](size_t) {
              return std::exchange(sent, true) ? std::string() : request(method, path, body);
            },
            [&](size_t, int s, std::string_view text) {
              status = s;
              answer = text;
            }};
  load.until = [&] { return status != 0; };
  run(load);
  if (status >= 400) {
    fmt::print(stderr, "{} {}: {} {}\n", method, path, status, answer);
    std::exit(1);
  }
  auto value = json::parse(answer);
  return value ? *value : json::Value();
}

}  // namespace pawl::bench
