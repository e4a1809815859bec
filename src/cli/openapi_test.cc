#include "cli/openapi.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "cli/host.h"
#include "cli/openapi_schema.h"
#include "json/text.h"
#include "net/http_client.h"
#include "schema/schema.h"

namespace pawl::cli {
namespace {

using namespace wire::row;

constexpr wire::AnswerShape kThing{"Thing",
                                   {text("id").example(R"("a")"), flag("good").optional()}};
constexpr wire::AnswerShape kOther{"Thing", {text("name")}};
constexpr wire::RequestShape kThingPath{"", {text("id", "The id.")}};
constexpr wire::RequestShape kNewThing{
    "NewThing",
    {text("id").required().example(R"("a")"), integer("size").range(1, 9).by_default(3),
     choice("colour", {"red", "blue"}), list("parts", "", kThing).or_null()}};
constexpr wire::RequestShape kThingQuery{"", {flag("all"), texts("tag")}};
constexpr wire::Operation kGet{
    .id = "getThing", .path = &kThingPath, .replies = {{200, "It.", kThing}}, .errors = {409}};
constexpr wire::Operation kPut{.id = "putThing",
                               .path = &kThingPath,
                               .query = &kThingQuery,
                               .headers = &wire::kIdempotencyHeader,
                               .body = {kNewThing},
                               .replies = {{204, "It is stored."}}};
constexpr wire::Operation kSame{.id = "getThing", .replies = {{200, "It.", kThing}}};
constexpr wire::Operation kTwin{.id = "getTwin", .replies = {{200, "It.", kOther}}};
constexpr wire::Operation kDrop{.id = "dropThings", .replies = {{204, "They are gone."}}};
constexpr wire::Operation kAstray{
    .id = "getAstray", .path = &kThingPath, .replies = {{200, "It.", kThing}}};
constexpr wire::Operation kSilent{.id = "getSilent"};
constexpr wire::Operation kUnfiled{.id = "getUnfiled",
                                   .replies = {{200, "It.", wire::document_type("Nowhere")}}};

Result<std::string> printed(std::vector<wire::Route> routes) {
  wire::Router router;
  router.add(std::move(routes), wire::Dialect{"/", plain_refusal, {}, kPlainErrors});
  return openapi(router, {});
}

json::Value document(std::vector<wire::Route> routes) {
  auto text = printed(std::move(routes));
  CHECK(text);
  return *json::parse(*text);
}

const json::Value& at(const json::Value& value, std::initializer_list<std::string_view> names) {
  const json::Value* found = &value;
  for (std::string_view name : names) {
    found = found->is_array() ? &found->array()[name[0] - '0'] : found->find(name);
    CHECK(found);
  }
  return *found;
}

TEST(openapi, a_row_is_an_operation_with_its_parameters_body_and_answers) {
  json::Value doc = document({{"GET", "/things/{id}", {}, "Shows a thing.", &kGet},
                              {"PUT", "/things/{id}", {}, "Stores a thing.", &kPut}});
  const json::Value& put = at(doc, {"paths", "/things/{id}", "put"});
  EXPECT_EQ(put.string_or("operationId"), "putThing");
  EXPECT_EQ(put.string_or("summary"), "Stores a thing.");
  const json::Array& parameters = at(put, {"parameters"}).array();
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters[0].string_or("in"), "path");
  EXPECT_EQ(json::print(parameters[2]),
            R"({"name":"tag","in":"query","schema":{"type":"array","items":{"type":"string"}}})");
  EXPECT_EQ(parameters[3].string_or("name"), "Idempotency-Key");
  const json::Value& content = at(put, {"requestBody", "content", "application/json"});
  EXPECT_EQ(json::print(*content.find("example")), R"({"id":"a"})");
  const json::Value& schema = at(doc, {"components", "schemas", "NewThing"});
  EXPECT_EQ(json::print(at(schema, {"required"})), R"(["id"])");
  EXPECT_EQ(json::print(at(schema, {"properties", "size"})),
            R"({"type":"integer","minimum":1,"maximum":9,"default":3})");
  EXPECT_EQ(json::print(at(schema, {"properties", "colour", "enum"})), R"(["red","blue"])");
  EXPECT_EQ(json::print(at(schema, {"properties", "parts", "type"})), R"(["array","null"])");
  // Answers: the operation's own, and the errors that every operation may have.
  const json::Value& get = at(doc, {"paths", "/things/{id}", "get", "responses"});
  for (const char* status : {"200", "400", "401", "403", "404", "409", "429", "500", "503"})
    EXPECT_TRUE(get.find(status)) << status;
  EXPECT_FALSE(get.find("413"));
}

TEST(openapi, paths_that_differ_in_names_only_are_one_path) {
  json::Value doc = document({{"GET", "/things/{id}", {}, "Shows a thing.", &kGet},
                              {"DELETE", "/things/{format...}", {}, "Deletes things.", &kDrop}});
  const json::Value& path = at(doc, {"paths", "/things/{idOrFormat}"});
  EXPECT_EQ(at(path, {"get", "parameters", "0"}).string_or("name"), "idOrFormat");
  EXPECT_EQ(at(path, {"delete", "parameters", "0"}).string_or("name"), "idOrFormat");
}

TEST(openapi, open_routes_need_no_token) {
  json::Value doc = document({wire::open({"GET", "/a", {}, "Open.", &kDrop}),
                              {"GET", "/things/{id}", {}, "Not open.", &kGet}});
  EXPECT_EQ(json::print(at(doc, {"paths", "/a", "get", "security"})), "[]");
  EXPECT_EQ(json::print(at(doc, {"paths", "/things/{id}", "get", "security"})),
            R"([{"bearer":[]}])");
  EXPECT_FALSE(at(doc, {"paths", "/a", "get", "responses"}).find("401"));
}

TEST(openapi, mistakes_of_the_tables_are_refused) {
  auto mistake = [](std::vector<wire::Route> routes) {
    auto text = printed(std::move(routes));
    return text ? std::string() : text.error().message;
  };
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A.", &kSame}, {"GET", "/b/{id}", {}, "B.", &kGet}}),
            "two operations have the id getThing");
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A.", &kTwin}, {"GET", "/b/{id}", {}, "B.", &kGet}}),
            "two shapes are named Thing");
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A.", &kAstray}}),
            "getAstray describes a parameter that its path /a does not have");
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A.", &kSilent}}), "getSilent has no answer");
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A.", &kUnfiled}}),
            "there is no file docs/schemas/Nowhere.json");
  EXPECT_EQ(mistake({{"GET", "/a", {}, "A."}}), "GET /a has no operation");
  EXPECT_EQ(mistake({{"GET", "/a", {}, ""}}), "");  // a second form of another route
}

// The documents of a server that runs.
class RealDocuments : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("pawl-openapi-" + std::to_string(getpid()));
    server::ConfigSources sources;
    sources.flags = {{"data", folder_.string()},
                     {"http", "127.0.0.1:0"},
                     {"grpc", "127.0.0.1:0"},
                     {"admin", "127.0.0.1:0"}};
    sources.variable = [](const std::string&) { return std::nullopt; };
    auto config = server::Config::load(sources);
    ASSERT_TRUE(config) << config.error().message;
    auto host = Host::start(*config);
    ASSERT_TRUE(host) << host.error().message;
    host_ = *std::move(host);
    for (const std::string& address : {host_->http(), host_->admin()}) {
      net::HttpClient client({.base_url = "http://" + address});
      auto answer = client.send({"GET", "/openapi.json"});
      ASSERT_TRUE(answer) << answer.error().message;
      auto parsed = json::parse(answer->body);
      ASSERT_TRUE(parsed) << parsed.error().message;
      documents_.push_back(*std::move(parsed));
    }
  }
  void TearDown() override {
    host_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Calls visit(path, method, operation) for each operation.
  template <class Visit>
  void each(const Visit& visit) {
    for (const json::Value& doc : documents_)
      for (const json::Member& path : at(doc, {"paths"}).object())
        for (const json::Member& method : path.value.object())
          visit(doc, path.name, method.name, method.value);
  }

  std::filesystem::path folder_;
  std::unique_ptr<Host> host_;
  std::vector<json::Value> documents_;
};

TEST_F(RealDocuments, every_operation_has_an_id_of_its_own_and_a_sentence) {
  std::set<std::string> ids;
  each([&](const json::Value&, const std::string& path, const std::string& method,
           const json::Value& operation) {
    std::string id(operation.string_or("operationId"));
    // Both addresses serve their own document.
    EXPECT_TRUE(id == "getOpenApi" || ids.insert(id).second) << id;
    EXPECT_FALSE(id.empty()) << method << " " << path;
    EXPECT_FALSE(operation.string_or("summary").empty()) << id;
    EXPECT_TRUE(operation.find("security")) << id;
  });
  EXPECT_GT(ids.size(), 200u);
}

TEST_F(RealDocuments, path_parameters_are_those_of_the_path) {
  each([&](const json::Value&, const std::string& path, const std::string& method,
           const json::Value& operation) {
    std::multiset<std::string> wanted, got;
    for (size_t open = path.find('{'); open != path.npos; open = path.find('{', open + 1))
      wanted.insert(path.substr(open + 1, path.find('}', open) - open - 1));
    if (const json::Value* parameters = operation.find("parameters"))
      for (const json::Value& one : parameters->array())
        if (one.string_or("in") == "path") got.insert(std::string(one.string_or("name")));
    EXPECT_EQ(wanted, got) << method << " " << path;
  });
}

// The mismatch of the example with its schema; empty when it fits or there is none. `doc` is used
// as a schema of its own, so that references find its components.
std::string mismatch(json::Value& doc, const json::Value& content) {
  const json::Value* example = content.find("example");
  if (!example) return {};
  doc.object().set("allOf", json::Array{at(content, {"schema"})});
  auto schema = schema::Schema::compile(doc);
  if (!schema) return schema.error().message;
  size_t work = 0;
  auto fits = schema->check(*example, work, 1'000'000);
  return fits ? "" : fits.error().message + " in " + json::print(*example);
}

TEST_F(RealDocuments, every_example_fits_its_schema) {
  size_t examples = 0;
  std::map<const json::Value*, json::Value> components;
  auto check_all = [&](const json::Value& doc, const json::Value& holder, std::string_view where) {
    json::Value& own = components[&doc];
    if (own.is_null()) own = json::object({{"components", at(doc, {"components"})}});
    const json::Value* content = holder.find("content");
    if (!content) return;
    for (const json::Member& media : content->object()) {
      EXPECT_EQ(mismatch(own, media.value), "") << where << " " << media.name;
      examples += media.value.find("example") != nullptr;
    }
  };
  each([&](const json::Value& doc, const std::string&, const std::string&,
           const json::Value& operation) {
    std::string_view id = operation.string_or("operationId");
    if (const json::Value* body = operation.find("requestBody")) check_all(doc, *body, id);
    for (const json::Member& answer : at(operation, {"responses"}).object())
      check_all(doc, answer.value, id);
  });
  for (const json::Value& doc : documents_)
    for (const json::Member& error : at(doc, {"components", "responses"}).object())
      check_all(doc, error.value, error.name);
  EXPECT_GT(examples, 200u);
}

TEST_F(RealDocuments, every_json_body_and_answer_has_an_example) {
  each([&](const json::Value&, const std::string&, const std::string&,
           const json::Value& operation) {
    auto shown = [&](const json::Value& holder) {
      const json::Value* content = holder.find("content");
      const json::Value* media = content ? content->find("application/json") : nullptr;
      EXPECT_TRUE(!media || media->find("example")) << operation.string_or("operationId");
    };
    if (const json::Value* body = operation.find("requestBody")) shown(*body);
    for (const json::Member& answer : at(operation, {"responses"}).object())
      shown(answer.value);
  });
}

}  // namespace
}  // namespace pawl::cli
