#include "cli/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "cli/openapi.h"
#include "cli/remote.h"
#include "faces/processes/state/job.h"
#include "json/text.h"

#ifndef PAWL_VERSION
#define PAWL_VERSION "0"
#endif

namespace pawl::cli {

using server::Address;

Result<std::unique_ptr<Host>> Host::start(const server::Config& config) {
  std::unique_ptr<Host> host(new Host(config));
  TRY_OK(host->open());
  TRY_OK(host->listen());
  host->started_ = true;
  host->house_thread_ = std::thread([h = host.get()] { h->keep_house(); });
  return host;
}

Host::~Host() { stop(); }

static Result<std::unique_ptr<server::Authenticator>> authenticator_of(const server::Config& c) {
  server::AuthOptions options;
  TRY(options.mode, server::parse_auth_mode(c.text("auth")));
  options.nobody = {c.text("tenant"), c.text("user"), c.text("roles")};
  options.signing_key = c.text("jwt-key");
  options.issuer = c.text("jwt-issuer");
  options.audience = c.text("jwt-audience");
  options.expiry_seconds = c.duration("jwt-expiry") / kSecond;
  if (const std::string& path = c.text("jwt-jwks"); !path.empty()) {
    options.jwks = read_file(path).value_or(std::string());
    if (options.jwks.empty())
      return fail(Code::invalid, kBadUsage, fmt::format("cannot read the JWKS file {}", path));
  }
  return server::Authenticator::make(std::move(options), system_now);
}

Result<void> Host::open() {
  TRY(authenticator_, authenticator_of(config_));
  std::vector<Address> listeners;
  for (auto flag : {"http", "grpc", "admin"}) {
    TRY(Address address, server::parse_address(config_.text(flag)));
    listeners.push_back(address);
  }
  TRY_OK(server::check_exposure(authenticator_->mode(), config_.boolean("insecure"), listeners));
  constexpr int64_t kMaxMiB = 1 << 20;
  auto mebibytes = [&](std::string_view flag) {
    return static_cast<size_t>(std::min(config_.number(flag), kMaxMiB)) << 20;
  };
  TRY(Stores opened, open_data(config_.text("data"), {}, {.cache_bytes = mebibytes("rows-cache")}));
  for (const auto& note : opened.notes)
    log(Level::warn, note);
  ShardOptions options;
  auto& commit_seconds = metrics_.histogram("pawl_commit_seconds");
  auto& frames = metrics_.counter("pawl_frames_total");
  auto& turns = metrics_.counter("pawl_group_turns_total");
  auto& groups = metrics_.counter("pawl_groups_total");
  auto& publish_seconds = metrics_.histogram("pawl_publish_seconds");
  auto& replies = metrics_.counter("pawl_replies_total");
  auto& ran = metrics_.counter("pawl_turns_total");
  auto& turn_seconds = metrics_.histogram("pawl_turn_seconds");
  options.cache_bytes = mebibytes("cell-cache");
  options.family_cells = static_cast<size_t>(config_.number("workflow-cells"));
  options.drove = [&](double seconds, size_t n) {
    ran.add(n);
    turn_seconds.observe(static_cast<Time>(seconds * 1e9 / static_cast<double>(n)));
  };
  options.committed = [&](const CommitTimes& t) {
    replies.add(t.answers);
    if (!t.frames) return;
    commit_seconds.observe(static_cast<Time>(t.append * 1e9));
    publish_seconds.observe(static_cast<Time>(t.apply * 1e9));
    frames.add(t.frames);
    turns.add(t.frames);
    groups.add();
  };
  options.stopped = [this](const Error& why) {
    failed_ = true;
    log(Level::error, why.message, {{"code", why.reason}});
    if (grpc_) grpc_->set_healthy(false);
  };
  options.progress = [](Seq done, Seq total) {
    log(Level::info, "replaying the journal", {{"frame", done}, {"of", total}});
  };
  TRY(shard_, Shard::open(std::move(opened.journal), std::move(opened.rows), programs_.list(),
                          std::move(options)));
  if (shard_->replayed().frames)
    log(Level::info, "replayed",
        {{"frames", shard_->replayed().frames}, {"rebuilt", shard_->replayed().rebuilt}});
  clock_ = std::make_unique<Clock>(*shard_);
  workers_ = std::make_unique<Workers>(*shard_, processes::born);
  faces_ = std::make_unique<Faces>(config_, programs_, *shard_, *workers_, *authenticator_);
  shard_->connect(To::clock, *clock_);
  shard_->connect(To::worker, *workers_);
  TRY_OK(shard_->start());
  clock_->start();
  workers_->start();
  return faces_->start();
}

Result<void> Host::listen() {
  faces_->add_routes(router_);
  router_.add({{"GET", "/openapi.json",
                [this](wire::Request, wire::Respond respond) {
                  respond(wire::json_response(200, openapi(router_)));
                },
                "This document.", true},
               {"GET", "/docs",
                [this](wire::Request, wire::Respond respond) { respond(docs_page(router_)); },
                "This document as a page.", true},
               {"GET", "/",
                [](wire::Request, wire::Respond respond) {
                  respond(wire::json_response(200, "{\"name\":\"pawl\",\"version\":\"" PAWL_VERSION
                                                   "\",\"openapi\":\"/openapi.json\"}"));
                },
                "Which server this is.", true}},
              wire::Dialect{"/", plain_refusal, {}});
  server::FrontOptions front;
  front.log_requests = config_.boolean("log-requests");
  front_ = std::make_unique<server::HttpFront>(router_, *authenticator_, metrics_, front);
  server::HttpOptions http;
  TRY(http.address, server::parse_address(config_.text("http")));
  http.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  http.threads = static_cast<int>(config_.number("threads"));
  http.connections = static_cast<size_t>(config_.number("connections"));
  http.refuse = front_->refuser();
  TRY(http_, server::HttpServer::start(http, front_->handler()));

  server::GrpcOptions grpc;
  TRY(grpc.address, server::parse_address(config_.text("grpc")));
  grpc.tls = http.tls;
  grpc.services = faces_->services();
  TRY(grpc_, server::GrpcServer::start(grpc));

  measure();
  TRY(nobody_, server::Authenticator::make({}, system_now));
  admin_router_.add(admin_routes(), wire::Dialect{"/", plain_refusal, {}});
  admin_front_ = std::make_unique<server::HttpFront>(admin_router_, *nobody_, metrics_);
  server::HttpOptions admin;
  TRY(admin.address, server::parse_address(config_.text("admin")));
  admin.threads = 1;
  admin.refuse = admin_front_->refuser();
  TRY(admin_, server::HttpServer::start(admin, admin_front_->handler()));

  // Whoever started us with port 0 finds the real ones here.
  std::ofstream out(config_.text("data") + "/serving.json");
  out << json::print(json::object({{"pid", json::Value(static_cast<int64_t>(getpid()))},
                                   {"http", this->http()},
                                   {"grpc", this->grpc()},
                                   {"admin", this->admin()}}))
      << "\n";
  return {};
}

void Host::measure() {
  metrics_.gauge_from("pawl_queued_inputs",
                      [this] { return static_cast<int64_t>(shard_->stats().queued); });
  metrics_.gauge_from("pawl_open_turns",
                      [this] { return static_cast<int64_t>(shard_->stats().open_turns); });
  metrics_.gauge_from("pawl_workflow_cells",
                      [this] { return static_cast<int64_t>(shard_->stats().family_cells); });
  metrics_.gauge_from("pawl_packed_cells",
                      [this] { return static_cast<int64_t>(shard_->stats().packed_cells); });
  metrics_.gauge_from("pawl_journal_seq",
                      [this] { return static_cast<int64_t>(shard_->durable()); });
  auto jobs = [this](size_t WorkQueue::Depth::*of) {
    int64_t sum = 0;
    for (const auto& depth : workers_->depths())
      sum += static_cast<int64_t>(depth.*of);
    return sum;
  };
  metrics_.gauge_from("pawl_ready_jobs", [jobs] { return jobs(&WorkQueue::Depth::offered); });
  metrics_.gauge_from("pawl_leased_jobs", [jobs] { return jobs(&WorkQueue::Depth::leased); });
  metrics_.gauge_from("pawl_open_effects", [this, jobs] {
    return static_cast<int64_t>(clock_->waiting()) + jobs(&WorkQueue::Depth::offered) +
           jobs(&WorkQueue::Depth::leased);
  });
  metrics_.gauge_from("pawl_timers", [this] { return static_cast<int64_t>(clock_->waiting()); });
  metrics_.gauge_from("pawl_http_connections",
                      [this] { return http_ ? static_cast<int64_t>(http_->connections()) : 0; });
  metrics_.gauge("pawl_build_info", {PAWL_VERSION}).set(1);
  metrics_.gauge("pawl_start_time_seconds").set(system_now() / kSecond);
}

std::vector<wire::Route> Host::admin_routes() {
  server::AdminOptions options;
  options.metrics_bearer = config_.text("metrics-bearer");
  options.ready = {{"journal", [this] { return shard_->healthy(); }}};
  options.started = {{"started", [this]() -> Result<void> {
                        if (started_) return {};
                        return fail(Code::unavailable, "STARTING", "the server is starting");
                      }}};
  std::vector<wire::Route> routes = server::admin_routes(metrics_, std::move(options));
  // A backup of a running server: the journal up to now, into a new folder on the server's machine.
  routes.push_back(
      {"POST", "/backup",
       [this](wire::Request request, wire::Respond respond) {
         std::string to = request.query_param("to").value_or("");
         std::error_code ec;
         if (to.empty() || std::filesystem::exists(to, ec))
           return respond(wire::json_response(
               400, R"({"error":"bad-request","reason":"name a new folder with ?to=DIR"})"));
         std::thread([this, to, respond = std::move(respond)]() mutable {
           auto copied = copy_journal(shard_->journal(), to, {});
           if (!copied)
             respond(wire::json_response(
                 500, json::print(json::object({{"error", copied.error().reason},
                                                {"reason", copied.error().message}}))));
           else
             respond(wire::json_response(
                 200, json::print(json::object(
                          {{"folder", to},
                           {"last", json::Value(static_cast<uint64_t>(copied->last))}}))));
         }).detach();
       },
       "Copies the journal into a new folder.", true});
  return routes;
}

// Once in a while: old answers are let go of.
void Host::keep_house() {
  std::unique_lock lock(house_mutex_);
  while (!house_wake_.wait_for(lock, std::chrono::minutes(10), [this] { return ending_; }))
    shard_->forget_old_answers();
}

void Host::stop() {
  {
    std::lock_guard lock(house_mutex_);
    if (ending_) return;
    ending_ = true;
  }
  house_wake_.notify_all();
  if (house_thread_.joinable()) house_thread_.join();
  // Long polls first: they would keep the listeners waiting.
  if (workers_) workers_->stop();
  if (faces_) faces_->stop();
  if (http_) http_->stop();
  if (grpc_) grpc_->stop(2000);
  if (clock_) clock_->stop();
  if (shard_) shard_->stop();
  if (admin_) admin_->stop(1000);
  std::error_code ec;
  std::filesystem::remove(config_.text("data") + "/serving.json", ec);
}

}  // namespace pawl::cli
