#pragma once
// Files of examples/ that are compiled into the binary; example_files.cc is written by CMake.

#include <span>
#include <string_view>

namespace pawl::cli {

struct ExampleFile {
  std::string_view name, text;
};
std::span<const ExampleFile> example_files();

}  // namespace pawl::cli
