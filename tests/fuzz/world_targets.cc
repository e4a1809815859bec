// Fuzz targets for AIR (types, values, manifests, patches) and for the output of modules.

#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/air/patch.h"
#include "faces/worlds/step/abi.h"
#include "fuzz.h"
#include "json/text.h"

namespace pawl::fuzz {

namespace {

using namespace worlds;

const Builtins& builtins() {
  static const Builtins all;
  return all;
}

// The input is an array of a type and a value. An accepted value has one normal form, and
// is_normal() agrees with normalize_bytes().
void value_json(BytesView bytes) {
  auto both = json::parse(bytes);
  if (!both || !both->is_array() || both->array().size() != 2) return;
  auto type = parse_type(both->array()[0]);
  if (!type) return;
  const Schemas& schemas = builtins().schemas();
  auto given = from_json(both->array()[1], **type, schemas);
  if (!given) return;
  auto normal = normalize_bytes(cbor::encode(*given), **type, schemas);
  if (!normal) return refused(normal.error());
  CHECK(is_normal(*normal, **type, schemas));
  auto again = normalize_bytes(*normal, **type, schemas);
  CHECK(again && *again == *normal);
}

// The first line is a type as JSON, the rest is a value as CBOR.
void value_cbor(BytesView bytes) {
  size_t end = bytes.find('\n');
  if (end == BytesView::npos) return;
  auto text = json::parse(bytes.substr(0, end));
  if (!text) return;
  auto type = parse_type(*text);
  if (!type) return;
  const Schemas& schemas = builtins().schemas();
  BytesView value = bytes.substr(end + 1);
  auto normal = normalize_bytes(value, **type, schemas);
  CHECK(is_normal(value, **type, schemas) == (normal && *normal == value));
  if (normal) CHECK(is_normal(*normal, **type, schemas));
}

std::vector<std::string> value_seeds(bool as_json) {
  std::vector<std::string> out;
  for (const std::string& part : vectors("worlds/typed_normalize.json", 3, "cbor_hex")) {
    auto input = json::parse(part);
    const json::Value *type = input->find("type"), *value = input->find("json"),
                      *hexed = input->find("cbor_hex");
    if (!type) continue;
    if (as_json && value) out.push_back("[" + json::print(*type) + "," + json::print(*value) + "]");
    if (!as_json) out.push_back(json::print(*type) + "\n" + unhex(hexed->string()).value_or(""));
  }
  return out;
}

void manifest(BytesView bytes) {
  auto nodes = json::parse(bytes);
  if (!nodes) return;
  auto made = author(*nodes, builtins(), {});
  if (!made) return refused(made.error());
  auto loaded = load(made->manifest, finder(made->nodes), builtins());
  if (!loaded) return refused(loaded.error());
  // The nodes have the same hash when they are printed and parsed again.
  for (const Node& node : made->nodes) {
    auto again = parse_node(plain_json(to_value(node, true)));
    CHECK(again && node_hash(*again) == node_hash(node));
  }
}

void patch(BytesView bytes) {
  auto document = json::parse(bytes);
  if (!document) return;
  (void)parse_patch(*document).has_value();
  (void)compile_patch(*document, Manifest{}).has_value();
}

// An accepted output of a module survives being encoded and decoded again.
void abi(BytesView bytes) {
  if (auto in = decode_input(bytes)) (void)in->event;
  auto out = decode_output(bytes);
  if (!out) return;
  auto again = decode_output(encode_output(*out));
  CHECK(again && encode_output(*again) == encode_output(*out));
}

std::vector<std::string> abi_seeds() {
  std::vector<std::string> out{
      encode_output({Bytes("\xd9\xd9\xf7\xa1\x61\x61\x01", 7), {}, {}, {}, false})};
  for (const std::string& part : vectors("worlds/abi.json", 6, "cbor_hex"))
    out.push_back(unhex(json::parse(part)->find("cbor_hex")->string()).value_or(""));
  return out;
}

}  // namespace

std::vector<Target> world_targets() {
  return {
      {"air.json", value_json, [] { return value_seeds(true); }},
      {"air.cbor", value_cbor, [] { return value_seeds(false); }},
      {"air.manifest", manifest,
       [] {
         auto out = vectors("worlds/worlds", 0);
         for (auto& one : vectors("worlds/manifest_validation.json", 3))
           out.push_back(std::move(one));
         return out;
       }},
      {"air.patch", patch,
       [] {
         return std::vector<std::string>{
             R"({"version":"1","base_manifest_hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000","patches":[{"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"a/B@1","type":{"text":{}}}}},{"set_manifest_refs":{"add":[],"remove":[]}},{"set_routing_subscriptions":{"pre_hash":"sha256:0000000000000000000000000000000000000000000000000000000000000000","subscriptions":[]}}]})"};
       }},
      {"abi", abi, abi_seeds},
  };
}

}  // namespace pawl::fuzz
