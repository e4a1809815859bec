#include "assembly/homes.h"

#include <fmt/format.h>

#include <map>

#include "faces/processes/face.h"

namespace pawl::assembly {

namespace {

struct HomeRow {
  std::string_view below;  // the pattern begins with it
  Home home;
  bool entities = false;  // below the context path
};
// A new route below another path needs a row here.
constexpr HomeRow kHomes[] = {
    {"/.well-known", Home::accounts, true},
    {"/account", Home::accounts, true},
    {"/admin", Home::node, true},
    {"/audit", Home::tenant, true},
    {"/clients", Home::accounts, true},
    {"/entity", Home::tenant, true},
    {"/health", Home::node, true},
    {"/help", Home::node, true},
    {"/message", Home::tenant, true},
    {"/model", Home::tenant, true},
    {"/oauth", Home::accounts, true},
    {"/platform-api", Home::tenant, true},
    {"/search", Home::tenant, true},
    {"/sql", Home::node, true},
    {"/health", Home::node},
    {"/healthz", Home::node},
    {"/help", Home::node},
    {"/oauth", Home::accounts},
    {"/pawl/v1/lifecycle", Home::tenant},
    {"/pawl/v1/processes", Home::tenant},
    {"/v1/cas", Home::tenant},
    {"/v1/definitions", Home::tenant},
    {"/v1/effects", Home::tenant},
    {"/v1/health", Home::node},
    {"/v1/instances", Home::tenant},
    {"/v1/jobs", Home::tenant},
    {"/v1/secrets", Home::tenant},
    {"/v1/workspace", Home::tenant},
    {"/v1/worlds", Home::tenant},
    {"/workflows", Home::tenant},
};

// "/v1/jobs" is above "/v1/jobs/{id}" and "/v1/jobs", and not above "/v1/jobsuite".
bool is_below(std::string_view pattern, std::string_view prefix) {
  return pattern.starts_with(prefix) &&
         (pattern.size() == prefix.size() || pattern[prefix.size()] == '/');
}

}  // namespace

std::optional<Home> home_of(std::string_view pattern, std::string_view context_path) {
  for (const HomeRow& row : kHomes) {
    std::string_view rest = pattern;
    if (row.entities) {
      if (!rest.starts_with(context_path)) continue;
      rest.remove_prefix(context_path.size());
    }
    if (is_below(rest, row.below)) return row.home;
  }
  return std::nullopt;
}

Homes::Homes(const HomesOver& over)
    : shards_(over.shards), context_path_(over.config.text("context-path")) {
  for (const auto& shard : shards_)
    faces_.push_back(
        std::make_unique<Faces>(FacesOver{over.config, over.programs, *shard, over.workers,
                                          over.authenticator, over.outgoing, over.charge}));
  if (!over.all) return;
  all_processes_ = std::make_unique<processes::Face>(
      *over.all, over.workers,
      processes::QuarantineAccess{
          [this] { return shards_.quarantine(); },
          [this](std::string_view effect) { return shards_.release(effect); }},
      processes::ServiceOptions{.strict_leases = over.config.boolean("strict-leases")});
}

Homes::~Homes() = default;

processes::Face& Homes::processes() {
  return all_processes_ ? *all_processes_ : faces_.front()->processes();
}

Result<wire::Route> Homes::joined(size_t index) const {
  wire::Route out = *rows_.front()[index];
  const auto home = home_of(out.pattern, context_path_);
  if (!home)
    return fail(
        Code::internal, "NO_HOME",
        fmt::format("{} {} has no row in kHomes (assembly/homes.cc)", out.method, out.pattern));
  if (home != Home::tenant) return out;
  out.handle = [this, index](wire::Request request, wire::Respond respond) {
    const wire::Route& row = *rows_[shards_.home(request.caller.tenant)][index];
    row.handle(std::move(request), std::move(respond));
  };
  return out;
}

Result<void> Homes::add_routes(wire::Router& router) {
  if (faces_.size() == 1) {
    faces_.front()->add_routes(router);
    for (const wire::Route* row : router.rows())
      CHECK(home_of(row->pattern, context_path_));
    return {};
  }
  // Not moved afterwards: the handlers of slow routes refer to their router.
  routers_.resize(faces_.size());
  for (size_t shard = 0; shard < faces_.size(); ++shard) {
    faces_[shard]->add_routes(routers_[shard]);
    rows_.push_back(routers_[shard].rows());
  }
  std::vector<wire::Route> out;
  std::map<std::string, wire::Dialect> dialects;
  for (size_t i = 0; i < rows_.front().size(); ++i) {
    TRY(wire::Route row, joined(i));
    if (const wire::Dialect* dialect = routers_.front().dialect_of(row.pattern))
      dialects.emplace(dialect->prefix, *dialect);
    out.push_back(std::move(row));
  }
  std::vector<wire::Dialect> found;
  for (auto& [prefix, dialect] : dialects)
    found.push_back(std::move(dialect));
  router.add(std::move(out), std::move(found));
  return {};
}

// The first shard comes last. Each shard stores the bootstrap client, with a hash of its own, and
// the authenticator keeps what it was told last: clients log in at the first shard.
Result<void> Homes::start() {
  for (size_t shard = faces_.size(); shard-- > 0;)
    TRY_OK(faces_[shard]->start());
  return {};
}

std::vector<std::pair<std::string, int64_t>> Homes::limited_jobs() const {
  std::map<std::string, int64_t> sums;
  for (const auto& faces : faces_)
    for (const auto& [limit, jobs] : faces->limited_jobs())
      sums[limit] += jobs;
  return {sums.begin(), sums.end()};
}

void Homes::stop() {
  for (const auto& faces : faces_)
    faces->stop();
}

void Homes::end_reads() {
  for (const auto& faces : faces_)
    faces->end_reads();
}

}  // namespace pawl::assembly
