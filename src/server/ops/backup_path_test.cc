#include "server/ops/backup_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace pawl::server {
namespace {

namespace fs = std::filesystem;

struct backup_paths : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("pawl-backup-path-" + std::to_string(getpid()));
  std::string root = folder / "root";
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder / "outside");
  }
  void TearDown() override { fs::remove_all(folder); }
};

TEST_F(backup_paths, a_name_is_below_the_root_which_is_made_for_the_owner_only) {
  auto path = backup_path(root, "monday");
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, (fs::canonical(root) / "monday").string());
  struct stat info {};
  ASSERT_EQ(stat(root.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(backup_paths, an_absolute_path_must_be_inside) {
  ASSERT_TRUE(backup_path(root, "a"));
  EXPECT_TRUE(backup_path(root, root + "/b"));
  EXPECT_FALSE(backup_path(root, (folder / "outside/b").string()));
  EXPECT_FALSE(backup_path(root, root + "side/b"));
  EXPECT_FALSE(backup_path(root, root));
  EXPECT_FALSE(backup_path(root, "/"));
}

TEST_F(backup_paths, nothing_leads_out) {
  ASSERT_TRUE(backup_path(root, "a"));
  fs::create_directories(root + "/week");
  fs::create_directory_symlink(folder / "outside", root + "/link");
  fs::create_symlink(folder / "outside" / "new", root + "/dangling");
  EXPECT_TRUE(backup_path(root, "week/monday"));
  for (std::string bad : {"", ".", "..", "../x", "week/../../x", "week/", "link/x", "dangling",
                          "missing/x", "link", "week"})
    EXPECT_FALSE(backup_path(root, bad)) << bad;
  EXPECT_FALSE(backup_path(root, std::string_view("a\0b", 3)));
}

TEST_F(backup_paths, the_root_itself_may_be_a_link) {
  fs::create_directory_symlink(folder / "outside", root);
  auto path = backup_path(root, "x");
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, (fs::canonical(folder / "outside") / "x").string());
}

}  // namespace
}  // namespace pawl::server
