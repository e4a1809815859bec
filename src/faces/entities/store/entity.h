#pragma once
// An entity is one JSON document with a state. Its cell holds the facts about it first and the
// document last, so that a scan reads what it needs without decoding the rest.

#include <string>
#include <string_view>

#include "base/dice.h"
#include "json/value.h"
#include "kernel/cell.h"

namespace pawl::entities {

inline constexpr std::string_view kProgram = "entities";

struct Entity {
  std::string id;
  std::string model;
  int32_t version = 0;
  std::string state;
  Time created = 0;
  Time updated = 0;
  std::string tx;                     // that saved it last
  std::string transition;             // named by the client at the latest save; "loopback" for none
  std::string data;                   // compact JSON, names sorted
  std::vector<std::string> timers{};  // effects of the scheduled transitions that are armed
};

// The same, pointing into a cell's bytes.
struct EntityView {
  std::string_view id, model, state, tx, transition, data;
  int32_t version = 0;
  Time created = 0, updated = 0;
  std::vector<std::string_view> timers{};
};

Bytes encode(const Entity& entity);
Result<Entity> decode_entity(BytesView bytes);
bool view_entity(BytesView bytes, EntityView& out);
Entity copy_of(const EntityView& view);

// The envelope that readers get: {"type":"ENTITY","data":...,"meta":{...}}. Appended as text: the
// document is never parsed again.
void append_envelope(std::string& out, const EntityView& entity, bool with_model);
void append_meta(std::string& out, const EntityView& entity, bool with_model);

// Names sorted all the way down: how documents are stored and shown.
void sort_names(json::Value& value);
std::string canonical(json::Value value);
// RFC 7386 where both sides have their names sorted: as long as the two together, not as their
// product.
void merge_sorted(json::Value& target, const json::Value& patch);

// Ids are time-based UUIDs whose last six digits name the model, so that the cells of one model
// stand together although the key is made from the id alone.
std::string new_entity_id(Dice& dice, Time now, size_t nth, std::string_view model,
                          int32_t version);
std::string model_digits(std::string_view model, int32_t version);

Key entity_key(std::string_view tenant, std::string_view id);
Key entity_prefix(std::string_view tenant, std::string_view model, int32_t version);
Key entities_prefix(std::string_view tenant);
Key model_key(std::string_view tenant, std::string_view name, int32_t version);
Key models_prefix(std::string_view tenant);
Key flows_key(std::string_view tenant, std::string_view name, int32_t version);
Key message_key(std::string_view tenant, std::string_view id);
Key job_key(std::string_view tenant, std::string_view id);
Key job_page_key(std::string_view tenant, std::string_view id, size_t page);
// Ids in one page of a search job, and how long a job and its pages are kept.
inline constexpr size_t kJobPage = 10'000;
inline constexpr Time kJobLife = 24 * 3600 * kSecond;
Key client_key(std::string_view client);
Key clients_prefix();
Key key_pair_key(std::string_view kid);
Key key_pairs_prefix();
Key trusted_key_key(std::string_view tenant, std::string_view kid);
Key trusted_keys_prefix(std::string_view tenant);
// A dispatch between its two transactions.
Key pending_key(std::string_view tenant, std::string_view effect);
// The values under which an entity is indexed, and who holds a unique value.
Key indexed_key(std::string_view tenant, std::string_view id);
Key unique_key(std::string_view tenant, std::string_view model, int32_t version,
               std::string_view name, std::string_view values);
Key unique_prefix(std::string_view tenant, std::string_view model, int32_t version);
Key timer_key(std::string_view tenant, std::string_view id);
bool is_entity_key(BytesView key);
bool is_model_key(BytesView key);
bool is_flows_key(BytesView key);
// At the end of an entity's key, and of the rows and cells that hang on it.
std::string_view id_at_end(BytesView key);

}  // namespace pawl::entities
