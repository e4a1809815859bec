// The committer when the rows fail, and replay when the journal is shorter than the rows.

#include "kernel/commit.h"

#include <gtest/gtest.h>

#include "kernel/frame.h"
#include "kernel/replay.h"
#include "kernel/rows_layout.h"
#include "storage/memory/memory.h"

namespace pawl {
namespace {

// Rows whose next apply fails once.
class FaultyRows final : public Rows {
 public:
  bool fails_next = false;
  Result<void> apply_changes(const RowChanges& changes, Seq applied) override {
    if (std::exchange(fails_next, false))
      return fail(Code::unavailable, "ROWS_IO", "no space left on the device");
    return rows_.apply_changes(changes, applied);
  }
  Seq applied() const override { return rows_.applied(); }
  Result<std::optional<Bytes>> get(BytesView key) const override { return rows_.get(key); }
  std::unique_ptr<RowsSnapshot> snapshot() const override { return rows_.snapshot(); }
  Result<void> flush() override { return rows_.flush(); }
  Result<void> checkpoint(const std::string& folder) override { return rows_.checkpoint(folder); }
  Result<void> reset() override { return rows_.reset(); }

 private:
  MemoryRows rows_;
};

Group group_with_row(Seq seq, BytesView key, BytesView value) {
  Group group;
  group.last_before = seq - 1;
  group.frames.emplace_back();
  group.frames.back().seq = seq;
  group.rows.put(key, value);
  return group;
}

TEST(committer, a_failed_apply_is_repeated_with_the_next_one) {
  MemoryJournal journal;
  FaultyRows rows;
  CellCache cache(rows, 1 << 20);
  Committer committer(journal, rows, cache, {});
  Group one = group_with_row(1, "a", "1");
  committer.publish({&one, 1});
  rows.fails_next = true;
  EXPECT_FALSE(committer.apply());
  EXPECT_EQ(rows.applied(), 0u);
  Group two = group_with_row(2, "b", "2");
  committer.publish({&two, 1});
  ASSERT_TRUE(committer.apply());
  EXPECT_EQ(rows.applied(), 2u);
  EXPECT_EQ(rows.get("a").value(), "1");
  EXPECT_EQ(rows.get("b").value(), "2");
}

TEST(committer, a_failed_apply_is_repeated_without_a_new_group) {
  MemoryJournal journal;
  FaultyRows rows;
  CellCache cache(rows, 1 << 20);
  Committer committer(journal, rows, cache, {});
  Group one = group_with_row(1, "a", "1");
  committer.publish({&one, 1});
  rows.fails_next = true;
  EXPECT_FALSE(committer.apply());
  ASSERT_TRUE(committer.apply());
  EXPECT_EQ(rows.applied(), 1u);
  EXPECT_EQ(rows.get("a").value(), "1");
}

TEST(replay, rows_ahead_of_the_journal_prove_a_loss) {
  MemoryJournal journal;
  MemoryRows rows;
  ASSERT_TRUE(rows.apply({}, 5));
  auto replayed = replay(journal, rows, {});
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().reason, "JOURNAL_LOST");
  EXPECT_NE(replayed.error().message.find("pawl journal accept-loss"), std::string::npos);
  EXPECT_EQ(rows.applied(), 5u);  // the proof stays
}

// A journal of sealed frames that differ by their program's name.
void append_frames(Journal& journal, size_t count, const std::string& program) {
  Digest link{};
  for (size_t i = 0; i < count; ++i) {
    Frame frame;
    frame.program = program;
    frame.inputs.emplace_back();
    Bytes entry = encode_entry(frame);
    seal(entry, link);
    link = sha256(entry, {});
    BytesView view = entry;
    ASSERT_TRUE(journal.append({&view, 1}, i));
  }
}

TEST(replay, rows_of_another_journal_are_refused_and_kept) {
  MemoryJournal one, other;
  append_frames(one, 3, "one");
  append_frames(other, 5, "other");
  MemoryRows rows;
  ASSERT_TRUE(replay(one, rows, {}));
  EXPECT_EQ(rows.applied(), 3u);
  auto replayed = replay(other, rows, {});
  ASSERT_FALSE(replayed);
  EXPECT_EQ(replayed.error().reason, "ROWS_DIFFER");
  EXPECT_EQ(rows.applied(), 3u);
  ASSERT_TRUE(replay(one, rows, {}));
  // Rows of a binary that did not keep the link are taken as they are.
  RowBatch without;
  without.erase(layout::kLink);
  ASSERT_TRUE(rows.apply(without, 3));
  EXPECT_TRUE(replay(other, rows, {}));
}

}  // namespace
}  // namespace pawl
