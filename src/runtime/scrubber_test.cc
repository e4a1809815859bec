#include "runtime/scrubber.h"

#include <gtest/gtest.h>

#include <fstream>

#include "storage/file/file_journal.h"
#include "storage/test_folder.h"

namespace pawl {
namespace {

std::unique_ptr<FileJournal> filled(const std::string& folder) {
  FileJournalOptions options;
  options.folder = folder;
  options.segment_bytes = options.first_segment_bytes = 1 << 16;
  options.sync = Sync::none;
  options.compress = false;
  auto journal = FileJournal::open(options).value();
  Bytes entry(1000, 'x');
  BytesView view = entry;
  for (Seq seq = 0; seq < 400; ++seq)
    EXPECT_TRUE(journal->append({&view, 1}, seq));
  journal->finish_background();
  return journal;
}

void flip(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(at);
  file.put('\x55');
}

TEST(scrubber, a_whole_journal_has_no_findings) {
  TestFolder folder;
  auto journal = filled(folder.sub("journal"));
  BackgroundThreads background;
  Scrubber scrubber(*journal, background, {});
  scrubber.run_once();
  EXPECT_GE(scrubber.status().passes, 1u);
  EXPECT_GE(scrubber.status().bytes, 400'000u);
  EXPECT_TRUE(scrubber.status().findings.empty());
}

TEST(scrubber, each_damaged_segment_is_found_and_a_repair_is_noticed) {
  TestFolder folder;
  auto journal = filled(folder.sub("journal"));
  const std::string first = folder.sub("journal/") + segment_name(1) + kPlainSuffix;
  std::string later;
  for (Seq seq = 130; later.empty(); ++seq) {
    std::string path = folder.sub("journal/") + segment_name(seq) + kPlainSuffix;
    if (std::filesystem::exists(path)) later = path;
  }
  flip(first, 20'000);
  flip(later, 30'000);
  BackgroundThreads background;
  Scrubber scrubber(*journal, background, {});
  scrubber.run_once();
  ScrubStatus status = scrubber.status();
  ASSERT_EQ(status.findings.size(), 2u);
  EXPECT_NE(status.findings[0].find(first), std::string::npos) << status.findings[0];
  EXPECT_NE(status.findings[1].find(later), std::string::npos) << status.findings[1];
  std::fstream file(first, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20'000);
  file.put('x');
  file.close();
  scrubber.run_once();
  EXPECT_EQ(scrubber.status().findings.size(), 1u);
}

}  // namespace
}  // namespace pawl
