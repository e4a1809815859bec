#include "runtime/input_queue.h"

#include <algorithm>

namespace pawl {

// Bounds of a slice. A slice of short turns takes about a millisecond.
static constexpr size_t kSliceInputs = 128;
static constexpr size_t kSliceBytes = 1024 * 1024;
// Empty slices that are kept for their memory.
static constexpr size_t kSpareSlices = 4;
// Lanes are paced for this long after two tenants were active. A tenant that sends a request every
// few seconds is protected as well.
static constexpr int64_t kPacedMs = 10'000;
// The smallest window. A few inputs share the cost of one append.
static constexpr size_t kMinWindow = 8;
// A slice that takes longer is followed by a rest of kRests times its length.
static constexpr int64_t kLongSliceUs = 2'000;
static constexpr int64_t kRests = 3;
// Transport work is done by several processors, so its rest is shorter on larger machines: this
// much divided by their number.
static constexpr int64_t kTransportRests = 4;
// The longest rest. A turn has a budget of about a second.
static constexpr int64_t kMaxRestMs = 10'000;
// Idle lanes that are remembered, so that a lane cannot end its rest by becoming empty.
static constexpr size_t kIdleLanes = 1024;

struct InputQueue::Lane {
  std::string tenant;
  std::deque<Slice> slices;
  size_t inputs = 0;
  size_t running = 0;  // inputs taken and not finished
  int64_t rests_until_ms = 0;
  int64_t transport_us = 0;  // since the last rest that it caused
  bool driven = false;       // a slice was taken and not put back
};

InputQueue::InputQueue(size_t max_of_tenant, unsigned processors)
    : max_of_tenant_(max_of_tenant), processors_(std::max(processors, 1u)) {}

InputQueue::~InputQueue() = default;

bool InputQueue::full(std::string_view tenant) const {
  if (max_of_tenant_ == 0 || size_ < max_of_tenant_) return false;
  auto it = lanes_.find(std::string(tenant));
  return it != lanes_.end() && it->second->inputs >= max_of_tenant_;
}

InputQueue::Lane& InputQueue::lane(const std::string& tenant) {
  std::unique_ptr<Lane>& found = lanes_[tenant];
  if (!found) {
    found = std::make_unique<Lane>();
    found->tenant = tenant;
  }
  return *found;
}

void InputQueue::forget_idle_lanes(int64_t now_ms) {
  std::erase_if(lanes_, [&](const auto& entry) {
    const Lane& lane = *entry.second;
    return lane.inputs == 0 && lane.running == 0 && lane.rests_until_ms <= now_ms && !lane.driven;
  });
  newest_ = nullptr;
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
  if (lane.inputs++ == 0) turn_.push_back(&lane);
}

void InputQueue::count() { waiting_.store(size_, std::memory_order_relaxed); }

void InputQueue::push(QueuedInput item, int64_t now_ms) {
  const std::string& tenant = item.input.caller.tenant;
  // One tenant is the common case.
  if (!newest_ || newest_->tenant != tenant) {
    if (lanes_.size() > kIdleLanes) forget_idle_lanes(now_ms);
    // Inputs of the server itself have no tenant.
    if (newest_ && !newest_->tenant.empty() && !tenant.empty()) paced_until_ms_ = now_ms + kPacedMs;
    Lane& to = lane(tenant);
    if (!tenant.empty()) newest_ = &to;
    append(to, std::move(item));
  } else {
    append(*newest_, std::move(item));
  }
  ++size_;
  count();
}

bool InputQueue::may_run(const Lane& lane, bool paced, int64_t now_ms) const {
  if (!paced) return true;
  return lane.running < std::max(window_, kMinWindow) && lane.rests_until_ms <= now_ms;
}

bool InputQueue::serves(int64_t now_ms) const {
  const bool paced = this->paced(now_ms);
  if (!paced) return !turn_.empty();
  for (const Lane* lane : turn_)
    if (may_run(*lane, paced, now_ms)) return true;
  return false;
}

void InputQueue::take(Slice& out, int64_t now_ms) {
  const bool paced = this->paced(now_ms);
  out.items.clear();
  out.next = out.bytes = 0;
  if (spare_.size() < kSpareSlices) spare_.push_back(std::move(out));
  for (size_t tried = 0; !may_run(*turn_.front(), paced, now_ms); ++tried) {
    CHECK(tried < turn_.size());
    turn_.push_back(turn_.front());
    turn_.pop_front();
  }
  Lane& served = *turn_.front();
  turn_.pop_front();
  out = std::move(served.slices.front());
  served.slices.pop_front();
  const size_t inputs = out.left();
  const size_t room = paced ? std::max(window_, kMinWindow) - served.running : inputs;
  out.lane = &served;
  out.paced = paced;
  served.driven = true;
  out.end = out.next + std::min(inputs, room);
  served.running += inputs;
  served.inputs -= inputs;
  size_ -= inputs;
  count();
  if (served.inputs > 0) turn_.push_back(&served);
}

void InputQueue::put_back(Slice& slice) {
  if (!slice.lane) return;
  Lane& to = *std::exchange(slice.lane, nullptr);
  to.driven = false;
  const size_t inputs = slice.left();
  if (inputs == 0) return;
  if (to.inputs == 0) turn_.push_back(&to);
  to.running -= inputs;
  to.inputs += inputs;
  size_ += inputs;
  count();
  to.slices.push_front(std::move(slice));
  slice = {};
}

void InputQueue::finished(Lane& lane, size_t inputs) {
  CHECK(lane.running >= inputs);
  lane.running -= inputs;
}

void InputQueue::took(Lane& lane, int64_t microseconds, int64_t now_ms) {
  if (microseconds < kLongSliceUs) return;
  lane.rests_until_ms = now_ms + std::min(kMaxRestMs, kRests * microseconds / 1000);
}

void InputQueue::carried(Lane& lane, int64_t microseconds, int64_t now_ms) {
  lane.transport_us += microseconds;
  if (lane.transport_us < kLongSliceUs) return;
  const int64_t rest_us = lane.transport_us * kTransportRests / processors_;
  lane.transport_us = 0;
  lane.rests_until_ms = std::max(lane.rests_until_ms, now_ms + rest_us / 1000);
}

int64_t InputQueue::rests_until(int64_t now_ms) const {
  int64_t first = 0;
  for (const Lane* lane : turn_)
    if (lane->rests_until_ms > now_ms && (first == 0 || lane->rests_until_ms < first))
      first = lane->rests_until_ms;
  return first;
}

}  // namespace pawl
