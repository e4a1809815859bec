#include "faces/entities/model/xml.h"

#include <fmt/format.h>

#include <charconv>

#include "base/utf8.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_name(char c) {
  auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || isalnum(u) || c == '_' || c == '-' || c == '.' || c == ':';
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front()))
    s.remove_prefix(1);
  while (!s.empty() && is_space(s.back()))
    s.remove_suffix(1);
  return s;
}

std::string local(std::string_view name) { return std::string(name.substr(name.rfind(':') + 1)); }

json::Value scalar(std::string_view text) {
  for (std::string_view word : {"true", "True", "TRUE"})
    if (text == word) return true;
  for (std::string_view word : {"false", "False", "FALSE"})
    if (text == word) return false;
  if (!text.empty() && (text[0] == '-' || isdigit(static_cast<unsigned char>(text[0]))))
    if (auto number = json::parse(text); number && number->is_number()) return *std::move(number);
  return text;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<json::Value> document() {
    TRY_OK(skip_between());
    std::string name;
    TRY(json::Value root, element(name, 0));
    TRY_OK(skip_between());
    if (at_ != text_.size()) return wrong("nothing after the root element");
    if (root.is_object()) return root;
    return json::object({{"_value", std::move(root)}});
  }

 private:
  // The members of an element being read. Names are hashed: an element may have very many.
  struct Members {
    json::Object object;
    std::unordered_map<std::string, size_t> places;
    std::unordered_set<std::string> repeated;

    void add(const std::string& name, json::Value value) {
      auto [known, fresh] = places.emplace(name, object.size());
      if (fresh) {
        object.add(name, std::move(value));
        return;
      }
      json::Value& old = (object.begin() + static_cast<ptrdiff_t>(known->second))->value;
      if (repeated.insert(name).second) {
        json::Array both;
        both.push_back(std::move(old));
        old = std::move(both);
      }
      old.array().push_back(std::move(value));
    }
  };

  std::unexpected<Error> wrong(std::string_view wanted) {
    size_t line =
        1 + static_cast<size_t>(std::count(
                text_.begin(), text_.begin() + static_cast<ptrdiff_t>(std::min(at_, text_.size())),
                '\n'));
    return fail(Code::invalid, "BAD_REQUEST",
                fmt::format("malformed XML at line {}: expected {}", line, wanted));
  }
  bool looking_at(std::string_view s) const { return text_.substr(at_).starts_with(s); }
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_]))
      ++at_;
  }
  bool skip_past(std::string_view end) {
    size_t found = text_.find(end, at_);
    if (found == text_.npos) return false;
    at_ = found + end.size();
    return true;
  }
  // Declarations, comments and instructions around the root. A document type could define entities.
  Result<void> skip_between() {
    if (at_ == 0 && looking_at("\xef\xbb\xbf")) at_ = 3;
    for (;;) {
      skip_space();
      if (looking_at("<?")) {
        if (!skip_past("?>")) return wrong("?>");
      } else if (looking_at("<!--")) {
        if (!skip_past("-->")) return wrong("-->");
      } else if (looking_at("<!")) {
        return wrong("no document type: they are not accepted");
      } else {
        return {};
      }
    }
  }

  Result<std::string> name() {
    size_t first = at_;
    while (at_ < text_.size() && is_name(text_[at_]))
      ++at_;
    if (at_ == first || isdigit(static_cast<unsigned char>(text_[first]))) return wrong("a name");
    return std::string(text_.substr(first, at_ - first));
  }

  Result<void> reference(std::string& out) {
    static constexpr std::pair<std::string_view, char> kKnown[] = {
        {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (const auto& [text, c] : kKnown) {
      if (!looking_at(text)) continue;
      out.push_back(c);
      at_ += text.size();
      return {};
    }
    if (!looking_at("&#"))
      return wrong("one of &lt; &gt; &amp; &quot; &apos; or a character number");
    bool is_hex = looking_at("&#x");
    size_t first = at_ + (is_hex ? 3 : 2), semicolon = text_.find(';', at_);
    uint32_t rune = 0;
    if (semicolon == text_.npos) return wrong("; after a character number");
    auto [end, err] =
        std::from_chars(text_.data() + first, text_.data() + semicolon, rune, is_hex ? 16 : 10);
    if (err != std::errc() || end != text_.data() + semicolon || rune == 0 || rune > 0x10ffff ||
        (rune >= 0xd800 && rune < 0xe000))
      return wrong("a character number");
    append_utf8(out, rune);
    at_ = semicolon + 1;
    return {};
  }

  Result<void> attributes(Members& into) {
    std::unordered_set<std::string> seen;
    for (;;) {
      skip_space();
      if (at_ >= text_.size() || !is_name(text_[at_])) return {};
      TRY(std::string key, name());
      skip_space();
      if (!looking_at("=")) return wrong("= after an attribute's name");
      ++at_;
      skip_space();
      char quote = at_ < text_.size() ? text_[at_] : 0;
      if (quote != '"' && quote != '\'') return wrong("a quoted attribute value");
      ++at_;
      std::string value;
      while (at_ < text_.size() && text_[at_] != quote) {
        if (text_[at_] == '<') return wrong("no < in an attribute");
        if (text_[at_] != '&') {
          value.push_back(text_[at_++]);
          continue;
        }
        TRY_OK(reference(value));
      }
      if (at_ >= text_.size()) return wrong("the end of an attribute");
      ++at_;
      into.add(local(key), scalar(value));
      if (!seen.insert(std::move(key)).second) return wrong("each attribute once");
    }
  }

  // `own` is what it is called, without a prefix.
  Result<json::Value> element(std::string& own, size_t depth) {
    if (depth > limits::kJsonDepth)
      return wrong(fmt::format("at most {} levels", limits::kJsonDepth));
    if (!looking_at("<")) return wrong("an element");
    ++at_;
    TRY(std::string opening, name());
    own = local(opening);
    Members members;
    TRY_OK(attributes(members));
    if (looking_at("/>")) {
      at_ += 2;
      return json::Value(std::move(members.object));
    }
    if (!looking_at(">")) return wrong("> or />");
    ++at_;
    std::string text;
    TRY_OK(content(members, text, depth));
    TRY(std::string closing, name());
    if (closing != opening) return wrong(fmt::format("</{}>", opening));
    skip_space();
    if (!looking_at(">")) return wrong(">");
    ++at_;
    if (members.object.empty() && !text.empty()) return scalar(text);
    if (!text.empty()) members.add("_text", scalar(text));
    return json::Value(std::move(members.object));
  }

  // What stands between two children is a piece of the text; pieces are parted by a blank.
  static void end_piece(std::string& text, std::string& piece) {
    std::string_view trimmed = trim(piece);
    if (!trimmed.empty()) {
      if (!text.empty()) text += ' ';
      text += trimmed;
    }
    piece.clear();
  }

  // Up to and including the "</" that ends the element.
  Result<void> content(Members& members, std::string& text, size_t depth) {
    std::string piece;
    for (;;) {
      if (at_ >= text_.size()) return wrong("the end of an element");
      if (text_[at_] == '&') {
        TRY_OK(reference(piece));
      } else if (text_[at_] != '<') {
        piece.push_back(text_[at_++]);
      } else if (looking_at("</")) {
        at_ += 2;
        end_piece(text, piece);
        return {};
      } else if (looking_at("<!--")) {
        if (!skip_past("-->")) return wrong("-->");
      } else if (looking_at("<![CDATA[")) {
        size_t first = at_ + 9;
        if (!skip_past("]]>")) return wrong("]]>");
        piece += text_.substr(first, at_ - 3 - first);
      } else if (looking_at("<?")) {
        if (!skip_past("?>")) return wrong("?>");
      } else {
        end_piece(text, piece);
        std::string child;
        TRY(json::Value value, element(child, depth + 1));
        members.add(child, std::move(value));
      }
    }
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<json::Value> parse_xml(std::string_view text) {
  if (text.size() > limits::kBodyBytes)
    return fail(Code::too_large, "BAD_REQUEST", "the XML document is larger than 10 MiB");
  if (!is_utf8(text)) return fail(Code::invalid, "BAD_REQUEST", "the XML document is not UTF-8");
  return Parser(text).document();
}

}  // namespace pawl::entities
