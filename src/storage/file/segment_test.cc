// The bytes of versions 1 and 2, which existing journals have: a change here needs a version 3.

#include "storage/file/segment.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/file/journal_folder.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

constexpr uint32_t kSalt = 0x01020304;

TEST(segment, version_1_headers_groups_and_indexes_keep_their_bytes) {
  EXPECT_EQ(hex(encode(SegmentHeader{7, 3, kSalt, 1})),
            "5041574c5345470a010000000403020107000000000000000300000000000000cde6db7700000000");
  std::vector<BytesView> entries{"one", "", "three"};
  Bytes group;
  encode_group(entries, 7, kSalt, group);
  EXPECT_EQ(hex(group),
            "5047525020000000070000000000000003000000ed6e3e2e"
            "03000000e8ecb4a56f6e65"
            "00000000ad0bc5bb"
            "05000000648badf07468726565");
  EXPECT_EQ(hex(encode(SegmentIndex{7, 9, 104, {{7, 40}}})),
            "5041574c4944580a010000000100000007000000000000000900000000000000"
            "6800000000000000070000000000000028000000000000006fd30bd6");
}

TEST(segment, version_2_headers_and_groups_keep_their_bytes) {
  EXPECT_EQ(hex(encode(SegmentHeader{7, 3, kSalt, 2, 1 << 20})),
            "5041574c5345470a020000000403020107000000000000000300000000000000aed7e7bc000100e4");
  Bytes zeros(1000, '\0');
  BytesView entry = zeros;
  Bytes group;
  encode_group({&entry, 1}, 7, kSalt, group);
  add_zero_list(group, 40, kSalt);
  EXPECT_EQ(hex(BytesView(group).substr(0, 32)),
            "5047525a000400000700000000000000010000004329f56de8030000fee33b46");
  EXPECT_EQ(hex(BytesView(group).substr(1032)), "0100000002000000010000001a58eb4b");
}

TEST(journal_folder, version_1_of_the_first_file_keeps_its_bytes) {
  TestFolder folder;
  Disk disk;
  ASSERT_TRUE(write_first_seq(disk, folder.path(), 7));
  std::ifstream in(folder.sub(kFirstSeqName), std::ios::binary);
  Bytes bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(hex(bytes), "5041574c4653540a01000000000000000700000000000000513be0d0");
  EXPECT_EQ(read_first_seq(disk, folder.path()).value(), 7u);
}

TEST(segment, headers_and_indexes_decode_as_encoded) {
  auto head = decode_segment_header(encode(SegmentHeader{7, 3, kSalt, 2, 1 << 20}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->file_bytes, 1u << 20);
  EXPECT_EQ(head->first, 7u);
  EXPECT_EQ(head->previous, 3u);
  EXPECT_EQ(head->salt, kSalt);
  auto seal = decode_segment_index(encode(SegmentIndex{7, 9, 104, {{7, 40}, {8, 80}}}));
  ASSERT_TRUE(seal);
  EXPECT_EQ(seal->last, 9u);
  EXPECT_EQ(seal->positions.size(), 2u);
  EXPECT_EQ(seal->positions[1].offset, 80u);
}

TEST(segment, a_group_with_another_salt_is_invalid) {
  BytesView entry = "x";
  Bytes group;
  encode_group({&entry, 1}, 1, kSalt, group);
  EXPECT_TRUE(decode_group_header(group, kSalt));
  EXPECT_FALSE(decode_group_header(group, kSalt + 1));
}

TEST(segment, index_positions_are_sparse_and_found) {
  std::vector<GroupPosition> positions;
  for (Seq seq = 1; seq <= 1000; ++seq)
    add_position(positions, {seq, 40 + seq * 1000});
  EXPECT_LT(positions.size(), 70u);
  for (Seq seq = 1; seq <= 1000; ++seq) {
    GroupPosition mark = position_before(positions, seq, {0, 0});
    EXPECT_LE(mark.seq, seq);
    EXPECT_GT(mark.seq + 20, seq);
  }
}

}  // namespace
}  // namespace pawl
