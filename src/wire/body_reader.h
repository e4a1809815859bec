#pragma once
// BodyReader reads the JSON object in a request's body, member by member. A member that is absent
// or null has its default; a member of another type is refused with a message that names it:
//
//   TRY(BodyReader body, BodyReader::of(request, {.reason = "BAD_REQUEST"}));
//   TRY(std::string worker, body.text("workerId"));
//   TRY(int64_t max, body.integer("maxJobs", 10));

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "wire/message.h"

namespace pawl::wire {

// How a face reads bodies, where the contracts of the faces differ.
struct BodyRules {
  std::string_view reason;         // Error::reason of every refusal
  std::string_view lead = {};      // put before every message
  bool empty_is_object = true;     // a blank body reads as {}
  bool null_is_object = false;     // the body `null` reads as {}
  bool ignores_trailing = false;   // bytes after the first JSON value are ignored
  bool ignores_name_case = false;  // "workerid" also matches "workerId"
};

class BodyReader {
 public:
  static Result<BodyReader> of(const Request& request, const BodyRules& rules);
  // Reads the members of an object that is nested in a body.
  BodyReader(json::Value object, const BodyRules& rules);

  // The member when it is there and not null.
  const json::Value* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  Result<std::string> text(std::string_view name, std::string_view default_value = {}) const;
  Result<std::string> required_text(std::string_view name) const;  // refuses an empty text too
  Result<int64_t> integer(std::string_view name, int64_t default_value) const;
  Result<std::optional<uint64_t>> count(std::string_view name) const;  // an integer from 0 on
  Result<bool> flag(std::string_view name, bool default_value = false) const;
  Result<std::vector<std::string>> texts(std::string_view name) const;
  // One of the choices. The first choice is the default.
  Result<std::string> choice(std::string_view name,
                             std::initializer_list<std::string_view> choices) const;
  // An object, moved out of the body; empty when absent.
  Result<json::Object> take_object(std::string_view name);

  const json::Value& value() const { return object_; }
  json::Value take() && { return std::move(object_); }
  // A refusal in this body's words.
  std::unexpected<Error> refuse(std::string message) const;

 private:
  std::unexpected<Error> wrong_type(std::string_view name, std::string_view wants,
                                    const json::Value& got) const;

  json::Value object_;
  BodyRules rules_;
};

}  // namespace pawl::wire
