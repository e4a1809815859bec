#pragma once
// The step types: one row each. A type says what a definition must give it, what entering it does,
// and whether something from outside may complete it.

#include "faces/processes/run/walk.h"

namespace pawl::processes {

// What entering a step leads to.
struct Next {
  enum class What : uint8_t {
    park,    // the token stays here
    go,      // on to `step`
    fork,    // one token a branch
    join,    // wait for the other branches
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
  void (*validate)(Step& step, Problems& problems);
  bool waits;  // WAITING while a token is here
  std::string_view doc;
};

// Where the first branch that is true leads; the others are not looked at.
Result<uint32_t> branch_of(Walk& walk, const Step& step);

std::span<const StepType> step_types();
const StepType* find_step_type(std::string_view name);
const StepType& type_of(Kind kind);
std::string step_type_names();

}  // namespace pawl::processes
