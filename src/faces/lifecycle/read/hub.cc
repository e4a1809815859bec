#include "faces/lifecycle/read/hub.h"

namespace pawl::lifecycle {

static ToldPtr told(const Frame& frame, const Frame::Write& write) {
  InstanceName name;
  if (!split_instance(write.key, name)) return nullptr;
  auto out = std::make_shared<Told>();
  out->id = unescaped(name.id);
  out->version = frame.seq;
  out->stored = write.value;
  out->created = write.value && write.before == 0;
  if (write.value)
    if (auto held = parse_held(write.value->bytes)) {
      out->held = *held;
      out->readable = true;
    }
  return out;
}

std::vector<ToldPtr> changes_of(const Frame& frame, BytesView prefix_bytes) {
  std::vector<ToldPtr> out;
  if (frame.program != "lifecycle") return out;
  for (const Frame::Write& write : frame.writes)
    if (BytesView(write.key).starts_with(prefix_bytes))
      if (ToldPtr one = told(frame, write)) out.push_back(std::move(one));
  return out;
}

Hub::Hub(KernelAccess& kernel) : kernel_(kernel) {
  watch_ = kernel_.watch([this](const Frame& frame) { tell(frame); });
}

Hub::~Hub() { detach(); }

void Hub::detach() {
  if (uint64_t number = std::exchange(watch_, 0)) kernel_.unwatch(number);
  std::vector<Watching> gone;
  std::lock_guard lock(mutex_);
  gone.swap(all_);
}

uint64_t Hub::add(std::string_view tenant, std::string_view type, Sink sink) {
  std::lock_guard lock(mutex_);
  all_.push_back({next_, instance_prefix(tenant, type), std::move(sink)});
  return next_++;
}

void Hub::remove(uint64_t id_number) {
  std::lock_guard lock(mutex_);
  std::erase_if(all_, [&](const Watching& w) { return w.id == id_number; });
}

size_t Hub::watchers() {
  std::lock_guard lock(mutex_);
  return all_.size();
}

void Hub::tell(const Frame& frame) {
  if (frame.program != "lifecycle") return;
  std::lock_guard lock(mutex_);
  if (all_.empty()) return;
  for (const Frame::Write& write : frame.writes) {
    ToldPtr one;
    for (const Watching& w : all_) {
      if (!BytesView(write.key).starts_with(w.prefix)) continue;
      if (!one) one = told(frame, write);
      if (!one) break;
      w.sink(one);
    }
  }
}

}  // namespace pawl::lifecycle
