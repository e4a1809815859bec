#pragma once
// An entity is one JSON document with a state. Its cell holds the document last, so that a scan
// reads the fields before it without decoding the document.

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
  std::string tx;          // the transaction that saved it last
  std::string transition;  // requested by the client at the latest save; "loopback" for none
  std::string data;        // compact JSON with sorted names
  std::vector<std::string> timers{};  // ids of the armed timers of scheduled transitions
};

// An Entity whose texts point into a cell's bytes.
struct EntityView {
  std::string_view id, model, state, tx, transition, data;
  int32_t version = 0;
  Time created = 0, updated = 0;
  std::vector<std::string_view> timers{};
};

Bytes encode(const Entity& entity);
// Error: corrupt BAD_ENTITY.
// The error for a stored entity that view_entity() cannot read.
Error unreadable_entity(std::string_view id);
Result<Entity> decode_entity(BytesView bytes);
// False when the bytes are no entity. The view is valid as long as the bytes.
bool view_entity(BytesView bytes, EntityView& out);
Entity copy_of(const EntityView& view);
EntityView view_of(const Entity& entity);

// Appends the envelope that readers get: {"type":"ENTITY","data":...,"meta":{...}}. The document is
// copied as text and not parsed.
void append_envelope(std::string& out, const EntityView& entity, bool with_model);
void append_meta(std::string& out, const EntityView& entity, bool with_model);

// Sorts the member names at every level. Documents are stored and shown like that.
void sort_names(json::Value& value);
// Compact JSON with sorted names.
std::string canonical(json::Value value);
// An RFC 7386 merge patch of two documents with sorted names, in linear time.
void merge_sorted(json::Value& target, const json::Value& patch);

// Ids are time-based UUIDs whose last six digits are a hash of the model. Entity keys begin with
// these digits, so the cells of one model are adjacent although the key depends on the id only.
std::string new_entity_id(Dice& dice, Time now, size_t nth, std::string_view model,
                          int32_t version);
// Dice seeded with a hash of the text. For ids that are made outside of turns.
Dice dice_from(std::string_view text);
std::string model_digits(std::string_view model, int32_t version);

// The keys of the cells. Each begins with the program, the tenant and one letter for the kind.
Key entity_key(std::string_view tenant, std::string_view id);
// Two models may share their digits: a scan below it must compare model and version.
Key entity_prefix(std::string_view tenant, std::string_view model, int32_t version);
Key entities_prefix(std::string_view tenant);
Key model_key(std::string_view tenant, std::string_view name, int32_t version);
Key models_prefix(std::string_view tenant);
Key flows_key(std::string_view tenant, std::string_view name, int32_t version);
Key message_key(std::string_view tenant, std::string_view id);
Key search_job_key(std::string_view tenant, std::string_view id);
Key search_job_page_key(std::string_view tenant, std::string_view id, size_t page);
// Ids in one stored page of a search job, and how long a job and its pages are kept.
inline constexpr size_t kSearchJobPageSize = 10'000;
inline constexpr Time kSearchJobLifetime = 24 * 3600 * kSecond;
// Machine clients, the key pairs that sign tokens, and the trusted keys of external issuers.
Key client_key(std::string_view client);
Key clients_prefix();
Key key_pair_key(std::string_view kid);
Key key_pairs_prefix();
Key trusted_key_key(std::string_view tenant, std::string_view kid);
Key trusted_keys_prefix(std::string_view tenant);
// A transaction that waits between its two halves for a COMMIT_BEFORE_DISPATCH processor.
Key pending_key(std::string_view tenant, std::string_view effect);
// The index values of an entity, and the entity that holds a unique value.
Key indexed_key(std::string_view tenant, std::string_view id);
Key unique_key(std::string_view tenant, std::string_view model, int32_t version,
               std::string_view name, std::string_view values);
Key unique_prefix(std::string_view tenant, std::string_view model, int32_t version);
Key timer_key(std::string_view tenant, std::string_view id);
bool is_entity_key(BytesView key);
bool is_model_key(BytesView key);
bool is_flows_key(BytesView key);
bool is_indexed_key(BytesView key);
// The entity id at the end of an entity key, and of the keys of its rows and cells.
std::string_view id_at_end(BytesView key);

}  // namespace pawl::entities
