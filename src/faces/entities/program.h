#pragma once
// The program of the entities face: the verb `write` runs the machine, the short verbs are
// functions in one table.

#include "faces/entities/flow/options.h"
#include "kernel/program.h"

namespace pawl::entities {

class Program final : public pawl::Program {
 public:
  explicit Program(ProgramOptions options = {}) : options_(options) {}
  std::string_view name() const override;
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  uint32_t view_version() const override { return 2; }
  bool keeps_history(BytesView key) const override;
  // A transaction continues with the workflows that it read, and with a model that has only grown
  // since. Its entities are indexed by the current indexes of the model.
  bool conflicts_after_begin(BytesView key) const override;
  bool accepts_stale_read(Turn& turn, BytesView key, const Cell& read,
                          const Cell& current) const override;

 private:
  Result<Bytes> write(Turn& turn, const Input& input) const;
  Result<Bytes> receipt(Turn& turn, const Input& input) const;
  Result<Bytes> timer(Turn& turn, const Input& input) const;
  ProgramOptions options_;
};

// Keys of the view rows.
// The trail of a frame that wrote the entity has the frame's seq first, which is also the version
// of the entity's cell: rows that are appended at the end are the cheapest. A detached trail, of a
// frame that did not write the entity, has the entity first and then the seq in 8 bytes.
Bytes trail_row_prefix(Seq seq, std::string_view entity);
Bytes detached_trail_row_prefix(std::string_view tenant, std::string_view entity);
// The id of the removed entity follows.
Bytes removed_row_prefix(std::string_view tenant, std::string_view model, int32_t version);
// The value of the index entry and the id of the entity follow.
Bytes index_row_prefix(std::string_view tenant, std::string_view model, int32_t version,
                       std::string_view path);

}  // namespace pawl::entities
