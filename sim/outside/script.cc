#include "sim/outside/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "json/text.h"

namespace pawl::sim {
namespace {

constexpr size_t kMaxLives = 10'000'000;

std::unexpected<Error> bad(const std::string& where, const std::string& what) {
  return fail(Code::invalid, "BAD_SCRIPT", where.empty() ? what : where + ": " + what);
}

// One member of an object of the script: its name and how it is read.
struct Field {
  std::string_view name;
  std::function<Result<void>(const json::Value& v, const std::string& where)> read;
};

Result<void> read_fields(const json::Value& v, const std::string& where,
                         const std::vector<Field>& fields) {
  if (!v.is_object()) return bad(where, "must be an object");
  for (const auto& [name, value] : v.object()) {
    const Field* field = nullptr;
    std::string known;
    for (const Field& one : fields) {
      if (one.name == name) field = &one;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
    }
    if (!field) return bad(where, fmt::format("unknown member \"{}\"; known are {}", name, known));
    TRY_OK(field->read(value, where.empty() ? name : where + "." + name));
  }
  return {};
}

auto share_into(double& out) {
  return [&out](const json::Value& v, const std::string& where) -> Result<void> {
    std::string_view text;
    std::string number;
    double unit = 1;
    if (v.is_number()) {
      text = number = v.number_text();
    } else if (v.is_string() && v.string().ends_with('%')) {
      text = std::string_view(v.string()).substr(0, v.string().size() - 1);
      unit = 100;
    } else {
      return bad(where, "must be a share, such as \"10%\" or 0.1");
    }
    double read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc() || end != text.data() + text.size() || !(read >= 0 && read <= unit))
      return bad(where, "must be a share between 0% and 100%, such as \"10%\" or 0.1");
    out = read / unit;
    return {};
  };
}

auto range_into(TimeRange& out) {
  return [&out](const json::Value& v, const std::string& where) -> Result<void> {
    constexpr std::string_view kHelp = "must be a time such as \"10s\", or a range \"1s..2h\"";
    if (!v.is_string()) return bad(where, std::string(kHelp));
    const std::string& text = v.string();
    const size_t dots = text.find("..");
    auto low = parse_span(text.substr(0, dots));
    auto high = dots == std::string::npos ? low : parse_span(text.substr(dots + 2));
    if (!low || !high || *low > *high) return bad(where, std::string(kHelp));
    out = {*low, *high};
    return {};
  };
}

auto flag_into(bool& out) {
  return [&out](const json::Value& v, const std::string& where) -> Result<void> {
    if (!v.is_bool()) return bad(where, "must be true or false");
    out = v.boolean();
    return {};
  };
}

auto text_into(std::string& out) {
  return [&out](const json::Value& v, const std::string& where) -> Result<void> {
    if (!v.is_string()) return bad(where, "must be a string");
    out = v.string();
    return {};
  };
}

auto texts_into(std::vector<std::string>& out) {
  return [&out](const json::Value& v, const std::string& where) -> Result<void> {
    if (!v.is_array()) return bad(where, "must be a list of strings");
    for (const json::Value& one : v.array()) {
      if (!one.is_string()) return bad(where, "must be a list of strings");
      out.push_back(one.string());
    }
    return {};
  };
}

// A list of objects. One of the form {"weight": N, MEMBER: {...}} has a weight.
auto choices_into(std::vector<Choice>& out, std::string member) {
  return [&out, member](const json::Value& v, const std::string& where) -> Result<void> {
    if (!v.is_array()) return bad(where, "must be a list of objects");
    for (size_t i = 0; i < v.array().size(); ++i) {
      const json::Value& one = v.array()[i];
      const std::string place = fmt::format("{}[{}]", where, i);
      if (!one.is_object()) return bad(place, "must be an object");
      const json::Value* inner = one.find(member);
      const json::Value* weight = one.find("weight");
      const bool weighted = inner && inner->is_object() && one.object().size() <= (weight ? 2 : 1);
      if (!weighted) {
        out.push_back({one.object()});
        continue;
      }
      if (weight && (!weight->is_number() || !(weight->as_double() > 0)))
        return bad(place, "the weight must be a number above 0");
      out.push_back({inner->object(), weight ? weight->as_double() : 1});
    }
    return {};
  };
}

// What may be said of one kind of thing, and how long it takes when nothing is said.
struct BehaviourKind {
  TimeRange takes;
  std::string_view inner;                   // the member of a result that has a weight
  std::array<std::string_view, 8> members;  // unused places are empty
};
constexpr TimeRange kAMoment{10 * kMillisecond, kSecond};
constexpr TimeRange kUpToAnHour{60 * kSecond, 3600 * kSecond};
constexpr BehaviourKind kJobs{
    TimeRange{},
    "variables",
    {"results", "takes", "fails", "retryable", "message", "dies", "late", "twice"}};
constexpr BehaviourKind kTasks{kUpToAnHour, "variables", {"results", "takes", "twice", "never"}};
constexpr BehaviourKind kSignals{
    kUpToAnHour, "variables", {"variables", "after", "twice", "never", "early"}};
constexpr BehaviourKind kProcessors{
    kAMoment, "data", {"results", "takes", "fails", "message", "dies", "twice"}};
constexpr BehaviourKind kCriteria{
    kAMoment, "", {"matches", "takes", "fails", "message", "dies", "twice"}};
constexpr BehaviourKind kTransitions{kUpToAnHour, "", {"after", "twice", "never"}};
constexpr BehaviourKind kEffects{
    kAMoment, "payload", {"results", "takes", "fails", "message", "dies", "late", "twice"}};
constexpr BehaviourKind kEvents{kUpToAnHour, "value", {"values", "after", "twice", "never"}};

// `more` are members beside those of the kind.
Result<Behaviour> read_behaviour(const json::Value& v, const std::string& where,
                                 const BehaviourKind& kind, std::vector<Field> more = {}) {
  Behaviour b;
  b.takes = kind.takes;
  std::vector<Field> fields{{"results", choices_into(b.results, std::string(kind.inner))},
                            {"variables", choices_into(b.results, std::string(kind.inner))},
                            {"values", choices_into(b.results, std::string(kind.inner))},
                            {"takes", range_into(b.takes)},
                            {"after", range_into(b.takes)},
                            {"fails", share_into(b.fails)},
                            {"retryable", flag_into(b.retryable)},
                            {"message", text_into(b.message)},
                            {"dies", share_into(b.dies)},
                            {"late", share_into(b.late)},
                            {"twice", share_into(b.twice)},
                            {"never", share_into(b.never)},
                            {"early", flag_into(b.early)},
                            {"matches", share_into(b.matches)}};
  std::erase_if(fields, [&](const Field& field) {
    return std::find(kind.members.begin(), kind.members.end(), field.name) == kind.members.end();
  });
  fields.insert(fields.begin(), more.begin(), more.end());
  TRY_OK(read_fields(v, where, fields));
  return b;
}

auto behaviours_into(std::map<std::string, Behaviour>& out, const BehaviourKind& kind) {
  return [&out, &kind](const json::Value& v, const std::string& where) -> Result<void> {
    if (!v.is_object()) return bad(where, "must be an object");
    for (const auto& [name, value] : v.object()) {
      TRY(out[name], read_behaviour(value, where + "." + name, kind));
    }
    return {};
  };
}

// [{"schema": NAME, "values": [...], "after": ...}]. A life begins with the first event.
Result<void> read_events(const json::Value& v, const std::string& where,
                         std::vector<WorldEvent>& out) {
  if (!v.is_array() || v.array().empty())
    return bad(where, "must be a list of events: [{\"schema\": \"NAME\", \"values\": [...]}]");
  for (size_t i = 0; i < v.array().size(); ++i) {
    const std::string place = fmt::format("{}[{}]", where, i);
    WorldEvent event;
    TRY(event.behaviour,
        read_behaviour(v.array()[i], place, kEvents, {{"schema", text_into(event.schema)}}));
    if (event.schema.empty()) return bad(place, "\"schema\" is missing: name the event");
    if (i == 0 && !v.array()[i].find("after")) event.behaviour.takes = {kMillisecond, kMillisecond};
    out.push_back(std::move(event));
  }
  return {};
}

Result<json::Value> definition_of(const json::Value& v, const std::string& where,
                                  const ScriptFiles& files) {
  if (v.is_object()) return v;
  if (!v.is_string()) return bad(where, "must be a definition or the name of its file");
  TRY(json::Value read, files.read_file(v.string()));
  if (!read.is_object()) return bad(v.string(), "must be a definition, a JSON object");
  return read;
}

Result<void> read_start(const json::Value& v, const std::string& where, Script& script) {
  if (v.is_array()) return choices_into(script.starts, "variables")(v, where);
  const json::Value* schema = v.find("schema");
  if (!schema || v.object().size() != 1)
    return bad(where, "must be a list of variables, or {\"schema\": ...}");
  script.start_schema = *schema;
  return {};
}

// {"name", "version", "sample"}
Result<void> read_model(const json::Value& v, const std::string& where, Script& script) {
  return read_fields(
      v, where,
      {{"name", text_into(script.model_name)},
       {"version",
        [&](const json::Value& n, const std::string& place) -> Result<void> {
          if (!n.is_number() || !n.as_int64()) return bad(place, "must be a whole number");
          script.model_version = *n.as_int64();
          return {};
        }},
       {"sample", [&](const json::Value& sample, const std::string& place) -> Result<void> {
          if (!sample.is_object()) return bad(place, "must be a document, a JSON object");
          script.model_sample = sample;
          return {};
        }}});
}

// A file with workflows to import, or one workflow.
json::Value import_of(json::Value document) {
  if (document.find("workflows")) return document;
  return json::object({{"importMode", "REPLACE"}, {"workflows", json::Array{std::move(document)}}});
}

Result<void> read_lives(const json::Value& v, const std::string& where, uint64_t& out) {
  const auto n = v.is_number() ? v.as_uint64() : std::nullopt;
  if (!n || *n == 0 || *n > kMaxLives)
    return bad(where, fmt::format("must be a number between 1 and {}", kMaxLives));
  out = *n;
  return {};
}

// What is read before it goes to its place in the script.
struct ReadScript {
  Script script;
  json::Value first;  // the definition that is started
  std::vector<json::Value> more;
  TimeRange horizon{script.horizon, script.horizon};
};

std::vector<Field> process_fields(ReadScript& out, const ScriptFiles& files) {
  Script& script = out.script;
  return {{"definition",
           [&](const json::Value& v, const std::string& where) -> Result<void> {
             TRY(out.first, definition_of(v, where, files));
             return {};
           }},
          {"also",
           [&](const json::Value& v, const std::string& where) -> Result<void> {
             if (!v.is_array()) return bad(where, "must be a list of definitions or file names");
             for (const json::Value& one : v.array()) {
               TRY(json::Value read, definition_of(one, where, files));
               out.more.push_back(std::move(read));
             }
             return {};
           }},
          {"start", [&](const json::Value& v,
                        const std::string& where) { return read_start(v, where, script); }},
          {"jobs", behaviours_into(script.jobs, kJobs)},
          {"tasks", behaviours_into(script.tasks, kTasks)},
          {"signals", behaviours_into(script.signals, kSignals)}};
}

std::vector<Field> entity_fields(Script& script, const ScriptFiles& files) {
  return {{"workflow",
           [&](const json::Value& v, const std::string& where) -> Result<void> {
             TRY(json::Value read, definition_of(v, where, files));
             script.workflow = import_of(std::move(read));
             return {};
           }},
          {"model", [&](const json::Value& v,
                        const std::string& where) { return read_model(v, where, script); }},
          {"create", choices_into(script.starts, "data")},
          {"processors", behaviours_into(script.processors, kProcessors)},
          {"criteria", behaviours_into(script.criteria, kCriteria)},
          {"transitions", behaviours_into(script.transitions, kTransitions)}};
}

std::vector<Field> world_fields(Script& script, const ScriptFiles& files) {
  return {
      {"world",
       [&](const json::Value& v, const std::string& where) -> Result<void> {
         if (!v.is_string()) return bad(where, "must be the name of a folder with a world");
         TRY(script.world, files.read_world(v.string()));
         return {};
       }},
      {"events", [&](const json::Value& v,
                     const std::string& where) { return read_events(v, where, script.events); }},
      {"effects", behaviours_into(script.effects, kEffects)}};
}

std::vector<Field> common_fields(ReadScript& out) {
  Script& script = out.script;
  return {{"crashes", share_into(script.crashes)},
          {"invariants", texts_into(script.invariants)},
          {"mayBeUnreached", texts_into(script.may_be_unreached)},
          {"mayWait", flag_into(script.may_wait)},
          {"lives", [&](const json::Value& v,
                        const std::string& where) { return read_lives(v, where, script.lives); }},
          {"horizon", range_into(out.horizon)}};
}

// Exactly one of the three is simulated, and it needs something to begin with.
Result<void> check_subject(const Script& script, bool definition) {
  const int subjects =
      int{definition} + int{!script.workflow.is_null()} + int{script.world.has_value()};
  if (subjects == 0)
    return bad(
        "", "\"definition\", \"workflow\" or \"world\" is missing: name the file of one of them");
  if (subjects > 1)
    return bad("", "\"definition\", \"workflow\" and \"world\" need files of their own");
  if (!script.workflow.is_null() && script.starts.empty())
    return bad("", "\"create\" is missing: list documents of the entities to create");
  if (script.world && script.events.empty())
    return bad("", "\"events\" is missing: list the events that the world gets");
  return {};
}

}  // namespace

Result<Time> parse_span(std::string_view text) {
  if (text.starts_with('P')) {
    TRY(Duration duration, parse_duration(text));
    return duration.nanos + duration.months * 30 * 24 * 3600 * kSecond;
  }
  static constexpr std::pair<std::string_view, Time> kUnits[] = {{"ms", kMillisecond},
                                                                 {"s", kSecond},
                                                                 {"m", 60 * kSecond},
                                                                 {"h", 3600 * kSecond},
                                                                 {"d", 24 * 3600 * kSecond}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  for (const auto& [name, length] : kUnits)
    if (error == std::errc() && name == unit && number >= 0 && number < 1e6)
      return static_cast<Time>(number * static_cast<double>(length));
  return fail(Code::invalid, "BAD_SPAN",
              fmt::format("\"{}\" is no time; write 500ms, 10s, 5m, 2h, 3d or ISO 8601", text));
}

Result<Script> read_script(const json::Value& document, const ScriptFiles& files) {
  ReadScript out;
  std::vector<Field> fields = process_fields(out, files);
  for (auto more :
       {entity_fields(out.script, files), world_fields(out.script, files), common_fields(out)})
    fields.insert(fields.end(), more.begin(), more.end());
  TRY_OK(read_fields(document, "", fields));
  TRY_OK(check_subject(out.script, !out.first.is_null()));
  Script script = std::move(out.script);
  script.horizon = out.horizon.high;
  if (!out.first.is_null()) script.definitions.push_back(std::move(out.first));
  for (json::Value& one : out.more)
    script.definitions.push_back(std::move(one));
  return script;
}

}  // namespace pawl::sim
