#include "faces/lifecycle/rule/substitute.h"

#include <fmt/format.h>

#include <charconv>

#include "faces/lifecycle/limits.h"
#include "json/text.h"

namespace pawl::lifecycle {

namespace {

// "related" is a root of the original that has no values here: such a variable is left and
// reported, not taken for plain text.
constexpr std::string_view kRoots[] = {"entity",   "related", "state",
                                       "schedule", "caller",  "message"};
constexpr std::string_view kWords[] = {"now", "cron_fire_time_unix"};
// Names of the six parts of an id such as acme.main.drones.fleet.mission.m1.
constexpr std::string_view kIdParts[] = {"org", "platform", "domain", "system", "type", "instance"};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

// The end of the name that begins at `at`.
size_t name_end(std::string_view text, size_t at) {
  while (at < text.size() && is_name(text[at]))
    ++at;
  return at;
}

// The variable that begins at the '$' of `text`, without the '$'; empty when it is not a variable.
std::string_view token_at(std::string_view text) {
  size_t end = name_end(text, 1);
  std::string_view root = text.substr(1, end - 1);
  for (std::string_view word : kWords)
    if (root == word) return root;
  if (std::find(std::begin(kRoots), std::end(kRoots), root) == std::end(kRoots)) return {};
  size_t dots = 0;
  while (end + 1 < text.size() && text[end] == '.' && is_name(text[end + 1])) {
    end = name_end(text, end + 1);
    ++dots;
  }
  return dots ? text.substr(1, end - 1) : std::string_view();
}

// The bytes of a copy, about.
size_t weight(const js::Value& value) {
  size_t out = sizeof(js::Value);
  if (value.is_string()) out += value.string().size();
  if (value.is_array())
    for (const js::Value& one : value.array())
      out += weight(one);
  if (value.is_object())
    for (const auto& [name, member] : value.object())
      out += name.size() + weight(member);
  return out;
}

// A number is an index into a list.
std::optional<js::Value> dig(const js::Value& from, std::string_view path, Variables& variables) {
  const js::Value* at = &from;
  while (true) {
    // Members are searched one after the other.
    variables.charge(at->is_object() ? 1 + at->object().size() : 1);
    size_t dot = path.find('.');
    std::string_view step = path.substr(0, dot);
    if (at->is_array()) {
      size_t i = 0;
      auto [end, bad] = std::from_chars(step.data(), step.data() + step.size(), i);
      if (bad != std::errc() || end != step.data() + step.size() || i >= at->array().size())
        return std::nullopt;
      at = &at->array()[i];
    } else {
      at = at->find(step);
      if (!at) return std::nullopt;
    }
    if (dot == std::string_view::npos) {
      variables.charge(weight(*at));
      if (!variables.check_work()) return std::nullopt;
      return *at;
    }
    path.remove_prefix(dot + 1);
  }
}

std::optional<js::Value> id_part(std::string_view id_text, std::string_view name) {
  size_t at = 0;
  for (std::string_view part : kIdParts) {
    if (at == std::string_view::npos) return std::nullopt;
    size_t dot = id_text.find('.', at);
    if (part == name) {
      // Only ids of six parts have named parts.
      if (std::count(id_text.begin(), id_text.end(), '.') != 5) return std::nullopt;
      return js::Value(id_text.substr(at, dot == std::string_view::npos ? dot : dot - at));
    }
    at = dot == std::string_view::npos ? dot : dot + 1;
  }
  return std::nullopt;
}

std::string text_of(const js::Value& value) {
  return value.is_string() ? value.string() : js::print(value);
}

// Resolves the longest prefix of the token that ends at a dot and can be resolved.
// "Saved as $message.name.txt": the rest of the token, ".txt", is then plain text.
std::optional<std::pair<js::Value, size_t>> resolve_longest(std::string_view token,
                                                            Variables& variables) {
  for (std::string_view head = token;;) {
    if (auto value = variables.resolve(head)) return std::pair(std::move(*value), head.size());
    size_t dot = head.rfind('.');
    if (dot == std::string_view::npos || head.find('.') == dot) return std::nullopt;
    head = head.substr(0, dot);
  }
}

}  // namespace

const ManagedEntity* Variables::managed() {
  if (!looked_up_ && lookup) found_ = lookup();
  looked_up_ = true;
  return found_.get();
}

Result<void> Variables::check_work() const {
  if (*work <= limits::kRuleWork) return {};
  return refuse(errc::invalid_rule,
                fmt::format("the variables and conditions of one turn may read and make {} bytes: "
                            "use shorter values, or fewer of them",
                            limits::kRuleWork));
}

std::optional<js::Value> Variables::resolve(std::string_view path) {
  charge(1);
  if (!check_work()) return std::nullopt;
  if (path == "now") return js::Value(rfc3339(now));
  if (path == "cron_fire_time_unix") return dig(schedule, "fire_time_unix", *this);
  size_t dot = path.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view root = path.substr(0, dot), rest = path.substr(dot + 1);
  if (root == "message") return dig(message, rest, *this);
  if (root == "caller") return dig(caller, rest, *this);
  if (root == "schedule") return dig(schedule, rest, *this);
  if (root == "state") return dig(state, rest, *this);
  if (root != "entity" || entity_id.empty()) return std::nullopt;
  if (rest == "id") return js::Value(entity_id);
  if (!rest.starts_with("lifecycle.")) return id_part(entity_id, rest);
  const ManagedEntity* m = managed();
  if (!m) return std::nullopt;
  rest.remove_prefix(10);
  if (rest == "phase") return js::Value(m->phase);
  if (rest == "terminal") return js::Value(m->type->def.is_terminal(m->phase));
  if (rest == "workflow") return js::Value(m->type->def.name);
  if (rest == "workflow_def") {
    js::Value shown = definition_json(m->type->def);
    charge(weight(shown));
    return shown;
  }
  return std::nullopt;
}

void set_variables(Variables& variables, const js::Value& body) {
  for (auto [name, to] :
       {std::pair{"message", &variables.message}, std::pair{"caller", &variables.caller},
        std::pair{"schedule", &variables.schedule}, std::pair{"state", &variables.state}})
    if (const js::Value* v = body.find(name)) *to = *v;
}

// Values are inserted as text and not substituted again: a caller's value cannot name variables.
Substituted substitute(std::string_view text, Variables& variables) {
  Substituted out;
  while (true) {
    size_t dollar = text.find('$');
    out.text += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return out;
    text.remove_prefix(dollar);
    std::string_view token = token_at(text);
    if (token.empty()) {
      out.text += '$';
      text.remove_prefix(1);
      continue;
    }
    if (auto found = resolve_longest(token, variables)) {
      const std::string inserted = text_of(found->first);
      variables.charge(inserted.size());
      out.text += inserted;
      text.remove_prefix(1 + found->second);
      continue;
    }
    if (out.unresolved.empty()) out.unresolved = "$" + std::string(token);
    out.text.append("$").append(token);
    text.remove_prefix(1 + token.size());
  }
}

Result<std::string> resolved_text(std::string_view what, std::string_view text,
                                  Variables& variables) {
  Substituted done = substitute(text, variables);
  TRY_OK(variables.check_work());
  if (!done.unresolved.empty())
    return refuse(errc::unresolved_template,
                  fmt::format("{} has {}, which nothing resolves here", what, done.unresolved));
  return std::move(done.text);
}

Result<js::Value> resolved_value(std::string_view what, const js::Value& value,
                                 Variables& variables) {
  if (value.is_string()) {
    const std::string& text = value.string();
    // The whole text is one variable.
    if (text.starts_with('$') && token_at(text).size() + 1 == text.size())
      if (auto found = variables.resolve(std::string_view(text).substr(1)))
        return std::move(*found);
    TRY(std::string done, resolved_text(what, text, variables));
    return js::Value(std::move(done));
  }
  if (value.is_array()) {
    js::Array out;
    for (const js::Value& one : value.array()) {
      TRY(js::Value done, resolved_value(what, one, variables));
      out.push_back(std::move(done));
    }
    return js::Value(std::move(out));
  }
  if (value.is_object()) {
    js::Object out;
    for (const auto& [name, member] : value.object()) {
      TRY(js::Value done, resolved_value(what, member, variables));
      out.add(name, std::move(done));
    }
    return js::Value(std::move(out));
  }
  return value;
}

}  // namespace pawl::lifecycle
