#include "base/codec.h"

#include <gtest/gtest.h>

namespace pawl {

enum class Color : uint8_t { red, green };
struct Inner {
  std::string name;
  int64_t delta = 0;
};
// Members of most kinds that the codec knows, and one that was added later.
struct Outer {
  Color color = Color::red;
  uint32_t count = 0;
  bool flag = false;
  std::optional<std::string> note;
  std::vector<Inner> list;
  std::map<std::string, uint64_t> map;
  uint64_t stamp = 0;
  std::string added_later = "default";
};

template <class F, FieldsOf<Inner> T>
void fields(F& f, T& v) {
  f(v.name);
  f(v.delta);
}
template <class F, FieldsOf<Outer> T>
void fields(F& f, T& v) {
  f.format(1);
  f(v.color);
  f(v.count);
  f(v.flag);
  f(v.note);
  f(v.list);
  f(v.map);
  f.fixed64(v.stamp);
  f.later(v.added_later);
}

static Outer sample() {
  return {Color::green, 300, true, "n", {{"a", -1}, {"b", 1}}, {{"k", 7}}, 9, "x"};
}

TEST(codec, a_struct_survives_encode_and_decode) {
  Result<Outer> back = decode_fields<Outer>(encode_fields(sample()), "an outer");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->color, Color::green);
  EXPECT_EQ(back->count, 300u);
  EXPECT_TRUE(back->flag);
  EXPECT_EQ(back->note, "n");
  ASSERT_EQ(back->list.size(), 2u);
  EXPECT_EQ(back->list[0].delta, -1);
  EXPECT_EQ(back->map.at("k"), 7u);
  EXPECT_EQ(back->stamp, 9u);
  EXPECT_EQ(back->added_later, "x");
  EXPECT_EQ(encode_fields(*back), encode_fields(sample()));
}

TEST(codec, bytes_without_the_later_field_keep_its_default) {
  Bytes bytes = encode_fields(sample());
  bytes.resize(bytes.size() - 2);  // the length and the one letter of added_later
  Result<Outer> back = decode_fields<Outer>(bytes, "an outer");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->added_later, "default");
}

TEST(codec, cut_or_extended_bytes_are_refused_by_name) {
  const Bytes bytes = encode_fields(sample());
  for (size_t size = 0; size < bytes.size() - 2; ++size)
    EXPECT_FALSE(decode_fields<Outer>(bytes.substr(0, size), "an outer")) << size;
  Result<Outer> more = decode_fields<Outer>(bytes + "z", "an outer");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "an outer cannot be read");
}

TEST(codec, another_format_is_refused) {
  Bytes bytes = encode_fields(sample());
  bytes[0] = 2;
  EXPECT_FALSE(decode_fields<Outer>(bytes, "an outer"));
}

TEST(codec, a_huge_count_allocates_nothing) {
  Bytes bytes;
  Writer w(bytes);
  w.u8(1);
  w.u8(0);
  w.uint(1);
  w.boolean(false);
  w.boolean(false);
  // The count of `list`; before it stand format, color, count, flag and the absence of note.
  w.uint(~uint64_t{0});
  EXPECT_FALSE(decode_fields<Outer>(bytes, "an outer"));
}

}  // namespace pawl
