// AIR: types, normal values, nodes, manifests, authoring and patches, against the recorded bytes,
// hashes and errors in tests/vectors/worlds.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/dice.h"
#include "cbor/cbor.h"
#include "faces/worlds/air/normalize.h"
#include "faces/worlds/air/patch.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

json::Value vectors(const std::string& name) {
  std::ifstream in("tests/vectors/worlds/" + name);
  std::stringstream text;
  text << in.rdbuf();
  auto parsed = json::parse(text.str());
  CHECK(parsed.has_value());
  return *parsed;
}

const Builtins& builtins() {
  static const Builtins all;
  return all;
}

// Cases where we are stricter than the producer of the vectors, on purpose.
bool stricter(const std::string& name) {
  static const std::set<std::string> kNames{
      "int: 18446744073709551615", "-2^64 int",
      "dec128: \"1.50\"",          "dec128: \"not a number\"",
      "dec128: \"1e3\"",           "dec128: \"\"",
      "hash: \"nonsense\"",        "uuid: \"2B1F5A5E-0D6A-4F43-9C3E-111111111111\"",
      "uuid: \"not-a-uuid\""};
  return kNames.contains(name);
}

TEST(air, untyped_values_have_the_canonical_bytes_and_hashes_of_the_vectors) {
  const json::Value all = vectors("canonical_cbor_untyped.json");
  for (const json::Value& v : all.find("vectors")->array()) {
    const Bytes bytes = cbor::canonical(to_cbor(*v.find("input")->find("json")));
    EXPECT_EQ(hex(bytes), v.find("expect")->string_or("cbor_hex")) << v.string_or("name");
    EXPECT_EQ(hash_text(sha256(bytes)), v.find("expect")->string_or("sha256"));
  }
}

// case 7, case 8, case 9, case 10, case 11, case 12, case 13, case 14, case 15, case 16, case 17
TEST(air, values_are_normalised_as_in_the_vectors) {
  const json::Value all = vectors("typed_normalize.json");
  Schemas schemas(&builtins().schemas());
  for (const json::Value& s : all.find("schemas")->array())
    schemas.add(std::string(s.string_or("name")), *parse_type(*s.find("type")));
  for (const json::Value& v : all.find("vectors")->array()) {
    const std::string name(v.string_or("name"));
    const json::Value& expect = *v.find("expect");
    if (stricter(name)) continue;
    TypePtr type = *parse_type(*v.find("input")->find("type"));
    auto value = cbor::decode(*unhex(v.find("input")->string_or("cbor_hex")));
    auto normal =
        value ? normalize(*value, *type, schemas) : Result<cbor::Value>(fail(value.error()));
    if (expect.find("error") && expect.string_or("error").starts_with("PANIC")) {
      EXPECT_TRUE(normal) << name;  // alias chains resolve here
    } else if (expect.find("error")) {
      ASSERT_FALSE(normal) << name;
      EXPECT_EQ(normal.error().message, expect.string_or("error")) << name;
    } else {
      ASSERT_TRUE(normal) << name << ": " << normal.error().message;
      EXPECT_EQ(hex(cbor::canonical(*normal)), expect.string_or("cbor_hex")) << name;
    }
  }
}

// The check in place must agree with full normalisation for all bytes: those of the vectors, and
// those with flipped bits.
TEST(air, bytes_are_normal_exactly_when_normalising_keeps_them) {
  const json::Value all = vectors("typed_normalize.json");
  Schemas schemas(&builtins().schemas());
  for (const json::Value& s : all.find("schemas")->array())
    schemas.add(std::string(s.string_or("name")), *parse_type(*s.find("type")));
  Dice dice({7, 11});
  size_t normal = 0, other = 0;
  auto agree = [&](const Bytes& bytes, const Type& type) {
    auto value = cbor::decode(bytes);
    auto made = value ? normalize(*value, type, schemas) : Result<cbor::Value>(fail(value.error()));
    const bool same = made && cbor::canonical(*made) == bytes;
    EXPECT_EQ(is_normal(bytes, type, schemas), same) << hex(bytes);
    ++(same ? normal : other);
  };
  for (const json::Value& v : all.find("vectors")->array()) {
    TypePtr type = *parse_type(*v.find("input")->find("type"));
    const Bytes given = *unhex(v.find("input")->string_or("cbor_hex"));
    auto value = cbor::decode(given);
    auto made =
        value ? normalize(*value, *type, schemas) : Result<cbor::Value>(fail(value.error()));
    for (const Bytes& start :
         {given, Bytes(cbor::kSelfDescribed) + given, made ? cbor::canonical(*made) : given}) {
      agree(start, *type);
      for (int i = 0; i < 40; ++i) {
        Bytes turned = start;
        if (turned.empty()) break;
        turned[dice.next() % turned.size()] ^= static_cast<char>(1 << dice.next() % 8);
        agree(turned, *type);
      }
    }
  }
  EXPECT_GT(normal, 200u);
  EXPECT_GT(other, 200u);
}

// case 20
TEST(air, numbers_hashes_and_uuids_are_checked_and_have_one_form) {
  Schemas schemas;
  auto norm = [&](const char* type, cbor::Value v) {
    return normalize(v, **parse_type(*json::parse(type)), schemas);
  };
  EXPECT_FALSE(norm(R"({"int":{}})", uint64_t{1} << 63));
  EXPECT_TRUE(norm(R"({"int":{}})", INT64_MIN));
  EXPECT_FALSE(norm(R"({"int":{}})", cbor::Int{true, ~uint64_t{0}}));
  EXPECT_FALSE(norm(R"({"hash":{}})", "nonsense"));
  EXPECT_FALSE(norm(R"({"hash":{}})", "sha256:" + std::string(64, 'A')));
  EXPECT_FALSE(norm(R"({"uuid":{}})", "not-a-uuid"));
  EXPECT_EQ(norm(R"({"uuid":{}})", "2B1F5A5E-0D6A-4F43-9C3E-111111111111")->text(),
            "2b1f5a5e-0d6a-4f43-9c3e-111111111111");
  struct Case {
    const char *in, *out;
  };
  for (const Case& c : {Case{"1.50", "1.5"},
                        {"1e3", "1000"},
                        {"-0.0", "0"},
                        {"+7", "7"},
                        {"0.00001", "0.00001"},
                        {"1E-9", "1E-9"},
                        {"12.5e40", "1.25E+41"},
                        {"100", "100"}})
    EXPECT_EQ(*normal_decimal(c.in), c.out) << c.in;
  for (const char* bad : {"", ".", "-", "1e", "abc", "1.2.3", "12345678901234567890123456789012345",
                          "1e9999", "0x10", "NaN"})
    EXPECT_FALSE(normal_decimal(bad)) << bad;
}

TEST(air, json_is_read_by_its_schema) {
  Schemas schemas;
  TypePtr type = *parse_type(*json::parse(
      R"({"record":{"b":{"bytes":{}},"m":{"map":{"key":{"nat":{}},"value":{"text":{}}}},"d":{"dec128":{}},"o":{"option":{"bytes":{}}}}})"));
  auto v =
      from_json(*json::parse(R"({"b":"aGk=","m":{"7":"x"},"d":1.50,"o":null})"), *type, schemas);
  ASSERT_TRUE(v);
  auto normal = normalize(*v, *type, schemas);
  ASSERT_TRUE(normal) << normal.error().message;
  EXPECT_EQ(normal->find("b")->bytes(), "hi");
  EXPECT_EQ(normal->find("m")->map()[0].first.as_uint64(), 7u);
  EXPECT_EQ(normal->find("d")->text(), "1.5");
  EXPECT_EQ(json::print(plain_json(*normal)), R"({"b":"aGk=","d":"1.5","m":{"7":"x"},"o":null})");
  EXPECT_FALSE(from_json(*json::parse(R"({"b":"***"})"), *type, schemas));
}

// case 24
TEST(air, names_and_hashes_follow_the_grammar) {
  const json::Value all = vectors("grammar.json");
  for (const json::Value& v : all.find("vectors")->array()) {
    const bool valid = v.find("expect")->find("valid")->boolean();
    const json::Value& in = *v.find("input");
    if (in.find("name")) {
      EXPECT_EQ(is_name(in.string_or("name")), valid) << in.string_or("name");
    } else {  // lower case only
      EXPECT_EQ(is_hash(in.string_or("hash")),
                valid && in.string_or("hash").find('A') == std::string_view::npos);
    }
  }
}

TEST(air, names_of_modules_may_go_on_after_their_version) {
  for (const char* name : {"a/b@1", "demo/SafeUpgrade@2_wasm", "a/b@1.rs", "a/b@12-x_y"})
    EXPECT_TRUE(is_module_name(name)) << name;
  for (const char* name : {"a/b", "a/b@", "a/b@_wasm", "a/b@0_wasm", "A/b@1", "a/b@1/x", "a/b@1@2",
                           "a/b@1 x", "@1", ""})
    EXPECT_FALSE(is_module_name(name)) << name;
  const std::string bare = R"("name":"a/b@1_x","type":{"nat":{}}})";
  EXPECT_FALSE(parse_node(*json::parse(R"({"$kind":"defschema",)" + bare)));
}

// case 21, case 22
TEST(air, nodes_have_the_bytes_and_hashes_of_the_vectors) {
  const json::Value all = vectors("node_hashes.json");
  for (const json::Value& v : all.find("vectors")->array()) {
    auto node = parse_node(*v.find("input")->find("node"));
    ASSERT_TRUE(node) << v.string_or("name") << node.error().message;
    const json::Value& expect = *v.find("expect");
    EXPECT_EQ(hex(cbor::canonical(to_value(*node, true))), expect.string_or("node_cbor_hex"));
    EXPECT_EQ(node_hash(*node), expect.string_or("node_hash"));
    if (const auto* m = std::get_if<Manifest>(&*node)) {
      EXPECT_EQ(manifest_hash(*m), expect.string_or("manifest_hash"));
    }
    EXPECT_EQ(plain_json(to_value(*node, true)), *expect.find("reserialized"));
  }
}

// case 23
TEST(air, every_builtin_has_both_of_its_hashes) {
  const json::Value all = vectors("builtin_hashes.json");
  EXPECT_EQ(all.object().size(), builtins().all().size());
  for (const auto& [name, hashes] : all.object()) {
    const Builtin* row = builtins().find(name);
    ASSERT_TRUE(row) << name;
    EXPECT_EQ(row->ref_hash, hashes.array()[0].string()) << name;
    EXPECT_EQ(row->node_hash, hashes.array()[1].string()) << name;
  }
}

Result<LoadedManifest> load_air(const json::Value& nodes, LoadOptions options = {}) {
  TRY(Authored air, author(nodes, builtins()));
  return load(air.manifest, finder(air.nodes), builtins(), options);
}

// case 25, case 26, case 27, case 30, case 36, case 146, case 147, case 149
TEST(air, bad_manifests_are_refused_with_the_errors_of_the_vectors) {
  const json::Value all = vectors("manifest_validation.json");
  for (const json::Value& v : all.find("vectors")->array()) {
    const std::string name(v.string_or("name"));
    auto loaded = load_air(*v.find("input"), {.secrets_can_be_resolved = false});
    const std::string expect = v.find("expect")->string();
    if (expect == "ok") {
      EXPECT_TRUE(loaded) << name << ": " << (loaded ? "" : loaded.error().message);
      continue;
    }
    ASSERT_FALSE(loaded) << name;
    if (name == "dangling hash") {
      EXPECT_NE(loaded.error().message.find("entry not found"), std::string::npos);
    } else {
      EXPECT_EQ(loaded.error().message, expect) << name;
    }
  }
}

TEST(air, sample_worlds_load_with_the_hashes_of_the_vectors) {
  const json::Value all = vectors("worlds/loaded.json");
  for (const json::Value& v : all.find("vectors")->array()) {
    const json::Value& in = *v.find("input");
    const json::Value nodes = vectors(std::string(in.string_or("file")));
    AuthorOptions options;
    for (const json::Value& node : nodes.array())
      if (node.string_or("$kind") == "defmodule")
        options.artifacts[std::string(node.string_or("name"))] =
            std::string(in.string_or("wasm_hash"));
    auto air = author(nodes, builtins(), options);
    ASSERT_TRUE(air) << in.string_or("file") << air.error().message;
    EXPECT_EQ(manifest_hash(air->manifest), v.find("expect")->string_or("manifest_hash"))
        << in.string_or("file");
    auto loaded = load(air->manifest, finder(air->nodes), builtins());
    EXPECT_TRUE(loaded) << in.string_or("file") << ": " << (loaded ? "" : loaded.error().message);
  }
}

json::Value sample() {
  const json::Value all = vectors("manifest_validation.json");
  return *all.find("vectors")->array()[0].find("input");
}

// case 18, case 19
TEST(air, recursive_schemas_are_refused_and_alias_chains_resolve) {
  json::Value nodes = sample();
  nodes.array().insert(
      nodes.array().begin(),
      *json::parse(
          R"({"$kind":"defschema","name":"w/A@1","type":{"record":{"next":{"option":{"ref":"w/B@1"}}}}})"));
  nodes.array().insert(
      nodes.array().begin(),
      *json::parse(R"({"$kind":"defschema","name":"w/B@1","type":{"list":{"ref":"w/A@1"}}})"));
  json::Value& manifest = nodes.array().back();
  for (const char* name : {"w/A@1", "w/B@1"})
    manifest.find("schemas")->array().push_back(json::object({{"name", name}}));
  auto loaded = load_air(nodes);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("recursive"), std::string::npos);

  Schemas schemas;
  schemas.add("a/A@1", *parse_type(*json::parse(R"({"ref":"a/B@1"})")));
  schemas.add("a/B@1", *parse_type(*json::parse(R"({"ref":"a/C@1"})")));
  schemas.add("a/C@1", *parse_type(*json::parse(R"({"nat":{}})")));
  EXPECT_TRUE(normalize_named(7, "a/A@1", schemas));
  schemas.add("a/C@1", *parse_type(*json::parse(R"({"ref":"a/A@1"})")));
  EXPECT_FALSE(normalize_named(7, "a/A@1", schemas));
}

TEST(air, shared_schemas_are_visited_once_and_deep_ones_refused) {
  // Each holds the next twice: 2^40 ways from the first to the last.
  auto chain = [](size_t length, const std::string& space) {
    json::Value nodes = sample();
    for (size_t i = 0; i < length; ++i) {
      const std::string name = space + std::to_string(i) + "@1",
                        next = R"({"ref":")" + space + std::to_string(i + 1) + "@1\"}";
      const std::string type = i + 1 == length
                                   ? R"({"nat":{}})"
                                   : R"({"record":{"a":)" + next + R"(,"b":)" + next + "}}";
      // Added from the last to the first, so that no check starts at the top.
      json::Array& listed = nodes.array().back().find("schemas")->array();
      listed.insert(listed.begin(), json::object({{"name", name}}));
      nodes.array().insert(nodes.array().begin(), *json::parse(R"({"$kind":"defschema","name":")" +
                                                               name + R"(","type":)" + type + "}"));
    }
    return nodes;
  };
  EXPECT_TRUE(load_air(chain(40, "w/D")));
  auto deep = load_air(chain(80, "w/D"));
  ASSERT_FALSE(deep);
  EXPECT_NE(deep.error().message.find("schemas deep"), std::string::npos);
  Schemas schemas;
  for (const char* space : {"a/L", "a/R"})
    for (size_t i = 0; i < 40; ++i) {
      const std::string next = std::string(R"({"ref":")") + space + std::to_string(i + 1) + "@1\"}";
      schemas.add(
          space + std::to_string(i) + "@1",
          *parse_type(*json::parse(
              i == 39 ? R"({"nat":{}})" : R"({"record":{"a":)" + next + R"(,"b":)" + next + "}}")));
    }
  EXPECT_TRUE(same_type(*schemas.find("a/L0@1"), *schemas.find("a/R0@1"), schemas));
}

TEST(air, an_invalid_executor_key_is_refused) {
  for (const char* keys : {R"("x")", R"([])", R"({"w/e@1":5})", R"({"w/e@1":"aGk="})",
                           R"({"e":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})"}) {
    json::Value nodes = sample();
    nodes.array().back().object().set("executor_keys", *json::parse(keys));
    EXPECT_FALSE(load_air(nodes)) << keys;
  }
  json::Value nodes = sample();
  nodes.array().back().object().set(
      "executor_keys", *json::parse(R"({"w/e@1":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="})"));
  EXPECT_TRUE(load_air(nodes));
}

TEST(air, only_requests_can_be_given_to_executors_and_the_hash_tells) {
  for (const char* effects : {R"("x")", R"(["w/e@1"])", R"(["sys/timer.set@1"])", R"([5])"}) {
    json::Value nodes = sample();
    nodes.array().back().object().set("external_effects", *json::parse(effects));
    EXPECT_FALSE(load_air(nodes)) << effects;
  }
  json::Value nodes = sample();
  const std::string before = load_air(nodes)->hash;
  nodes.array().back().object().set("external_effects", json::Value(json::Array{}));
  EXPECT_EQ(load_air(nodes)->hash, before);
  nodes.array().back().object().set("external_effects", *json::parse(R"(["sys/http.request@1"])"));
  EXPECT_NE(load_air(nodes)->hash, before);
}

TEST(air, a_listed_name_without_definition_or_hash_is_named) {
  json::Value nodes = sample();
  nodes.array().back().find("schemas")->array().push_back(json::object({{"name", "w/Gone@1"}}));
  EXPECT_NE(load_air(nodes).error().message.find("'w/Gone@1'"), std::string::npos);
}

TEST(air, further_refusals_have_the_words_of_the_original) {
  json::Value nodes = sample();
  for (json::Value& node : nodes.array())
    if (node.string_or("name") == "w/main@1") node.object().erase("key_schema");
  EXPECT_EQ(load_air(nodes).error().message,
            "manifest validation error: route to non-keyed workflow 'w/main@1' must not specify "
            "key_field");
  nodes = sample();
  for (json::Value& node : nodes.array())
    if (node.string_or("name") == "w/Event@1")
      node.object().set("type", *json::parse(R"({"text":{}})"));
  EXPECT_EQ(load_air(nodes).error().message,
            "manifest validation error: workflow 'w/main@1' event family schema 'w/Event@1' is "
            "invalid: event family must be a ref, variant of refs, or record");
}

TEST(air, authoring_fills_in_hashes_and_refuses_duplicates) {
  const std::string whole = manifest_hash(author(sample(), builtins())->manifest);
  const std::string none(kNoHash);
  for (const json::Value& open :
       {json::Value(), json::Value(""), json::Value("sha256:"), json::Value(none)}) {
    json::Value nodes = sample();
    for (const char* list : {"schemas", "modules", "workflows", "effects"})
      for (json::Value& ref : nodes.array().back().find(list)->array())
        ref.object().set("hash", open);
    auto loaded = load_air(nodes);
    ASSERT_TRUE(loaded) << json::print(open) << ": " << loaded.error().message;
    EXPECT_EQ(loaded->hash, whole);
  }
  json::Value twice = sample();
  twice.array().insert(twice.array().begin(), twice.array().front());
  ASSERT_TRUE(load_air(twice));
  EXPECT_EQ(load_air(twice)->hash, whole);
  json::Value other = *json::parse(R"({"$kind":"defschema","name":"w/Id@1","type":{"nat":{}}})");
  twice.array().insert(twice.array().begin(), other);
  EXPECT_TRUE(load_air(twice).error().message.starts_with(
      "duplicate defschema 'w/Id@1' has conflicting definitions (sha256:"));
  // A schema and a workflow of one name are two definitions.
  json::Value both = sample();
  other.object().set("name", "w/main@1");
  both.array().insert(both.array().end() - 1, other);
  both.array().back().find("schemas")->array().push_back(json::object({{"name", "w/main@1"}}));
  auto loaded = load_air(both);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->schemas.find("w/main@1"));
  json::Value routed = sample();
  routed.array().back().object().set("routing", 5);
  EXPECT_FALSE(load_air(routed));
}

TEST(normal, decimals_have_the_range_of_128_bits) {
  EXPECT_EQ(*normal_decimal("1e-6176"), "1E-6176");
  EXPECT_EQ(*normal_decimal("10e-6177"), "1E-6176");
  EXPECT_FALSE(normal_decimal("1e-6177"));
  EXPECT_FALSE(normal_decimal("1e6145"));
}

// case 152
TEST(air, a_value_path_reaches_the_key_through_the_variant) {
  json::Value nodes = sample();
  json::Value& routes = *nodes.array().back().find("routing")->find("subscriptions");
  routes.array()[0] =
      *json::parse(R"({"event":"w/Event@1","workflow":"w/main@1","key_field":"$value.id"})");
  auto loaded = load_air(nodes);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(loaded->routes.contains("w/Event@1"));
  EXPECT_EQ(loaded->routes.at("w/Start@1")[0].arm, "Start");
  routes.array()[0] =
      *json::parse(R"({"event":"w/Event@1","workflow":"w/main@1","key_field":"id"})");
  EXPECT_EQ(load_air(nodes).error().message,
            "manifest validation error: route to workflow 'w/main@1' uses key_field 'id' with "
            "schema 'w/Event@1', but key schema 'w/Id@1' does not match 'missing'");
}

// case 28
TEST(air, a_manifest_cannot_redefine_a_builtin) {
  json::Value nodes = sample();
  nodes.array().insert(
      nodes.array().begin(),
      *json::parse(R"({"$kind":"defschema","name":"sys/Own@1","type":{"text":{}}})"));
  EXPECT_FALSE(load_air(nodes));
}

struct PatchTest : testing::Test {
  Result<Patch> compile(const std::string& patches, const std::string& on) {
    return compile_patch(
        *json::parse("{\"base_manifest_hash\":\"" + on + "\",\"patches\":[" + patches + "]}"),
        air->manifest);
  }
  const Result<Authored> air = author(sample(), builtins());
  const std::string base = manifest_hash(air->manifest);
};

// case 116, case 117
TEST_F(PatchTest, definitions_are_added_replaced_and_removed) {
  const std::string add =
      R"({"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"w/New@1","type":{"nat":{}}}}})";
  auto added = compile(add, base);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->manifest.schemas.back().name, "w/New@1");
  EXPECT_EQ(added->manifest.schemas.back().hash, node_hash(added->nodes[0]));
  EXPECT_NE(manifest_hash(added->manifest), base);
  // Adding a definition that exists replaces it.
  auto again = compile(
      add +
          R"(,{"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"w/New@1","type":{"text":{}}}}})",
      base);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->manifest.schemas.size(), added->manifest.schemas.size());
  EXPECT_EQ(again->manifest.schemas.back().hash, node_hash(again->nodes[1]));
  EXPECT_NE(compile(add, kNoHash).error().message.find("base_manifest_hash mismatch"),
            std::string::npos);
  const std::string old = air->manifest.schemas[0].hash;
  EXPECT_TRUE(compile(
      R"({"remove_def":{"kind":"defschema","name":"w/Id@1","pre_hash":")" + old + "\"}}", base));
  EXPECT_NE(compile(R"({"remove_def":{"kind":"defschema","name":"w/Id@1","pre_hash":"x"}})", base)
                .error()
                .message.find("pre_hash mismatch for w/Id@1"),
            std::string::npos);
  EXPECT_TRUE(
      compile(R"({"replace_def":{"kind":"defschema","name":"w/Id@1","pre_hash":")" + old +
                  R"(","new_node":{"$kind":"defschema","name":"w/Id@1","type":{"nat":{}}}}})",
              base));
  EXPECT_EQ(
      compile(
          R"({"add_def":{"kind":"defeffect","node":{"$kind":"defschema","name":"w/N@1","type":{"nat":{}}}}})",
          base)
          .error()
          .message,
      "patch document: kind mismatch: patch declared defeffect but node is defschema");
  auto absent =
      compile(R"({"remove_def":{"kind":"defschema","name":"w/Absent@1","pre_hash":"x"}})", base);
  ASSERT_TRUE(absent);
  EXPECT_EQ(manifest_hash(absent->manifest), base);
  EXPECT_NE(compile(R"({"remove_def":{"kind":"defschema","name":"sys/X@1","pre_hash":"x"}})", base)
                .error()
                .message.find("sys/*"),
            std::string::npos);
}

TEST_F(PatchTest, subscriptions_and_references_are_set_and_bad_operations_refused_by_name) {
  const std::string routes = hash_text(cbor::hash_of(subscriptions_value(air->manifest)));
  auto routed = compile(
      R"({"set_routing_subscriptions":{"pre_hash":")" + routes + R"(","subscriptions":[]}})", base);
  ASSERT_TRUE(routed);
  EXPECT_TRUE(routed->manifest.subscriptions.empty());
  for (const char* version : {R"("1")", "1", "2"})
    EXPECT_NE(
        compile_patch(*json::parse(std::string(R"({"version":)") + version +
                                   R"(,"base_manifest_hash":")" + base + R"(","patches":[]})"),
                      air->manifest)
            .error()
            .message.find("unsupported patch document version: "),
        std::string::npos)
        << version;
  EXPECT_FALSE(compile(R"({"set_manifest_refs":{"add":5}})", base));
  for (const char* step :
       {"add_def", "replace_def", "remove_def", "set_manifest_refs", "set_routing_subscriptions"})
    EXPECT_EQ(compile("{\"" + std::string(step) + "\":5}", base).error().message,
              "patch document: " + std::string(step) + " takes an object");
  EXPECT_TRUE(compile(
      R"({"set_manifest_refs":{"add":[],"remove":[{"kind":"defschema","name":"w/Absent@1"}]}})",
      base));
}

}  // namespace
}  // namespace pawl::worlds
