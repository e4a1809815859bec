#include <fmt/format.h>

#include "faces/entities/http.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr size_t kStates = 1000;

struct Wanted {
  std::optional<std::pair<std::string, int32_t>> model;
  std::vector<std::string> states;
  bool takes(const Counts::Row& r) const {
    if (model && (r.model != model->first || r.version != model->second)) return false;
    return states.empty() || std::find(states.begin(), states.end(), r.state) != states.end();
  }
};

Result<Wanted> wanted_of(Http& http) {
  Wanted w;
  if (!http.request.params.empty()) {
    TRY(int32_t version, http.version(1));
    w.model.emplace(http.param(0), version);
  }
  w.states = http.request.query_params("states");
  if (w.states.size() > kStates) return bad_request(fmt::format("at most {} states may be named", kStates));
  return w;
}

Result<Bytes> by_state(Http& http) {
  TRY(Wanted wanted, wanted_of(http));
  json::Array out;
  for (const Counts::Row& r : http.service().counts().by_state(http.tenant()))
    if (wanted.takes(r)) out.push_back(json::object({{"modelName", r.model}, {"modelVersion", r.version}, {"state", r.state}, {"count", r.count}}));
  return json::print(out);
}

json::Value total(Http& http, const std::string& model, int32_t version) {
  return json::object({{"modelName", model}, {"modelVersion", version}, {"count", http.service().counts().total(http.tenant(), model, version)}});
}

Result<Bytes> of_all(Http& http) {
  TRY(std::vector<Model> models, http.service().models(http.tenant()));
  json::Array out;
  for (const Model& m : models) out.push_back(total(http, m.name, m.version));
  return json::print(out);
}

Result<Bytes> of_one(Http& http) {
  TRY(Wanted wanted, wanted_of(http));
  return json::print(total(http, wanted.model->first, wanted.model->second));
}

}  // namespace

void add_stats_routes(Rows& rows) {
  rows.now("GET", "/entity/stats", of_all, "How many entities each model has.");
  rows.now("GET", "/entity/stats/{name}/{version}", of_one, "How many entities a model has.");
  rows.now("GET", "/entity/stats/states", by_state, "How many entities are in each state.");
  rows.now("GET", "/entity/stats/states/{name}/{version}", by_state, "How many entities of a model are in each state.");
}

}  // namespace pawl::entities
