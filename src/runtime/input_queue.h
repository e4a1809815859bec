#pragma once
// The inputs that wait for the kernel: one lane for each tenant, served in turn. A lane gives one
// slice at a time, bounded by the number and the bytes of its inputs; the driver also ends a slice
// that takes long while other lanes wait. So a tenant that floods the server delays another tenant
// by one slice, not by its whole queue. Within a lane the order of arrival is kept.
//
// Not thread-safe, except others_wait().

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernel/access.h"
#include "kernel/kernel.h"

namespace pawl {

struct QueuedInput {
  Input input;
  Reply reply;
  std::function<void(Kernel&)> special{};  // instead of an input
};

class InputQueue {
 public:
  // Inputs of one tenant that may wait; 0 for no limit.
  explicit InputQueue(size_t max_of_tenant) : max_of_tenant_(max_of_tenant) {}

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Whether the tenant has as many inputs here as it may have.
  bool full(std::string_view tenant) const;
  void push(QueuedInput item);

  // Inputs of one tenant that run together. Those before `next` have run.
  struct Slice {
    std::vector<QueuedInput> items;
    size_t next = 0;
    size_t bytes = 0;
    size_t left() const { return items.size() - next; }
  };
  // Puts the next slice into `out`, whose memory is used again. The queue must not be empty.
  void take(Slice& out);
  // Returns the rest of a slice to the front of its lane. The lane is served again after the
  // others.
  void put_back(Slice& slice);
  // Whether any input waits beside the slice that was taken last. May be called on any thread.
  bool others_wait() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Lane {
    std::string tenant;
    std::deque<Slice> slices;
    size_t inputs = 0;
  };
  Lane& lane(const std::string& tenant);
  void append(Lane& lane, QueuedInput item);

  const size_t max_of_tenant_;
  size_t size_ = 0;
  std::atomic<size_t> waiting_{0};
  // Lanes with inputs, the next to be served first. They are few: one for each active tenant.
  std::deque<std::unique_ptr<Lane>> lanes_;
  std::unordered_map<std::string_view, Lane*> by_tenant_;  // keys are Lane::tenant
  std::vector<Slice> spare_;                               // empty slices that keep their memory
  std::unique_ptr<Lane> idle_;  // the lane that became empty last: often the next one needed
};

}  // namespace pawl
