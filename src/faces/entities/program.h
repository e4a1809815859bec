#pragma once
// The program of the entities face: what each verb does to cells. Verbs that write entities run the
// machine; the others are short. All are rows of one table.

#include "kernel/program.h"

namespace pawl::entities {

struct ProgramOptions {
  int max_state_visits = 10;
};

class Program final : public pawl::Program {
 public:
  explicit Program(ProgramOptions options = {}) : options_(options) {}
  std::string_view name() const override;
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  uint32_t view_version() const override { return 2; }
  bool keeps_history(BytesView key) const override;
  // Workflows are outside of transactions: one goes on by those that it began with. So are models
  // that have only grown; what is saved is found by the indexes that there are now.
  bool conflicts_after_begin(BytesView key) const override;
  bool accepts_stale_read(Turn& turn, BytesView key, const Cell& read,
                          const Cell& now) const override;

 private:
  Result<Bytes> write(Turn& turn, const Input& input) const;
  Result<Bytes> receipt(Turn& turn, const Input& input) const;
  Result<Bytes> timer(Turn& turn, const Input& input) const;
  ProgramOptions options_;
};

// View rows, as the program keeps them and searches read them.
// Trails of a frame that wrote the entity are filed under its seq, which the versions of the cell
// name: rows that only grow at the end cost least. Those of other frames are filed under the
// entity.
Bytes trail_row_prefix(Seq seq, std::string_view entity);
Bytes loose_trail_row_prefix(std::string_view tenant,
                             std::string_view entity);  // then the seq, 8 bytes
Bytes removed_row_prefix(std::string_view tenant, std::string_view model,
                         int32_t version);  // then the id
Bytes index_row_prefix(std::string_view tenant, std::string_view model, int32_t version,
                       std::string_view path);

}  // namespace pawl::entities
