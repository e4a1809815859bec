// The promises of the Journal interface, tested for every backend.

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "storage/file/file_journal.h"
#include "storage/memory/memory.h"
#include "storage/open.h"
#include "storage/postgres/postgres_journal.h"
#include "storage/postgres/postgres_leases.h"
#include "storage/postgres/test_postgres.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

struct Backend {
  const char* name;
  std::unique_ptr<Journal> (*open)(const std::string& folder);
  bool durable;  // a reopened journal has its entries
};

std::unique_ptr<Journal> open_file_journal(const std::string& folder, bool compress) {
  FileJournalOptions options;
  options.folder = folder;
  options.segment_bytes = 16 * 1024;
  options.first_segment_bytes = 4096;
  options.sync = Sync::none;
  options.compress = compress;
  auto journal = FileJournal::open(options);
  if (!journal) ADD_FAILURE() << journal.error().message;
  return journal ? *std::move(journal) : nullptr;
}

// The store of a test is named after its folder, so that a journal that is opened again finds it.
std::unique_ptr<Journal> open_postgres_journal(const std::string& folder) {
  static std::map<std::string, std::string> stores;
  TestPostgres* server = TestPostgres::running();
  if (!server) return nullptr;
  std::string& url = stores[folder];
  if (url.empty()) url = server->new_store();
  auto leases = PostgresLeases::open(url, 1);
  if (!leases || !(*leases)->join("a", folder, "", std::chrono::seconds(60))) return nullptr;
  auto claim = (*leases)->claim(0);
  if (!claim || !*claim) return nullptr;
  auto journal = PostgresJournal::open({.url = url, .shard = 0, .claim = **claim});
  if (!journal) ADD_FAILURE() << journal.error().message;
  return journal ? *std::move(journal) : nullptr;
}

const Backend kBackends[] = {
    {"memory",
     [](const std::string&) -> std::unique_ptr<Journal> {
       return std::make_unique<MemoryJournal>();
     },
     false},
    {"file", [](const std::string& folder) { return open_file_journal(folder, false); }, true},
    {"compressed_file", [](const std::string& folder) { return open_file_journal(folder, true); },
     true},
    {"postgres", open_postgres_journal, true},
};

class JournalPromise : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    journal = GetParam().open(folder.path());
    if (!journal && std::string_view(GetParam().name) == "postgres" && !TestPostgres::running())
      GTEST_SKIP() << "PostgreSQL 15 is not installed: its journal is not tested";
    ASSERT_TRUE(journal);
  }
  void reopen() {
    if (!GetParam().durable) return;
    journal.reset();
    journal = GetParam().open(folder.path());
  }
  // The content of entry n follows from n.
  static Bytes entry(Seq n) {
    return "entry " + std::to_string(n) + Bytes(n % 97, static_cast<char>('a' + n % 26));
  }
  void add(size_t count, size_t group) {
    for (Seq at = journal->last(); count > 0;) {
      std::vector<Bytes> entries;
      for (size_t i = 0; i < group && count > 0; ++i, --count)
        entries.push_back(entry(at + 1 + i));
      std::vector<BytesView> views(entries.begin(), entries.end());
      ASSERT_TRUE(journal->append(views, at));
      at += views.size();
      ASSERT_EQ(journal->last(), at);
    }
  }
  Seq expect_all(Seq from) {
    Seq next = from;
    auto done = journal->read(from, [&](Seq seq, BytesView bytes) -> Result<bool> {
      EXPECT_EQ(seq, next);
      EXPECT_EQ(bytes, entry(seq));
      ++next;
      return true;
    });
    EXPECT_TRUE(done) << done.error().message;
    return next - 1;
  }

  TestFolder folder;
  std::unique_ptr<Journal> journal;
};

TEST_P(JournalPromise, a_new_journal_begins_at_seq_one) {
  EXPECT_EQ(journal->last(), 0u);
  EXPECT_EQ(journal->first(), 1u);
  EXPECT_EQ(expect_all(1), 0u);
  add(1, 1);
  EXPECT_EQ(journal->first(), 1u);
  EXPECT_EQ(expect_all(1), 1u);
}

TEST_P(JournalPromise, entries_are_read_in_order_from_any_seq) {
  add(1000, 7);
  for (Seq from : {1u, 2u, 7u, 8u, 500u, 999u, 1000u, 1001u})
    EXPECT_EQ(expect_all(from), 1000u);
  for (Seq seq = 1; seq <= 1000; seq += 13)
    EXPECT_EQ(journal->get(seq).value(), entry(seq));
}

TEST_P(JournalPromise, entry_zero_and_entries_after_the_last_are_not_found) {
  add(3, 1);
  EXPECT_EQ(journal->get(0).error().code, Code::not_found);
  EXPECT_EQ(journal->get(4).error().code, Code::not_found);
  EXPECT_EQ(journal->read(0, [](Seq, BytesView) -> Result<bool> { return true; }).error().reason,
            "TRIMMED");
}

TEST_P(JournalPromise, a_stale_writer_is_fenced_and_changes_nothing) {
  add(3, 1);
  BytesView late = "late";
  for (Seq expected : {0u, 2u, 4u}) {
    auto refused = journal->append({&late, 1}, expected);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::conflict);
    EXPECT_EQ(refused.error().reason, "FENCED");
  }
  EXPECT_EQ(expect_all(1), 3u);
  add(1, 1);
}

TEST_P(JournalPromise, an_empty_append_changes_nothing) {
  ASSERT_TRUE(journal->append({}, 0));
  EXPECT_EQ(journal->last(), 0u);
}

TEST_P(JournalPromise, empty_and_large_entries_are_kept) {
  Bytes large(300 * 1024, 'x');
  std::vector<BytesView> entries{"", large, "", "small"};
  ASSERT_TRUE(journal->append(entries, 0));
  ASSERT_TRUE(journal->append(entries, 4));
  ASSERT_TRUE(journal->append(std::span(entries).first(1), 8));
  for (Seq seq = 1; seq <= 8; ++seq)
    EXPECT_EQ(journal->get(seq).value(), entries[(seq - 1) % 4]);
  EXPECT_EQ(journal->get(9).value(), "");
}

TEST_P(JournalPromise, a_visitor_can_stop_or_fail) {
  add(100, 10);
  int seen = 0;
  ASSERT_TRUE(journal->read(5, [&](Seq, BytesView) -> Result<bool> { return ++seen < 3; }));
  EXPECT_EQ(seen, 3);
  auto failed = journal->read(
      1, [&](Seq, BytesView) -> Result<bool> { return fail(Code::denied, "ENOUGH", ""); });
  EXPECT_EQ(failed.error().reason, "ENOUGH");
}

TEST_P(JournalPromise, a_visitor_may_append) {
  add(1, 1);
  Seq seen = 0;
  ASSERT_TRUE(journal->read(1, [&](Seq seq, BytesView bytes) -> Result<bool> {
    EXPECT_EQ(bytes, entry(seq));
    seen = seq;
    if (seq < 200) add(1, 1);
    return true;
  }));
  EXPECT_EQ(seen, 200u);
}

TEST_P(JournalPromise, trim_removes_no_entry_that_must_stay) {
  add(2000, 5);
  ASSERT_TRUE(journal->trim(1200));
  Seq first = journal->first();
  EXPECT_GT(first, 1u);
  EXPECT_LE(first, 1200u);
  EXPECT_EQ(expect_all(first), 2000u);
  EXPECT_EQ(journal->get(first - 1).error().reason, "TRIMMED");
  ASSERT_TRUE(journal->trim(1));
  EXPECT_EQ(journal->first(), first);
  ASSERT_TRUE(journal->trim(1'000'000));
  EXPECT_EQ(journal->last(), 2000u);
  EXPECT_LE(journal->first(), 2001u);
  add(10, 1);
  EXPECT_EQ(expect_all(journal->first()), 2010u);
}

TEST_P(JournalPromise, a_reopened_journal_has_the_same_entries) {
  for (Seq last = 0; last < 2000; last += 100) {
    EXPECT_EQ(journal->last(), last);
    EXPECT_EQ(expect_all(1), last);
    add(100, 1 + last % 9);
    if (last % 300 == 0) reopen();
  }
  reopen();
  ASSERT_TRUE(journal->trim(1000));
  Seq first = journal->first();
  reopen();
  EXPECT_EQ(journal->first(), first);
  EXPECT_EQ(expect_all(first), 2000u);
  for (Seq seq = 2000; seq >= first; seq -= 17)
    EXPECT_EQ(journal->get(seq).value(), entry(seq));
}

TEST_P(JournalPromise, concurrent_readers_see_complete_entries_in_order) {
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&, i] {
      while (!done) {
        Seq first = journal->first();
        Seq last = journal->last();
        Seq next = i == 0 ? first : std::max(first, last / 2);
        auto read = journal->read(next, [&](Seq seq, BytesView bytes) -> Result<bool> {
          EXPECT_EQ(seq, next++);
          EXPECT_EQ(bytes, entry(seq));
          return true;
        });
        if (read) {
          EXPECT_GT(next, last);
        } else {
          EXPECT_EQ(read.error().reason, "TRIMMED") << read.error().message;
        }
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    add(10, 1 + i % 10);
    if (i % 50 == 49) {
      EXPECT_TRUE(journal->trim(journal->last() / 2));
    }
  }
  done = true;
  for (auto& reader : readers)
    reader.join();
}

TEST_P(JournalPromise, bytes_is_at_least_the_size_of_the_entries) {
  add(1000, 10);
  EXPECT_GT(journal->bytes(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(every, JournalPromise, testing::ValuesIn(kBackends),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(open_journal, an_unknown_backend_is_refused_with_the_known_ones) {
  auto opened = open_journal({.backend = "tape"});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("file, memory"), std::string::npos);
}

TEST(memory_journal, an_injected_fault_fails_appends_until_reopen) {
  MemoryJournal journal;
  BytesView entry = "x";
  ASSERT_TRUE(journal.append({&entry, 1}, 0));
  journal.fail_next_append(AppendFault::nothing_written);
  EXPECT_EQ(journal.append({&entry, 1}, 1).error().reason, "JOURNAL_WRITE");
  EXPECT_EQ(journal.append({&entry, 1}, 1).error().reason, "JOURNAL_WRITE");
  EXPECT_EQ(journal.last(), 1u);
  journal.reopen();
  journal.fail_next_append(AppendFault::everything_written);
  EXPECT_FALSE(journal.append({&entry, 1}, 1));
  EXPECT_EQ(journal.last(), 2u);
  journal.reopen();
  journal.drop_after(1);
  ASSERT_TRUE(journal.append({&entry, 1}, 1));
}

}  // namespace
}  // namespace pawl
