#include "runtime/cluster/link.h"

#include <fmt/format.h>

namespace pawl {

void LocalLink::attach(uint32_t shard, KernelAccess& kernel) {
  std::lock_guard lock(mutex_);
  Target& target = targets_[shard];
  CHECK(!target.kernel && target.inside == 0);
  target.kernel = &kernel;
}

void LocalLink::detach(uint32_t shard) {
  std::unique_lock lock(mutex_);
  auto it = targets_.find(shard);
  if (it == targets_.end()) return;
  it->second.kernel = nullptr;
  left_.wait(lock, [&] { return it->second.inside == 0; });
  targets_.erase(it);
}

void LocalLink::send(uint32_t shard, Input delivery, Reply done) {
  KernelAccess* kernel = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto it = targets_.find(shard);
    if (it != targets_.end()) kernel = it->second.kernel;
    if (kernel) ++it->second.inside;
  }
  if (!kernel)
    return done(fail(Error{Code::unavailable,
                           std::string(kShardNotHere.name),
                           fmt::format("shard {} is not served here now", shard),
                           {},
                           true}));
  kernel->submit(std::move(delivery), std::move(done));
  std::lock_guard lock(mutex_);
  if (--targets_.at(shard).inside == 0) left_.notify_all();
}

}  // namespace pawl
