#pragma once
// The choices of one simulated life. Each choice has a name, and its outcome depends on the seed,
// the life and the name only: a life makes the same choices beside a thousand others and alone.

#include <cstdint>
#include <string_view>

#include "sim/outside/script.h"

namespace pawl::sim {

class LifeDice {
 public:
  LifeDice(uint64_t seed, uint64_t life) : seed_(seed), life_(life) {}
  uint64_t draw(std::string_view name) const;
  double fraction(std::string_view name) const;  // from 0 up to 1
  bool happens(std::string_view name, double share) const { return fraction(name) < share; }
  Time span(std::string_view name, const TimeRange& range) const;
  // One of the choices by weight; an empty object when there are none.
  const json::Object& pick(std::string_view name, const std::vector<Choice>& choices) const;

 private:
  uint64_t seed_, life_;
};

// A value that fits the JSON Schema, as far as types, bounds, enumerations and required members
// go. Texts with a pattern are not made to fit.
json::Value sample(const json::Value& schema, const LifeDice& dice, const std::string& name = "");

}  // namespace pawl::sim
