#pragma once
// The lifecycle program keeps types, instances and rules in cells and runs the verbs that change
// them. Cells: "t" a type, "i" an instance, "r" a rule, "c" how often a rule has fired for an
// instance.

#include "faces/lifecycle/run/command.h"
#include "kernel/program.h"

namespace pawl::lifecycle {

class Program final : public pawl::Program {
 public:
  std::string_view name() const override { return "lifecycle"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  uint32_t view_version() const override { return 3; }
  bool keeps_history(BytesView key) const override;
};

}  // namespace pawl::lifecycle
