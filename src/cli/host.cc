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
#include "kernel/rows_layout.h"
#include "net/http_client.h"
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
    if (std::exchange(due, true)) shards_->forget_old_answers();
    return background_.steady_now() + kInterval;
  });
  stream_loop_ = background_.loop("streams", [this] {
    authenticator_->end_expired_streams();
    grpc_->tend();
    return background_.steady_now() + kSecond;
  });
  if (!authenticator_->tenants().limits().bytes) return;
  constexpr Time kMeasure = 5 * kSecond;
  measure_loop_ = background_.loop("tenant sizes", [this] {
    measure_tenants();
    return background_.steady_now() + kMeasure;
  });
}

// The cells of a tenant, of all programs: their keys begin with the program and the tenant.
void Host::measure_tenants() {
  for (const server::TenantPtr& tenant : authenticator_->tenants().in_use()) {
    uint64_t bytes = 0;
    for (const Program* program : programs_.list()) {
      const Bytes first = layout::cell_row(prefix({program->name(), tenant->tenant}));
      Bytes limit = first;
      ++limit.back();  // a prefix ends with a zero
      for (const RowSizes* rows : row_sizes_)
        if (rows) bytes += rows->approximate_bytes(first, limit);
    }
    tenant->set_stored(bytes);
  }
}

Result<void> Host::before_poll(const Caller& caller) { return workers_->admit(caller.tenant); }

static server::TenantLimits tenant_limits(const server::Config& c) {
  auto number = [&](std::string_view flag) { return static_cast<size_t>(c.number(flag)); };
  return {.connections = number("tenant-max-connections"),
          .streams = number("tenant-max-streams"),
          .requests_per_second = number("tenant-max-requests"),
          .bytes = c.bytes("tenant-max-bytes"),
          .address_connections = number("address-max-connections"),
          .address_requests_per_second = number("address-max-requests")};
}

static Result<std::unique_ptr<server::Authenticator>> authenticator_of(const server::Config& c,
                                                                       MemoryBudget& memory) {
  server::AuthOptions options;
  options.limits = tenant_limits(c);
  options.memory = &memory;
  TRY(options.mode, server::parse_auth_mode(c.text("auth")));
  options.default_caller = {c.text("tenant"), c.text("user"), c.text("roles")};
  options.signing_key = c.text("jwt-key");
  options.issuer = c.text("jwt-issuer");
  options.audience = c.text("jwt-audience");
  options.expiry_seconds = c.duration("jwt-expiry") / kSecond;
  options.old_signing_key = c.text("jwt-old-key");
  options.remote_issuer = c.text("auth-issuer");
  options.operator_tenant = c.text("operator-tenant");
  if (options.operator_tenant.empty() && !c.text("bootstrap-client").empty())
    options.operator_tenant = c.text("bootstrap-tenant");
  if (const std::string& path = c.text("jwt-jwks"); !path.empty()) {
    options.jwks = read_file(path).value_or(std::string());
    if (options.jwks.empty())
      return fail(Code::invalid, kBadUsage, fmt::format("cannot read the JWKS file {}", path));
  }
  return server::Authenticator::make(std::move(options), system_now);
}

Result<void> Host::follow_issuer() {
  server::IssuerOptions options{.issuer = config_.text("auth-issuer"),
                                .jwks_url = config_.text("auth-jwks-url"),
                                .refresh = config_.duration("auth-refresh")};
  if (authenticator_->mode() == server::AuthMode::none) return {};
  if (options.issuer.empty() && !options.jwks_url.empty())
    return fail(Code::invalid, kBadUsage,
                "--auth-jwks-url needs --auth-issuer, the issuer that the tokens name");
  if (options.issuer.empty()) return {};
  for (const std::string& url : {options.issuer, options.jwks_url})
    if (!url.empty()) TRY_OK(net::parse_url(url));
  constexpr size_t kMaxDocumentBytes = 1 << 20;
  constexpr std::chrono::seconds kTimeout{10};
  auto client = std::make_shared<net::HttpClient>(net::HttpClientOptions{
      .timeout = kTimeout, .max_answer_bytes = kMaxDocumentBytes, .allow_unknown_length = true});
  auto get = [client,
              stop = issuer_stop_.get_token()](const std::string& url) -> Result<std::string> {
    TRY(net::HttpAnswer answer, client->send({"GET", url}, {.stop = stop}));
    if (answer.status == 200) return std::move(answer.body);
    return fail(Code::unavailable, "BAD_ANSWER", fmt::format("{} answered {}", url, answer.status));
  };
  issuer_keys_ = std::make_unique<server::IssuerKeys>(std::move(options), *authenticator_, get,
                                                      [this] { return background_.steady_now(); });
  // The first fetch is made here, so that the first tokens are accepted when the provider answers.
  issuer_keys_->step();
  issuer_loop_ = background_.loop("issuer keys", [this] { return issuer_keys_->step(); });
  authenticator_->on_unknown_key([this] {
    issuer_keys_->want();
    issuer_loop_->wake();
  });
  return {};
}

// --require-jwt: a server that was meant to check tokens must not start without doing so.
static Result<void> check_required_jwt(const server::Config& config, server::AuthMode mode) {
  // The mode jwt needs a key by itself: see Authenticator::make().
  if (!config.boolean("require-jwt") || mode == server::AuthMode::jwt) return {};
  return fail(Code::invalid, kBadUsage,
              "--require-jwt (PAWL_REQUIRE_JWT, CYODA_REQUIRE_JWT) needs --auth jwt "
              "(CYODA_IAM_MODE=jwt) and a key (--jwt-key, CYODA_JWT_SIGNING_KEY)");
}

Result<void> Host::check_exposure() {
  TRY_OK(check_required_jwt(config_, authenticator_->mode()));
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

// With many shards each has at least this much for its cells.
static constexpr size_t kLeastCellCache = 1u << 20;

// The hooks by which the shard reports its turns, its commits and its failure.
ShardOptions Host::shard_options(uint32_t shard, uint32_t shards) {
  auto& commit_seconds = metrics_.histogram("pawl_commit_seconds");
  auto& frames = metrics_.counter("pawl_frames_total");
  auto& group_turns = metrics_.counter("pawl_group_turns_total");
  auto& groups = metrics_.counter("pawl_groups_total");
  auto& publish_seconds = metrics_.histogram("pawl_publish_seconds");
  auto& replies = metrics_.counter("pawl_replies_total");
  auto& turns = metrics_.counter("pawl_turns_total");
  auto& turn_seconds = metrics_.histogram("pawl_turn_seconds");
  ShardOptions options;
  options.scheduler = &scheduler();
  options.cache_bytes = mebibytes("cell-cache");
  if (options.cache_bytes == 0)
    options.cache_bytes = std::min(memory_.bytes() / 2, size_t{512} << 20);
  options.cache_bytes = std::max(options.cache_bytes / shards, kLeastCellCache);
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
  options.quarantine_folder = shard_folder(config_.text("data"), shards, shard);
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

void Host::report_quarantine(const Shard& shard) {
  const Quarantine& quarantine = shard.quarantine();
  if (!quarantine.in_doubt().empty())
    log(Level::warn, "the server ended while it settled an effect",
        {{"effect", quarantine.in_doubt()}});
  for (const Quarantine::Parked& parked : quarantine.list())
    log(Level::error,
        "an effect is in quarantine, because the server crashed twice while it was settled; it is "
        "not delivered until `pawl quarantine release`",
        {{"effect", parked.effect_id}, {"since", rfc3339(parked.since)}});
}

// Several shards are opened at the same time.
Result<Shards::Opened> Host::open_shard(uint32_t shard, ShardOptions options,
                                        const std::shared_ptr<RowsMemory>& memory) {
  // Everything of the shard is in one folder.
  TRY(Stores opened, open_shard_data(options.quarantine_folder, {},
                                     {.cache_bytes = mebibytes("rows-cache"), .memory = memory}));
  for (const auto& note : opened.notes)
    log(Level::warn, note);
  const Rows* rows = opened.rows.get();
  row_sizes_[shard] = dynamic_cast<const RowSizes*>(rows);
  TRY(auto out, Shard::open(std::move(opened.journal), std::move(opened.rows), programs_.list(),
                            std::move(options)));
  const auto& replayed = out->replayed();
  if (replayed.frames)
    log(Level::info, "replayed", {{"frames", replayed.frames}, {"rebuilt", replayed.rebuilt}});
  report_quarantine(*out);
  return Shards::Opened{std::move(out), rows};
}

// The threads of the pool also wait for the disk, so there are more of them than processors.
static size_t pooled_threads(const Scheduler& scheduler) { return 4 + 2 * scheduler.processors(); }

Result<void> Host::open_shards() {
  const int64_t wanted = config_.number("shards");
  if (wanted > kMaxShards)
    return fail(Code::invalid, kBadUsage,
                fmt::format("--shards {}: a store has 1 to {} shards", wanted, kMaxShards));
  std::vector<std::string> notes;
  TRY(uint32_t shards, prepare_data(config_.text("data"), static_cast<uint32_t>(wanted), &notes));
  for (const auto& note : notes)
    log(Level::warn, note);
  std::shared_ptr<RowsMemory> memory;
  if (shards > 1) {
    if (!pooled_) pooled_ = std::make_unique<PooledLoops>(pooled_threads(background_));
    memory = make_rows_memory(mebibytes("rows-cache"), shards);
  }
  row_sizes_.assign(shards, nullptr);
  std::vector<ShardOptions> options;
  for (uint32_t shard = 0; shard < shards; ++shard)
    options.push_back(shard_options(shard, shards));
  TRY(shards_, Shards::open(scheduler(), shards, [&](uint32_t shard) {
        return open_shard(shard, std::move(options[shard]), memory);
      }));
  return {};
}

Result<void> Host::open() {
  TRY(authenticator_, authenticator_of(config_, memory_));
  TRY_OK(check_exposure());
  TRY_OK(follow_issuer());
  auto opened = open_parts();
  const bool damaged =
      opened ? !shards_->rows_intact()
             : opened.error().is(kRowsCorrupt) || (shards_ && !shards_->rows_intact());
  if (!damaged) return opened;
  // The damage is marked, so opening once more deletes the rows and rebuilds them.
  log(Level::warn, "the rows are damaged; they are rebuilt from the journal now");
  close_parts();
  return open_parts();
}

// The reverse of open_parts(), as far as that came.
void Host::close_parts() {
  scrubbers_.clear();
  if (workers_) workers_->stop();
  if (homes_) homes_->stop();
  for (const auto& clock : clocks_)
    clock->stop();
  if (shards_) shards_->stop();
  grpc_faces_.reset();
  homes_.reset();
  outgoing_.reset();
  workers_.reset();
  clocks_.clear();
  all_shards_.reset();
  shards_.reset();
}

Result<void> Host::open_parts() {
  TRY_OK(open_shards());
  if (shards_->size() > 1) all_shards_ = std::make_unique<AllShards>(*shards_);
  KernelAccess& kernel = all_shards_ ? static_cast<KernelAccess&>(*all_shards_) : (*shards_)[0];
  ChargeFor charge = [this](MemoryUse use, const std::string& tenant) {
    return MemoryCharge(&memory_, use, authenticator_->tenants().use(tenant)->account);
  };
  workers_ = std::make_unique<Workers>(
      kernel, background_, processes::created_at,
      WorkerLimits{.tenant_leases = static_cast<size_t>(config_.number("tenant-max-jobs")),
                   .charge = charge});
  gate_ = std::make_unique<server::CallGate>(
      *authenticator_, browser_rules(), [this](const Caller& c) { return before_poll(c); },
      &grpc_connections_);
  outgoing_ = std::make_unique<worlds::Outgoing>(
      static_cast<int>(std::max<Time>(1, config_.duration("worlds-http-timeout") / kSecond)));
  homes_ = std::make_unique<assembly::Homes>(
      assembly::HomesOver{config_, programs_, *shards_, all_shards_.get(), *workers_,
                          *authenticator_, *outgoing_, charge});
  grpc_faces_ = std::make_unique<GrpcFaces>(*homes_, *gate_);
  for (const auto& shard : *shards_) {
    clocks_.push_back(std::make_unique<Clock>(*shard, scheduler()));
    shard->connect(To::clock, *clocks_.back());
    shard->connect(To::worker, *workers_);
  }
  TRY_OK(shards_->start());
  for (const auto& clock : clocks_)
    clock->start();
  workers_->start();
  for (const auto& shard : *shards_)
    scrubbers_.push_back(std::make_unique<Scrubber>(shard->journal(), scheduler(), ScrubOptions{}));
  return homes_->start();
}

server::BrowserRules Host::browser_rules() const {
  server::BrowserRules rules;
  rules.allowed_hosts = config_.list("allowed-hosts");
  rules.socket_origins = config_.list("lifecycle-origins");
  if (!config_.boolean("cors")) return rules;
  for (auto flag : {"allowed-origins", "cors-origins"})
    for (std::string& origin : config_.list(flag))
      rules.allowed_origins.push_back(std::move(origin));
  return rules;
}

Result<void> Host::listen_http() {
  TRY_OK(homes_->add_routes(router_));
  router_.add(general_routes(), wire::Dialect{"/", plain_refusal, {}, kPlainErrors});
  server::FrontOptions front{.log_requests = config_.boolean("log-requests"),
                             .browsers = browser_rules(),
                             .before_poll = [this](const Caller& c) { return before_poll(c); }};
  TRY(front.permissions, server::route_permissions(router_, config_.text("context-path")));
  TRY(openapi_, openapi(router_, front.permissions));
  front_ =
      std::make_unique<server::HttpFront>(router_, *authenticator_, metrics_, std::move(front));
  server::HttpOptions http;
  TRY(http.address, server::parse_address(config_.text("http")));
  http.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  http.threads = static_cast<int>(config_.number("threads"));
  const size_t wanted = static_cast<size_t>(config_.number("connections"));
  const size_t descriptors = server::raise_descriptor_limit();
  shares_ = server::share_descriptors(descriptors, wanted);
  http.connections = shares_.http;
  if (shares_.http < wanted)
    log(Level::warn, "the system allows fewer connections than --connections; raise ulimit -n",
        {{"connections", static_cast<int64_t>(shares_.http)},
         {"descriptors", static_cast<int64_t>(descriptors)}});
  http.refuse = front_->refuser();
  http.judge_head = front_->judge();
  http.tenants = &authenticator_->tenants();
  http.count_strangers = authenticator_->mode() == server::AuthMode::jwt;
  http.memory = &memory_;
  TRY(http_, server::HttpServer::start(http, front_->handler()));
  return {};
}

Result<void> Host::listen_grpc() {
  server::GrpcOptions grpc;
  TRY(grpc.address, server::parse_address(config_.text("grpc")));
  grpc.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  grpc.services = grpc_faces_->services();
  grpc.authenticator = authenticator_.get();
  grpc.memory_bytes = memory_.bytes() / 2;
  grpc.connections = shares_.grpc;
  grpc.open = &grpc_connections_;
  TRY(grpc_, server::GrpcServer::start(grpc));
  return {};
}

Result<void> Host::listen_admin() {
  measure();
  admin_router_.add(admin_routes(), wire::Dialect{"/", plain_refusal, {}, kPlainErrors});
  server::FrontOptions front{.browsers = browser_rules(), .limit_strangers = false};
  TRY(front.permissions, admin_permissions());
  TRY(admin_openapi_, openapi(admin_router_, front.permissions, "Pawl admin"));
  admin_front_ = std::make_unique<server::HttpFront>(admin_router_, *authenticator_, metrics_,
                                                     std::move(front));
  server::HttpOptions admin;
  TRY(admin.address, server::parse_address(config_.text("admin")));
  admin.tls = {config_.text("tls-certificate"), config_.text("tls-key")};
  admin.threads = 1;
  admin.connections = shares_.admin;
  admin.refuse = admin_front_->refuser();
  admin.judge_head = admin_front_->judge();
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

int64_t Host::timers() const {
  int64_t sum = 0;
  for (const auto& clock : clocks_)
    sum += static_cast<int64_t>(clock->waiting());
  return sum;
}

void Host::measure_limits() {
  for (const MemoryUseRow& row : memory_uses()) {
    const std::vector<std::string> purpose{std::string(row.name)};
    metrics_.gauge_from(
        "pawl_memory_budget_bytes",
        [this, use = row.use] { return static_cast<int64_t>(memory_.used(use)); }, purpose);
    metrics_.counter_from(
        "pawl_memory_refusals_total",
        [this, use = row.use] { return static_cast<int64_t>(memory_.refused(use)); }, purpose);
  }
  for (const server::LimitRow& row : server::limit_rows())
    metrics_.counter_from("pawl_limit_refusals_total",
                          [this, limit = row.limit] {
                            return static_cast<int64_t>(authenticator_->tenants().refused(limit));
                          },
                          {std::string(row.code)});
  const auto refused = [this](const char* code, uint64_t ShardStats::*of) {
    metrics_.counter_from("pawl_limit_refusals_total",
                          [this, of] { return static_cast<int64_t>(shards_->stats().*of); },
                          {code});
  };
  refused("TENANT_OPEN_TURNS", &ShardStats::refused_open_turns);
  refused("TENANT_QUEUED_INPUTS", &ShardStats::refused_queued);
}

void Host::measure() {
  metrics_.gauge_from("pawl_queued_inputs",
                      [this] { return static_cast<int64_t>(shards_->stats().queued); });
  metrics_.gauge_from("pawl_open_turns",
                      [this] { return static_cast<int64_t>(shards_->stats().open_turns); });
  metrics_.gauge_from("pawl_workflow_cells",
                      [this] { return static_cast<int64_t>(shards_->stats().family_cells); });
  metrics_.gauge_from("pawl_packed_cells",
                      [this] { return static_cast<int64_t>(shards_->stats().packed_cells); });
  metrics_.gauge_from("pawl_journal_seq",
                      [this] { return static_cast<int64_t>(shards_->durable()); });
  metrics_.gauge_from("pawl_journal_findings", [this] {
    int64_t findings = 0;
    for (const auto& scrubber : scrubbers_)
      findings += static_cast<int64_t>(scrubber->status().findings.size());
    return findings;
  });
  metrics_.gauge_from("pawl_clock_behind_seconds",
                      [this] { return static_cast<int64_t>(shards_->clock_behind() / kSecond); });
  auto jobs = [this](size_t WorkQueue::Depth::*of) {
    int64_t sum = 0;
    for (const auto& depth : workers_->depths())
      sum += static_cast<int64_t>(depth.*of);
    return sum;
  };
  metrics_.gauge_from("pawl_ready_jobs", [jobs] { return jobs(&WorkQueue::Depth::offered); });
  metrics_.gauge_from("pawl_leased_jobs", [jobs] { return jobs(&WorkQueue::Depth::leased); });
  metrics_.gauge_from("pawl_open_effects", [this, jobs] {
    return timers() + jobs(&WorkQueue::Depth::offered) + jobs(&WorkQueue::Depth::leased);
  });
  metrics_.gauges_from("pawl_limited_jobs", [this] { return homes_->limited_jobs(); });
  metrics_.gauge_from("pawl_timers", [this] { return timers(); });
  metrics_.gauge("pawl_shards").set(shards_->size());
  metrics_.gauge_from("pawl_http_connections",
                      [this] { return http_ ? static_cast<int64_t>(http_->connections()) : 0; });
  metrics_.gauge_from("pawl_quarantined_effects",
                      [this] { return static_cast<int64_t>(shards_->quarantine().size()); });
  measure_limits();
  metrics_.gauge("pawl_memory_budget_bytes", {"limit"}).set(static_cast<int64_t>(memory_.bytes()));
  metrics_.gauge("pawl_build_info", {PAWL_VERSION}).set(1);
  metrics_.gauge("pawl_start_time_seconds").set(system_now() / kSecond);
}

void Host::stop() {
  if (std::exchange(stopped_, true)) return;
  housekeeping_.reset();
  stream_loop_.reset();
  measure_loop_.reset();
  std::unique_ptr<BackgroundPool> finished_backups;
  {
    std::lock_guard lock(backups_mutex_);
    finished_backups = std::move(backups_);
  }
  finished_backups.reset();  // waits for a running backup
  // Long polls end first: the listeners would wait for them.
  if (workers_) workers_->stop();
  if (homes_) homes_->stop();
  if (http_) http_->stop();
  if (grpc_) grpc_->stop(2000);
  if (homes_) homes_->end_reads();
  for (const auto& clock : clocks_)
    clock->stop();
  if (shards_) shards_->stop();
  if (admin_) admin_->stop(1000);
  scrubbers_.clear();
  // After the listeners: requests with unknown keys wake the loop.
  issuer_stop_.request_stop();
  issuer_loop_.reset();
  std::error_code ec;
  std::filesystem::remove(config_.text("data") + "/serving.json", ec);
}

}  // namespace pawl::cli
