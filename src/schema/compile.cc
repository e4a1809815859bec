// Reads a schema into a tree. One table lists the keywords; others are annotations and are ignored.

#include <algorithm>
#include <charconv>

#include "json/canonical.h"
#include "json/text.h"
#include "schema/schema.h"
#include "schema/tree.h"

namespace pawl::schema {

namespace {

using json::Value;

constexpr std::string_view kDialect = "https://json-schema.org/draft/2020-12/schema";

class Compiler {
 public:
  explicit Compiler(const Value& root) : root_(root) {}
  Result<std::shared_ptr<const Tree>> run() {
    if (const Value* dialect = root_.find("$schema"))
      if (!dialect->is_string() || !dialect->string().starts_with(kDialect))
        return fail(Code::invalid, "BAD_SCHEMA",
                    "$schema must be \"" + std::string(kDialect) + "\" or absent");
    find_anchors(root_, "");
    node(root_, "");
    if (!error_.empty()) return fail(Code::invalid, "BAD_SCHEMA", error_);
    return std::make_shared<const Tree>(std::move(tree_));
  }

  // For the table of keywords. Each reads the keyword's value `v` at `where` into `nodes[at]`.
  void refuse(const std::string& where, const std::string& problem) {
    if (error_.empty()) error_ = "at '" + where + "': " + problem;
  }
  uint32_t node(const Value& v, const std::string& where);
  uint32_t refer(const std::string& reference, const std::string& where);
  std::vector<uint32_t> list(const Value& v, const std::string& where);
  Pattern pattern(const std::string& text, const std::string& where);
  Node& at(uint32_t index) { return tree_.nodes[index]; }

 private:
  void find_anchors(const Value& v, const std::string& where);
  const Value* resolve(std::string_view pointer) const;

  const Value& root_;
  Tree tree_{};
  std::string error_{};
  std::map<std::string, uint32_t> known_{};       // by JSON pointer
  std::map<std::string, std::string> anchors_{};  // name -> JSON pointer
};

std::string escape(std::string_view name) {
  std::string out;
  for (char c : name)
    c == '~' ? out += "~0" : c == '/' ? out += "~1" : out += c;
  return out;
}

// A part of a JSON pointer in a fragment: percent signs first, then tildes.
std::string unescape(std::string_view part) {
  std::string plain, out;
  for (size_t i = 0; i < part.size(); ++i) {
    unsigned value = 0;
    const char* digits = part.data() + i + 1;
    if (part[i] == '%' && i + 2 < part.size() &&
        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2) {
      plain += static_cast<char>(value);
      i += 2;
    } else {
      plain += part[i];
    }
  }
  for (size_t i = 0; i < plain.size(); ++i) {
    bool pair =
        plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1');
    out += pair ? (plain[i + 1] == '0' ? '~' : '/') : plain[i];
    i += pair;
  }
  return out;
}

void Compiler::find_anchors(const Value& v, const std::string& where) {
  if (v.is_array())
    for (size_t i = 0; i < v.array().size(); ++i)
      find_anchors(v.array()[i], where + "/" + std::to_string(i));
  if (!v.is_object()) return;
  for (const json::Member& m : v.object()) {
    if ((m.name == "$anchor" || m.name == "$dynamicAnchor") && m.value.is_string())
      anchors_.emplace(m.value.string(), where);
    if (m.name != "enum" && m.name != "const") find_anchors(m.value, where + "/" + escape(m.name));
  }
}

const Value* Compiler::resolve(std::string_view pointer) const {
  const Value* v = &root_;
  while (v && !pointer.empty()) {
    if (pointer[0] != '/') return nullptr;
    size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string part = unescape(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    if (v->is_array()) {
      size_t index = v->array().size();
      std::from_chars(part.data(), part.data() + part.size(), index);
      v = index < v->array().size() ? &v->array()[index] : nullptr;
    } else {
      v = v->find(part);
    }
  }
  return v;
}

// The root's own $id may stand before the fragment.
uint32_t Compiler::refer(const std::string& reference, const std::string& where) {
  std::string_view text = reference;
  std::string_view id = root_.string_or("$id");
  if (!id.empty() && text.starts_with(id)) text.remove_prefix(id.size());
  if (!text.empty() && text[0] != '#') {
    refuse(where, "reference \"" + reference + "\" leaves the schema; use \"#/$defs/...\"");
    return 0;
  }
  std::string pointer(text.empty() ? text : text.substr(1));
  if (!pointer.empty() && pointer[0] != '/') {
    auto anchor = anchors_.find(pointer);
    if (anchor == anchors_.end()) {
      refuse(where, "reference \"" + reference + "\" names no $anchor");
      return 0;
    }
    pointer = anchor->second;
  }
  const Value* target = resolve(pointer);
  if (!target) {
    refuse(where, "reference \"" + reference + "\" names nothing in the schema");
    return 0;
  }
  return node(*target, pointer);
}

std::vector<uint32_t> Compiler::list(const Value& v, const std::string& where) {
  std::vector<uint32_t> out;
  if (!v.is_array() || v.array().empty()) {
    refuse(where, "must be a list of schemas that is not empty");
    return out;
  }
  for (size_t i = 0; i < v.array().size(); ++i)
    out.push_back(node(v.array()[i], where + "/" + std::to_string(i)));
  return out;
}

Pattern Compiler::pattern(const std::string& text, const std::string& where) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto out = std::make_shared<const re2::RE2>(text, options);
  if (!out->ok()) refuse(where, "pattern \"" + text + "\" is not valid: " + out->error());
  return out;
}

// What one keyword does. `c.at(n)` is fetched after each subschema: reading one moves the nodes.
struct Keyword {
  std::string_view name;
  void (*read)(Compiler& c, uint32_t n, const Value& v, const std::string& where);
};

template <uint32_t Node::*Member>
void read_one(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  uint32_t index = c.node(v, where);
  c.at(n).*Member = index;
}

template <std::vector<uint32_t> Node::*Member>
void read_list(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  std::vector<uint32_t> list = c.list(v, where);
  c.at(n).*Member = std::move(list);
}

template <std::optional<uint64_t> Node::*Member>
void read_count(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  auto count = v.is_number() ? v.as_uint64() : std::nullopt;
  if (!count) return c.refuse(where, "must be an integer that is not negative");
  c.at(n).*Member = *count;
}

template <std::optional<Value> Node::*Member>
void read_number(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_number()) return c.refuse(where, "must be a number");
  c.at(n).*Member = v;
}

void read_multiple(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_number() || json::compare_numbers(v.number_text(), "0") <= 0)
    return c.refuse(where, "must be a number above 0");
  c.at(n).multiple_of = v;
}

void read_type(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  auto add = [&](const Value& name) {
    for (size_t i = 0; i < std::size(kTypeNames); ++i)
      if (name.is_string() && name.string() == kTypeNames[i]) {
        c.at(n).types |= 1u << i;
        return;
      }
    c.refuse(where, "must be null, boolean, object, array, number, string or integer");
  };
  if (!v.is_array()) return add(v);
  if (v.array().empty()) c.refuse(where, "must name a type");
  for (const Value& name : v.array())
    add(name);
}

void allow(Node& node, std::vector<std::string> texts, const Value& shown) {
  std::sort(texts.begin(), texts.end());
  if (node.allowed) {  // enum and const together: both must hold
    std::vector<std::string> both;
    std::set_intersection(texts.begin(), texts.end(), node.allowed->begin(), node.allowed->end(),
                          std::back_inserter(both));
    texts = std::move(both);
  }
  node.allowed = std::move(texts);
  node.allowed_text = json::print(shown).substr(0, 200);
}

void read_enum(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_array()) return c.refuse(where, "must be a list");
  std::vector<std::string> texts;
  for (const Value& item : v.array())
    json::append_canonical(texts.emplace_back(), item);
  allow(c.at(n), std::move(texts), v);
}
void read_const(Compiler& c, uint32_t n, const Value& v, const std::string&) {
  std::vector<std::string> texts(1);
  json::append_canonical(texts[0], v);
  allow(c.at(n), std::move(texts), v);
}

void read_pattern(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_string()) return c.refuse(where, "must be a string");
  c.at(n).pattern = c.pattern(v.string(), where);
}

void read_unique(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_bool()) return c.refuse(where, "must be a boolean");
  c.at(n).unique_items = v.boolean();
}

std::vector<std::string> texts_of(Compiler& c, const Value& v, const std::string& where) {
  std::vector<std::string> out;
  if (!v.is_array()) c.refuse(where, "must be a list of strings");
  for (const Value& item : v.is_array() ? v.array() : json::Array())
    item.is_string() ? out.push_back(item.string()) : c.refuse(where, "must be a list of strings");
  return out;
}

void read_required(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  c.at(n).required = texts_of(c, v, where);
}

// Calls `read` for each member of an object.
template <class Read>
void each_member(Compiler& c, const Value& v, const std::string& where, Read&& read) {
  if (!v.is_object()) return c.refuse(where, "must be an object");
  for (const json::Member& m : v.object())
    read(m, where + "/" + escape(m.name));
}

void read_properties(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  each_member(c, v, where, [&](const json::Member& m, const std::string& at) {
    uint32_t index = c.node(m.value, at);
    c.at(n).properties[m.name] = index;
  });
}
void read_patterns(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  each_member(c, v, where, [&](const json::Member& m, const std::string& at) {
    uint32_t index = c.node(m.value, at);
    c.at(n).pattern_properties.emplace_back(c.pattern(m.name, at), index);
  });
}
void read_dependent(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  each_member(c, v, where, [&](const json::Member& m, const std::string& at) {
    uint32_t index = c.node(m.value, at);
    c.at(n).dependent.emplace_back(m.name, index);
  });
}
void read_dependent_required(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  each_member(c, v, where, [&](const json::Member& m, const std::string& at) {
    c.at(n).dependent_required.emplace_back(m.name, texts_of(c, m.value, at));
  });
}
// Definitions are compiled even when nothing refers to them, so that a mistake is reported.
void read_definitions(Compiler& c, uint32_t, const Value& v, const std::string& where) {
  each_member(c, v, where,
              [&](const json::Member& m, const std::string& at) { c.node(m.value, at); });
}

void read_items(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (v.is_array())
    return c.refuse(where, "must be one schema; a list of schemas is prefixItems since 2020-12");
  read_one<&Node::items>(c, n, v, where);
}

void read_ref(Compiler& c, uint32_t n, const Value& v, const std::string& where) {
  if (!v.is_string()) return c.refuse(where, "must be a string");
  uint32_t index = c.refer(v.string(), where);
  c.at(n).refs.push_back(index);
}

constexpr Keyword kKeywords[] = {
    {"$ref", read_ref},
    {"$dynamicRef", read_ref},  // one schema resource: the same as $ref
    {"$defs", read_definitions},
    {"type", read_type},
    {"enum", read_enum},
    {"const", read_const},
    {"multipleOf", read_multiple},
    {"maximum", read_number<&Node::maximum>},
    {"minimum", read_number<&Node::minimum>},
    {"exclusiveMaximum", read_number<&Node::below>},
    {"exclusiveMinimum", read_number<&Node::above>},
    {"minLength", read_count<&Node::min_length>},
    {"maxLength", read_count<&Node::max_length>},
    {"pattern", read_pattern},
    {"minItems", read_count<&Node::min_items>},
    {"maxItems", read_count<&Node::max_items>},
    {"uniqueItems", read_unique},
    {"minContains", read_count<&Node::min_contains>},
    {"maxContains", read_count<&Node::max_contains>},
    {"minProperties", read_count<&Node::min_properties>},
    {"maxProperties", read_count<&Node::max_properties>},
    {"required", read_required},
    {"dependentRequired", read_dependent_required},
    {"dependentSchemas", read_dependent},
    {"properties", read_properties},
    {"patternProperties", read_patterns},
    {"additionalProperties", read_one<&Node::additional>},
    {"propertyNames", read_one<&Node::names>},
    {"prefixItems", read_list<&Node::prefix_items>},
    {"items", read_items},
    {"contains", read_one<&Node::contains>},
    {"allOf", read_list<&Node::all_of>},
    {"anyOf", read_list<&Node::any_of>},
    {"oneOf", read_list<&Node::one_of>},
    {"not", read_one<&Node::negated>},
    {"if", read_one<&Node::condition>},
    {"then", read_one<&Node::then>},
    {"else", read_one<&Node::otherwise>},
    {"unevaluatedProperties", read_one<&Node::unevaluated_properties>},
    {"unevaluatedItems", read_one<&Node::unevaluated_items>},
};

// A place that was read before gives its node again, which ends the reading of recursive schemas.
uint32_t Compiler::node(const Value& v, const std::string& where) {
  auto [known, is_new] = known_.try_emplace(where, static_cast<uint32_t>(tree_.nodes.size()));
  uint32_t index = known->second;
  if (!is_new) return index;
  tree_.nodes.emplace_back();
  if (tree_.nodes.size() > kMaxNodes)
    refuse(where, "a schema may have " + std::to_string(kMaxNodes) + " subschemas");
  if (!error_.empty()) return index;
  if (v.is_bool()) {
    tree_.nodes[index].always = v.boolean();
    return index;
  }
  if (!v.is_object()) {
    refuse(where, "a schema is an object or a boolean, got " + std::string(v.kind_name()));
    return index;
  }
  for (const Keyword& k : kKeywords)
    if (const Value* given = v.find(k.name))
      k.read(*this, index, *given, where + "/" + std::string(k.name));
  return index;
}

}  // namespace

Result<Schema> Schema::compile(const Value& document) {
  TRY(std::shared_ptr<const Tree> tree, Compiler(document).run());
  return Schema(std::move(tree));
}

}  // namespace pawl::schema
