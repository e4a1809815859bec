#pragma once
// The one reader of request bodies. BodyReader::value_of turns the bytes of a request into JSON;
// BodyReader::of reads a body that must be a JSON object, member by member. A member that is absent
// or null has its default; a member of another type is refused with a message that names it:
//
//   TRY(BodyReader body, BodyReader::of(request, {.reason = "BAD_REQUEST"}));
//   TRY(std::string worker, body.text(kPoll["workerId"]));
//   TRY(int64_t max, body.integer(kPoll["maxJobs"]));
//
// Handlers name members by the rows of the body's shape (wire/member.h), which also have the
// defaults and the choices. Names as text are for members that the caller chooses.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "wire/member.h"
#include "wire/message.h"

namespace pawl::wire {

// How a face reads bodies, where the contracts of the faces differ.
struct BodyRules {
  std::string_view reason;     // Error::reason of every refusal
  std::string_view lead = {};  // put before every message, except that of a body that is not JSON
  std::string_view not_json = "the body is not JSON: ";  // put before the parser's message
  // Said after the name of a member that should be a string. When empty, the message says what the
  // member is instead.
  std::string_view not_text = {};
  size_t max_bytes = SIZE_MAX;     // a larger body is refused with Code::too_large
  bool empty_is_object = true;     // a body without bytes reads as {}
  bool blank_is_empty = true;      // a body of white space reads as one without bytes
  bool null_is_object = false;     // the body `null` reads as {}
  bool ignores_trailing = false;   // bytes after the first JSON value are ignored
  bool ignores_name_case = false;  // "workerid" also matches "workerId"
};

// Reads the members of a JSON object that somebody else owns, for example an object nested in a
// body. A value that is not an object has no members.
class MemberReader {
 public:
  MemberReader(const json::Value& object, const BodyRules& rules)
      : object_(&object), rules_(rules) {}

  // The member when it is there and not null.
  const json::Value* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  Result<std::string> text(std::string_view name, std::string_view default_value = {}) const;
  Result<std::string> required_text(std::string_view name) const;  // refuses an empty text too
  Result<int64_t> integer(std::string_view name, int64_t default_value) const;
  Result<std::optional<uint64_t>> count(std::string_view name) const;  // an integer from 0 on
  Result<bool> flag(std::string_view name, bool default_value = false) const;
  Result<std::vector<std::string>> texts(std::string_view name) const;
  // An object; null when absent.
  Result<const json::Value*> object(std::string_view name) const;

  // The same by row, with its default.
  Result<std::string> text(const Member& row) const { return text(row.name, row.default_text); }
  Result<int64_t> integer(const Member& row) const {
    return integer(row.name, row.default_integer.value_or(0));
  }
  Result<bool> flag(const Member& row) const {
    return flag(row.name, row.default_flag.value_or(false));
  }
  // One of the row's choices. The first choice is the default.
  Result<std::string> choice(const Member& row) const;

  const json::Value& value() const { return *object_; }
  // A refusal in this body's words.
  std::unexpected<Error> refuse(std::string message) const;

 protected:
  const BodyRules& rules() const { return rules_; }

 private:
  std::unexpected<Error> wrong_type(std::string_view name, std::string_view wants,
                                    const json::Value& got) const;

  const json::Value* object_;
  BodyRules rules_;
};

// A MemberReader that owns its object and can give parts of it away.
class BodyReader : public MemberReader {
 public:
  // The body as any JSON value.
  static Result<json::Value> value_of(const Request& request, const BodyRules& rules);
  // The body as a JSON object.
  static Result<BodyReader> of(const Request& request, const BodyRules& rules);
  // Requires an object.
  BodyReader(json::Value object, const BodyRules& rules);
  BodyReader(BodyReader&& other) noexcept;

  // Moves an object out of the body; empty when absent.
  Result<json::Object> take_object(std::string_view name);
  // Moves the whole object out.
  json::Value take() && { return std::move(owned_); }

 private:
  json::Value owned_;
};

}  // namespace pawl::wire
