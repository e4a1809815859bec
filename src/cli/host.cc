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
#include "pawl/version.h"

namespace pawl::cli {

using server::Address;

Result<std::unique_ptr<Host>> Host::start(const server::Config& config) {
  std::unique_ptr<Host> host(new Host(config));
  TRY_OK(host->open());
  TRY_OK(host->listen());
  host->start_housekeeping();
  host->started_ = true;
  return host;
}

Host::~Host() { stop(); }

void Host::start_housekeeping() {
  constexpr Time kInterval = 600 * kSecond;
  // The loop calls at once; the first work is due an interval later.
  housekeeping_ = background_.loop("housekeeping", [this, due = false]() mutable {
    if (std::exchange(due, true)) shard_->forget_old_answers();
    return background_.steady_now() + kInterval;
  });
}

static Result<std::unique_ptr<server::Authenticator>> authenticator_of(const server::Config& c) {
  server::AuthOptions options;
  TRY(options.mode, server::parse_auth_mode(c.text("auth")));
  options.default_caller = {c.text("tenant"), c.text("user"), c.text("roles")};
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

Result<void> Host::check_exposure() {
  std::vector<Address> listeners;
  for (auto flag : {"http", "grpc", "admin"}) {
    TRY(Address address, server::parse_address(config_.text(flag)));
    listeners.push_back(address);
  }
  return server::check_exposure(authenticator_->mode(), config_.boolean("insecure"), listeners);
}

size_t Host::mebibytes(std::string_view flag) const {
  constexpr int64_t kMaxMiB = 1 << 20;
  return static_cast<size_t>(std::min(config_.number(flag), kMaxMiB)) << 20;
}

// The whole budget in bytes. Below 64 MiB a single request of the largest size would not fit.
size_t Host::memory_budget_of(const server::Config& config) {
  constexpr size_t kLeast = size_t{64} << 20;
  size_t given = config.bytes("memory-budget");
  if (given == 0)
    given = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
            static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 4;
  return std::max(given, kLeast);
}

// The hooks by which the shard reports its turns, its commits and its failure.
ShardOptions Host::shard_options() {
  auto& commit_seconds = metrics_.histogram("pawl_commit_seconds");
  auto& frames = metrics_.counter("pawl_frames_total");
  auto& group_turns = metrics_.counter("pawl_group_turns_total");
  auto& groups = metrics_.counter("pawl_groups_total");
  auto& publish_seconds = metrics_.histogram("pawl_publish_seconds");
  auto& replies = metrics_.counter("pawl_replies_total");
  auto& turns = metrics_.counter("pawl_turns_total");
  auto& turn_seconds = metrics_.histogram("pawl_turn_seconds");
  ShardOptions options;
  options.cache_bytes = mebibytes("cell-cache");
  if (options.cache_bytes == 0)
    options.cache_bytes = std::min(memory_.bytes() / 2, size_t{512} << 20);
  options.tenant_queued_inputs = static_cast<size_t>(config_.number("tenant-max-queued-inputs"));
  options.tenant_open_turns = static_cast<size_t>(config_.number("tenant-max-open-turns"));
  options.family_cells = static_cast<size_t>(config_.number("workflow-cells"));
  options.drove = [&turns, &turn_seconds](double seconds, size_t n) {
    turns.add(n);
    turn_seconds.observe(static_cast<Time>(seconds * 1e9 / static_cast<double>(n)));
  };
  options.committed = [&](const CommitTimes& t) {
    replies.add(t.answers);
    if (!t.frames) return;
    commit_seconds.observe(static_cast<Time>(t.append * 1e9));
    publish_seconds.observe(static_cast<Time>(t.apply * 1e9));
    frames.add(t.frames);
    group_turns.add(t.frames);
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
  return options;
}

Result<void> Host::open_shard() {
  TRY(Stores opened, open_data(config_.text("data"), {}, {.cache_bytes = mebibytes("rows-cache")}));
  for (const auto& note : opened.notes)
    log(Level::warn, note);
  TRY(shard_, Shard::open(std::move(opened.journal), std::move(opened.rows), programs_.list(),
                          shard_options()));
  const auto& replayed = shard_->replayed();
  if (replayed.frames)
    log(Level::info, "replayed", {{"frames", replayed.frames}, {"rebuilt", replayed.rebuilt}});
  return {};
}

Result<void> Host::open() {
  TRY(authenticator_, authenticator_of(config_));
  TRY_OK(check_exposure());
  TRY_OK(open_shard());
  clock_ = std::make_unique<Clock>(*shard_);
  workers_ = std::make_unique<Workers>(*shard_, processes::created_at);
  faces_ = std::make_unique<Faces>(config_, programs_, *shard_, *workers_, *authenticator_);
  shard_->connect(To::clock, *clock_);
  shard_->connect(To::worker, *workers_);
  TRY_OK(shard_->start());
  clock_->start();
  workers_->start();
  return faces_->start();
}

std::vector<wire::Route> Host::general_routes() {
  return {{"GET", "/openapi.json",
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
           "Which server this is.", true}};
}

Result<void> Host::listen_http() {
  faces_->add_routes(router_);
  router_.add(general_routes(), wire::Dialect{"/", plain_refusal, {}});
  front_ = std::make_unique<server::HttpFront>(
      router_, *authenticator_, metrics_,
      server::FrontOptions{.log_requests = config_.boolean("log-requests")});
  server::HttpOptions http;
  TRY(http.address, server::parse_address(config_.text("http")));
  http.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  http.threads = static_cast<int>(config_.number("threads"));
  http.connections = static_cast<size_t>(config_.number("connections"));
  http.refuse = front_->refuser();
  http.refuse_head = front_->head_refuser();
  http.memory = &memory_;
  TRY(http_, server::HttpServer::start(http, front_->handler()));
  return {};
}

Result<void> Host::listen_grpc() {
  server::GrpcOptions grpc;
  TRY(grpc.address, server::parse_address(config_.text("grpc")));
  grpc.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  grpc.services = faces_->services();
  grpc.memory_bytes = memory_.bytes() / 2;
  TRY(grpc_, server::GrpcServer::start(grpc));
  return {};
}

Result<void> Host::listen_admin() {
  measure();
  TRY(open_authenticator_, server::Authenticator::make({}, system_now));
  admin_router_.add(admin_routes(), wire::Dialect{"/", plain_refusal, {}});
  admin_front_ = std::make_unique<server::HttpFront>(admin_router_, *open_authenticator_, metrics_);
  server::HttpOptions admin;
  TRY(admin.address, server::parse_address(config_.text("admin")));
  admin.threads = 1;
  admin.refuse = admin_front_->refuser();
  admin.refuse_head = admin_front_->head_refuser();
  admin.memory = &memory_;
  TRY(admin_, server::HttpServer::start(admin, admin_front_->handler()));
  return {};
}

// A caller that started the server on port 0 reads the real ports from this file.
void Host::write_serving_file() {
  std::ofstream out(config_.text("data") + "/serving.json");
  out << json::print(json::object({{"pid", json::Value(static_cast<int64_t>(getpid()))},
                                   {"http", http()},
                                   {"grpc", grpc()},
                                   {"admin", admin()}}))
      << "\n";
}

Result<void> Host::listen() {
  TRY_OK(listen_http());
  TRY_OK(listen_grpc());
  TRY_OK(listen_admin());
  write_serving_file();
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
  for (const MemoryUseRow& row : memory_uses()) {
    const std::vector<std::string> purpose{std::string(row.name)};
    metrics_.gauge_from(
        "pawl_memory_budget_bytes",
        [this, use = row.use] { return static_cast<int64_t>(memory_.used(use)); }, purpose);
    metrics_.counter_from(
        "pawl_memory_refusals_total",
        [this, use = row.use] { return static_cast<int64_t>(memory_.refused(use)); }, purpose);
  }
  metrics_.gauge("pawl_memory_budget_bytes", {"limit"}).set(static_cast<int64_t>(memory_.bytes()));
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
  // Backs up a running server: copies the journal so far into a new folder on the server's machine.
  routes.push_back({"POST", "/backup",
                    [this](wire::Request request, wire::Respond respond) {
                      back_up(request, std::move(respond));
                    },
                    "Copies the journal into a new folder.", true});
  return routes;
}

void Host::back_up(const wire::Request& request, wire::Respond respond) {
  std::string to = request.query_param("to").value_or("");
  std::error_code ec;
  if (to.empty() || std::filesystem::exists(to, ec))
    return respond(wire::json_response(
        400, R"({"error":"bad-request","reason":"name a new folder with ?to=DIR"})"));
  // Shared: a pool that is full or stopping drops the task, and then the refusal answers here.
  auto answer = std::make_shared<wire::Respond>(std::move(respond));
  auto copy = [this, to, answer] {
    auto copied = copy_journal(shard_->journal(), to, {});
    if (!copied)
      return (*answer)(wire::json_response(
          500, json::print(json::object(
                   {{"error", copied.error().reason}, {"reason", copied.error().message}}))));
    (*answer)(wire::json_response(
        200, json::print(json::object(
                 {{"folder", to}, {"last", json::Value(static_cast<uint64_t>(copied->last))}}))));
  };
  std::lock_guard lock(backups_mutex_);
  if (!backups_ || !backups_->add(std::move(copy)))
    (*answer)(wire::json_response(
        503, R"({"error":"unavailable","reason":"too many backups wait, or the server stops"})"));
}

void Host::stop() {
  if (std::exchange(stopped_, true)) return;
  housekeeping_.reset();
  std::unique_ptr<BackgroundPool> finished_backups;
  {
    std::lock_guard lock(backups_mutex_);
    finished_backups = std::move(backups_);
  }
  finished_backups.reset();  // waits for a running backup
  // Long polls end first: the listeners would wait for them.
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
