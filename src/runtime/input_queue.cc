#include "runtime/input_queue.h"

namespace pawl {

// Bounds of a slice. A slice of short turns takes about a millisecond.
static constexpr size_t kSliceInputs = 128;
static constexpr size_t kSliceBytes = 1024 * 1024;
// Empty slices that are kept for their memory.
static constexpr size_t kSpareSlices = 4;

bool InputQueue::full(std::string_view tenant) const {
  if (max_of_tenant_ == 0 || size_ < max_of_tenant_) return false;
  auto it = by_tenant_.find(tenant);
  return it != by_tenant_.end() && it->second->inputs >= max_of_tenant_;
}

InputQueue::Lane& InputQueue::lane(const std::string& tenant) {
  // One tenant is the common case.
  if (!lanes_.empty() && lanes_.back()->tenant == tenant) return *lanes_.back();
  if (auto it = by_tenant_.find(tenant); it != by_tenant_.end()) return *it->second;
  auto fresh = idle_ ? std::move(idle_) : std::make_unique<Lane>();
  fresh->tenant = tenant;
  lanes_.push_back(std::move(fresh));
  Lane& added = *lanes_.back();
  by_tenant_.emplace(added.tenant, &added);
  return added;
}

void InputQueue::append(Lane& lane, QueuedInput item) {
  if (lane.slices.empty() || lane.slices.back().items.size() >= kSliceInputs ||
      lane.slices.back().bytes >= kSliceBytes) {
    lane.slices.emplace_back();
    if (!spare_.empty()) {
      lane.slices.back() = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  Slice& slice = lane.slices.back();
  slice.bytes += item.input.body.size();
  slice.items.push_back(std::move(item));
  ++lane.inputs;
}

void InputQueue::push(QueuedInput item) {
  Lane& to = lane(item.input.caller.tenant);
  append(to, std::move(item));
  waiting_.store(++size_, std::memory_order_relaxed);
}

void InputQueue::take(Slice& out) {
  CHECK(!lanes_.empty());
  out.items.clear();
  out.next = out.bytes = 0;
  if (spare_.size() < kSpareSlices) spare_.push_back(std::move(out));
  std::unique_ptr<Lane> served = std::move(lanes_.front());
  lanes_.pop_front();
  out = std::move(served->slices.front());
  served->slices.pop_front();
  served->inputs -= out.left();
  size_ -= out.left();
  waiting_.store(size_, std::memory_order_relaxed);
  if (!served->slices.empty()) return lanes_.push_back(std::move(served));
  by_tenant_.erase(served->tenant);
  idle_ = std::move(served);
}

void InputQueue::put_back(Slice& slice) {
  if (slice.left() == 0) return;
  // The items that ran are moved from; the tenant is that of the first one left.
  Lane& to = lane(slice.items[slice.next].input.caller.tenant);
  to.inputs += slice.left();
  size_ += slice.left();
  waiting_.store(size_, std::memory_order_relaxed);
  to.slices.push_front(std::move(slice));
  slice = {};
}

}  // namespace pawl
