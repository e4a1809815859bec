// The promises of the Archive interface.

#include "storage/archive.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "storage/test_folder.h"

namespace pawl {
namespace {

class ArchivePromise : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_folder_archive(folder.sub("archive"));
    ASSERT_TRUE(opened) << opened.error().message;
    archive = *std::move(opened);
  }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder.sub(name);
    std::ofstream(path) << text;
    return path;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  TestFolder folder;
  std::unique_ptr<Archive> archive;
};

TEST_F(ArchivePromise, a_file_comes_back_as_it_was) {
  const std::string large(3 << 20, 'x');
  ASSERT_TRUE(archive->put("0001/checkpoint-7", file("a", large)));
  ASSERT_TRUE(archive->get("0001/checkpoint-7", folder.sub("b")));
  EXPECT_EQ(text_of(folder.sub("b")), large);
  EXPECT_EQ(archive->get("0001/checkpoint-8", folder.sub("c")).error().code, Code::not_found);
}

TEST_F(ArchivePromise, a_name_is_written_once) {
  ASSERT_TRUE(archive->put("x", file("a", "first")));
  EXPECT_EQ(archive->put("x", file("b", "second")).error().reason, "ARCHIVED_ALREADY");
  ASSERT_TRUE(archive->get("x", folder.sub("c")));
  EXPECT_EQ(text_of(folder.sub("c")), "first");
}

TEST_F(ArchivePromise, of_many_writers_of_a_name_one_succeeds) {
  std::atomic<int> succeeded = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&, i] {
      if (archive->put("one", file(std::to_string(i), std::to_string(i)))) ++succeeded;
    });
  for (std::thread& writer : writers)
    writer.join();
  EXPECT_EQ(succeeded, 1);
  EXPECT_EQ(archive->list("").value(), std::vector<std::string>{"one"});
}

TEST_F(ArchivePromise, names_are_listed_in_order_and_removed) {
  for (const char* name : {"0002/b", "0001/a", "0002/a"})
    ASSERT_TRUE(archive->put(name, file("f", "x")));
  EXPECT_EQ(archive->list("0002/").value(), (std::vector<std::string>{"0002/a", "0002/b"}));
  ASSERT_TRUE(archive->remove("0002/a"));
  ASSERT_TRUE(archive->remove("0002/a"));
  EXPECT_EQ(archive->list("").value(), (std::vector<std::string>{"0001/a", "0002/b"}));
}

TEST_F(ArchivePromise, names_that_leave_the_archive_are_refused) {
  const std::string path = file("f", "x");
  for (const char* name : {"", "/etc/x", "../x", "a/../b", "a//b", "a/", ".hidden", "a b", "a\nb"})
    EXPECT_EQ(archive->put(name, path).error().reason, "BAD_ARCHIVE_NAME") << name;
}

}  // namespace
}  // namespace pawl
