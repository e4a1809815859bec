#pragma once
// Files of the source tree that are compiled into the binary. CMake writes the functions.

#include <span>
#include <string_view>

namespace pawl::cli {

struct ExampleFile {
  std::string_view name, text;  // the name is a path below the example's folder
};
std::span<const ExampleFile> example_files();  // examples/loan, for `pawl dev`
std::span<const ExampleFile> starter_files();  // examples/worlds/starter, for `pawl world init`
std::span<const ExampleFile> schema_files();   // docs/schemas, for the OpenAPI document

}  // namespace pawl::cli
