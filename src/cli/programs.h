#pragma once
// Every program that this binary has, constructed once: the server, verify and checkpoint use the
// same list.

#include <memory>
#include <span>
#include <vector>

#include "kernel/program.h"

namespace pawl::cli {

class Programs {
 public:
  Programs();
  ~Programs();
  std::span<const Program* const> all() const { return all_; }
  std::vector<const Program*> list() const { return all_; }

 private:
  std::vector<std::unique_ptr<Program>> own_;
  std::vector<const Program*> all_;
};

}  // namespace pawl::cli
