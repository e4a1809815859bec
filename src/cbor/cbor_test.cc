#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "cbor/cbor.h"

// Counts every byte that is allocated, so that a test sees memory that a decoder reserves and never
// uses.
static std::atomic<size_t> allocated{0};
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  allocated += bytes;
  return std::malloc(bytes);
}
void* operator new(size_t bytes) {
  if (void* memory = operator new(bytes, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace pawl::cbor {
namespace {

std::string canon(const Value& v) { return hex(canonical(v)); }
Value from(std::string_view h) { return *decode(*unhex(h)); }

// The case numbers are those of the list of behaviours of worlds; see faces/worlds/cases_test.cc.

// case 1
TEST(cbor, canonical_bytes_begin_with_the_tag_and_round_trip) {
  for (std::string_view h :
       {"f6", "f5", "20", "1bffffffffffffffff", "3bffffffffffffffff", "f93c00",
        "fb7e37e43c8800759c", "6161", "420102", "83010203", "a3617903637a7a7a01646161616102"}) {
    const Bytes once = canonical(from(h));
    EXPECT_TRUE(once.starts_with(kSelfDescribed));
    EXPECT_EQ(canonical(*decode(once)), once) << h;
    EXPECT_EQ(hex(once), "d9d9f7" + std::string(h));
  }
}

// case 4
TEST(cbor, integers_take_their_shortest_form) {
  EXPECT_EQ(canon(Value(23)), "d9d9f717");
  EXPECT_EQ(canon(Value(24)), "d9d9f71818");
  EXPECT_EQ(canon(Value(255)), "d9d9f718ff");
  EXPECT_EQ(canon(Value(256)), "d9d9f7190100");
  EXPECT_EQ(canon(Value(65536)), "d9d9f71a00010000");
  EXPECT_EQ(canon(Value(uint64_t{1} << 32)), "d9d9f71b0000000100000000");
  EXPECT_EQ(canon(Value(-24)), "d9d9f737");
  EXPECT_EQ(canon(Value(-25)), "d9d9f73818");
  EXPECT_EQ(canon(Value(INT64_MIN)), "d9d9f73b7fffffffffffffff");
  EXPECT_EQ(canon(from("1800")), "d9d9f700");
}

// case 2, case 3
TEST(cbor, canonical_keys_sort_by_length_then_bytes) {
  const Value a = Map{{"aaaa", 2}, {"y", 3}, {"zzz", 1}},
              b = Map{{"zzz", 1}, {"aaaa", 2}, {"y", 3}};
  EXPECT_EQ(canon(a), "d9d9f7a3617903637a7a7a01646161616102");
  EXPECT_EQ(canon(a), canon(b));
  EXPECT_EQ(hash_of(a), hash_of(b));
}

TEST(cbor, canonical_keys_sort_by_major_type_first) {
  Map map;
  for (const Value& key :
       {Value(10), Value(-1), Value(100), Value(-25), Value(23), Value(24), Value("a"), Value("aa"),
        Value("b"), octets("\x01"), octets(BytesView("\0\0", 2)), Value(false), Value(true),
        Value(), Value(Array{Value(1)})})
    map.emplace_back(key, Value());
  EXPECT_EQ(
      canon(Value(map)),
      "d9d9f7af0af617f61818f61864f620f63818f64101f6420000f66161f66162f6626161f68101f6f4f6f5f6f6f6");
}

TEST(cbor, the_last_of_equal_keys_wins) {
  EXPECT_EQ(canon(from("a2616101616102")), "d9d9f7a1616102");
}

TEST(cbor, floats_take_the_smallest_exact_width) {
  EXPECT_EQ(canon(Value(1.0)), "d9d9f7f93c00");
  EXPECT_EQ(canon(Value(1.0 / 3)), "d9d9f7fb3fd5555555555555");
  EXPECT_EQ(canon(Value(100000.0)), "d9d9f7fa47c35000");
  EXPECT_EQ(canon(Value(5.960464477539063e-8)), "d9d9f7f90001");
  EXPECT_EQ(canon(from("f90001")), "d9d9f7f90001");
}

// case 5
TEST(cbor, indefinite_lengths_tags_and_undefined_are_accepted) {
  EXPECT_EQ(canon(from("9f0102ff")), "d9d9f7820102");
  EXPECT_EQ(canon(from("bf616101ff")), "d9d9f7a1616101");
  EXPECT_EQ(canon(from("5f41014102ff")), "d9d9f7420102");
  EXPECT_EQ(canon(from("d9d9f7c1f7")), "d9d9f7f6");
}

// case 6
TEST(cbor, malformed_bytes_are_refused_with_the_reason) {
  struct Case {
    std::string_view hex, word;
  };
  for (const Case& c :
       {Case{"", "EOF"}, Case{"0505", "trailing data at offset 2"}, Case{"19ff", "EOF"},
        Case{"62ff", "EOF"}, Case{"62c328", "UTF-8"}, Case{"9f01", "EOF"}, Case{"1c", "unassigned"},
        Case{"ff", "unassigned"}, Case{"f0", "unassigned"}, Case{"9bffffffffffffffff00", "EOF"},
        Case{"5f6161ff", "chunk"}, Case{"61ff", "UTF-8"}}) {
    auto v = decode(*unhex(c.hex));
    ASSERT_FALSE(v) << c.hex;
    EXPECT_NE(v.error().message.find(c.word), std::string::npos)
        << c.hex << ": " << v.error().message;
  }
}

TEST(cbor, nesting_has_a_limit) {
  EXPECT_TRUE(decode(Bytes(kDepth, '\x81') + "\x01"));
  EXPECT_FALSE(decode(Bytes(kDepth + 1, '\x81') + "\x01"));
  EXPECT_FALSE(decode(Bytes(100'000, '\xc1') + "\x01"));
}

TEST(cbor, a_hostile_count_reserves_little_memory) {
  for (const char* head : {"9a000f0000", "ba000f0000"}) {
    Bytes hostile;
    for (size_t i = 0; i < kDepth; ++i)
      hostile += *unhex(head);
    hostile.append(1 << 20, '\0');
    const size_t before = allocated;
    auto value = decode(hostile);
    EXPECT_LT(allocated - before, size_t{400} << 20) << head;
    EXPECT_FALSE(value);
  }
}

}  // namespace
}  // namespace pawl::cbor
