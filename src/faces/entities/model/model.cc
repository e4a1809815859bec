#include "faces/entities/model/model.h"

#include <fmt/format.h>

#include <bit>

#include "base/dice.h"
#include "condition/operators.h"
#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

std::string Model::id() const { return uuid5(kUrlSpace, fmt::format("{}.{}", name, version)); }

// As JSON, unlike entities: models are few, and a member may be added later without another format.
Bytes encode(const Model& model) {
  json::Array indexes, unique;
  for (const Index& i : model.indexes)
    indexes.push_back(json::object({{"path", i.path}, {"ready", i.ready}, {"since", i.since}}));
  for (const UniqueKey& k : model.unique_keys) {
    json::Array paths;
    for (const std::string& p : k.paths)
      paths.emplace_back(p);
    unique.push_back(json::object({{"name", k.name}, {"paths", std::move(paths)}}));
  }
  return json::print(json::object({
      {"name", model.name},
      {"version", model.version},
      {"locked", model.locked},
      {"level", static_cast<int>(model.level)},
      {"updated", model.updated},
      {"indexes", std::move(indexes)},
      {"unique", std::move(unique)},
      {"shape", to_json(model.shape)},
  }));
}

bool only_grew(const Model& before, const Model& after) {
  // Everything but shape, level, time and indexes must be byte for byte the same. The shape only
  // grew when merging the old one into it changes nothing.
  Model same = after;
  same.shape = before.shape;
  same.updated = before.updated;
  same.level = before.level;
  same.indexes = before.indexes;
  Shape both = after.shape;
  merge(both, before.shape);
  return encode(same) == encode(before) && to_json(both) == to_json(after.shape);
}

static const json::Array& items(const json::Value& of, std::string_view name) {
  static const json::Array none;
  const json::Value* found = of.find(name);
  return found && found->is_array() ? found->array() : none;
}

Result<Model> decode_model(BytesView bytes) {
  // A stored schema may be larger and deeper than a request body.
  TRY(json::Value v,
      json::parse(bytes, {.max_depth = 4 * limits::kJsonDepth, .max_bytes = limits::kCellBytes}));
  Model m;
  auto number = [&](std::string_view name) {
    const json::Value* n = v.find(name);
    return n ? n->as_int64().value_or(0) : 0;
  };
  m.name = v.string_or("name");
  m.version = static_cast<int32_t>(number("version"));
  const json::Value* locked = v.find("locked");
  m.locked = locked && locked->is_bool() && locked->boolean();
  const int64_t level = number("level");
  auto corrupt = [&] {
    return fail(Code::corrupt, "BAD_MODEL",
                "the stored model '" + m.name + "' cannot be read; run `pawl verify`");
  };
  if (level < 0 || level > static_cast<int64_t>(ChangeLevel::structural)) return corrupt();
  m.level = static_cast<ChangeLevel>(level);
  m.updated = number("updated");
  for (const json::Value& i : items(v, "indexes")) {
    const json::Value* ready = i.find("ready");
    if (!ready || !ready->is_bool()) return corrupt();
    const json::Value* since = i.find("since");
    m.indexes.push_back({std::string(i.string_or("path")), ready->boolean(),
                         since ? since->as_int64().value_or(0) : 0});
  }
  for (const json::Value& k : items(v, "unique")) {
    UniqueKey key{std::string(k.string_or("name")), {}};
    for (const json::Value& p : items(k, "paths")) {
      if (!p.is_string()) return corrupt();
      key.paths.push_back(p.string());
    }
    m.unique_keys.push_back(std::move(key));
  }
  if (const json::Value* shape = v.find("shape")) m.shape = shape_from(*shape);
  m.fields = count_fields(m.shape);
  return m;
}

Result<ModelPtr> find_model(Turn& turn, std::string_view tenant, std::string_view name,
                            int32_t version) {
  return turn.read_as<Model>(model_key(tenant, name, version), decode_model);
}

void write_model(Turn& turn, std::string_view tenant, Model model) {
  model.updated = turn.now();
  model.fields = count_fields(model.shape);
  Key key = model_key(tenant, model.name, model.version);
  Bytes bytes = encode(model);
  turn.write(key, std::move(bytes), std::make_shared<const Model>(std::move(model)));
}

Error model_not_found(std::string_view name, int32_t version, bool with_properties) {
  std::string detail;
  if (with_properties)
    detail = json::print(json::object({{"entityName", name}, {"entityVersion", version}}));
  return {Code::not_found, "MODEL_NOT_FOUND",
          fmt::format("cannot find model entityName={}, version={}", name, version),
          std::move(detail)};
}

Bytes index_number(double number) {
  if (number == 0) number = 0;  // -0 becomes 0
  auto bits = std::bit_cast<uint64_t>(number);
  // Maps doubles to integers of the same order: negative numbers are complemented, positive ones
  // get the top bit.
  bits = bits >> 63 ? ~bits : bits | 1ull << 63;
  return "n" + ordered64(bits);
}

Bytes index_text(std::string_view text) {
  // Long texts are cut. The search evaluates the condition on the whole document again.
  static constexpr size_t kMax = 256;
  Bytes out = "s";
  out += text.substr(0, kMax);
  return out;
}

// Booleans are indexed as the texts true and false.
static void add_value(std::vector<Bytes>& out, const condition::Field& field) {
  double number;
  std::string room;
  if (field.is_null()) return;
  if (field.kind == condition::Field::number && condition::read_number(field.text, number))
    // Numbers that a double cannot tell apart share a value; the search evaluates the condition
    // again.
    out.push_back(index_number(number));
  else
    out.push_back(index_text(condition::text_of(field, room)));
}

std::vector<Bytes> index_values(const condition::Path& path, std::string_view data) {
  std::vector<Bytes> out;
  condition::Field field = path.find(data);
  if (field.kind == condition::Field::array)
    condition::each_element(field, [&](const condition::Field& e) {
      add_value(out, e);
      return true;
    });
  else
    add_value(out, field);
  // An array may hold a value twice; one row per value and entity is enough.
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace pawl::entities
