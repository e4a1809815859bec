#include <fmt/format.h>

#include "faces/entities/search/search.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

// Messages, search jobs, machine clients and keys: records whose cells hold the JSON that is shown.

namespace pawl::entities {

namespace {

// Null when there is no such cell.
Result<json::Value> stored(Turn& turn, BytesView key) {
  TRY(Cell cell, turn.read(key));
  if (!cell.exists()) return json::Value();
  return json::parse(cell.value(), {.max_bytes = limits::kCellBytes});
}

const json::Value& part(const json::Value& body, std::string_view name) {
  static const json::Value null;
  const json::Value* v = body.find(name);
  return v ? *v : null;
}

uint64_t part_or_zero(const json::Value& job, std::string_view name) {
  return part(job, name).as_uint64().value_or(0);
}

// A job ends once: a cancel that comes after the end is refused, and so is a page after a cancel.
Result<void> still_running(const json::Value& job, std::string_view id) {
  if (!job.is_object()) return fail(search_job_not_found(id));
  std::string_view status = job.string_or("status");
  if (status == "RUNNING") return {};
  return fail(Code::invalid, kSearchJobOver, fmt::format("search job {} is {} already", id, status),
              json::print(json::object({{"currentStatus", status}, {"snapshotId", id}})));
}

}  // namespace

Result<Bytes> new_message(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string id = turn.dice().uuid1(turn.now());
  // Messages are not in transactions; the original's answer has an id, so one is drawn.
  std::string tx = turn.dice().uuid1(turn.now());
  turn.write(message_key(tenant, id), json::print(part(body, "message")));
  return json::print(
      json::Array{json::object({{"entityIds", json::Array{id}}, {"transactionId", tx}})});
}

Error message_not_found(std::string_view id) {
  return {Code::not_found, "ENTITY_NOT_FOUND", fmt::format("cannot find message id={}", id),
          json::print(json::object({{"messageId", id}}))};
}

Result<Bytes> delete_message(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  Key key = message_key(tenant, id);
  TRY(Cell cell, turn.read(key));
  if (!cell.exists()) return fail(message_not_found(id));
  turn.erase(key);
  return json::print(json::object({{"entityIds", json::Array{id}}}));
}

// Deletes the messages that exist; the others are ignored.
Result<Bytes> delete_messages(Turn& turn, std::string_view tenant, const json::Value& body) {
  json::Array deleted;
  for (const json::Value& id : part(body, "ids").array()) {
    TRY(Cell cell, turn.read(message_key(tenant, id.string())));
    if (!cell.exists()) continue;
    turn.erase(message_key(tenant, id.string()));
    deleted.push_back(id);
  }
  return json::print(json::object({{"entityIds", std::move(deleted)}}));
}

Error search_job_not_found(std::string_view id) {
  return {Code::not_found, "SEARCH_JOB_NOT_FOUND", fmt::format("cannot find search job id={}", id),
          json::print(json::object({{"snapshotId", id}}))};
}

// {"job": {...}} -> the id. The job is deleted by a timer at the end of its lifetime.
Result<Bytes> new_search_job(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string id = turn.dice().uuid1(turn.now());
  json::Value job = part(body, "job");
  job.object().set("id", id);
  job.object().set("status", "RUNNING");
  job.object().set("createTime", turn.now());
  turn.write(search_job_key(tenant, id), json::print(job));
  Effect end;
  end.id = fmt::format("{}{}\x1f{}", kSearchJobTimer, tenant, id);
  end.to = To::clock;
  end.program = kProgram;
  end.tenant = tenant;
  end.due = turn.now() + kSearchJobLifetime;
  turn.open(std::move(end));
  return json::quote(id);
}

Result<Bytes> expire_search_job(Turn& turn, std::string_view timer) {
  timer.remove_prefix(kSearchJobTimer.size());
  // From the end: a tenant may contain the separator, a UUID cannot.
  size_t part = timer.rfind('\x1f');
  const std::string_view tenant = timer.substr(0, part);
  const std::string_view id = timer.substr(part + 1);
  TRY(json::Value job, stored(turn, search_job_key(tenant, id)));
  if (!job.is_object()) return Bytes();
  uint64_t pages = part_or_zero(job, "pages");
  for (uint64_t page = 0; page < pages; ++page)
    turn.erase(search_job_page_key(tenant, id, page));
  turn.erase(search_job_key(tenant, id));
  return Bytes();
}

// The search runs outside the turn. When the job was cancelled meanwhile, this refuses and it
// stops.
Result<Bytes> add_search_page(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(json::Value job, stored(turn, search_job_key(tenant, id)));
  TRY_OK(still_running(job, id));
  uint64_t page = part(body, "page").as_uint64().value_or(0);
  turn.write(search_job_page_key(tenant, id, page), json::print(part(body, "ids")));
  job.object().set("pages", page + 1);
  turn.write(search_job_key(tenant, id), json::print(job));
  return Bytes("{}");
}

// {"id", "status", "count"?, "seq"?}
Result<Bytes> end_search_job(Turn& turn, std::string_view tenant, const json::Value& body) {
  std::string_view id = body.string_or("id");
  TRY(json::Value job, stored(turn, search_job_key(tenant, id)));
  TRY_OK(still_running(job, id));
  job.object().set("status", part(body, "status"));
  job.object().set("count", part(body, "count").is_number() ? part(body, "count") : json::Value(0));
  if (const json::Value* seq = body.find("seq")) job.object().set("seq", *seq);
  job.object().set("finishTime", turn.now());
  turn.write(search_job_key(tenant, id), json::print(job));
  return Bytes("{}");
}

// Clients, key pairs and trusted keys are checked by the service; the verb stores them as they are.
Result<Bytes> put_client(Turn& turn, std::string_view, const json::Value& body) {
  turn.write(client_key(body.string_or("clientId")), json::print(body));
  return Bytes("{}");
}

Result<Bytes> delete_client(Turn& turn, std::string_view, const json::Value& body) {
  Key key = client_key(body.string_or("clientId"));
  TRY(Cell cell, turn.read(key));
  if (!cell.exists())
    return fail(Code::not_found, "M2M_CLIENT_NOT_FOUND",
                fmt::format("there is no M2M client '{}'", body.string_or("clientId")));
  turn.erase(key);
  return Bytes("{}");
}

Result<Bytes> put_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body) {
  turn.write(trusted_key_key(tenant, body.string_or("kid")), json::print(body));
  return Bytes("{}");
}

Result<Bytes> delete_trusted_key(Turn& turn, std::string_view tenant, const json::Value& body) {
  Key key = trusted_key_key(tenant, body.string_or("kid"));
  TRY(Cell cell, turn.read(key));
  if (!cell.exists())
    return fail(Code::not_found, "TRUSTED_KEY_NOT_FOUND",
                fmt::format("there is no trusted key '{}'", body.string_or("kid")));
  turn.erase(key);
  return Bytes("{}");
}

Result<Bytes> put_key_pair(Turn& turn, std::string_view, const json::Value& body) {
  turn.write(key_pair_key(body.string_or("kid")), json::print(body));
  return Bytes("{}");
}

Result<Bytes> delete_key_pair(Turn& turn, std::string_view, const json::Value& body) {
  turn.erase(key_pair_key(body.string_or("kid")));
  return Bytes("{}");
}

}  // namespace pawl::entities
