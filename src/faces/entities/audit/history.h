#pragma once
// What happened to one entity: what is committed, and for a reader inside a transaction what that
// has noted so far.

#include <memory>

#include "faces/entities/audit/audit.h"
#include "kernel/access.h"

namespace pawl::entities {

class History {
 public:
  History(ReadSnapshot snapshot, std::string tenant, std::string id)
      : snapshot_(std::move(snapshot)), tenant_(std::move(tenant)), id_(std::move(id)) {}
  void add_own(Trail trail) {
    own_.push_back(std::move(trail));
  }  // in the order in which they were noted

  // Newest first, until `visit` returns false. False when the entity never was.
  using Visit = std::function<bool(const Trail&)>;
  Result<bool> each(const Visit& visit) const;
  // Those that changed it, not after the time, newest first and at most kChanges; ENTITY_NOT_FOUND
  // when there was never one.
  static constexpr size_t kChanges = 1000;
  Result<std::vector<Trail>> changes(const std::optional<Time>& at) const;

 private:
  struct Reader;
  ReadSnapshot snapshot_;
  std::string tenant_, id_;
  std::vector<Trail> own_;
};

}  // namespace pawl::entities
