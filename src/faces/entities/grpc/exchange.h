#pragma once
// One request event and its replies, independent of gRPC. The type of the event selects a row of
// the table; the handler of the row calls the service and adds the replies.

#include "faces/entities/face.h"

namespace pawl::entities {

struct ReplyEvent {
  std::string type;
  std::string payload;  // JSON
};

// The gRPC method that brought the event.
enum class GrpcMethod : uint8_t {
  model_manage,
  manage,
  manage_collection,
  search,
  search_collection
};

class GrpcExchange : public std::enable_shared_from_this<GrpcExchange> {
 public:
  // Further replies, one at a time, made when the client has read those before; nothing at the end.
  using More = std::move_only_function<std::optional<ReplyEvent>()>;
  using Finished = std::move_only_function<void(std::vector<ReplyEvent>, More)>;
  GrpcExchange(Face& face, RequestContext context, std::string id, json::Value payload,
               Finished finished)
      : face(face),
        context(std::move(context)),
        id(std::move(id)),
        payload(std::move(payload)),
        finished_(std::move(finished)) {}

  Face& face;
  const RequestContext context;
  const std::string id;  // of the request event
  const json::Value payload;
  // Becomes true when the client leaves before its answer; null: that is not noticed.
  Service::ClientLeft left{};
  std::string reply_type;
  // Members that the schema of the reply requires, also when the request fails.
  std::string required_members;

  Service& service() { return face.service(); }
  const std::string& tenant() const { return context.caller.tenant; }

  // Adds a successful reply. `more` is JSON text for the members besides id, requestId and success;
  // it is empty or begins with a comma.
  void reply(std::string_view more) { replies_.push_back(success(more)); }
  ReplyEvent success(std::string_view more) const;
  ReplyEvent failure(const Error& error) const;
  // Adds the member "warnings" of a verb's answer, if it has one.
  void append_warnings(const json::Value& answer, std::string& more) const;
  // Call it once, after the last reply. refuse() adds a failed reply and calls it.
  void finish(More more = {}) { finished_(std::move(replies_), std::move(more)); }
  void refuse(const Error& error);

  // The name and version in the member "model".
  Result<std::pair<std::string, int32_t>> model(const json::Value& from) const;
  Result<std::string> uuid(const json::Value& from, std::string_view name) const;
  Result<std::optional<Time>> time(std::string_view name) const;
  int64_t number(std::string_view name, int64_t default_value) const;
  // False also for null: clients send null for members that they leave out.
  bool has(std::string_view name) const;

 private:
  Finished finished_;
  std::vector<ReplyEvent> replies_;
};
using GrpcExchangePtr = std::shared_ptr<GrpcExchange>;  // shared by the callbacks of one request

struct EventRow {
  GrpcMethod call;
  std::string_view request;
  std::string_view reply;
  // A handler that returns an error has not finished the exchange: run_event() then refuses it. A
  // handler that returns success finishes it itself, now or in a callback.
  Result<void> (*handle)(const GrpcExchangePtr&);
  std::string_view required_members;  // see GrpcExchange
  // A member without which the request is INVALID_ARGUMENT.
  std::string_view required_argument{};
};

const EventRow* find_event(GrpcMethod call, std::string_view type);
// Runs the handler of the row. The exchange finishes once, possibly later.
void run_event(const EventRow& row, GrpcExchangePtr exchange);

Result<void> create_entity(const GrpcExchangePtr&);
Result<void> update_entity(const GrpcExchangePtr&);
Result<void> patch_entity(const GrpcExchangePtr&);
Result<void> fire_transition(const GrpcExchangePtr&);
Result<void> delete_entity(const GrpcExchangePtr&);
Result<void> create_collection(const GrpcExchangePtr&);
Result<void> update_collection(const GrpcExchangePtr&);
Result<void> delete_all_entities(const GrpcExchangePtr&);
Result<void> get_entity_event(const GrpcExchangePtr&);
Result<void> get_all_entities(const GrpcExchangePtr&);
Result<void> search_entities(const GrpcExchangePtr&);
Result<void> entity_stats(const GrpcExchangePtr&);
Result<void> entity_stats_by_state(const GrpcExchangePtr&);
Result<void> entity_changes(const GrpcExchangePtr&);
Result<void> snapshot_search(const GrpcExchangePtr&);
Result<void> snapshot_status(const GrpcExchangePtr&);
Result<void> snapshot_cancel(const GrpcExchangePtr&);
Result<void> snapshot_get(const GrpcExchangePtr&);
Result<void> model_import(const GrpcExchangePtr&);
Result<void> model_export(const GrpcExchangePtr&);
Result<void> model_transition(const GrpcExchangePtr&);
Result<void> model_delete(const GrpcExchangePtr&);
Result<void> model_get_all(const GrpcExchangePtr&);
Result<void> model_unique_keys(const GrpcExchangePtr&);

}  // namespace pawl::entities
