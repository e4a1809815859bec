#include "expr/lexer.h"

#include "base/utf8.h"

namespace pawl::expr {

std::string position(size_t at) { return "position " + std::to_string(at + 1); }

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Longer symbols stand before their prefixes, because the first one that fits is used.
constexpr std::string_view kSymbols[] = {
    "${", "**", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "?:", "..", "+", "-", "*", "/", "%",
    "^",  "<",  ">",  "!",  "(",  ")",  "[",  "]",  "{",  "}",  ",",  ".",  ":", ";", "?", "|"};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (true) {
      TRY_OK(skip_space());
      if (at_ >= text_.size()) break;
      TRY_OK(token());
    }
    out_.push_back({TokenKind::end, static_cast<uint32_t>(text_.size())});
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  std::unexpected<Error> error(size_t at, const std::string& what) const {
    return fail(Code::invalid, "BAD_EXPRESSION", what + " at " + position(at));
  }

  Result<void> skip_space() {
    while (at_ < text_.size()) {
      if (std::string_view(" \t\r\n").contains(peek())) {
        ++at_;
      } else if (peek() == '/' && peek(1) == '/') {
        while (at_ < text_.size() && peek() != '\n')
          ++at_;
      } else if (peek() == '/' && peek(1) == '*') {
        size_t close = text_.find("*/", at_ + 2);
        if (close == std::string_view::npos) return error(at_, "comment is never closed");
        at_ = close + 2;
      } else {
        break;
      }
    }
    return {};
  }

  Result<void> token() {
    char c = peek();
    if (c == '#') return hash();
    if (c == '$' && peek(1) == '{') return symbol();
    if (is_name_start(c)) return name();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return quoted(c);
    if (c == '`') return raw();
    return symbol();
  }

  // `#acc`, `#name`, or `#` alone, which is the element in a closure.
  Result<void> hash() {
    ++at_;
    if (is_name_char(peek())) {
      size_t begin = at_;
      while (is_name_char(peek()))
        ++at_;
      std::string_view word = text_.substr(begin, at_ - begin);
      if (word == "acc") {
        out_.push_back({TokenKind::accumulator, static_cast<uint32_t>(begin - 1), "acc"});
        return {};
      }
      at_ = begin;
      return is_digit(peek()) ? number() : name();
    }
    out_.push_back({TokenKind::element_ref, static_cast<uint32_t>(at_ - 1), "#"});
    return {};
  }

  Result<void> name() {
    size_t begin = at_;
    while (is_name_char(peek()))
      ++at_;
    out_.push_back({TokenKind::name, static_cast<uint32_t>(begin),
                    std::string(text_.substr(begin, at_ - begin))});
    return {};
  }

  Result<void> symbol() {
    for (std::string_view s : kSymbols) {
      if (!text_.substr(at_).starts_with(s)) continue;
      out_.push_back({TokenKind::symbol, static_cast<uint32_t>(at_), std::string(s)});
      at_ += s.size();
      return {};
    }
    return error(at_, "unexpected character '" + std::string(1, peek()) + "'");
  }

  // An integer such as 0xff, 0b101 or 0o17.
  Result<void> prefixed_number(int base) {
    size_t begin = at_;
    at_ += 2;
    std::string digits;
    while (is_name_char(peek())) {
      if (peek() != '_') digits += peek();
      ++at_;
    }
    Token token{TokenKind::integer, static_cast<uint32_t>(begin)};
    auto [end, failed] =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.whole, base);
    if (failed != std::errc() || end != digits.data() + digits.size())
      return error(begin, "malformed number");
    out_.push_back(std::move(token));
    return {};
  }

  Result<void> number() {
    if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) return prefixed_number(16);
    if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B')) return prefixed_number(2);
    if (peek() == '0' && (peek(1) == 'o' || peek(1) == 'O')) return prefixed_number(8);
    size_t begin = at_;
    std::string digits;
    bool real = false;
    auto take_digits = [&] {
      for (; is_digit(peek()) || peek() == '_'; ++at_)
        if (peek() != '_') digits += peek();
    };
    take_digits();
    if (peek() == '.' && peek(1) != '.') {
      real = true;
      digits += '.';
      ++at_;
      take_digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      real = true;
      digits += 'e';
      ++at_;
      if (peek() == '+' || peek() == '-') {
        digits += peek();
        ++at_;
      }
      if (!is_digit(peek())) return error(begin, "malformed number");
      take_digits();
    }
    if (is_name_start(peek())) return error(begin, "malformed number");
    return add_number(begin, digits, real);
  }

  Result<void> add_number(size_t begin, const std::string& digits, bool real) {
    Token token{real ? TokenKind::real : TokenKind::integer, static_cast<uint32_t>(begin)};
    const char* end = digits.data() + digits.size();
    auto parsed = real ? std::from_chars(digits.data(), end, token.number)
                       : std::from_chars(digits.data(), end, token.whole);
    if (parsed.ec != std::errc()) return error(begin, "number out of range");
    out_.push_back(std::move(token));
    return {};
  }

  Result<void> quoted(char quote) {
    size_t begin = at_++;
    std::string out;
    while (true) {
      if (at_ >= text_.size() || peek() == '\n') return error(begin, "string is never closed");
      char c = text_[at_++];
      if (c == quote) break;
      if (c == '"')
        return error(at_ - 1,
                     "a double quote inside a single-quoted string; use \"...\" and write \\\"");
      if (c != '\\') {
        out += c;
        continue;
      }
      TRY_OK(escape(out));
    }
    out_.push_back({TokenKind::string, static_cast<uint32_t>(begin), std::move(out)});
    return {};
  }

  Result<void> escape(std::string& out) {
    constexpr std::string_view from = "nrtabfv0\\\"'`";
    constexpr std::string_view to{"\n\r\t\a\b\f\v\0\\\"'`", 12};
    char c = peek();
    if (size_t i = from.find(c); i != std::string_view::npos && at_ < text_.size()) {
      out += to[i];
      ++at_;
      return {};
    }
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!digits)
      return error(at_ - 1, "unknown escape; known are \\n \\r \\t \\\\ \\\" \\' \\xNN \\uNNNN");
    uint32_t code = 0;
    for (size_t i = 1; i <= digits; ++i) {
      int d = hex_digit(peek(i));
      if (d < 0) return error(at_ - 1, "escape wants " + std::to_string(digits) + " hex digits");
      code = code << 4 | static_cast<uint32_t>(d);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
      return error(at_ - 1, "escape names no character");
    at_ += 1 + digits;
    append_utf8(out, code);
    return {};
  }

  // A string in backquotes, which has no escapes.
  Result<void> raw() {
    size_t begin = at_;
    size_t close = text_.find('`', at_ + 1);
    if (close == std::string_view::npos) return error(begin, "string is never closed");
    out_.push_back({TokenKind::string, static_cast<uint32_t>(begin),
                    std::string(text_.substr(begin + 1, close - begin - 1))});
    at_ = close + 1;
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Token> out_;
};

}  // namespace

Result<std::vector<Token>> tokens(std::string_view text) { return Lexer(text).run(); }

}  // namespace pawl::expr
