#include <fmt/format.h>

#include "base/log.h"
#include "faces/entities/service.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// The background tasks of the service: search jobs, the filling of indexes, large removals.

namespace pawl::entities {

namespace {

// Entities that are indexed in one turn; other requests run between the turns.
constexpr size_t kIndexFillBatch = 500;
// Up to this many entities are removed in one transaction.
constexpr int64_t kMaxRemovedInOneTurn = 10'000;
constexpr size_t kRemoveBatch = 1000;

RequestContext system_context(const std::string& tenant) {
  return {.caller = {tenant, "system", ""}};
}

}  // namespace

void Service::start_search_job(const RequestContext& context, Query query, Done done) {
  // The snapshot is not part of the body: a repeated request with one Idempotency-Key must be
  // equal.
  json::Object job;
  job.add("model", query.model);
  job.add("version", query.version);
  if (!query.request_digest.empty()) job.add("asked", query.request_digest);
  std::string tenant = context.caller.tenant;
  act(context, "job.new", json::object({{"job", std::move(job)}}),
      [this, tenant, query = std::move(query),
       done = std::move(done)](Result<Bytes> answer) mutable {
        if (!answer) return done(std::move(answer));
        std::string id = answer->substr(1, answer->size() - 2);
        // The snapshot is fixed before the answer is sent.
        ReadSnapshot snapshot = kernel_.snapshot();
        auto seq = query.at ? snapshot.seq_at(*query.at) : Result<Seq>(snapshot.seq());
        if (!seq) return done(fail(std::move(seq.error())));
        query.seq = *seq;
        query.at.reset();
        {
          std::lock_guard lock(search_jobs_mutex_);
          if (!running_search_jobs_.insert(id).second)
            return done(std::move(answer));  // a repeated request: the job runs already
        }
        auto started = run_job(tenant, [this, tenant, id, query = std::move(query)] {
          run_search_job(tenant, id, query);
        });
        if (!started) {
          std::lock_guard lock(search_jobs_mutex_);
          running_search_jobs_.erase(id);
          return done(fail(std::move(started.error())));
        }
        done(std::move(answer));
      });
}

void Service::run_search_job(const std::string& tenant, const std::string& id, const Query& query) {
  RequestContext context = system_context(tenant);
  uint64_t count = 0;
  uint64_t page = 0;
  json::Array ids;
  std::string status = "SUCCESSFUL";
  auto flush = [&] {
    if (ids.empty()) return true;
    auto done =
        act_and_wait(context, "job.page",
                     json::object({{"id", id}, {"page", page++}, {"ids", std::exchange(ids, {})}}));
    return done.has_value();
  };
  auto known = model(tenant, query.model, query.version);
  Query until_stop = query;
  until_stop.proceed = [this]() -> Result<void> {
    if (!stopping_) return {};
    return fail(Code::unavailable, kStopping, "the server is stopping");
  };
  Result<Plan> plan = search(kernel_.snapshot(), until_stop, known ? known->get() : nullptr,
                             [&](const EntityView& e) {
                               ++count;
                               ids.emplace_back(e.id);
                               return (ids.size() < kSearchJobPageSize || flush()) && !stopping_;
                             });
  if (!plan || !flush()) status = "FAILED";
  (void)act_and_wait(
      context, "job.end",
      json::object(
          {{"id", id}, {"status", status}, {"count", count}, {"seq", query.seq.value_or(0)}}))
      .has_value();
  std::lock_guard lock(search_jobs_mutex_);
  running_search_jobs_.erase(id);
}

Result<json::Value> Service::search_job(std::string_view tenant, std::string_view id) const {
  TRY(json::Value job, cell_json(search_job_key(tenant, id)));
  if (!job.is_object()) return fail(search_job_not_found(id));
  std::lock_guard lock(search_jobs_mutex_);
  // A job that is RUNNING but not in the set was cut off by a restart.
  if (job.string_or("status") == "RUNNING" && !running_search_jobs_.contains(id)) {
    TRY(json::Value again, cell_json(search_job_key(tenant, id)));
    if (again.string_or("status") == "RUNNING") again.object().set("status", "FAILED");
    return again;
  }
  return job;
}

void Service::cancel_search_job(const RequestContext& context, const std::string& id, Done done) {
  act(context, "job.end", json::object({{"id", id}, {"status", "CANCELLED"}}), std::move(done));
}

Result<Service::Page> Service::search_job_page(std::string_view tenant, const json::Value& job,
                                               uint64_t size, uint64_t number,
                                               bool with_model) const {
  Page out;
  const json::Value* count = job.find("count");
  out.total = count ? count->as_uint64().value_or(0) : 0;
  const json::Value* at = job.find("seq");
  Seq seq = at ? at->as_uint64().value_or(0) : 0;
  ReadSnapshot snapshot = kernel_.snapshot();
  const uint64_t first = number * size;
  const uint64_t last = std::min(out.total, first + size);
  json::Value ids;
  size_t bytes = 0;
  for (uint64_t i = first; i < last; ++i) {
    if (ids.is_null() || i % kSearchJobPageSize == 0) {
      TRY(ids, cell_json(search_job_page_key(tenant, job.string_or("id"), i / kSearchJobPageSize)));
      if (!ids.is_array())
        return fail(Code::corrupt, "BAD_SEARCH_JOB",
                    "a page of the search job is missing; search again");
    }
    const std::string& id = ids.array()[i % kSearchJobPageSize].string();
    TRY(Cell cell, snapshot.read_at(entity_key(tenant, id), seq));
    EntityView e;
    if (!cell.exists()) continue;
    if (!view_entity(cell.value(), e)) return fail(unreadable_entity(id));
    append_envelope(out.envelopes.emplace_back(), e, with_model);
    bytes += out.envelopes.back().size();
    if (bytes > limits::kWholeResultBytes) return result_too_large();
  }
  return out;
}

void Service::remove_all(const RequestContext& context, const std::string& name, int32_t version,
                         Removal removal, Done done) {
  json::Value body =
      json::object({{"name", name}, {"version", version}, {"verbose", removal.verbose}});
  if (removal.condition) body.object().add("condition", *removal.condition);
  auto known = model(context.caller.tenant, name, version);
  if (!known) return done(fail(std::move(known.error())));
  if (!*known || !context.token.empty() ||
      counts_.total(context.caller.tenant, name, version) <= kMaxRemovedInOneTurn)
    return act(context, "remove.all", std::move(body), std::move(done));
  Query query{.tenant = context.caller.tenant, .model = name, .version = version};
  if (removal.condition) {
    auto compiled = condition(query.tenant, name, version, *removal.condition, true);
    if (!compiled) return done(fail(std::move(compiled.error())));
    if (auto may = check_removal_condition(**compiled); !may)
      return done(fail(std::move(may.error())));
    query.condition = *std::move(compiled);
  }
  auto waiting = std::make_shared<Done>(std::move(done));
  auto started = run_job(
      query.tenant, [this, context, query, known = *known, verbose = removal.verbose, waiting] {
        (*waiting)(remove_many(context, query, *known, verbose));
      });
  if (!started) (*waiting)(fail(std::move(started.error())));
}

Result<Bytes> Service::remove_many(const RequestContext& context, const Query& query,
                                   const Model& model, bool verbose) {
  json::Array ids, listed;
  uint64_t removed = 0;
  Result<void> good;
  auto flush = [&] {
    uint64_t batch = ids.size();
    auto done =
        act_and_wait(context, "remove.some", json::object({{"ids", std::exchange(ids, {})}}));
    if (!done) {
      good = fail(std::move(done.error()));
      return false;
    }
    removed += batch;
    return !stopping_;
  };
  TRY_OK(search(kernel_.snapshot(), query, &model, [&](const EntityView& e) {
    ids.emplace_back(e.id);
    if (verbose) listed.emplace_back(e.id);
    return ids.size() < kRemoveBatch || flush();
  }));
  if (good && !ids.empty()) flush();
  TRY_OK(good);
  return removal_answer(model, removed, verbose ? &listed : nullptr);
}

void Service::set_indexes(const RequestContext& context, json::Value body, Done done) {
  std::string tenant = context.caller.tenant, name(body.string_or("name"));
  int32_t version = static_cast<int32_t>(body.find("version")->as_int64().value_or(0));
  act(context, "model.indexes", std::move(body),
      [this, tenant, name, version, done = std::move(done)](Result<Bytes> answer) mutable {
        if (!answer) return done(std::move(answer));
        auto parsed = json::parse(*answer);
        bool wanted = parsed && parsed->find("fill") && parsed->find("fill")->boolean();
        if (wanted && !run_job(tenant, [this, tenant, name, version] {
              fill_indexes(tenant, name, version);
            }))
          return done(fail(Code::exhausted, "TOO_MANY_SEARCHES",
                           "the index is declared, but too many background tasks are waiting: it "
                           "will be filled after the next start of the server"));
        if (parsed) parsed->object().erase("fill");
        done(parsed ? Result<Bytes>(json::print(*parsed)) : std::move(answer));
      });
}

void Service::fill_indexes(const std::string& tenant, const std::string& name, int32_t version) {
  RequestContext context = system_context(tenant);
  json::Array ids, filled;
  auto known = model(tenant, name, version);
  if (!known || !*known) return;
  for (const Index& i : (*known)->indexes)
    filled.push_back(json::object({{"path", i.path}, {"since", i.since}}));
  bool good = true;
  auto flush = [&](bool done) {
    json::Value body =
        json::object({{"name", name}, {"version", version}, {"ids", std::exchange(ids, {})}});
    if (done) body.object().add("filled", filled);
    good = good && act_and_wait(context, "model.fill", std::move(body)).has_value() && !stopping_;
    return good;
  };
  auto scanned = kernel_.snapshot().scan(
      entity_prefix(tenant, name, version), [&](BytesView, const Cell& cell) {
        EntityView e;
        if (!view_entity(cell.value(), e) || e.model != name || e.version != version) return true;
        ids.emplace_back(e.id);
        return ids.size() < kIndexFillBatch || flush(false);
      });
  if (scanned && good) flush(true);
}

Result<void> Service::resume_filling_indexes() {
  return kernel_.snapshot().scan(prefix({kProgram}), [&](BytesView key, const Cell& cell) {
    std::vector<std::string> parts = parts_of(key);
    if (parts.size() < 5 || parts[2] != "m") return true;
    auto model = decode_model(cell.value());
    if (!model || std::all_of(model->indexes.begin(), model->indexes.end(),
                              [](const Index& i) { return i.ready; }))
      return true;
    // A tenant with too many of them gets the rest after the next start.
    if (!run_job(parts[1], [this, tenant = parts[1], name = model->name, version = model->version] {
          fill_indexes(tenant, name, version);
        }))
      log(Level::warn, "an index is not filled: too many tasks of its tenant wait",
          {{"tenant", parts[1]}, {"model", model->name}});
    return true;
  });
}

}  // namespace pawl::entities
