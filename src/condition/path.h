#pragma once
// A path picks fields out of compact JSON text without building values: `$.a.b`, bare `a.b`, `[*]`
// for each element. The text must be what json::print wrote; nothing is checked on the way.

#include <string>
#include <string_view>
#include <vector>

namespace pawl::condition {

struct Field {
  enum Kind : uint8_t { missing, null, boolean, number, string, array, object };
  Kind kind = missing;
  bool escaped = false;   // a string whose text still has backslashes
  std::string_view text;  // as written; of a string, what stands between the quotes
  bool is_null() const { return kind <= null; }
};

// The field's text as people read it: `room` is used when escapes must be undone.
std::string_view text_of(const Field& field, std::string& room);
// What stands at `at`, which moves behind it.
Field take_value(const char*& at, const char* end);
// The member of an object or, where the name is digits, the element of an array.
Field member(const Field& of, std::string_view name);
// Calls visit(Field) for each element until it returns false.
template <class Visit>
void each_element(const Field& array, Visit&& visit) {
  const char* at = array.text.data() + 1;
  const char* end = array.text.data() + array.text.size() - 1;
  while (at < end) {
    if (!visit(take_value(at, end))) return;
    if (at < end && *at == ',') ++at;
  }
}

class Path {
 public:
  explicit Path(std::string_view text);
  // The field, when no step is "each"; `length` asks for an array's length and gives it by number.
  Field find(std::string_view json) const;
  // With an "each" step: every field found, in order. False when the array itself is not there.
  bool collect(std::string_view json, std::vector<Field>& out) const;
  bool is_list() const { return list_; }      // has an each step before its last
  bool is_length() const { return length_; }  // ends in one
  bool plain() const { return !list_ && !length_; }
  // Without the dollar; each as "[*]": how models name their fields.
  const std::string& name() const { return name_; }

 private:
  struct Step {
    std::string name;
    bool each = false;
  };
  bool collect(const Field& from, size_t step, std::vector<Field>& out) const;
  std::vector<Step> steps_;
  std::string name_;
  bool list_ = false, length_ = false;
};

// The field at the root of a document.
Field root_of(std::string_view json);
size_t count_elements(const Field& array);

}  // namespace pawl::condition
