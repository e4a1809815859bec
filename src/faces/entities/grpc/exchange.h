#pragma once
// One request event and its replies, without the wire: the type of the event chooses a row, the row
// calls the service and says the replies.

#include "faces/entities/face.h"

namespace pawl::entities {

struct ReplyEvent {
  std::string type;
  std::string payload;  // JSON
};

// Which of the five calls the event came by.
enum class Call5 : uint8_t { model_manage, manage, manage_collection, search, search_collection };

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  using Finished = std::move_only_function<void(std::vector<ReplyEvent>)>;
  Exchange(Face& face, Who who, std::string id, json::Value payload, Finished finished)
      : face(face),
        who(std::move(who)),
        id(std::move(id)),
        payload(std::move(payload)),
        finished_(std::move(finished)) {}

  Face& face;
  const Who who;
  const std::string id;  // of the request event
  const json::Value payload;
  std::string reply_type;
  std::string empty;  // members that the reply has even when it fails

  Service& service() { return face.service(); }
  const std::string& tenant() const { return who.caller.tenant; }

  // Members of a reply besides id, requestId and success; `more` is JSON text that begins with a
  // comma or is empty.
  void say(std::string_view more);
  void say_warnings(const json::Value& answer, std::string& more) const;
  void end();
  void refuse(const Error& error);

  Result<std::pair<std::string, int32_t>> model(const json::Value& from) const;  // its "model"
  Result<std::string> uuid(const json::Value& from, std::string_view name) const;
  Result<std::optional<Time>> time(std::string_view name) const;
  int64_t number(std::string_view name, int64_t default_value) const;
  bool has(std::string_view name) const;  // clients send what they leave out as null

 private:
  Finished finished_;
  std::vector<ReplyEvent> replies_;
};
using ExchangePtr = std::shared_ptr<Exchange>;  // shared by the callbacks of one request

struct EventRow {
  Call5 call;
  std::string_view request;
  std::string_view reply;
  Result<void> (*handle)(const ExchangePtr&);
  std::string_view empty;  // as Exchange has it: clients insist on what a reply's schema requires
};

const EventRow* find_event(Call5 call, std::string_view type);
// Runs the row; the exchange is finished later, once.
void run_event(const EventRow& row, ExchangePtr exchange);

Result<void> create_entity(const ExchangePtr&);
Result<void> update_entity(const ExchangePtr&);
Result<void> patch_entity(const ExchangePtr&);
Result<void> fire_transition(const ExchangePtr&);
Result<void> delete_entity(const ExchangePtr&);
Result<void> create_collection(const ExchangePtr&);
Result<void> update_collection(const ExchangePtr&);
Result<void> delete_all_entities(const ExchangePtr&);
Result<void> get_entity_event(const ExchangePtr&);
Result<void> get_all_entities(const ExchangePtr&);
Result<void> search_entities(const ExchangePtr&);
Result<void> entity_stats(const ExchangePtr&);
Result<void> entity_stats_by_state(const ExchangePtr&);
Result<void> entity_changes(const ExchangePtr&);
Result<void> snapshot_search(const ExchangePtr&);
Result<void> snapshot_status(const ExchangePtr&);
Result<void> snapshot_cancel(const ExchangePtr&);
Result<void> snapshot_get(const ExchangePtr&);
Result<void> model_import(const ExchangePtr&);
Result<void> model_export(const ExchangePtr&);
Result<void> model_transition(const ExchangePtr&);
Result<void> model_delete(const ExchangePtr&);
Result<void> model_get_all(const ExchangePtr&);
Result<void> model_unique_keys(const ExchangePtr&);

}  // namespace pawl::entities
