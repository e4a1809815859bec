#pragma once
// StreamSlots counts the search results that are being streamed, over HTTP and gRPC together, and
// refuses more than limits::kStreamedSearches of them, or limits::kTenantStreamedSearches of one
// tenant.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"

namespace pawl::entities {

class StreamSlots {
 public:
  // Held by a stream while it lives. A slot may outlive the StreamSlots that it came from.
  class Slot;
  using SlotPtr = std::unique_ptr<Slot>;
  // Fails with `exhausted`; the message names the limit.
  Result<SlotPtr> take(const std::string& tenant);

 private:
  struct Table {
    std::mutex mutex;
    size_t all = 0;
    std::map<std::string, size_t> by_tenant;  // without tenants that have no stream
  };
  // Shared with the slots: a client that reads slowly may hold one when the face ends.
  std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

class StreamSlots::Slot {
 public:
  Slot(std::shared_ptr<Table> table, std::string tenant)
      : table_(std::move(table)), tenant_(std::move(tenant)) {}
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  const std::shared_ptr<Table> table_;
  const std::string tenant_;
};

}  // namespace pawl::entities
