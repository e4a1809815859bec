#pragma once
// A journal in a test folder, whose files a test reads and replaces as one image.

#include <gtest/gtest.h>

#include <fstream>

#include "storage/file/file_journal.h"
#include "storage/test_folder.h"

namespace pawl {

using Image = std::map<std::string, Bytes>;  // the files of a folder by name

inline Image read_image(const std::string& folder) {
  Image image;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path(), std::ios::binary);
    image[file.path().filename().string()] = Bytes(std::istreambuf_iterator<char>(in), {});
  }
  image.erase("LOCK");
  return image;
}

// Overwrites an existing file in place, because some file systems flush a file that is truncated.
inline void write_file(const std::string& path, const Bytes& bytes) {
  auto mode = std::filesystem::exists(path) ? std::ios::in | std::ios::out : std::ios::out;
  std::fstream(path, mode | std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline void write_image(const std::string& folder, const Image& image) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : image)
    write_file(folder + "/" + name, bytes);
}

inline Bytes entry(Seq n) {
  return std::to_string(n) + ":" + Bytes(20 + n * 7 % 50, static_cast<char>('a' + n % 26));
}

inline Result<void> append(Journal& journal, size_t count) {
  std::vector<Bytes> entries;
  for (size_t i = 1; i <= count; ++i)
    entries.push_back(entry(journal.last() + i));
  std::vector<BytesView> views(entries.begin(), entries.end());
  return journal.append(views, journal.last());
}

// Reads until the end or an error, and checks every entry that is read.
struct Reading {
  Seq last = 0;
  std::optional<Error> error;
};
inline Reading read_all(const Journal& journal) {
  Reading reading{journal.first() - 1, {}};
  auto done = journal.read(journal.first(), [&](Seq seq, BytesView bytes) -> Result<bool> {
    EXPECT_EQ(seq, reading.last + 1);
    EXPECT_EQ(bytes, entry(seq));
    reading.last = seq;
    return true;
  });
  if (!done) reading.error = done.error();
  return reading;
}

class FileJournalFault : public testing::Test {
 protected:
  FileJournalOptions options(bool compress = false) {
    FileJournalOptions options;
    options.folder = folder.sub("journal");
    options.segment_bytes = options.first_segment_bytes = 4096;
    options.sync = Sync::none;
    options.compress = compress;
    return options;
  }
  std::unique_ptr<FileJournal> open(bool compress = false) {
    auto journal = FileJournal::open(options(compress));
    if (!journal) ADD_FAILURE() << journal.error().message;
    return journal ? *std::move(journal) : nullptr;
  }
  Error open_error() {
    auto journal = FileJournal::open(options());
    return journal ? Error{Code::internal, "OPENED", "the journal opened"} : journal.error();
  }
  // Appends groups of 1 to 4 entries to three segments and returns the last seq.
  Seq fill(bool compress = false) {
    auto journal = open(compress);
    for (size_t i = 0; std::filesystem::exists(path()) && journal->bytes() < 3 * 4096; ++i) {
      EXPECT_TRUE(append(*journal, 1 + i % 4));
      if (compress && segments() >= 3) break;
    }
    EXPECT_TRUE(append(*journal, 3));
    journal->finish_background();
    return journal->last();
  }
  size_t segments() {
    std::set<std::string> found;  // a segment that is being compressed has two files
    for (const std::string& name : names("seg"))
      found.insert(name.substr(0, 20));
    return found.size();
  }
  std::vector<std::string> names(std::string_view end) {
    std::vector<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      std::string name = file.path().filename().string();
      if (name.ends_with(end)) found.push_back(name);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string path() { return folder.sub("journal"); }

  TestFolder folder;
};

}  // namespace pawl
