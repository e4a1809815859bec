#pragma once
// The history of one entity: the committed trails, and, for a reader inside a transaction, the
// trails that this transaction has noted so far.

#include <memory>

#include "faces/entities/audit/audit.h"
#include "kernel/access.h"

namespace pawl::entities {

class History {
 public:
  History(ReadSnapshot snapshot, std::string tenant, std::string id)
      : snapshot_(std::move(snapshot)), tenant_(std::move(tenant)), id_(std::move(id)) {}
  // Adds a trail of the reader's own transaction, oldest first.
  void add_own(Trail trail) { own_.push_back(std::move(trail)); }

  // Visits the trails, newest first, until `visit` returns false. Returns false when the entity
  // never existed.
  using Visit = std::function<bool(const Trail&)>;
  Result<bool> each(const Visit& visit) const;
  // Two updates of the entity by one transaction are one change: that of the newer trail.
  static bool same_change(const Trail& older, const Trail& newer);
  // The trails that changed the entity until `at`, newest first, at most kMaxChanges. Fails with
  // ENTITY_NOT_FOUND when nothing ever changed it.
  static constexpr size_t kMaxChanges = 1000;
  Result<std::vector<Trail>> changes(const std::optional<Time>& at) const;

 private:
  struct Reader;
  ReadSnapshot snapshot_;
  std::string tenant_, id_;
  std::vector<Trail> own_;
};

}  // namespace pawl::entities
