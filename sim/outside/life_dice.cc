#include "sim/outside/life_dice.h"

#include <cmath>

namespace pawl::sim {
namespace {

constexpr size_t kMaxDepth = 20;    // of a sampled value
constexpr size_t kMoreItems = 3;    // of a sampled list, beyond its minimum
constexpr double kOptional = 0.75;  // share of optional members that are there

// The finalizer of SplitMix64: every bit of the input changes half of the output.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double bound(const json::Value& schema, std::string_view name, double default_value) {
  const json::Value* v = schema.find(name);
  return v && v->is_number() ? v->as_double() : default_value;
}

class Sampler {
 public:
  explicit Sampler(const LifeDice& dice) : dice_(dice) {}

  json::Value value(const json::Value& schema, const std::string& name, size_t depth) const {
    if (depth > kMaxDepth || !schema.is_object()) return {};
    if (const json::Value* fixed = schema.find("const")) return *fixed;
    for (std::string_view list : {"enum", "examples", "oneOf", "anyOf"}) {
      const json::Value* of = schema.find(list);
      if (!of || !of->is_array() || of->array().empty()) continue;
      const json::Value& chosen = of->array()[dice_.draw(name + "?") % of->array().size()];
      const bool is_schema = list == "oneOf" || list == "anyOf";
      return is_schema ? value(chosen, name, depth + 1) : chosen;
    }
    return of_type(type_of(schema, name), schema, name, depth);
  }

 private:
  std::string type_of(const json::Value& schema, const std::string& name) const {
    const json::Value* type = schema.find("type");
    if (type && type->is_array() && !type->array().empty())
      type = &type->array()[dice_.draw(name + "!") % type->array().size()];
    if (type && type->is_string()) return type->string();
    return schema.find("properties") ? "object" : schema.find("items") ? "array" : "string";
  }

  json::Value of_type(const std::string& type, const json::Value& schema, const std::string& name,
                      size_t depth) const {
    if (type == "object") return object(schema, name, depth);
    if (type == "array") return array(schema, name, depth);
    if (type == "boolean") return dice_.draw(name) % 2 == 0;
    if (type == "integer" || type == "number") return number(schema, name, type == "integer");
    if (type == "null") return {};
    return text(schema, name);
  }

  json::Value object(const json::Value& schema, const std::string& name, size_t depth) const {
    json::Object out;
    const json::Value* properties = schema.find("properties");
    if (!properties || !properties->is_object()) return out;
    for (const auto& [member, of] : properties->object()) {
      const std::string path = name + "/" + member;
      if (!is_required(schema, member) && !dice_.happens(path + "+", kOptional)) continue;
      out.set(member, value(of, path, depth + 1));
    }
    return out;
  }

  static bool is_required(const json::Value& schema, const std::string& member) {
    const json::Value* required = schema.find("required");
    if (!required || !required->is_array()) return false;
    for (const json::Value& one : required->array())
      if (one.is_string() && one.string() == member) return true;
    return false;
  }

  json::Value array(const json::Value& schema, const std::string& name, size_t depth) const {
    const auto least = static_cast<size_t>(bound(schema, "minItems", 0));
    const size_t most =
        static_cast<size_t>(bound(schema, "maxItems", static_cast<double>(least + kMoreItems)));
    size_t count = least + dice_.draw(name + "#") % (std::max(most, least) - least + 1);
    json::Array out;
    const json::Value* items = schema.find("items");
    for (size_t i = 0; i < std::min<size_t>(count, 1000); ++i)
      out.push_back(items ? value(*items, name + "/" + std::to_string(i), depth + 1)
                          : json::Value());
    return out;
  }

  // Often a bound itself: that is where definitions go wrong.
  json::Value number(const json::Value& schema, const std::string& name, bool whole) const {
    const double low = bound(schema, "minimum", bound(schema, "exclusiveMinimum", -1) + 1);
    const double high = std::max(low, bound(schema, "maximum", low + 1000));
    const uint64_t edge = dice_.draw(name + "|") % 10;
    double chosen = edge == 0 ? low : edge == 1 ? high : low + dice_.fraction(name) * (high - low);
    if (whole) return static_cast<int64_t>(std::floor(chosen));
    return std::round(chosen * 100) / 100;
  }

  json::Value text(const json::Value& schema, const std::string& name) const {
    const auto least = static_cast<size_t>(bound(schema, "minLength", 1));
    const size_t length = least + dice_.draw(name + "#") % 8;
    std::string out;
    for (size_t i = 0; i < std::min<size_t>(length, 10'000); ++i)
      out += static_cast<char>('a' + dice_.draw(name + std::to_string(i)) % 26);
    return out;
  }

  const LifeDice& dice_;
};

}  // namespace

uint64_t LifeDice::draw(std::string_view name) const {
  uint64_t hash = mix(seed_) ^ mix(life_ + 0x51ed2701);
  for (char c : name)
    hash = mix(hash ^ static_cast<uint8_t>(c));
  return mix(hash);
}

double LifeDice::fraction(std::string_view name) const {
  return static_cast<double>(draw(name) >> 11) * 0x1p-53;
}

Time LifeDice::span(std::string_view name, const TimeRange& range) const {
  const double low = static_cast<double>(std::max<Time>(range.low, kMillisecond));
  const double high = std::max(low, static_cast<double>(range.high));
  return static_cast<Time>(low * std::pow(high / low, fraction(name)));
}

const json::Object& LifeDice::pick(std::string_view name,
                                   const std::vector<Choice>& choices) const {
  static const json::Object none;
  double total = 0;
  for (const Choice& one : choices)
    total += one.weight;
  double left = fraction(name) * total;
  for (const Choice& one : choices) {
    left -= one.weight;
    if (left < 0) return one.value;
  }
  return choices.empty() ? none : choices.back().value;
}

json::Value sample(const json::Value& schema, const LifeDice& dice, const std::string& name) {
  return Sampler(dice).value(schema, name, 0);
}

}  // namespace pawl::sim
