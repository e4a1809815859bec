// Fuzz targets for documents that users upload: definitions, workflows, models, types, rules.

#include "faces/entities/flow/workflow.h"
#include "faces/entities/model/schema.h"
#include "faces/entities/model/xml.h"
#include "faces/lifecycle/rule/cron.h"
#include "faces/lifecycle/rule/rules.h"
#include "faces/processes/definition/definition.h"
#include "faces/processes/run/dry_run.h"
#include "fuzz.h"
#include "json/text.h"

namespace pawl::fuzz {

namespace {

// An accepted definition can be stored, decoded and run.
void definition(BytesView bytes) {
  auto document = json::parse(bytes);
  if (!document) return;
  auto made = processes::make_definition(*document);
  if (!made) return refused(made.error());
  (void)processes::warnings(*made);
  auto again = processes::decode_version(processes::encode_version(1, kNow, made->document));
  CHECK(again &&
        processes::content_digest(again->document) == processes::content_digest(made->document));
  json::Object variables;
  variables.set("x", json::Value(1));
  auto path = processes::dry_run(*made, variables, json::Value(json::Object()), kNow);
  if (path) CHECK(json::parse(*path));
}

// Imported workflows can be loaded again.
void workflow(BytesView bytes) {
  auto request = json::parse(bytes);
  if (!request) return;
  auto flows = entities::import_workflows({}, *request);
  if (!flows) return refused(flows.error());
  CHECK(entities::load_workflows(flows->definitions));
}

// A model accepts the samples that it was inferred from, and it does not change when it is stored.
void model(BytesView bytes) {
  auto samples = json::parse(bytes);
  if (!samples || !samples->is_array() || samples->array().empty()) return;
  entities::Shape shape = entities::infer(samples->array()[0]);
  for (const json::Value& sample : samples->array())
    entities::merge(shape, entities::infer(sample));
  for (const json::Value& sample : samples->array()) {
    auto grown = entities::extend(shape, sample, entities::ChangeLevel::structural);
    if (grown) CHECK(entities::check(shape, sample));
  }
  json::Value stored = entities::to_json(shape);
  CHECK(json::print(entities::to_json(entities::shape_from(stored))) == json::print(stored));
  CHECK(json::parse(json::print(entities::json_schema(shape)),
                    {.max_depth = 8 * limits::kJsonDepth}));
  CHECK(json::parse(json::print(entities::simple_view(shape)),
                    {.max_depth = 8 * limits::kJsonDepth}));
}

void xml(BytesView bytes) {
  auto value = entities::parse_xml(bytes);
  if (!value) return refused(value.error());
  CHECK(json::parse(json::print(*value), {.max_depth = 2 * limits::kJsonDepth}));
}

// The next firing is always in the future.
void cron(BytesView bytes) {
  auto line = lifecycle::parse_cron(bytes);
  if (!line) return;
  if (auto next = lifecycle::next_after(*line, kNow)) CHECK(*next > kNow);
}

// A valid type survives being stored and being printed as JSON.
void type(BytesView bytes) {
  auto body = json::parse(bytes);
  if (!body) return;
  auto parsed = lifecycle::parse_type("t", *body);
  if (!parsed || !lifecycle::validate(*parsed)) return;
  lifecycle::WorkflowType made = lifecycle::make_type(*parsed);
  auto again = lifecycle::decode_type(lifecycle::encode(made));
  CHECK(again && json::print(lifecycle::type_json(again->def)) ==
                     json::print(lifecycle::type_json(made.def)));
  auto round = lifecycle::parse_type("t", lifecycle::type_json(made.def));
  CHECK(round && lifecycle::validate(*round));
}

// A rule keeps its body when it is stored.
void rule(BytesView bytes) {
  auto body = json::parse(bytes);
  if (!body) return;
  auto parsed = lifecycle::parse_rule("r", *body);
  if (!parsed) return;
  (void)lifecycle::next_firing(*parsed, kNow);
  lifecycle::RuleCell cell{.rule = *parsed};
  auto again = lifecycle::decode_rule(lifecycle::encode(cell));
  CHECK(again && json::print(again->rule.body) == json::print(parsed->body));
}

// Some values look like variables themselves. The size check finds a text that grows because they
// are replaced again.
void substituted(BytesView bytes) {
  lifecycle::Variables variables;
  variables.entity_id = "$entity.id";
  variables.message = *json::parse(R"({"a":{"b":["$now",{"c":1}]},"$x":"y"})");
  variables.now = kNow;
  auto text = lifecycle::substitute(bytes, variables);
  CHECK(text.text.size() < bytes.size() * 64 + 64);
  (void)lifecycle::resolved_value("it", json::Value(std::string(bytes)), variables).has_value();
}

}  // namespace

std::vector<Target> face_targets() {
  return {
      {"definition", definition, [] { return vectors("processes", 4, "steps"); }},
      {"workflow", workflow, [] { return vectors("entities", 5, "workflows"); }},
      {"model", model,
       [] {
         return std::vector<std::string>{
             R"([{"a":1,"b":[1,"x",null,{"c":1.5}]},{"a":null,"b":[],"d":{"e":[[1],[2,3]]}}])",
             R"([{"n":1},{"n":9223372036854775808},{"n":1e400},{"n":0.1},{"n":true}])",
             R"([[1,2],[],{"":{"":""}}])"};
       }},
      {"xml", xml,
       [] {
         return std::vector<std::string>{"<a x='1'><b>2</b><b>t&amp;u</b><!-- c --><c/></a>",
                                         "<?xml version=\"1.0\"?>\n<r><![CDATA[<x>]]>&#65;</r>",
                                         "<a>\n<b> 1e5 </b>true</a>"};
       }},
      {"cron", cron,
       [] {
         return std::vector<std::string>{"*/5 0-12 1,15 * 1-5", "0 30 12 29 2 *",
                                         "59 59 23 31 12 0", "0 0 30 2 *"};
       }},
      {"type", type, [] { return vectors("lifecycle", 4, "fields"); }},
      {"rule", rule, [] { return vectors("lifecycle", 4, "then"); }},
      {"substitute", substituted,
       [] {
         return std::vector<std::string>{"$entity.id at $now: $message.a.b.1.c $message.$x",
                                         "$entity.lifecycle.phase$$", "$schedule.x.y$caller"};
       }},
  };
}

}  // namespace pawl::fuzz
