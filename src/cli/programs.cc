#include "cli/programs.h"

namespace pawl::cli {

Programs::Programs() {
  for (const auto& p : own_) all_.push_back(p.get());
}

Programs::~Programs() = default;

}  // namespace pawl::cli
