#include "faces/entities/search/stream_slots.h"

#include <fmt/format.h>

#include "base/limits.h"

namespace pawl::entities {

static std::unexpected<Error> too_many(size_t limit, std::string_view whose) {
  return fail(Error{Code::exhausted,
                    "TOO_MANY_SEARCHES",
                    fmt::format("{} large search results are being streamed{}: read them first, or "
                                "ask for fewer entities",
                                limit, whose),
                    {},
                    true});
}

Result<StreamSlots::SlotPtr> StreamSlots::take(const std::string& tenant) {
  std::lock_guard lock(table_->mutex);
  if (table_->all >= limits::kStreamedSearches) return too_many(limits::kStreamedSearches, "");
  size_t& own = table_->by_tenant[tenant];
  if (own >= limits::kTenantStreamedSearches)
    return too_many(limits::kTenantStreamedSearches, " to this tenant");
  ++own;
  ++table_->all;
  return std::make_unique<Slot>(table_, tenant);
}

StreamSlots::Slot::~Slot() {
  std::lock_guard lock(table_->mutex);
  --table_->all;
  auto own = table_->by_tenant.find(tenant_);
  if (--own->second == 0) table_->by_tenant.erase(own);
}

}  // namespace pawl::entities
