#include "cli/programs.h"

#include "faces/processes/program.h"

namespace pawl::cli {

Programs::Programs() {
  own_.push_back(std::make_unique<processes::Program>());
  for (const auto& p : own_) all_.push_back(p.get());
}

Programs::~Programs() = default;

}  // namespace pawl::cli
