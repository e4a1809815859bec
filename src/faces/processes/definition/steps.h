#pragma once
// The table of step types. A row checks the members of a step, enters the step, and says whether
// the instance waits there.

#include "faces/processes/run/walk.h"

namespace pawl::processes {

// The way a step goes on after the token entered it.
struct Next {
  enum class What : uint8_t {
    park,    // the token stays at this step
    go,      // the token goes to `step`
    fork,    // each branch gets a token
    join,    // the token waits for the other branches
    finish,  // the instance is completed
  };
  What what = What::park;
  uint32_t step = kNoStep;
};

struct StepType {
  std::string_view name;
  Kind kind;
  // An error fails the instance with its message as the reason.
  Result<Next> (*enter)(Walk& walk, Token& token, const Step& step);
  // Adds what is wrong with the members of the step. References are checked elsewhere. It may set
  // members that follow from texts (the hit policy).
  void (*validate)(Step& step, Problems& problems);
  bool waits;  // the instance is WAITING while a token is at this step
  std::string_view doc;
};

// The target of the first branch that is true. The branches after it are not evaluated.
Result<uint32_t> branch_of(Walk& walk, const Step& step);

std::span<const StepType> step_types();
// Null when there is no such type. Names are case-sensitive.
const StepType* find_step_type(std::string_view name);
const StepType& type_of(Kind kind);
std::string step_type_names();

}  // namespace pawl::processes
