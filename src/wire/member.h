#pragma once
// The tables from which requests are read and the OpenAPI document is printed. A Member is one row:
// a member of a body or an answer, or a parameter of a query, a path or a head. A shape is a named
// list of rows, a constant beside the routes that use it:
//
//   constexpr RequestShape kPoll{"PollRequest", {
//       text("workerId", "The name of the worker.").required().example(R"("worker-1")"),
//       integer("maxJobs", "How many jobs to lease.").by_default(10),
//   }};
//   TRY(std::string worker, body.text(kPoll["workerId"]));
//
// The compiler finds the row. A name that is not in the table does not compile.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::wire {

enum class Kind : uint8_t {
  text,
  integer,
  number,
  flag,
  object,    // of one of `shapes`
  list,      // of `element`
  map,       // any names; the values are of `element`
  any,       // any JSON value
  document,  // described by the file docs/schemas/FORMAT.json
  octets,    // bytes or text that is not JSON
};

struct Member;

struct AnyShape {
  std::string_view name;  // of the schema in the OpenAPI document
  const Member* rows = nullptr;
  size_t count = 0;
  const AnyShape* base = nullptr;  // its rows come first
  bool complete = false;           // rows are always there unless they are optional
  bool extends = false;            // has a base; a constant expression, unlike `base != nullptr`

  // The row of that name, found by the compiler.
  consteval const Member& operator[](std::string_view row) const;
  bool has(std::string_view row) const;  // not counting the rows of the base
  const Member* begin() const { return rows; }
  const Member* end() const;
};

struct Choices {
  static constexpr size_t kMax = 17;
  std::string_view items[kMax]{};
  size_t count = 0;

  constexpr Choices() = default;
  constexpr Choices(std::initializer_list<std::string_view> from) : count(from.size()) {
    std::copy(from.begin(), from.end(), items);
  }
  constexpr const std::string_view* begin() const { return items; }
  constexpr const std::string_view* end() const { return items + count; }
  constexpr bool empty() const { return count == 0; }
};

// The type of a value.
struct Type {
  Kind kind = Kind::any;
  Kind element = Kind::any;  // of a list or a map
  bool nullable = false, null_elements = false;
  std::string_view format{};            // "uuid", "date-time"; of a document, the name of its file
  Choices choices{};                    // the texts that are allowed; none: all
  std::optional<int64_t> min{}, max{};  // of an integer; of a text or a list, its length
  const AnyShape* shapes[3]{};  // of an object, or of elements that are objects: any of them
  std::string_view sample{};    // an example, in JSON

  constexpr Type() = default;
  constexpr Type(Kind kind) : kind(kind) {}
  constexpr Type(const AnyShape& shape) : kind(Kind::object), shapes{&shape} {}
  constexpr Type with(std::string_view json) const {
    Type out = *this;
    out.sample = json;
    return out;
  }
};

constexpr Type list_of(const AnyShape& shape) {
  Type out(Kind::list);
  out.element = Kind::object;
  out.shapes[0] = &shape;
  return out;
}
constexpr Type list_of(Kind element) {
  Type out(Kind::list);
  out.element = element;
  return out;
}
constexpr Type map_of(const AnyShape& shape) {
  Type out = list_of(shape);
  out.kind = Kind::map;
  return out;
}
constexpr Type map_of(Kind element) {
  Type out = list_of(element);
  out.kind = Kind::map;
  return out;
}
constexpr Type either(const AnyShape& a, const AnyShape& b) {
  Type out(a);
  out.shapes[1] = &b;
  return out;
}
constexpr Type document_type(std::string_view file) {
  Type out(Kind::document);
  out.format = file;
  return out;
}

struct Member : Type {
  enum class Presence : uint8_t { usual, required, optional };

  std::string_view name{};
  std::string_view doc{};
  Presence presence = Presence::usual;
  std::string_view default_text{};
  std::optional<int64_t> default_integer{};
  std::optional<bool> default_flag{};

  constexpr Member() = default;
  constexpr Member(std::string_view name, std::string_view doc, Type type)
      : Type(type), name(name), doc(doc) {}
  // Readers that take a name take the row too.
  constexpr operator std::string_view() const { return name; }

  constexpr Member required() const { return with_presence(Presence::required); }
  constexpr Member optional() const { return with_presence(Presence::optional); }
  constexpr Member or_null() const {
    Member out = *this;
    out.nullable = true;
    return out;
  }
  constexpr Member with_null_elements() const {
    Member out = *this;
    out.null_elements = true;
    return out;
  }
  constexpr Member example(std::string_view json) const {
    Member out = *this;
    out.sample = json;
    return out;
  }
  // Of an integer its bounds, of a text or a list its length.
  constexpr Member range(std::optional<int64_t> from, std::optional<int64_t> to) const {
    Member out = *this;
    out.min = from;
    out.max = to;
    return out;
  }
  constexpr Member by_default(std::string_view text) const {
    Member out = *this;
    out.default_text = text;
    return out;
  }
  constexpr Member by_default(const char* text) const { return by_default(std::string_view(text)); }
  constexpr Member by_default(int64_t number) const {
    Member out = *this;
    out.default_integer = number;
    return out;
  }
  constexpr Member by_default(int number) const { return by_default(int64_t{number}); }
  constexpr Member by_default(bool flag) const {
    Member out = *this;
    out.default_flag = flag;
    return out;
  }

 private:
  constexpr Member with_presence(Presence p) const {
    Member out = *this;
    out.presence = p;
    return out;
  }
};

inline const Member* AnyShape::end() const { return rows + count; }
inline bool AnyShape::has(std::string_view row) const {
  return std::any_of(begin(), end(), [row](const Member& one) { return one.name == row; });
}

// The names of its rows, with commas, for messages.
inline std::string names_of(const AnyShape& shape) {
  std::string out;
  for (const Member& one : shape)
    out.append(out.empty() ? "" : ", ").append(one.name);
  return out;
}

consteval const Member& AnyShape::operator[](std::string_view row) const {
  for (size_t i = 0; i < count; ++i)
    if (rows[i].name == row) return rows[i];
  if (!extends) throw "the shape has no row of this name";
  return (*base)[row];
}

// A shape owns its rows. It is a constant and is never copied.
template <size_t N>
struct ShapeOf : AnyShape {
  Member own[N];

  constexpr ShapeOf(std::string_view name, const Member (&from)[N], bool complete)
      : AnyShape{name, own, N, nullptr, complete} {
    std::copy(from, from + N, own);
  }
  constexpr ShapeOf(std::string_view name, const AnyShape& base, const Member (&from)[N],
                    bool complete)
      : AnyShape{name, own, N, &base, complete, true} {
    std::copy(from, from + N, own);
  }
  ShapeOf(const ShapeOf&) = delete;
};

// Rows of a request are optional unless they are required.
template <size_t N>
struct RequestShape : ShapeOf<N> {
  constexpr RequestShape(std::string_view name, const Member (&rows)[N])
      : ShapeOf<N>(name, rows, false) {}
  constexpr RequestShape(std::string_view name, const AnyShape& base, const Member (&rows)[N])
      : ShapeOf<N>(name, base, rows, false) {}
};
// A document that a user writes and Pawl keeps. Rows are optional unless they are required, and
// null counts as absent.
template <size_t N>
struct DocumentShape : ShapeOf<N> {
  constexpr DocumentShape(std::string_view name, const Member (&rows)[N])
      : ShapeOf<N>(name, rows, false) {
    for (Member& row : this->own)
      row.nullable = row.presence != Member::Presence::required;
  }
};
// Rows of an answer are always there unless they are optional.
template <size_t N>
struct AnswerShape : ShapeOf<N> {
  constexpr AnswerShape(std::string_view name, const Member (&rows)[N])
      : ShapeOf<N>(name, rows, true) {}
  constexpr AnswerShape(std::string_view name, const AnyShape& base, const Member (&rows)[N])
      : ShapeOf<N>(name, base, rows, true) {}
};

// The rows, by type.
namespace row {

constexpr Member text(std::string_view name, std::string_view doc = {}) {
  return {name, doc, Kind::text};
}
constexpr Member integer(std::string_view name, std::string_view doc = {}) {
  return {name, doc, Kind::integer};
}
constexpr Member count(std::string_view name, std::string_view doc = {}) {  // from 0 on
  return integer(name, doc).range(0, std::nullopt);
}
constexpr Member number(std::string_view name, std::string_view doc = {}) {
  return {name, doc, Kind::number};
}
constexpr Member flag(std::string_view name, std::string_view doc = {}) {
  return {name, doc, Kind::flag};
}
constexpr Member formatted(std::string_view name, std::string_view format,
                           std::string_view doc = {}) {
  Member out = text(name, doc);
  out.format = format;
  return out;
}
constexpr Member time(std::string_view name, std::string_view doc = {}) {  // RFC 3339
  return formatted(name, "date-time", doc);
}
constexpr Member uuid(std::string_view name, std::string_view doc = {}) {
  return formatted(name, "uuid", doc);
}
constexpr Member choice(std::string_view name, Choices choices, std::string_view doc = {}) {
  Member out = text(name, doc);
  out.choices = choices;
  return out;
}
constexpr Member any(std::string_view name, std::string_view doc = {}) {
  return {name, doc, Kind::any};
}
constexpr Member texts(std::string_view name, std::string_view doc = {}) {
  return {name, doc, list_of(Kind::text)};
}
constexpr Member object(std::string_view name, std::string_view doc, const AnyShape& shape) {
  return {name, doc, Type(shape)};
}
// An object with any members.
constexpr Member variables(std::string_view name, std::string_view doc = {}) {
  return {name, doc, map_of(Kind::any)};
}
constexpr Member list(std::string_view name, std::string_view doc, const AnyShape& shape) {
  return {name, doc, list_of(shape)};
}
constexpr Member list(std::string_view name, std::string_view doc, Kind element) {
  return {name, doc, list_of(element)};
}
constexpr Member map(std::string_view name, std::string_view doc, const AnyShape& shape) {
  return {name, doc, map_of(shape)};
}
constexpr Member map(std::string_view name, std::string_view doc, Kind element) {
  return {name, doc, map_of(element)};
}
constexpr Member document(std::string_view name, std::string_view doc, std::string_view file) {
  return {name, doc, document_type(file)};
}

}  // namespace row
}  // namespace pawl::wire
