#pragma once
// Files of examples/ that are compiled into the binary. CMake writes the functions.

#include <span>
#include <string_view>

namespace pawl::cli {

struct ExampleFile {
  std::string_view name, text;  // the name is a path below the example's folder
};
std::span<const ExampleFile> example_files();  // examples/loan, for `pawl dev`
std::span<const ExampleFile> starter_files();  // examples/worlds/starter, for `pawl world init`

}  // namespace pawl::cli
