// The routes of the host itself: about the server, and those of the admin address.

#include "base/utf8.h"
#include "cli/host.h"
#include "cli/openapi.h"
#include "json/text.h"
#include "pawl/version.h"
#include "server/ops/backup_path.h"

namespace pawl::cli {

namespace {

namespace row = wire::row;

constexpr wire::AnswerShape kServerShown{
    "Server",
    {row::text("name").example(R"("pawl")"), row::text("version"),
     row::text("openapi").example(R"("/openapi.json")")}};
constexpr wire::RequestShape kBackupQuery{
    "", {row::text("to", "A new folder below --backup-dir.").required().example(R"("monday")")}};
constexpr wire::AnswerShape kBackedUp{
    "Backup", {row::text("folder"), row::count("last", "The last entry that was copied.")}};
constexpr wire::AnswerShape kScrubbed{"Scrub",
                                      {row::count("passes"), row::count("bytesRead"),
                                       row::list("findings", "Damaged places.", wire::Kind::text)}};
constexpr wire::AnswerShape kParked{"ParkedEffect", {row::text("effect"), row::time("since")}};
constexpr wire::AnswerShape kQuarantine{"Quarantine", {row::list("effects", "", kParked)}};
constexpr wire::RequestShape kReleaseQuery{
    "", {row::text("effect", "The id of the effect.").required().example(R"("timer:1")")}};
constexpr wire::AnswerShape kReleased{"Released", {row::flag("released")}};

constexpr wire::Operation kOpenApiDocument{
    .id = "getOpenApi", .replies = {{200, "This document.", wire::map_of(wire::Kind::any)}}};
constexpr wire::Operation kDocs{.id = "getDocsPage",
                                .replies = {{200, "A page.", wire::Kind::octets, "text/html"}}};
constexpr wire::Operation kRoot{.id = "getServer", .replies = {{200, "The server.", kServerShown}}};
constexpr wire::Operation kBackup{.id = "backUp",
                                  .query = &kBackupQuery,
                                  .replies = {{200, "The copy.", kBackedUp}},
                                  .errors = {409}};
constexpr wire::Operation kScrub{.id = "scrubJournal",
                                 .replies = {{200, "What was found.", kScrubbed}}};
constexpr wire::Operation kListQuarantine{.id = "listQuarantine",
                                          .replies = {{200, "The effects.", kQuarantine}}};
constexpr wire::Operation kRelease{.id = "releaseQuarantined",
                                   .query = &kReleaseQuery,
                                   .replies = {{200, "It is delivered again.", kReleased}},
                                   .errors = {404}};

}  // namespace

// The document does not change after the start, so it is printed once.
wire::Route Host::openapi_route(const std::string& document) {
  return wire::open({"GET", "/openapi.json",
                     [&document](wire::Request, wire::Respond respond) {
                       respond(wire::json_response(200, document));
                     },
                     "This document.", &kOpenApiDocument});
}

std::vector<wire::Route> Host::general_routes() {
  return {openapi_route(openapi_),
          wire::open({"GET", "/docs",
                      [this](wire::Request, wire::Respond respond) { respond(docs_page(router_)); },
                      "This document as a page.", &kDocs}),
          wire::open({"GET", "/",
                      [](wire::Request, wire::Respond respond) {
                        respond(wire::json_response(200,
                                                    "{\"name\":\"pawl\",\"version\":\"" PAWL_VERSION
                                                    "\",\"openapi\":\"/openapi.json\"}"));
                      },
                      "Which server this is.", &kRoot})};
}

std::vector<wire::Route> Host::admin_routes() {
  server::AdminOptions options;
  options.metrics_bearer = config_.text("metrics-bearer");
  // A turn has a budget of about a second. One that runs for longer than this is stuck.
  constexpr Time kStuck = 5 * kSecond;
  options.ready = {{"journal", [this] { return shards_->healthy(); }},
                   {"rows", [this] { return shards_->rows_intact(); }},
                   {"kernel", [this] { return shards_->progressing(kStuck); }}};
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
                    "Copies the journal into a new folder below --backup-dir.", &kBackup});
  routes.push_back({"POST", "/scrub",
                    [this](wire::Request, wire::Respond respond) { scrub(std::move(respond)); },
                    "Reads the whole journal now and lists damaged places.", &kScrub});
  routes.push_back({"GET", "/quarantine",
                    [this](wire::Request, wire::Respond respond) {
                      respond(wire::json_response(200, json::print(quarantine_list())));
                    },
                    "Lists the effects that are in quarantine.", &kListQuarantine});
  routes.push_back({"POST", "/quarantine/release",
                    [this](wire::Request request, wire::Respond respond) {
                      release_effect(request, std::move(respond));
                    },
                    "Delivers an effect of the quarantine again.", &kRelease});
  routes.push_back(openapi_route(admin_openapi_));
  return routes;
}

void Host::scrub(wire::Respond respond) {
  auto answer = std::make_shared<wire::Respond>(std::move(respond));
  run_aside(answer, [this, answer] {
    json::Array findings;
    uint64_t passes = 0, bytes = 0;
    for (const auto& scrubber : scrubbers_) {
      scrubber->run_once();
      const ScrubStatus status = scrubber->status();
      findings.insert(findings.end(), status.findings.begin(), status.findings.end());
      passes += status.passes;
      bytes += status.bytes;
    }
    (*answer)(
        wire::json_response(200, json::print(json::object({{"passes", json::Value(passes)},
                                                           {"bytesRead", json::Value(bytes)},
                                                           {"findings", std::move(findings)}}))));
  });
}

// Runs a task that reads the whole journal beside the turns.
void Host::run_aside(const std::shared_ptr<wire::Respond>& answer, BackgroundPool::Task task) {
  std::lock_guard lock(backups_mutex_);
  if (!backups_ || !backups_->add(std::move(task)))
    (*answer)(wire::json_response(
        503, R"({"error":"unavailable","reason":"too many backups wait, or the server stops"})"));
}

json::Value Host::quarantine_list() const {
  json::Array effects;
  for (const Quarantine::Parked& parked : shards_->quarantine())
    effects.push_back(
        json::object({{"effect", as_utf8(parked.effect_id)}, {"since", rfc3339(parked.since)}}));
  return json::object({{"effects", json::Value(std::move(effects))}});
}

void Host::release_effect(const wire::Request& request, wire::Respond respond) {
  auto released = shards_->release(request.query_param(kReleaseQuery["effect"]).value_or(""));
  if (released) return respond(wire::json_response(200, R"({"released":true})"));
  respond(wire::json_response(released.error().code == Code::not_found ? 404 : 503,
                              json::print(json::object({{"error", released.error().reason},
                                                        {"reason", released.error().message}}))));
}

Result<server::RoutePermissions> Host::admin_permissions() const {
  TRY(server::RoutePermissions permissions, server::route_permissions(admin_router_));
  // The handler checks the bearer token of --metrics-bearer itself: it is no token of a caller.
  bool open = config_.boolean("metrics-open") || !config_.text("metrics-bearer").empty();
  for (auto& [route, needs] : permissions)
    if (open && route->pattern == "/metrics") needs = server::Permission::open;
  return permissions;
}

std::vector<const Journal*> Host::journals() const {
  std::vector<const Journal*> out;
  for (const auto& shard : *shards_)
    out.push_back(&shard->journal());
  return out;
}

void Host::back_up(const wire::Request& request, wire::Respond respond) {
  std::string root = config_.text("backup-dir");
  if (root.empty()) root = config_.text("data") + "/backups";
  Result<std::string> path =
      server::backup_path(root, request.query_param(kBackupQuery["to"]).value_or(std::string()));
  if (!path) return respond(plain_refusal(request, path.error(), {}));
  // Shared: a pool that is full or stopping drops the task, and then the refusal answers here.
  auto answer = std::make_shared<wire::Respond>(std::move(respond));
  auto copy = [this, to = *path, answer] {
    auto copied = copy_journals(journals(), to, {});
    if (!copied)
      return (*answer)(wire::json_response(
          500, json::print(json::object(
                   {{"error", copied.error().reason}, {"reason", copied.error().message}}))));
    (*answer)(wire::json_response(
        200, json::print(json::object({{"folder", to}, {"last", json::Value(copied->last)}}))));
  };
  run_aside(answer, std::move(copy));
}

}  // namespace pawl::cli
