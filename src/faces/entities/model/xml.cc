#include "faces/entities/model/xml.h"

#include <expat.h>
#include <fmt/format.h>

#include "base/utf8.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

std::string_view trim(std::string_view s) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = s.find_first_not_of(kSpace);
  if (first == s.npos) return {};
  return s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

std::string without_prefix(std::string_view name) {
  return std::string(name.substr(name.rfind(':') + 1));
}

json::Value scalar(std::string_view text) {
  for (std::string_view word : {"true", "True", "TRUE"})
    if (text == word) return true;
  for (std::string_view word : {"false", "False", "FALSE"})
    if (text == word) return false;
  // The first character is tested so that only numbers are parsed: "null" and "[1]" stay texts.
  if (!text.empty() && (text[0] == '-' || isdigit(static_cast<unsigned char>(text[0]))))
    if (auto number = json::parse(text); number && number->is_number()) return *std::move(number);
  return text;
}

// The members of an element being read. Names are hashed: an element may have very many.
class Members {
 public:
  void add(const std::string& name, json::Value value) {
    auto [known, inserted] = places_.emplace(name, object_.size());
    if (inserted) {
      object_.add(name, std::move(value));
      return;
    }
    json::Value& old = (object_.begin() + static_cast<ptrdiff_t>(known->second))->value;
    if (repeated_.insert(name).second) {
      json::Array both;
      both.push_back(std::move(old));
      old = std::move(both);
    }
    old.array().push_back(std::move(value));
  }
  bool empty() const { return object_.empty(); }
  json::Value take() { return std::move(object_); }

 private:
  json::Object object_;
  std::unordered_map<std::string, size_t> places_;  // name -> index in object_
  std::unordered_set<std::string> repeated_;        // names whose value is an array of several
};

// An element whose end has not come yet.
struct Element {
  std::string name;
  Members members{};
  std::string text{};   // the pieces of text so far, separated by blanks
  std::string piece{};  // the text since the last child

  void end_piece() {
    const std::string_view trimmed = trim(piece);
    if (!trimmed.empty()) {
      if (!text.empty()) text += ' ';
      text += trimmed;
    }
    piece.clear();
  }
  json::Value value() {
    end_piece();
    if (members.empty() && !text.empty()) return scalar(text);
    if (!text.empty()) members.add("_text", scalar(text));
    return members.take();
  }
};

// Builds the JSON value from the events of expat.
class Reader {
 public:
  // Expat calls back with a plain pointer, so the Reader must not move while it parses.
  explicit Reader(std::string_view document)
      : document_(document), parser_(XML_ParserCreate("UTF-8"), XML_ParserFree) {
    CHECK(parser_);
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        [](void* self, const char* name, const char** attributes) {
          static_cast<Reader*>(self)->begin(name, attributes);
        },
        [](void* self, const char*) { static_cast<Reader*>(self)->end(); });
    XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
      static_cast<Reader*>(self)->add_text({text, static_cast<size_t>(size)});
    });
    // A document type could declare entities, and entities could expand to any size. The parser
    // stops before it reads a declaration.
    XML_SetStartDoctypeDeclHandler(
        parser_.get(), [](void* self, const char*, const char*, const char*, int) {
          static_cast<Reader*>(self)->refuse("document type declarations are not accepted");
        });
  }

  Result<json::Value> read() {
    const auto status =
        XML_Parse(parser_.get(), document_.data(), static_cast<int>(document_.size()), XML_TRUE);
    if (status == XML_STATUS_OK) return std::move(root_);
    if (refusal_.empty()) refusal_ = XML_ErrorString(XML_GetErrorCode(parser_.get()));
    return fail(Code::invalid, "BAD_REQUEST",
                fmt::format("malformed XML at line {}: {}", XML_GetCurrentLineNumber(parser_.get()),
                            refusal_));
  }

 private:
  void refuse(std::string why) {
    refusal_ = std::move(why);
    XML_StopParser(parser_.get(), XML_FALSE);
  }

  void begin(const char* name, const char** attributes) {
    // Events that arrive after a refusal do no harm: read() returns the error.
    if (open_.size() > limits::kJsonDepth)
      return refuse(fmt::format("more than {} levels of elements", limits::kJsonDepth));
    if (!open_.empty()) open_.back().end_piece();
    Element& element = open_.emplace_back(Element{without_prefix(name)});
    for (; *attributes; attributes += 2)
      element.members.add(without_prefix(attributes[0]), scalar(attributes[1]));
  }

  void add_text(std::string_view text) {
    // Expat makes every line break a "\n"; the document's own bytes are kept.
    if (text == "\n")
      text = document_.substr(static_cast<size_t>(XML_GetCurrentByteIndex(parser_.get())),
                              static_cast<size_t>(XML_GetCurrentByteCount(parser_.get())));
    open_.back().piece += text;
  }

  void end() {
    json::Value value = open_.back().value();
    const std::string name = std::move(open_.back().name);
    open_.pop_back();
    if (!open_.empty())
      open_.back().members.add(name, std::move(value));
    else if (value.is_object())
      root_ = std::move(value);
    else
      root_ = json::object({{"_value", std::move(value)}});
  }

  std::string_view document_;
  std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  std::vector<Element> open_;
  json::Value root_;
  std::string refusal_;  // why we stopped the parser; empty: expat found an error
};

}  // namespace

Result<json::Value> parse_xml(std::string_view text) {
  if (text.size() > limits::kBodyBytes)
    return fail(Code::too_large, "BAD_REQUEST", "the XML document is larger than 10 MiB");
  if (!is_utf8(text)) return fail(Code::invalid, "BAD_REQUEST", "the XML document is not UTF-8");
  return Reader(text).read();
}

}  // namespace pawl::entities
