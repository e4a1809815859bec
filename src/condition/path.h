#pragma once
// A path finds fields in JSON text without parsing the whole text into values. Its form is `$.a.b`
// or `a.b`; `[*]` stands for every element of an array. The JSON text must come from json::print:
// it is not validated.

#include <string>
#include <string_view>
#include <vector>

namespace pawl::condition {

struct Field {
  enum Kind : uint8_t { missing, null, boolean, number, string, array, object };
  Kind kind = missing;
  bool escaped = false;   // string: the text contains escapes
  std::string_view text;  // the JSON text; of a string, the text between its quotes
  bool is_null() const { return kind <= null; }  // null or missing
};

// The text of the field without escapes. `buffer` holds the result when there were escapes.
std::string_view text_of(const Field& field, std::string& buffer);
// Reads the value at `at` and moves `at` past it.
Field take_value(const char*& at, const char* end);
// The members of all objects in a JSON text.
size_t count_members(std::string_view json);
// The member of an object, or the element of an array when the name is a number.
Field member(const Field& parent, std::string_view name);
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
  // The field of a plain path. Of another path, the array at its first `[*]`.
  Field find(std::string_view json) const;
  // Appends every field of a path with `[*]`, in order. A `[*]` at the end gives the array itself,
  // whose length is tested. Returns false when the array does not exist.
  bool collect(std::string_view json, std::vector<Field>& out) const;
  bool is_list() const { return list_; }      // has a `[*]` before its last step
  bool is_length() const { return length_; }  // ends in `[*]`
  bool plain() const { return !list_ && !length_; }
  // The path without "$.", as models name their fields.
  const std::string& name() const { return name_; }

 private:
  struct Step {
    std::string name;
    bool each = false;  // `[*]`
  };
  bool collect(const Field& from, size_t step, std::vector<Field>& out) const;
  std::vector<Step> steps_;
  std::string name_;
  bool list_ = false, length_ = false;
};

// The whole document as a field.
Field root_of(std::string_view json);
size_t count_elements(const Field& array);

}  // namespace pawl::condition
