#include "json/text.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>

#include "base/utf8.h"
#include "json/name_table.h"

namespace pawl::json {

namespace {

namespace bj = boost::json;

// Builds a value from the events of Boost's parser, which names the on_... functions and the
// max_... constants. Numbers arrive as text and stay text.
struct Handler {
  // No limits of Boost's own: parse() limits the size of the whole text, and the depth is an
  // option.
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  // An array or object that is not closed yet.
  struct Level {
    Value value;
    std::string name;  // name of the member being read, in an object
    NameTable seen;    // in a large object
  };
  std::vector<Level> stack;
  Value result;
  std::string text;  // the parts so far of the string or number being read

  // Objects with this many members or more hash their names: a linear search for duplicates would
  // take quadratic time in a huge object.
  static constexpr size_t kHashedFrom = 32;

  // Adds a finished value to the array or object that is open, or makes it the result.
  void put(Value v) {
    if (stack.empty()) {
      result = std::move(v);
      return;
    }
    Level& top = stack.back();
    if (top.value.is_array()) {
      top.value.array().push_back(std::move(v));
      return;
    }
    Object& object = top.value.object();
    if (object.size() < kHashedFrom) {
      object.set(std::move(top.name), std::move(v));
      return;
    }
    const uint32_t place = top.seen.find(object, top.name);
    if (place != NameTable::kNone) {
      object.begin()[static_cast<ptrdiff_t>(place)].value = std::move(v);
      return;
    }
    object.add(std::move(top.name), std::move(v));
    top.seen.added(object);
  }
  // An array or object begins; put() receives it when it is closed.
  bool open(Value v) {
    stack.push_back({std::move(v), {}, {}});
    return true;
  }
  bool close() {
    Value v = std::move(stack.back().value);
    stack.pop_back();
    put(std::move(v));
    return true;
  }
  // The parser may deliver a string or number in several parts; the last part comes with
  // on_string() or on_int64() and the like.
  bool part(bj::string_view s) {
    text.append(s.data(), s.size());
    return true;
  }
  bool number(bj::string_view last) {
    text.append(last.data(), last.size());
    put(Number{std::move(text)});
    text.clear();
    return true;
  }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) { return open(Object{}); }
  bool on_object_end(std::size_t, bj::error_code&) { return close(); }
  bool on_array_begin(bj::error_code&) { return open(Array{}); }
  bool on_array_end(std::size_t, bj::error_code&) { return close(); }
  bool on_key_part(bj::string_view s, std::size_t, bj::error_code&) { return part(s); }
  bool on_key(bj::string_view s, std::size_t, bj::error_code&) {
    text.append(s.data(), s.size());
    stack.back().name = std::move(text);
    text.clear();
    return true;
  }
  bool on_string_part(bj::string_view s, std::size_t, bj::error_code&) { return part(s); }
  bool on_string(bj::string_view s, std::size_t, bj::error_code&) {
    text.append(s.data(), s.size());
    put(Value(std::move(text)));
    text.clear();
    return true;
  }
  bool on_number_part(bj::string_view s, bj::error_code&) { return part(s); }
  bool on_int64(std::int64_t, bj::string_view s, bj::error_code&) { return number(s); }
  bool on_uint64(std::uint64_t, bj::string_view s, bj::error_code&) { return number(s); }
  bool on_double(double, bj::string_view s, bj::error_code&) { return number(s); }
  bool on_bool(bool b, bj::error_code&) {
    put(b);
    return true;
  }
  bool on_null(bj::error_code&) {
    put(nullptr);
    return true;
  }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

// Counted from 1; a column is a byte.
std::string line_and_column(std::string_view text, size_t at) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i < at && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return fmt::format("line {}, column {}", line, column);
}

std::string reason_of(const bj::error_code& ec) {
  if (ec == bj::error::incomplete) return "the text ends too early";
  if (ec == bj::error::extra_data) return "there is more after the value";
  if (ec == bj::error::exponent_overflow) return "the number's exponent is out of range";
  return ec.message();
}

}  // namespace

Result<Value> parse(std::string_view text, const ParseOptions& options) {
  if (text.size() > options.max_bytes)
    return fail(
        Code::too_large, "JSON_TOO_LARGE",
        fmt::format("the JSON text has {} bytes; the limit is {}", text.size(), options.max_bytes));
  bj::parse_options settings;
  settings.max_depth = options.max_depth;
  bj::basic_parser<Handler> parser(settings);
  bj::error_code ec;
  // The first argument says that no more text follows, so that a number at the end of the text is
  // complete.
  size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (ec == bj::error::too_deep)
    return fail(Code::invalid, "JSON_TOO_DEEP",
                fmt::format("the JSON nests deeper than {} levels at {}", options.max_depth,
                            line_and_column(text, used)));
  if (ec)
    return fail(Code::invalid, "BAD_JSON",
                fmt::format("invalid JSON at {}: {}", line_and_column(text, used), reason_of(ec)));
  // write_some() stops after the first value, so what follows is checked here.
  if (!options.prefix) {
    size_t rest = text.find_first_not_of(" \t\r\n", used);
    if (rest != std::string_view::npos)
      return fail(Code::invalid, "BAD_JSON",
                  fmt::format("invalid JSON at {}: there is more after the value",
                              line_and_column(text, rest)));
  }
  return std::move(parser.handler().result);
}

// Appends a byte that cannot stand in a JSON string as it is.
static void append_escaped(std::string& out, unsigned char c) {
  if (c >= 0x80) {
    out += kReplacement;
    return;
  }
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: out += fmt::format("\\u{:04x}", c);
  }
}

// Runs of bytes that need no escape are copied at once.
void append_string(std::string& out, std::string_view text) {
  out.push_back('"');
  size_t copied = 0;  // the text before this offset is in `out`
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') continue;
    if (size_t length = c < 0x80 ? 0 : utf8_length(text, i)) {
      i += length - 1;
      continue;
    }
    out.append(text, copied, i - copied);
    copied = i + 1;
    append_escaped(out, c);
  }
  out.append(text, copied, text.size() - copied);
  out.push_back('"');
}

void append(std::string& out, const Value& value) {
  if (value.is_null())
    out += "null";
  else if (value.is_bool())
    out += value.boolean() ? "true" : "false";
  else if (value.is_number())
    out += value.number_text();
  else if (value.is_string())
    append_string(out, value.string());
  else if (value.is_array()) {
    out.push_back('[');
    bool first = true;
    for (const Value& v : value.array()) {
      if (!first) out.push_back(',');
      first = false;
      append(out, v);
    }
    out.push_back(']');
  } else {
    out.push_back('{');
    bool first = true;
    for (const Member& m : value.object()) {
      if (!first) out.push_back(',');
      first = false;
      append_string(out, m.name);
      out.push_back(':');
      append(out, m.value);
    }
    out.push_back('}');
  }
}

std::string print(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

static void pretty(std::string& out, const Value& value, size_t indent) {
  auto line = [&](size_t depth) { out += "\n" + std::string(depth * 2, ' '); };
  if (value.is_array() && !value.array().empty()) {
    out += "[";
    bool first = true;
    for (const Value& v : value.array()) {
      if (!first) out += ",";
      first = false;
      line(indent + 1);
      pretty(out, v, indent + 1);
    }
    line(indent);
    out += "]";
  } else if (value.is_object() && !value.object().empty()) {
    out += "{";
    bool first = true;
    for (const Member& m : value.object()) {
      if (!first) out += ",";
      first = false;
      line(indent + 1);
      append_string(out, m.name);
      out += ": ";
      pretty(out, m.value, indent + 1);
    }
    line(indent);
    out += "}";
  } else {
    append(out, value);
  }
}

std::string print_pretty(const Value& value) {
  std::string out;
  pretty(out, value, 0);
  return out;
}

}  // namespace pawl::json
