#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/dice.h"
#include "base/hash.h"
#include "base/letters.h"
#include "base/time.h"

namespace pawl {

TEST(bytes, fields_are_read_back_as_written) {
  Bytes out;
  Writer w(out);
  w.u8(7);
  w.uint(300);
  w.sint(-5);
  w.sint(INT64_MIN);
  w.str("hello");
  w.fixed64(1ull << 63);
  Reader r(out);
  EXPECT_EQ(r.u8(), 7);
  EXPECT_EQ(r.uint(), 300u);
  EXPECT_EQ(r.sint(), -5);
  EXPECT_EQ(r.sint(), INT64_MIN);
  EXPECT_EQ(r.str(), "hello");
  EXPECT_EQ(r.fixed64(), 1ull << 63);
  EXPECT_TRUE(r.done());
}

// The fixed32 is the last field, so every prefix misses at least one byte of it.
TEST(bytes, a_truncated_record_is_refused_at_every_length) {
  Bytes out;
  Writer w(out);
  w.str("abc");
  w.fixed32(9);
  for (size_t n = 0; n < out.size(); ++n) {
    Reader r(BytesView(out).substr(0, n));
    r.str();
    r.fixed32();
    EXPECT_FALSE(r.ok()) << n;
  }
}

TEST(bytes, a_count_cannot_exceed_the_bytes_left) {
  Bytes out;
  Writer(out).uint(1ull << 40);
  Reader r(out);
  EXPECT_EQ(r.count(), 0u);
  EXPECT_FALSE(r.ok());
}

TEST(bytes, base64_reads_back_in_both_alphabets) {
  for (const std::string& text :
       {std::string(), std::string("a"), std::string("ab"), std::string("abc"), std::string("abcd"),
        std::string("\xff\xfe\0x", 4)}) {
    EXPECT_EQ(*unbase64(base64(text)), text);
    EXPECT_EQ(*unbase64(base64url(text)), text);
  }
  EXPECT_FALSE(unbase64("a"));
  EXPECT_FALSE(unbase64("a*bc"));
}

TEST(bytes, after_prefix_is_the_next_key_without_the_prefix) {
  EXPECT_EQ(after_prefix("ab"), "ac");
  EXPECT_EQ(after_prefix("a\xff"), "b");
  EXPECT_EQ(after_prefix("\xff"), "");
}

TEST(hash, crc32c_matches_the_standard_vector) { EXPECT_EQ(crc32c("123456789"), 0xe3069283u); }

TEST(hash, crc32c_continues_from_a_seed) {
  EXPECT_EQ(crc32c("6789", crc32c("12345")), crc32c("123456789"));
}

TEST(hash, sha256_of_two_parts_equals_the_whole) {
  EXPECT_EQ(hex(view(sha256("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("a", "bc"), sha256("abc"));
}

TEST(time, rfc3339_prints_and_parses) {
  Time t = *parse_rfc3339("2026-11-15T13:32:00.120Z");
  EXPECT_EQ(rfc3339(t), "2026-11-15T13:32:00.12Z");
  EXPECT_EQ(rfc3339(t, 3, true), "2026-11-15T13:32:00.120Z");
  EXPECT_EQ(*parse_rfc3339("2026-11-15T14:32:00.12+01:00"), t);
  EXPECT_EQ(rfc3339(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(rfc3339(-1), "1969-12-31T23:59:59.999999999Z");
  for (auto bad : {"", "2026", "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z",
                   "2026-01-01T00:00:00", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00Zx"})
    EXPECT_FALSE(parse_rfc3339(bad)) << bad;
  EXPECT_NE(parse_rfc3339("2300-01-01T00:00:00Z").error().message.find("1678 to 2261"),
            std::string::npos);
}

TEST(time, iso_durations_parse_and_add) {
  Time t = *parse_rfc3339("2026-01-31T00:00:00Z");
  EXPECT_EQ(rfc3339(add(t, *parse_duration("P1M"))), "2026-02-28T00:00:00Z");
  EXPECT_EQ(rfc3339(add(t, *parse_duration("P1DT2H"))), "2026-02-01T02:00:00Z");
  EXPECT_EQ(rfc3339(add(t, *parse_duration("P1W"))), "2026-02-07T00:00:00Z");
  EXPECT_EQ(parse_duration("PT1.5S")->nanos, 1'500'000'000);
  EXPECT_EQ(parse_duration("PT0.5H")->nanos, 1800 * kSecond);
  // The largest Time is about 2,562,047.79 hours after 1970.
  EXPECT_TRUE(parse_duration("PT2562047.7H"));
  EXPECT_FALSE(parse_duration("PT2562047.9H"));
  for (auto bad :
       {"", "P", "PT", "1D", "P1H", "PT1D", "P-1D", "PT1", "P1DT", "PT1S1M", "P1.5D", "PT0.5H1M"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(dice, the_same_seed_gives_the_same_ids) {
  Dice a({1, 2}), b({1, 2}), c({1, 3});
  EXPECT_EQ(a.uuid4(), b.uuid4());
  EXPECT_NE(a.uuid4(), c.uuid4());
  EXPECT_TRUE(is_uuid(a.uuid7(kSecond)));
  EXPECT_EQ(a.uuid7(kSecond)[14], '7');
  EXPECT_EQ(a.uuid1(kSecond)[14], '1');
  EXPECT_EQ(a.ulid(kSecond).size(), 26u);
}

TEST(dice, uuid5_matches_the_standard_vector) {
  EXPECT_EQ(uuid5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "www.example.com"),
            "2ed6657d-e927-568b-95e1-2665a8aea6a2");
}

TEST(letters, case_mapping_covers_unicode_and_keeps_invalid_bytes) {
  // ß has no upper case of one character, and ÿ, Georgian and Deseret letters map into other
  // blocks. Both sigmas have one upper case.
  EXPECT_EQ(upper_case("straße, élan, ÿ, ς, я, ა, \xf0\x90\x90\xa8"),
            "STRAßE, ÉLAN, Ÿ, Σ, Я, Ა, \xf0\x90\x90\x80");
  EXPECT_EQ(lower_case("STRASSE, ÉLAN, Ÿ, Σ, Я, Ა, \xf0\x90\x90\x80"),
            "strasse, élan, ÿ, σ, я, ა, \xf0\x90\x90\xa8");
  EXPECT_EQ(fold_case("ΌΔΟΣ"), fold_case("όδος"));
  EXPECT_NE(fold_case("ı"), fold_case("i"));
  EXPECT_EQ(upper_case("\xff"
                       "a\xc3"),
            "\xff"
            "A\xc3")
      << "invalid bytes are kept";
}

}  // namespace pawl
