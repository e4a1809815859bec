#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kernel/once.h"
#include "kernel/test_kernel.h"

namespace pawl {

static Key cell_of(std::string_view user) { return key({"counter", user}); }

TEST(kernel, a_turn_is_one_frame_and_its_rows) {
  TestKernel s;
  EXPECT_EQ(s.say(s.input("add", "5"))->body, "5");
  EXPECT_EQ(s.say(s.input("add", "2"))->body, "7");
  EXPECT_EQ(s.journal.last(), 2u);
  ReadSnapshot snapshot = s.snapshot();
  EXPECT_EQ(snapshot.read(cell_of("a"))->value(), "7");
  EXPECT_EQ(snapshot.read(cell_of("a"))->version, 2u);
  EXPECT_EQ(snapshot.read_at(cell_of("a"), 1)->value(), "5");
  EXPECT_TRUE(*snapshot.row("counter", "7/" + cell_of("a")));
  EXPECT_FALSE(*snapshot.row("counter", "5/" + cell_of("a")));
}

TEST(kernel, write_new_writes_like_write) {
  TestKernel s;
  EXPECT_EQ(s.say(s.input("new", ""))->body, "2");
  EXPECT_EQ(s.say(s.input("add", "3", "kept"))->body, "5");
  EXPECT_FALSE(s.snapshot().read(cell_of("gone"))->exists());
  EXPECT_EQ(s.snapshot().read(cell_of("kept"))->version, 2u);
  EXPECT_EQ(s.snapshot().read_at(cell_of("kept"), 1)->value(), "2");
  EXPECT_FALSE(*s.snapshot().row("counter", "2/" + cell_of("kept")));
  MemoryRows scratch;
  auto verified = verify(s.journal, scratch, s.programs);
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->difference, "");
}

TEST(kernel, turns_see_pending_writes_and_answers_wait_for_the_flush) {
  TestKernel s;
  std::optional<Result<Answer>> one, two;
  s.submit(s.input("add", "5"), &one);
  s.submit(s.input("add", "5"), &two);
  EXPECT_FALSE(one);
  EXPECT_EQ(s.journal.last(), 0u);
  s.flush();
  EXPECT_EQ((*one)->body, "5");
  EXPECT_EQ((*two)->body, "10");
}

TEST(kernel, an_error_changes_nothing) {
  TestKernel s;
  EXPECT_EQ(s.say(s.input("fail", "")).error().reason, "NO");
  EXPECT_EQ(s.journal.last(), 0u);
  EXPECT_EQ(s.value("a"), "");
  EXPECT_EQ(s.say(s.input("large", "")).error().reason, "CELL_TOO_LARGE");
}

TEST(kernel, a_turn_that_only_reads_writes_no_frame) {
  TestKernel s;
  (void)s.say(s.input("add", "1")).has_value();
  auto answer = s.say(s.input("get", ""));
  EXPECT_EQ(answer->body, "1");
  EXPECT_EQ(answer->seq, 0u);
  EXPECT_EQ(s.journal.last(), 1u);
}

TEST(kernel, an_effect_leaves_after_its_frame_and_a_receipt_settles_once) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("open", "job1"), &heard);
  EXPECT_TRUE(s.sent.empty());
  s.flush();
  ASSERT_EQ(s.sent.size(), 1u);
  EXPECT_EQ(s.sent[0].body, "work");
  EXPECT_EQ(s.say(s.receipt("job1", "ok"))->body, "settled:100");
  EXPECT_EQ(s.back, std::vector<std::string>{"job1"});
  EXPECT_EQ(s.say(s.receipt("job1", "ok")).error().reason, "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.value("a"), "100");
}

TEST(kernel, a_failed_receipt_leaves_the_effect_open_and_a_refusal_settles_it) {
  TestKernel s;
  (void)s.say(s.input("open", "job1")).has_value();
  EXPECT_EQ(s.say(s.receipt("job1", "fail")).error().reason, "RECEIPT_FAILED");
  EXPECT_EQ(s.say(s.receipt("job1", "late-refused")).error().reason, "REFUSED");
  EXPECT_EQ(s.say(s.receipt("job1", "ok")).error().reason, "EFFECT_NOT_OPEN");
}

TEST(kernel, a_withdrawn_effect_is_closed) {
  TestKernel s;
  (void)s.say(s.input("open", "job1")).has_value();
  (void)s.say(s.input("withdraw", "job1")).has_value();
  EXPECT_EQ(s.back, std::vector<std::string>{"job1"});
  EXPECT_FALSE(s.say(s.receipt("job1", "ok")));
}

TEST(kernel, other_turns_run_while_one_waits_for_a_receipt) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("ask", "q1"), &heard);
  s.flush();
  EXPECT_FALSE(heard);
  EXPECT_EQ(s.sent.size(), 1u);
  EXPECT_EQ(s.say(s.input("add", "3", "b"))->body, "3");
  (void)s.say(s.receipt("q1", "ok")).has_value();
  ASSERT_TRUE(heard);
  EXPECT_EQ((*heard)->body, "settled:100");
  EXPECT_EQ(s.journal.last(), 2u);
}

TEST(kernel, first_committer_wins) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("ask", "q1"), &heard);
  (void)s.say(s.input("add", "3")).has_value();
  (void)s.say(s.receipt("q1", "ok")).has_value();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->error().reason, "CONFLICT");
  EXPECT_TRUE(heard->error().retryable);
  EXPECT_EQ(s.value("a"), "3");
}

TEST(kernel, writes_after_begin_conflict_when_program_requires_it) {
  for (const std::string& name : {std::string("snap"), std::string("other")}) {
    TestKernel s;
    std::optional<Result<Answer>> heard;
    s.submit(s.input("ask", "q1"), &heard);
    s.flush();
    EXPECT_EQ(s.say(s.input("add", "3", name))->body, "3");
    Input join = s.input("get", "", name);
    join.joins = std::stoull(s.sent[0].body);
    EXPECT_EQ(s.say(std::move(join))->body, "3");
    (void)s.say(s.receipt("q1", "ok")).has_value();
    ASSERT_TRUE(heard);
    EXPECT_EQ(heard->has_value(), name == "other");
    EXPECT_EQ(s.rerun().difference, "");
  }
}

TEST(kernel, an_accepted_stale_read_commits_and_verifies) {
  TestKernel s;
  // One that was not there when it was read, then one that was.
  for (int64_t rule : {0, 5, 8}) {
    std::string effect = "q" + std::to_string(rule);
    s.submit(s.input("ask-by-rule", effect), nullptr);
    s.flush();
    EXPECT_EQ(s.say(s.input("add", rule ? "3" : "5", "rule"))->body,
              std::to_string(rule ? rule + 3 : 5));
    (void)s.say(s.receipt(effect, "ok")).has_value();
    EXPECT_EQ(s.value("a"), std::to_string(rule + 100));
  }
  std::optional<Result<Answer>> heard;
  s.submit(s.input("ask-by-rule", "w"), &heard);
  s.flush();
  Input join = s.input("add", "1", "rule");
  join.joins = std::stoull(s.sent.back().body);
  (void)s.say(std::move(join)).has_value();
  (void)s.say(s.input("add", "1", "rule")).has_value();
  (void)s.say(s.receipt("w", "ok")).has_value();
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->error().reason, "CONFLICT");
  Verified verified = s.rerun();
  EXPECT_EQ(verified.difference, "");
  EXPECT_EQ(verified.rerun, 7u);
}

TEST(kernel, a_joined_command_sees_the_turns_writes_and_fails_with_it) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("ask", "q1"), &heard);
  s.flush();
  Input join = s.input("add", "7", "j");
  join.joins = std::stoull(s.sent[0].body);
  EXPECT_EQ(s.say(std::move(join))->body, "7");
  EXPECT_EQ(s.value("j"), "") << "nothing is committed yet";
  Input again = s.input("get", "", "j");
  again.joins = std::stoull(s.sent[0].body);
  EXPECT_EQ(s.say(std::move(again))->body, "7");
  Input other = s.input("get", "", "j");
  other.joins = std::stoull(s.sent[0].body);
  other.caller.tenant = "thief";
  EXPECT_EQ(s.say(std::move(other)).error().reason, "TURN_OVER");
  (void)s.say(s.receipt("q1", "fail")).has_value();
  EXPECT_EQ(heard->error().reason, "RECEIPT_FAILED");
  EXPECT_EQ(s.value("j"), "");
  Input late = s.input("get", "", "j");
  late.joins = std::stoull(s.sent[0].body);
  EXPECT_EQ(s.say(std::move(late)).error().reason, "TURN_OVER");
}

// A command that joins under the n-th effect that was sent.
static Input under(TestKernel& s, size_t n, std::string verb, Bytes body, std::string user) {
  Input in = s.input(std::move(verb), std::move(body), std::move(user));
  in.joins = std::stoull(s.sent[n].body);
  return in;
}

TEST(kernel, a_failed_joined_command_undoes_only_its_own_changes) {
  TestKernel s;
  std::optional<Result<Answer>> heard, joined;
  s.submit(s.input("ask", "q1"), &heard);
  s.flush();
  EXPECT_EQ(s.say(under(s, 0, "add", "1", "shared"))->body, "1");
  s.submit(under(s, 0, "ask", "q2", "inner"), &joined);
  s.flush();
  EXPECT_EQ(s.say(under(s, 1, "add", "5", "child"))->body, "5");
  EXPECT_EQ(s.say(under(s, 0, "add", "7", "sibling"))->body, "7");
  EXPECT_EQ(s.say(under(s, 1, "add", "10", "shared"))->body, "11");
  (void)s.say(s.receipt("q2", "fail")).has_value();
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->error().reason, "RECEIPT_FAILED");
  EXPECT_EQ(s.say(under(s, 1, "add", "1", "child")).error().reason, "TURN_OVER");
  EXPECT_EQ(s.say(under(s, 0, "get", "", "child"))->body, "");
  EXPECT_EQ(s.say(under(s, 0, "get", "", "shared"))->body, "1");
  (void)s.say(s.receipt("q1", "ok")).has_value();
  ASSERT_TRUE(heard && *heard);
  EXPECT_EQ(s.value("child") + s.value("sibling") + s.value("shared"), "71");
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(kernel, an_unfinished_joined_command_is_undone) {
  TestKernel s;
  std::optional<Result<Answer>> heard, joined;
  s.submit(s.input("ask", "q1"), &heard);
  s.flush();
  s.submit(under(s, 0, "ask", "q2", "inner"), &joined);
  s.flush();
  EXPECT_EQ(s.say(under(s, 1, "add", "5", "child"))->body, "5");
  (void)s.say(s.receipt("q1", "ok")).has_value();
  ASSERT_TRUE(heard && *heard);
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->error().reason, "TURN_OVER");
  EXPECT_EQ(s.value("child"), "");
  EXPECT_EQ(s.back, std::vector<std::string>{"q2"});
  EXPECT_EQ(s.say(s.receipt("q2", "ok")).error().reason, "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.rerun().difference, "");
}

TEST(kernel, a_deferred_answer_comes_from_the_settling_turn) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("open-later", "job1"), &heard);
  s.flush();
  EXPECT_FALSE(heard);
  (void)s.say(s.receipt("job1", "ok")).has_value();
  ASSERT_TRUE(heard);
  EXPECT_EQ((*heard)->body, "settled:100");
}

TEST(kernel, rewind_works_with_many_keys) {
  TestKernel s;
  EXPECT_EQ(s.say(s.input("rewind-many", ""))->body, std::string(20, '1') + "-----3----");
  EXPECT_EQ(s.value("many3"), "1");
  EXPECT_EQ(s.value("many25"), "3");
  EXPECT_EQ(s.value("many21"), "");
}

TEST(kernel, withdrawing_an_effect_answers_its_waiting_caller) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  s.submit(s.input("open-later", "a job with a name that is long enough to live on the heap"),
           &heard);
  s.flush();
  ASSERT_FALSE(heard);
  EXPECT_TRUE(
      s.say(s.input("withdraw", "a job with a name that is long enough to live on the heap")));
  ASSERT_TRUE(heard);
  ASSERT_FALSE(*heard);
  EXPECT_EQ(heard->error().reason, "WITHDRAWN");
}

TEST(kernel, rewind_undoes_everything_after_the_mark) {
  TestKernel s;
  EXPECT_EQ(s.say(s.input("rewind", ""))->body, "1");
  EXPECT_TRUE(s.sent.empty());
  EXPECT_EQ(s.value("a"), "1");
}

TEST(kernel, a_scan_sees_durable_pending_and_own_cells_in_order) {
  TestKernel s;
  (void)s.say(s.input("add", "1", "a")).has_value();
  (void)s.say(s.input("add", "3", "c")).has_value();
  (void)s.say(s.input("add", "9", "d")).has_value();
  std::optional<Result<Answer>> heard;
  s.submit(s.input("add", "2", "b"), nullptr);
  s.submit(s.input("erase", "", "d"), nullptr);
  s.submit(s.input("scan", ""), &heard);
  s.flush();
  EXPECT_EQ((*heard)->body, "a=1 b=2 c=3 ");
}

TEST(kernel, a_repeated_idempotency_key_gets_the_recorded_answer) {
  TestKernel s;
  Input first = s.input("add", "5");
  first.once = "k1";
  Input second = s.input("add", "5");
  second.once = "k1";
  Input other = s.input("add", "6");
  other.once = "k1";
  EXPECT_EQ(s.say(std::move(first))->body, "5");
  EXPECT_EQ(s.say(std::move(second))->body, "5");
  EXPECT_EQ(s.say(std::move(other)).error().reason, "IDEMPOTENCY_KEY_REUSED");
  EXPECT_EQ(s.value("a"), "5");
  s.now += 25 * 3600 * kSecond;
  Input forget{
      .program = std::string(kOwnProgram), .verb = std::string(kForget), .body = {}, .caller = {}};
  EXPECT_EQ(s.say(std::move(forget))->body, "1");
}

static void expect_replayed(TestKernel& s) {
  MemoryRows again;
  auto replayed = replay(s.journal, again, s.programs);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_EQ(replayed->link, s.committer->link());
  std::map<Bytes, Bytes> live, copy;
  (void)s.rows.snapshot()
      ->scan("", "",
             [&](BytesView k, BytesView v) {
               live.emplace(k, v);
               return true;
             })
      .has_value();
  (void)again.snapshot()
      ->scan("", "",
             [&](BytesView k, BytesView v) {
               copy.emplace(k, v);
               return true;
             })
      .has_value();
  copy.erase("mviews");
  EXPECT_TRUE(live == copy);
}

TEST(kernel, replay_equals_live) {
  TestKernel s;
  for (int i = 0; i < 50; ++i) {
    (void)s.say(s.input("add", std::to_string(i), std::string(1, char('a' + i % 5)))).has_value();
    if (i % 7 == 0) (void)s.say(s.input("open", "job" + std::to_string(i))).has_value();
    if (i % 14 == 0) (void)s.say(s.receipt("job" + std::to_string(i), "ok")).has_value();
  }
  (void)s.say(s.input("erase", "")).has_value();
  ASSERT_TRUE(s.committer->apply());
  expect_replayed(s);
}

// Cells that were written in the batch at hand, in the one before, in some long applied, or never;
// many rows to a batch.
TEST(kernel, replay_in_many_batches_equals_live) {
  TestKernel s;
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    std::string user = std::to_string(random() % 1200) + std::string(3500, 'u');
    (void)s.say(s.input(random() % 8 ? "add" : "erase", std::to_string(i), user)).has_value();
  }
  ASSERT_TRUE(s.committer->apply());
  expect_replayed(s);
}

TEST(kernel, verify_accepts_true_frames_and_finds_forged_ones) {
  TestKernel s;
  std::optional<Result<Answer>> heard;
  (void)s.say(s.input("add", "1")).has_value();
  s.submit(s.input("ask", "q1", "b"), &heard);
  s.flush();
  Input join = s.input("add", "7", "j");
  join.joins = std::stoull(s.sent[0].body);
  (void)s.say(std::move(join)).has_value();
  (void)s.say(s.receipt("q1", "ok")).has_value();
  Input once = s.input("add", "5");
  once.once = "k1";
  (void)s.say(std::move(once)).has_value();
  Verified verified = s.rerun();
  EXPECT_EQ(verified.difference, "");
  EXPECT_EQ(verified.rerun, 3u);

  // A frame that says 8 where the program says 6.
  Frame lie;
  lie.program = "counter";
  lie.inputs = {s.input("add", "1")};
  lie.inputs[0].stamp.now = s.now;
  lie.writes = {{cell_of("zz"), 0, std::make_shared<const Stored>("8")}};
  Bytes entry = encode_entry(lie);
  seal(entry, s.committer->link());
  BytesView views[] = {entry};
  ASSERT_TRUE(s.journal.append(views, s.journal.last()));
  verified = s.rerun();
  EXPECT_EQ(verified.different_at, 4u);
  EXPECT_NE(verified.difference, "");
}

TEST(kernel, truncated_frames_are_refused) {
  Frame f;
  f.seq = 9;
  f.program = "p";
  f.inputs = {Input{.program = "p", .verb = "v", .body = "b", .caller = {"t", "u", "r"}}};
  f.writes = {{"k", 3, std::make_shared<const Stored>("x")}, {"l", 0, nullptr}};
  f.notes = {"n"};
  Bytes body = encode_body(f);
  EXPECT_EQ(encode_body(*decode_frame(9, body)), body);
  for (size_t n = 0; n < body.size(); ++n)
    EXPECT_FALSE(decode_frame(9, BytesView(body).substr(0, n))) << n;
}

TEST(kernel, seq_at_finds_the_last_frame_at_or_before_a_time) {
  TestKernel s;
  (void)s.say(s.input("add", "1")).has_value();
  Time first = s.now;
  (void)s.say(s.input("add", "1")).has_value();
  ReadSnapshot snapshot = s.snapshot();
  EXPECT_EQ(*snapshot.seq_at(first - 1), 0u);
  EXPECT_EQ(*snapshot.seq_at(first), 1u);
  EXPECT_EQ(*snapshot.seq_at(s.now), 2u);
}

}  // namespace pawl

namespace pawl {

TEST(rows, a_sorted_batch_keeps_the_last_change_of_each_key) {
  RowBatch batch;
  batch.put("b", "1");
  batch.put_new("n", "x");
  batch.put("a", "1");
  batch.put("b", "2");
  batch.erase("n");
  batch.erase("old");
  batch.put_new("back", "1");
  batch.erase("back");
  batch.put("back", "2");
  std::string told;
  Sorter().in_order(batch).each(
      [&](BytesView k, BytesView v) { told += Bytes(k) + "=" + Bytes(v) + " "; },
      [&](BytesView k) { told += "-" + Bytes(k) + " "; });
  EXPECT_EQ(told, "a=1 b=2 back=2 -old ");
}

// Keys that begin alike, that are beginnings of each other, that hold zeros; few kinds and many.
TEST(rows, batches_of_random_keys_are_sorted) {
  Sorter sorter;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::string> kinds;
    for (uint64_t n = 1 + random() % (seed % 3 ? 5 : 200); n > 0; --n)
      kinds.push_back(std::string(random() % 30, static_cast<char>('a' + random() % 3)) +
                      std::to_string(random() % 50));
    RowBatch batch;
    std::map<std::string, std::string> rows;
    for (int i = 0; i < (seed % 10 ? 500 : 5000); ++i) {
      std::string key = kinds[random() % kinds.size()] +
                        (seed % 4 ? "" : "#" + ordered64(random())) +
                        std::string(random() % 3, '\0') +
                        std::string(random() % 40, static_cast<char>(random() % 2)) +
                        std::to_string(random() % 20);
      batch.put(key, std::to_string(i));
      rows[key] = std::to_string(i);
    }
    std::vector<std::pair<std::string, std::string>> told;
    sorter.in_order(batch).each([&](BytesView k, BytesView v) { told.emplace_back(k, v); },
                                [](BytesView) { ADD_FAILURE(); });
    EXPECT_EQ(told, (std::vector<std::pair<std::string, std::string>>(rows.begin(), rows.end())))
        << seed;
  }
}

}  // namespace pawl
