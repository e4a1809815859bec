#include "faces/entities/store/entity.h"

#include <algorithm>

#include "base/hash.h"
#include "json/text.h"

namespace pawl::entities {

namespace {
// The first byte of an entity's cell (docs/formats/entities.md).
constexpr uint8_t kFormat = 1;
constexpr std::string_view kEntityPart = "e";

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out += '"';
  out += name;
  out += "\":";
  json::append_string(out, value);
}
}  // namespace

// The layout is in docs/formats/entities.md. view_entity() reads it in the same order.
Bytes encode(const Entity& e) {
  Bytes out;
  out.reserve(e.data.size() + e.model.size() + e.state.size() + 120);
  Writer w(out);
  w.u8(kFormat);
  w.str(e.id);
  w.str(e.model);
  w.sint(e.version);
  w.str(e.state);
  w.fixed64(static_cast<uint64_t>(e.created));
  w.fixed64(static_cast<uint64_t>(e.updated));
  w.str(e.tx);
  w.str(e.transition);
  w.uint(e.timers.size());
  for (const std::string& timer : e.timers)
    w.str(timer);
  out += e.data;
  return out;
}

bool view_entity(BytesView bytes, EntityView& e) {
  Reader r(bytes);
  if (r.u8() != kFormat) return false;
  e.id = r.str();
  e.model = r.str();
  e.version = static_cast<int32_t>(r.sint());
  e.state = r.str();
  e.created = static_cast<Time>(r.fixed64());
  e.updated = static_cast<Time>(r.fixed64());
  e.tx = r.str();
  e.transition = r.str();
  e.timers.clear();
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    e.timers.push_back(r.str());
  e.data = r.rest();
  // The document is never empty: even {} has two bytes.
  return r.ok() && !e.data.empty();
}

Entity copy_of(const EntityView& v) {
  return {std::string(v.id),   std::string(v.model),
          v.version,           std::string(v.state),
          v.created,           v.updated,
          std::string(v.tx),   std::string(v.transition),
          std::string(v.data), std::vector<std::string>(v.timers.begin(), v.timers.end())};
}

EntityView view_of(const Entity& e) {
  return {e.id,         e.model,
          e.state,      e.tx,
          e.transition, e.data,
          e.version,    e.created,
          e.updated,    std::vector<std::string_view>(e.timers.begin(), e.timers.end())};
}

Error unreadable_entity(std::string_view id) {
  return {Code::corrupt, "BAD_ENTITY",
          id.empty() ? "a stored entity cannot be read; run `pawl verify`"
                     : "entity " + std::string(id) + " cannot be read; run `pawl verify`"};
}

Result<Entity> decode_entity(BytesView bytes) {
  EntityView v;
  if (!view_entity(bytes, v)) return fail(unreadable_entity({}));
  return copy_of(v);
}

// Written by hand, member by member: lists print many thousands of these.
void append_meta(std::string& out, const EntityView& e, bool with_model) {
  out += '{';
  append_field(out, "id", e.id);
  if (with_model) {
    out += ",\"modelKey\":{";
    append_field(out, "name", e.model);
    out += ",\"version\":";
    out += std::to_string(e.version);
    out += '}';
  }
  out += ',';
  append_field(out, "state", e.state);
  out += ',';
  append_field(out, "creationDate", rfc3339(e.created));
  out += ',';
  append_field(out, "lastUpdateTime", rfc3339(e.updated));
  out += ',';
  append_field(out, "transactionId", e.tx);
  if (!e.transition.empty()) {
    out += ',';
    append_field(out, "transitionForLatestSave", e.transition);
  }
  out += '}';
}

void append_envelope(std::string& out, const EntityView& e, bool with_model) {
  out += R"({"type":"ENTITY","data":)";
  out += e.data;
  out += ",\"meta\":";
  append_meta(out, e, with_model);
  out += '}';
}

void sort_names(json::Value& value) {
  if (value.is_array()) {
    for (json::Value& e : value.array())
      sort_names(e);
  } else if (value.is_object()) {
    auto less = [](const json::Member& a, const json::Member& b) { return a.name < b.name; };
    json::Object& o = value.object();
    for (json::Member& m : o)
      sort_names(m.value);
    // Documents that were read from the store are sorted already.
    if (!std::is_sorted(o.begin(), o.end(), less)) std::sort(o.begin(), o.end(), less);
  }
}

std::string canonical(json::Value value) {
  sort_names(value);
  return json::print(value);
}

// Both sides have sorted names, so they are merged like two sorted lists.
void merge_sorted(json::Value& target, const json::Value& patch) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  json::Object old;
  if (target.is_object()) old = std::move(target.object());
  json::Object out;
  out.reserve(old.size() + patch.object().size());
  auto mine = old.begin();
  for (const json::Member& change : patch.object()) {
    for (; mine != old.end() && mine->name < change.name; ++mine)
      out.add(std::move(mine->name), std::move(mine->value));
    json::Value value;
    if (mine != old.end() && mine->name == change.name) value = std::move(mine++->value);
    // Null removes the member.
    if (change.value.is_null()) continue;
    merge_sorted(value, change.value);
    out.add(change.name, std::move(value));
  }
  for (; mine != old.end(); ++mine)
    out.add(std::move(mine->name), std::move(mine->value));
  target = std::move(out);
}

Dice dice_from(std::string_view text) {
  const Digest digest = sha256(text);
  std::array<uint64_t, 2> seed{};
  std::memcpy(seed.data(), digest.data(), sizeof seed);
  return Dice(seed);
}

std::string model_digits(std::string_view model, int32_t version) {
  Bytes name(model);
  name += '.';
  name += std::to_string(version);
  uint32_t sum = crc32c(name);
  char bytes[3] = {static_cast<char>(sum >> 16), static_cast<char>(sum >> 8),
                   static_cast<char>(sum)};
  return hex({bytes, 3});
}

std::string new_entity_id(Dice& dice, Time now, size_t nth, std::string_view model,
                          int32_t version) {
  // One tick of a time-based UUID is 100 ns: ids of one turn come out in order.
  std::string id = dice.uuid1(now + static_cast<Time>(nth) * 100);
  // The last six of the 36 characters, part of the node field, which is random in these UUIDs.
  id.replace(30, 6, model_digits(model, version));
  return id;
}

Key entity_key(std::string_view tenant, std::string_view id) {
  std::string last;
  last.reserve(id.size() + 6);
  last += id.size() > 6 ? id.substr(id.size() - 6) : id;
  last += id;
  return key({kProgram, tenant, kEntityPart, last});
}

// key() and not prefix(): the id follows the digits without a zero byte between them.
Key entity_prefix(std::string_view tenant, std::string_view model, int32_t version) {
  return key({kProgram, tenant, kEntityPart, model_digits(model, version)});
}

Key entities_prefix(std::string_view tenant) { return prefix({kProgram, tenant, kEntityPart}); }

Key model_key(std::string_view tenant, std::string_view name, int32_t version) {
  return key({kProgram, tenant, "m", name, std::to_string(version)});
}
Key models_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "m"}); }
Key flows_key(std::string_view tenant, std::string_view name, int32_t version) {
  return key({kProgram, tenant, "w", name, std::to_string(version)});
}
Key message_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "g", id});
}
Key search_job_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "j", id});
}
Key search_job_page_key(std::string_view tenant, std::string_view id, size_t page) {
  return key({kProgram, tenant, "J", id, std::to_string(page)});
}
// Clients and key pairs belong to no tenant: they decide which tenant a caller has.
Key client_key(std::string_view client) { return key({kProgram, "", "c", client}); }
Key clients_prefix() { return prefix({kProgram, "", "c"}); }
Key key_pair_key(std::string_view kid) { return key({kProgram, "", "y", kid}); }
Key key_pairs_prefix() { return prefix({kProgram, "", "y"}); }
Key trusted_key_key(std::string_view tenant, std::string_view kid) {
  return key({kProgram, tenant, "t", kid});
}
Key trusted_keys_prefix(std::string_view tenant) { return prefix({kProgram, tenant, "t"}); }
Key pending_key(std::string_view tenant, std::string_view effect) {
  return key({kProgram, tenant, "p", effect});
}
Key indexed_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "k", id});
}
Key unique_key(std::string_view tenant, std::string_view model, int32_t version,
               std::string_view name, std::string_view values) {
  return key(
      {kProgram, tenant, "u", model, std::to_string(version), name, hex(view(sha256(values)))});
}
Key unique_prefix(std::string_view tenant, std::string_view model, int32_t version) {
  return prefix({kProgram, tenant, "u", model, std::to_string(version)});
}
Key timer_key(std::string_view tenant, std::string_view id) {
  return key({kProgram, tenant, "s", id});
}

// Whether the part of the key after program and tenant is this letter.
static bool has_kind(BytesView key, char kind) {
  std::string_view rest = key.substr(std::min(key.size(), kProgram.size() + 1));
  size_t zero = rest.find('\0');
  return zero != rest.npos && zero + 2 < rest.size() && rest[zero + 1] == kind &&
         rest[zero + 2] == '\0';
}
bool is_entity_key(BytesView key) { return has_kind(key, 'e'); }
bool is_model_key(BytesView key) { return has_kind(key, 'm'); }
bool is_flows_key(BytesView key) { return has_kind(key, 'w'); }
bool is_indexed_key(BytesView key) { return has_kind(key, 'k'); }

std::string_view id_at_end(BytesView key) {
  // A UUID has 36 characters.
  return key.size() < 36 ? key : key.substr(key.size() - 36);
}

}  // namespace pawl::entities
