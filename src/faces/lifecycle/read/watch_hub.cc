#include "faces/lifecycle/read/watch_hub.h"

namespace pawl::lifecycle {

// Null for cells that are no instances. `stored` points into `value`, which the change keeps alive.
static InstanceChangePtr change_of(const Frame& frame, const Frame::Write& write) {
  InstanceName name;
  if (!split_instance(write.key, name)) return nullptr;
  auto out = std::make_shared<InstanceChange>();
  out->id = unescaped(name.id);
  out->version = frame.seq;
  out->value = write.value;
  // `before` is the version that the write replaced; 0: there was none.
  out->created = write.value && write.before == 0;
  if (write.value)
    if (auto stored = decode_instance(write.value->bytes)) {
      out->stored = *stored;
      out->readable = true;
    }
  return out;
}

std::vector<InstanceChangePtr> changes_of(const Frame& frame, BytesView prefix_bytes) {
  std::vector<InstanceChangePtr> out;
  if (frame.program != "lifecycle") return out;
  for (const Frame::Write& write : frame.writes)
    if (BytesView(write.key).starts_with(prefix_bytes))
      if (InstanceChangePtr change = change_of(frame, write)) out.push_back(std::move(change));
  return out;
}

WatchHub::WatchHub(KernelAccess& kernel) : kernel_(kernel) {
  kernel_watch_ = kernel_.watch([this](const Frame& frame) { notify(frame); });
}

WatchHub::~WatchHub() { detach(); }

void WatchHub::detach() {
  // Before the lock: unwatch() waits for a running notify(), which takes it.
  if (uint64_t number = std::exchange(kernel_watch_, 0)) kernel_.unwatch(number);
  std::vector<Watcher> dropped;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  dropped.swap(watchers_);
}

uint64_t WatchHub::add(std::string_view tenant, std::string_view type, ChangeSink sink) {
  std::lock_guard lock(mutex_);
  watchers_.push_back({next_id_, instance_prefix(tenant, type), std::move(sink)});
  return next_id_++;
}

void WatchHub::remove(uint64_t id_number) {
  std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [&](const Watcher& w) { return w.id == id_number; });
}

size_t WatchHub::watchers() {
  std::lock_guard lock(mutex_);
  return watchers_.size();
}

void WatchHub::notify(const Frame& frame) {
  if (frame.program != "lifecycle") return;
  std::lock_guard lock(mutex_);
  if (watchers_.empty()) return;
  for (const Frame::Write& write : frame.writes) {
    InstanceChangePtr change;
    for (const Watcher& w : watchers_) {
      if (!BytesView(write.key).starts_with(w.prefix)) continue;
      if (!change) change = change_of(frame, write);
      if (!change) break;
      // Under the lock: this is what makes remove() wait for a running sink. A sink must not call
      // the hub.
      w.sink(change);
    }
  }
}

}  // namespace pawl::lifecycle
