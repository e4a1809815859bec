#pragma once
// Variables in the texts of rules: "$entity.id", "$message.path", "$now". A token that nothing
// resolves stays as it is and is reported, so that no caller stores one by accident.

#include <functional>

#include "faces/lifecycle/type/model.h"

namespace pawl::lifecycle {

// What the entity of a rule is, when the face manages it.
struct Managed {
  TypePtr type;
  std::string phase;
};

struct Variables {
  std::string entity_id;
  js::Value message, caller, schedule, state;
  Time now = 0;
  // Asked at most once however many tokens want it, and only when one does; null when not managed.
  std::function<std::shared_ptr<const Managed>()> lookup;

  // "entity.lifecycle.phase" -> "flying"; nothing when it cannot be resolved.
  std::optional<js::Value> resolve(std::string_view path);

 private:
  const Managed* managed();
  bool asked_ = false;
  std::shared_ptr<const Managed> found_;
};

struct Substituted {
  std::string text;
  std::string leftover;  // the first token that was not resolved; empty when all were
};
Substituted substitute(std::string_view text, Variables& variables);

// As text without leftovers, or unresolved_template.
Result<std::string> resolved_text(std::string_view what, std::string_view text,
                                  Variables& variables);
// A text that is one token becomes the token's value, whatever its kind.
Result<js::Value> resolved_value(std::string_view what, const js::Value& value,
                                 Variables& variables);

}  // namespace pawl::lifecycle
