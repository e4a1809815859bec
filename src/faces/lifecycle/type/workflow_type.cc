#include "faces/lifecycle/type/workflow_type.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/type/shapes.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

struct TagWord {
  std::string_view word;
  tags t;
};
// omitempty and parent are members of their own in the JSON; as tags they are accepted, not
// printed.
constexpr TagWord kTags[] = {
    {"id", id},
    {"phase", phase},
    {"readonly", readonly},
    {"operator_writable", operator_writable},
    {"indexable", indexable},
    {"omitempty", omitempty},
    {"parent", parent},
};

struct KindWord {
  std::string_view word;
  kind k;
};
// Alternative names of kinds. The kind's own name is in kKinds.
constexpr KindWord kAliases[] = {{"int", kind::int64},
                                 {"uint", kind::uint64},
                                 {"float", kind::real},
                                 {"boolean", kind::boolean}};

// The error lists every known type, from the table of the public header.
Result<kind> parse_kind(std::string_view field, std::string_view word) {
  std::string known;
  for (const kind_row& row : kKinds) {
    if (row.name == word) return row.k;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  for (const KindWord& alias : kAliases)
    if (alias.word == word) return alias.k;
  return refuse(
      errc::invalid_definition,
      fmt::format("field '{}' has the unknown type '{}'; known types: {}", field, word, known));
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

Result<tags> add_tag(tags have, std::string_view field, std::string_view word) {
  word = trim_blanks(word);
  if (word.empty()) return have;
  for (const TagWord& row : kTags)
    if (row.word == word) return have | row.t;
  return refuse(errc::invalid_definition,
                fmt::format("field '{}' has the unknown tag '{}'; known tags: id, phase, readonly, "
                            "operator_writable, indexable",
                            field, word));
}

// Tags are a list of words, or one text with commas.
Result<tags> parse_tags(std::string_view field, const js::Value& value) {
  tags out = none;
  if (value.is_string()) {
    std::string_view text = value.string();
    while (true) {
      size_t comma = text.find(',');
      TRY(out, add_tag(out, field, text.substr(0, comma)));
      if (comma == std::string_view::npos) return out;
      text.remove_prefix(comma + 1);
    }
  }
  if (!value.is_array())
    return refuse(errc::invalid_definition,
                  fmt::format("the tags of field '{}' must be a list of words", field));
  for (const js::Value& word : value.array()) {
    if (!word.is_string())
      return refuse(errc::invalid_definition,
                    fmt::format("a tag of field '{}' is not a text", field));
    TRY(tags one, parse_tags(field, word));
    out = out | one;
  }
  return out;
}

// {"name": "drone_id", "type": "string", "tags": ["operator_writable"], "omitempty": true}
// "doc" is accepted and dropped.
Result<dynamic_type::field_def> parse_field(const js::Value& value) {
  if (!value.is_object())
    return refuse(errc::invalid_definition,
                  "each of \"fields\" must be an object with \"name\" and \"type\"");
  dynamic_type::field_def out;
  for (const auto& [name, member] : value.object()) {
    if (name == document::kField["name"].name && member.is_string())
      out.name = member.string();
    else if (name == document::kField["type"].name && member.is_string())
      continue;
    else if (name == document::kField["tags"].name)
      continue;
    else if (name == document::kField["omitempty"].name && member.is_bool()) {
      if (member.boolean()) out.t = out.t | omitempty;
    } else if (name != document::kField["doc"].name) {
      return refuse(
          errc::invalid_definition,
          fmt::format("field '{}' has the unknown or mistyped member \"{}\"", out.name, name));
    }
  }
  // Type and tags are read after the loop: their errors name the field, whose name may come last.
  std::string_view type = value.string_or(document::kField["type"].name);
  if (type.empty())
    return refuse(errc::invalid_definition, fmt::format("field '{}' has no \"type\"", out.name));
  TRY(out.k, parse_kind(out.name, type));
  if (const js::Value* list = value.find(document::kField["tags"].name); list && !list->is_null()) {
    TRY(tags more, parse_tags(out.name, *list));
    out.t = out.t | more;
  }
  return out;
}

// {"planning": ["flying", "aborted"], "flying": ["landing"], "aborted": []}: a phase without
// targets is terminal.
Result<void> parse_transitions(const js::Value& value, dynamic_type& out) {
  if (!value.is_object())
    return refuse(errc::invalid_transitions_table,
                  "\"transitions\" must be an object of phase -> list of next phases");
  for (const auto& [phase_name, targets] : value.object()) {
    if (!targets.is_array())
      return refuse(errc::invalid_transitions_table,
                    fmt::format("phase '{}' must have a list of next phases", phase_name));
    auto& to = out.transitions.emplace_back(phase_name, std::vector<std::string>()).second;
    for (const js::Value& target : targets.array()) {
      if (!target.is_string())
        return refuse(errc::invalid_transitions_table,
                      fmt::format("a next phase of '{}' is not a text", phase_name));
      to.push_back(target.string());
    }
  }
  return {};
}

// "completed" or ["completed", "landed"]: the phases that `complete` without a target prefers.
Result<void> parse_success(const js::Value& value, dynamic_type& out) {
  if (value.is_string()) {
    out.success.push_back(value.string());
    return {};
  }
  auto bad = [] {
    return refuse(errc::invalid_definition, "\"success\" must be a phase or a list of phases");
  };
  if (!value.is_array()) return bad();
  for (const js::Value& one : value.array()) {
    if (!one.is_string()) return bad();
    out.success.push_back(one.string());
  }
  return {};
}

// Contradictions of tags. Id and phase have one writer, the engine: an operator could otherwise
// move an instance past the table or lose it.
Result<void> validate_field(const dynamic_type::field_def& f) {
  if (f.name.empty()) return refuse(errc::invalid_definition, "a field has an empty name");
  if (f.name.size() > limits::kNameBytes)
    return refuse(errc::invalid_definition,
                  fmt::format("a field's name is longer than {} bytes", limits::kNameBytes));
  if (has(f.t, id) && has(f.t, operator_writable))
    return refuse(errc::invalid_definition,
                  fmt::format("field '{}' is tagged id and cannot be operator_writable", f.name));
  if (has(f.t, phase) && has(f.t, operator_writable))
    return refuse(
        errc::invalid_definition,
        fmt::format("field '{}' is tagged phase and cannot be operator_writable", f.name));
  if (has(f.t, readonly) && has(f.t, operator_writable))
    return refuse(
        errc::invalid_definition,
        fmt::format("field '{}' is tagged readonly and operator_writable: choose one", f.name));
  if (has(f.t, id) && has(f.t, phase))
    return refuse(
        errc::invalid_definition,
        fmt::format("field '{}' is tagged id and phase: they must be two fields", f.name));
  if (has(f.t, parent) && (has(f.t, id) || has(f.t, phase)))
    return refuse(errc::invalid_definition,
                  fmt::format("field '{}' is the {} and cannot hold the parent's id too", f.name,
                              has(f.t, id) ? "id" : "phase"));
  for (tags one : {id, phase, parent})
    if (has(f.t, one) && f.k != kind::string)
      return refuse(errc::invalid_definition,
                    fmt::format("field '{}' holds an id or a phase and must be a string, not a {}",
                                f.name, row_of(f.k).name));
  return {};
}

// Each field alone, then against those before it. kFields bounds the quadratic comparison.
Result<void> validate_fields(const dynamic_type& def) {
  if (def.fields.size() > limits::kFields)
    return refuse(errc::invalid_definition,
                  fmt::format("a type has at most {} fields", limits::kFields));
  for (size_t i = 0; i < def.fields.size(); ++i) {
    const auto& f = def.fields[i];
    TRY_OK(validate_field(f));
    for (size_t j = 0; j < i; ++j) {
      if (def.fields[j].name == f.name)
        return refuse(
            errc::invalid_definition,
            fmt::format("fields {} and {} have the same name '{}'", j + 1, i + 1, f.name));
      for (auto [one, word] :
           {std::pair{id, "id"}, std::pair{phase, "phase"}, std::pair{parent, "parent"}})
        if (has(def.fields[j].t, one) && has(f.t, one))
          return refuse(errc::invalid_definition,
                        fmt::format("fields '{}' and '{}' are both tagged {}", def.fields[j].name,
                                    f.name, word));
    }
  }
  // Last, as the original does: a wrong tag is reported before a missing one.
  if (!def.tagged(id)) return refuse(errc::missing_id_field, "tag one string field with \"id\"");
  if (!def.tagged(phase))
    return refuse(errc::missing_phase_field, "tag one string field with \"phase\"");
  return {};
}

}  // namespace

// Allowed, as in the original: cycles, edges from a phase to itself, several entry phases, phases
// that nothing leads to, and no terminal phase at all.
Result<void> validate_table(const dynamic_type& def) {
  auto bad = [](std::string text) {
    return refuse(errc::invalid_transitions_table, std::move(text));
  };
  if (def.transitions.empty()) return bad("it declares no phase");
  if (def.transitions.size() > limits::kPhases)
    return bad(fmt::format("it declares more than {} phases", limits::kPhases));
  for (size_t i = 0; i < def.transitions.size(); ++i) {
    const auto& [from, targets] = def.transitions[i];
    if (from.empty()) return bad("a phase has an empty name");
    if (from.size() > limits::kNameBytes)
      return bad(fmt::format("a phase's name is longer than {} bytes", limits::kNameBytes));
    for (size_t j = 0; j < i; ++j)
      if (def.transitions[j].first == from)
        return bad(fmt::format("phase '{}' is declared twice", from));
    for (size_t t = 0; t < targets.size(); ++t) {
      if (targets[t].empty())
        return bad(fmt::format("phase '{}' has a target with an empty name", from));
      if (!def.declares(targets[t]))
        return bad(
            fmt::format("phase '{}' leads to '{}', which is not declared", from, targets[t]));
      if (std::find(targets.begin(), targets.begin() + static_cast<long>(t), targets[t]) !=
          targets.begin() + static_cast<long>(t))
        return bad(fmt::format("phase '{}' leads to '{}' twice", from, targets[t]));
    }
  }
  for (const std::string& one : def.success)
    if (!def.declares(one) || !def.is_terminal(one))
      return bad(fmt::format("success phase '{}' must be a declared terminal phase", one));
  return {};
}

// The order is the original's: with several mistakes the first one in it is reported.
Result<void> validate(const dynamic_type& def) {
  if (def.name.empty())
    return refuse(errc::workflow_not_registered, "the workflow's name is empty");
  TRY_OK(check_name(def.name));
  TRY_OK(validate_table(def));
  TRY_OK(validate_fields(def));
  if (def.bucket.empty())
    return refuse(errc::workflow_not_registered,
                  fmt::format("the bucket of '{}' is empty", def.name));
  return {};
}

// The name is part of keys, paths and log lines.
Result<void> check_name(std::string_view name) {
  if (name.size() > limits::kNameBytes)
    return refuse(errc::invalid_definition,
                  fmt::format("a workflow's name has at most {} bytes", limits::kNameBytes));
  for (char c : name)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f)
      return refuse(errc::invalid_definition,
                    "a workflow's name has no blanks or control characters");
  if (!is_utf8(name)) return refuse(errc::invalid_definition, "a workflow's name must be UTF-8");
  return {};
}

Result<void> check_id(std::string_view text) {
  if (text.empty()) return refuse(errc::bad_id, "the id is empty");
  if (text.size() > limits::kIdBytes)
    return refuse(errc::bad_id, fmt::format("the id has {} bytes; {} are allowed", text.size(),
                                            limits::kIdBytes));
  for (char c : text)
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '*' || c == '>')
      return refuse(errc::bad_id, fmt::format("{} has a blank, a control character, '*' or '>'",
                                              js::quote(text)));
  if (!is_utf8(text)) return refuse(errc::bad_id, fmt::format("{} is not UTF-8", js::quote(text)));
  return {};
}

// {"bucket", "key_prefix"?, "parent_field"?, "fields": [...], "transitions": {...}, "success"?}.
// Only the table is validated here; validate() checks the rest.
Result<dynamic_type> parse_type(std::string_view name, const js::Value& body) {
  if (!body.is_object())
    return refuse(errc::invalid_definition,
                  "the body must be an object with \"bucket\", \"fields\" and \"transitions\"");
  dynamic_type out;
  out.name = name;
  std::string_view parent_field;
  const js::Value* fields = nullptr;
  for (const auto& [member, value] : body.object()) {
    if (member == document::kType["bucket"].name && value.is_string())
      out.bucket = value.string();
    else if (member == document::kType["key_prefix"].name && value.is_string())
      out.key_prefix = value.string();
    else if (member == document::kType["parent_field"].name && value.is_string())
      parent_field = value.string();
    else if (member == document::kType["transitions"].name) {
      TRY_OK(parse_transitions(value, out));
    } else if (member == document::kType["success"].name) {
      TRY_OK(parse_success(value, out));
    } else if (member == document::kType["fields"].name && value.is_array())
      fields = &value;
    // type_json() writes the name, so a definition that was read back can be sent again.
    else if (member == document::kType["workflow"].name || member == document::kType["name"].name) {
      if (!value.is_string() || value.string() != name)
        return refuse(errc::workflow_not_registered,
                      fmt::format("the body names another workflow than the path's '{}'", name));
    } else {
      return refuse(errc::invalid_definition,
                    fmt::format("unknown or mistyped member \"{}\"; known: {}", member,
                                wire::names_of(document::kType)));
    }
  }
  // A problem of the table is reported before one of the fields, whatever the order in the body.
  TRY_OK(validate_table(out));
  if (fields)
    for (const js::Value& one : fields->array()) {
      TRY(auto field_def, parse_field(one));
      out.fields.push_back(std::move(field_def));
    }
  if (!parent_field.empty()) {
    auto it = std::find_if(out.fields.begin(), out.fields.end(),
                           [&](const auto& f) { return f.name == parent_field; });
    if (it == out.fields.end())
      return refuse(errc::invalid_definition,
                    fmt::format("parent_field '{}' is not a field", parent_field));
    it->t = it->t | parent;
  }
  return out;
}

// Brings two definitions that mean the same into the same form.
static void normalise(dynamic_type& def) {
  for (auto& f : def.fields)
    if (has(f.t, id) || has(f.t, phase)) f.t = f.t | readonly;
  std::sort(def.transitions.begin(), def.transitions.end());
  for (auto& [from, targets] : def.transitions)
    std::sort(targets.begin(), targets.end());
  std::sort(def.success.begin(), def.success.end());
}

bool same_definition(dynamic_type a, dynamic_type b) {
  normalise(a);
  normalise(b);
  return a == b;
}

js::Value transitions_json(const dynamic_type& def) {
  js::Object out;
  for (const auto& [from, targets] : def.transitions) {
    js::Array list;
    for (const std::string& to : targets)
      list.emplace_back(to);
    out.add(from, std::move(list));
  }
  return out;
}

// parse_type() reads it back to an equal definition.
js::Value type_json(const dynamic_type& def) {
  js::Object out;
  out.add("workflow", def.name);
  out.add("bucket", def.bucket);
  if (!def.key_prefix.empty()) out.add("key_prefix", def.key_prefix);
  if (const auto* f = def.tagged(parent)) out.add("parent_field", f->name);
  js::Array fields;
  for (const auto& f : def.fields) {
    js::Object one;
    one.add("name", f.name);
    one.add("type", row_of(f.k).name);
    js::Array words;
    for (const TagWord& row : kTags)
      if (has(f.t, row.t) && row.t != omitempty && row.t != parent) words.emplace_back(row.word);
    if (!words.empty()) one.add("tags", std::move(words));
    if (has(f.t, omitempty)) one.add("omitempty", true);
    fields.emplace_back(std::move(one));
  }
  out.add("fields", std::move(fields));
  out.add("transitions", transitions_json(def));
  if (!def.success.empty()) {
    js::Array list;
    for (const std::string& one : def.success)
      list.emplace_back(one);
    out.add("success", std::move(list));
  }
  return out;
}

js::Value definition_json(const dynamic_type& def) {
  js::Array writable;
  for (const std::string& name : def.operator_writable_fields())
    writable.emplace_back(name);
  return js::object({{"workflow", def.name},
                     {"transitions", transitions_json(def)},
                     {"kv_bucket", def.bucket},
                     {"operator_writable_fields", std::move(writable)}});
}

Key type_key(std::string_view tenant, std::string_view name) {
  return key({"lifecycle", tenant, "t", name});
}
Key type_prefix(std::string_view tenant) { return prefix({"lifecycle", tenant, "t"}); }

// Names of the tagged fields, so that a turn does not search for them.
WorkflowType make_type(dynamic_type def) {
  WorkflowType out;
  out.def = std::move(def);
  auto name = [&](tags one) {
    return out.def.tagged(one) ? out.def.tagged(one)->name : std::string();
  };
  out.id_field = name(id);
  out.phase_field = name(phase);
  out.parent_field = name(parent);
  for (const auto& f : out.def.fields)
    if (has(f.t, indexable)) record::put_text(out.index_names, f.name);
  return out;
}

Bytes encode(const WorkflowType& type) {
  Bytes out;
  Writer w(out);
  w.u8(1);
  w.str(type.def.name);
  // As JSON: a later version may add members without another format.
  w.str(js::print(type_json(type.def)));
  w.uint(type.indexed.size());
  for (const std::string& name : type.indexed)
    w.str(name);
  w.uint(type.rules_by_phase.size());
  for (const auto& [phase_name, rules] : type.rules_by_phase) {
    w.str(phase_name);
    w.uint(rules.size());
    for (const std::string& rule : rules)
      w.str(rule);
  }
  return out;
}

Result<WorkflowType> decode_type(BytesView bytes) {
  Reader r(bytes);
  auto corrupt = [] { return refuse(errc::corrupt_value, "a type's cell cannot be read"); };
  if (r.u8() != 1) return corrupt();
  std::string name(r.str());
  TRY(js::Value body, js::parse(r.str()));
  TRY(dynamic_type def, parse_type(name, body));
  WorkflowType out = make_type(std::move(def));
  for (size_t n = r.count(); n > 0; --n)
    out.indexed.emplace_back(r.str());
  for (size_t n = r.count(); n > 0; --n) {
    auto& rules = out.rules_by_phase[std::string(r.str())];
    for (size_t m = r.count(); m > 0; --m)
      rules.emplace_back(r.str());
  }
  if (!r.done()) return corrupt();
  return out;
}

}  // namespace pawl::lifecycle
