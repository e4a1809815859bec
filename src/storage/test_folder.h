#pragma once
// A temporary folder for one test, which removes itself.

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace pawl {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "pawl_storage_XXXXXX").string();
    path_ = ::mkdtemp(name.data()) ? name : std::string();
  }
  TestFolder(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string sub(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace pawl
