// XML documents as JSON: the mapping, and documents that are malformed or hostile.

#include "faces/entities/model/xml.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::entities {
namespace {

std::string xml(std::string_view text) {
  auto v = parse_xml(text);
  return v ? json::print(*v) : "refused";
}

TEST(xml, elements_and_attributes_become_members) {
  EXPECT_EQ(xml("<?xml version=\"1.0\"?><r><name>a</name><n>1</n><b>true</b><d>2.50</d></r>"),
            R"({"name":"a","n":1,"b":true,"d":2.50})");
  EXPECT_EQ(xml("<r><t>x</t><t>y</t><z/></r>"), R"({"t":["x","y"],"z":{}})");
  EXPECT_EQ(xml("<r id='7'><o><k>v</k></o>text</r>"), R"({"id":7,"o":{"k":"v"},"_text":"text"})");
  EXPECT_EQ(xml("<x:r xmlns:x='u' x:id='7'><x:t id='1'/><id>8</id></x:r>"),
            R"({"x":"u","id":[7,8],"t":{"id":1}})");
  EXPECT_EQ(xml("<r> one <b>1</b> two<!-- not a word -->fold\n<b>2</b></r>"),
            R"({"b":[1,2],"_text":"one twofold"})");
  EXPECT_EQ(xml("<r>17</r>"), R"({"_value":17})");
  EXPECT_EQ(xml("<r><a></a><b/><c> <!-- nothing --> </c></r>"), R"({"a":{},"b":{},"c":{}})");
  EXPECT_EQ(xml("<r></r>"), "{}");
  EXPECT_EQ(xml("<r><a>TRUE</a><b>False</b><c>T</c></r>"), R"({"a":true,"b":false,"c":"T"})");
  EXPECT_EQ(xml("<r><k>&lt;&#65;&#x42;&amp;</k><c><![CDATA[<x>]]></c></r>"),
            R"({"k":"<AB&","c":"<x>"})");
  EXPECT_EQ(xml("<r><zip>007</zip></r>"), R"({"zip":"007"})");
}

TEST(xml, malformed_and_hostile_documents_are_refused) {
  for (std::string_view bad :
       {"", "<r>", "<r></s>", "<r a=b/>", "<r a='1' a='2'/>", "<r/><r/>", "text", "<r>&bomb;</r>",
        "<!DOCTYPE r><r/>", "<r>&#xD800;</r>", "<1/>", "<r>\xbb</r>"})
    EXPECT_EQ(xml(bad), "refused") << bad;
  std::string deep;
  for (int i = 0; i < 100'000; ++i)
    deep += "<a>";
  EXPECT_EQ(xml(deep), "refused");
}

TEST(xml, nesting_is_limited_to_the_depth_of_json) {
  auto nested = [](size_t depth) {
    std::string text;
    for (size_t i = 0; i < depth; ++i)
      text += "<a>";
    for (size_t i = 0; i < depth; ++i)
      text += "</a>";
    return text;
  };
  EXPECT_NE(xml(nested(limits::kJsonDepth + 1)), "refused");
  EXPECT_EQ(xml(nested(limits::kJsonDepth + 2)), "refused");
}

TEST(xml, entities_never_expand) {
  const std::string bomb =
      "<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'>]><r>&b;</r>";
  EXPECT_EQ(xml(bomb), "refused");
  EXPECT_NE(parse_xml(bomb).error().message.find("document type declarations are not accepted"),
            std::string::npos);
  EXPECT_EQ(xml("<!DOCTYPE r SYSTEM 'file:///etc/passwd'><r/>"), "refused");
}

TEST(xml, errors_name_the_line) {
  auto refused = parse_xml("<r>\n<a>\n</b></r>");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("malformed XML at line 3"), std::string::npos)
      << refused.error().message;
}

TEST(xml, the_declared_encoding_is_ignored) {
  EXPECT_EQ(xml("<?xml version='1.0' encoding='ISO-8859-1'?><r>\xc3\xa9</r>"),
            "{\"_value\":\"\xc3\xa9\"}");
  EXPECT_EQ(xml("\xef\xbb\xbf<r>1</r>"), R"({"_value":1})");
}

TEST(xml, a_comment_ends_only_after_its_begin) {
  EXPECT_EQ(xml("<r>a<!--> b -->c</r>"), R"({"_value":"ac"})");
  EXPECT_EQ(xml("<r>a<!---></r>"), "refused");
}

TEST(xml, line_breaks_in_text_are_kept) {
  EXPECT_EQ(xml("<r>a\r\nb\rc\nd<![CDATA[e\r\nf]]></r>"), R"({"_value":"a\r\nb\rc\nde\r\nf"})");
}

// XML 1.0, section 3.3.3.
TEST(xml, line_breaks_and_tabs_in_attributes_become_blanks) {
  EXPECT_EQ(xml("<r a='x\ty\nz' b='x&#9;y'/>"), R"({"a":"x y z","b":"x\ty"})");
}

TEST(xml, many_names_are_read_in_linear_time) {
  std::string wide = "<r>", attributes = "<r";
  for (int i = 0; i < 300'000; ++i) {
    wide += "<a" + std::to_string(i) + "/>";
    attributes += " a" + std::to_string(i) + "='1'";
  }
  auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(parse_xml(wide + "</r>"));
  EXPECT_TRUE(parse_xml(attributes + "/>"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(20));
}

}  // namespace
}  // namespace pawl::entities
