#pragma once
// The inputs that wait for the kernel: one lane for each tenant, served in turn. A lane gives one
// slice at a time, bounded by the number and the bytes of its inputs; the driver also ends a slice
// that takes long while other lanes wait. Within a lane the order of arrival is kept.
//
// While several tenants are active, lanes are also paced, so that a tenant that floods the server
// leaves the pipeline (kernel, commit, replies) nearly empty for the others:
//   - a window: inputs of one tenant that were taken and are not committed yet;
//   - a rest: after a slice that took long, the lane waits three times as long. No turn can be
//     interrupted, so this keeps the kernel free for most of the time. A lane also rests when the
//     transport of its inputs has cost much: see TransportCost.
// With one active tenant nothing is paced.
//
// Times are milliseconds of a monotonic clock. Not thread-safe, except others_wait().

#include <atomic>
#include <cstddef>
#include <cstdint>
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
  int64_t transport_us = 0;                // see TransportCost
};

class InputQueue {
 public:
  struct Lane;

  // `max_of_tenant` inputs of one tenant may wait; 0 for no limit. `processors` of the machine.
  explicit InputQueue(size_t max_of_tenant, unsigned processors = 1);
  ~InputQueue();

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Whether the tenant has as many inputs here as it may have.
  bool full(std::string_view tenant) const;
  void push(QueuedInput item, int64_t now_ms);

  // Inputs of one tenant that run together. Those before `next` have run.
  struct Slice {
    std::vector<QueuedInput> items{};
    size_t next = 0;
    size_t bytes = 0;
    size_t end = 0;            // inputs from here on wait for a later slice of the lane
    Lane* lane = nullptr;      // owned by the queue
    bool paced = false;        // several tenants are active
    int64_t took_us = 0;       // set by the driver
    int64_t transport_us = 0;  // of the inputs that ran; set by the driver
    size_t left() const { return items.size() - next; }
  };
  // Whether take() would find a slice: some lane has inputs and is not paced.
  bool serves(int64_t now_ms) const;
  // Puts the next slice into `out`, whose memory is used again. Only when serves() is true.
  void take(Slice& out, int64_t now_ms);
  // Returns the rest of a slice, which may be empty, to the front of its lane. The lane is served
  // again after the others.
  void put_back(Slice& slice);
  // Inputs of the lane that were taken are committed, or ended without a commit.
  void finished(Lane& lane, size_t inputs);
  // A slice of the lane took so long. The lane rests when it was long.
  void took(Lane& lane, int64_t microseconds, int64_t now_ms);
  // The transport of inputs that ran cost so much. The lane rests when that adds up.
  void carried(Lane& lane, int64_t microseconds, int64_t now_ms);
  // When the first lane with inputs has rested; 0: none rests.
  int64_t rests_until(int64_t now_ms) const;
  // The number of inputs that are a window, from what an append and an input cost.
  void set_window(size_t inputs) { window_ = inputs; }
  // Nothing is paced from now on: the shard is stopping.
  void stop_pacing() { pacing_ = false; }
  // Whether several tenants are active, so that lanes are paced.
  bool paced(int64_t now_ms) const { return pacing_ && now_ms < paced_until_ms_; }
  // Whether any input waits beside the slice that was taken last. May be called on any thread.
  bool others_wait() const { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  Lane& lane(const std::string& tenant);
  void append(Lane& lane, QueuedInput item);
  void forget_idle_lanes(int64_t now_ms);
  bool may_run(const Lane& lane, bool paced, int64_t now_ms) const;
  void count();

  const size_t max_of_tenant_;
  const int64_t processors_;
  size_t size_ = 0;
  std::atomic<size_t> waiting_{0};
  std::unordered_map<std::string, std::unique_ptr<Lane>> lanes_;  // by tenant, idle ones as well
  std::deque<Lane*> turn_;    // lanes with inputs, the next to be served first
  Lane* newest_ = nullptr;    // the lane of the newest input
  std::vector<Slice> spare_;  // empty slices that keep their memory
  size_t window_ = 0;
  bool pacing_ = true;
  int64_t paced_until_ms_ = 0;
};

}  // namespace pawl
