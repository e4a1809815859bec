#include "embed/subscription.h"

#include "embed/local_store.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

LocalSubscription::LocalSubscription(std::shared_ptr<WatchHub> hub, Reads reads, std::string tenant,
                                     WorkflowTypePtr type)
    : hub_(std::move(hub)), reads_(reads), tenant_(std::move(tenant)), type_(std::move(type)) {}

Result<void> LocalSubscription::begin(std::optional<Seq> after) {
  // The sink is added before durable() is read: a change may come twice then, from the hub and from
  // the snapshot or the journal, but none is missed. next() drops changes up to upto_.
  number_ =
      hub_->add(tenant_, type_->def.name, [this](const InstanceChangePtr& told) { take(told); });
  {
    std::lock_guard lock(mutex_);
    upto_ = reads_.kernel().durable();
    // The caller is ahead of this engine, or level with it: there is nothing to catch up on.
    if (after && *after >= upto_) {
      upto_ = *after;
      return {};
    }
  }
  if (!after) {
    cursor_ = "";
    return {};
  }
  Bytes cells = instance_prefix(tenant_, type_->def.name);
  auto read = reads_.kernel().frames(*after + 1, [&](const Frame& frame) -> Result<bool> {
    if (frame.seq > upto_) return false;
    for (const InstanceChangePtr& told : changes_of(frame, cells))
      early_.push_back(to_change(*told, 0));
    return true;
  });
  if (!read && read.error().is(kTrimmed)) return refuse(errc::revision_gone, read.error().message);
  return read;
}

// Called by the hub for each durable change, on the committer's thread; it must return quickly.
void LocalSubscription::take(const InstanceChangePtr& told) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    // Before begin() has set upto_, a new instance counts as reported: the snapshot may contain it.
    Waiting next{told, 0, told->created && upto_ && told->version > upto_};
    if (queue_.size() < limits::kWatchQueue) {
      queue_.push_back(std::move(next));
      by_id_.clear();
    } else {
      merge(std::move(next));
    }
  }
  wake_.notify_all();  // several copies of the stream may wait, each with its own deadline
}

// Replaces the waiting change of the same instance, and moves it to the end, where its revision
// belongs.
void LocalSubscription::merge(Waiting next) {
  if (by_id_.empty())
    for (auto it = queue_.begin(); it != queue_.end(); ++it)
      by_id_.insert_or_assign(it->told->id, it);
  if (auto it = by_id_.find(next.told->id); it != by_id_.end()) {
    next.skipped = it->second->skipped + 1;
    next.unheard = it->second->unheard;
    queue_.erase(it->second);
    by_id_.erase(it);
  }
  // Instances that are created and deleted while the reader is away must not pile up.
  if (next.unheard && !next.told->value) return;
  queue_.push_back(std::move(next));
  by_id_.insert_or_assign(queue_.back().told->id, std::prev(queue_.end()));
}

any_change LocalSubscription::to_change(const InstanceChange& told, uint64_t skipped) const {
  any_change out;
  out.deleted = !told.value;
  out.skipped = skipped;
  FoundInstance found{told.value, told.id, told.version, told.stored};
  out.state = to_instance(found);
  return out;
}

// Pages keep the memory of a watch small, however many instances exist.
void LocalSubscription::load_page() {
  any_query query;
  query.limit = static_cast<int64_t>(limits::kWatchPage);
  query.cursor = *cursor_;
  auto page = reads_.list(tenant_, *type_, query);
  if (!page) {
    // The rest of the snapshot would never be reported, so the watch ends.
    {
      std::lock_guard lock(mutex_);
      failed_ = to_error(page.error());
    }
    return close();
  }
  if (page->cursor.empty())
    cursor_.reset();
  else
    cursor_ = page->cursor;
  for (const FoundInstance& found : page->items) {
    // An instance that was written since the watch began is reported by the queue.
    if (found.version > upto_) continue;
    any_change one;
    one.state = to_instance(found);
    one.snapshot = true;
    early_.push_back(std::move(one));
  }
}

// The next change from the snapshot or the journal; nothing when there are no more.
std::optional<any_change> LocalSubscription::next_early(const call_options& options) {
  std::lock_guard reading(reader_);
  while (!options.stop.stop_requested()) {
    if (!early_.empty()) {
      any_change out = std::move(early_.front());
      early_.pop_front();
      return out;
    }
    if (!cursor_) break;
    {
      std::lock_guard lock(mutex_);
      if (closed_) break;
    }
    load_page();
  }
  return std::nullopt;
}

std::optional<any_change> LocalSubscription::next(const call_options& options) {
  if (auto early = next_early(options)) return early;
  std::unique_lock lock(mutex_);
  while (true) {
    auto ready = [&] { return closed_ || !queue_.empty(); };
    if (options.until.never())
      wake_.wait(lock, options.stop, ready);
    else
      wake_.wait_until(lock, options.stop, options.until.at(), ready);
    if (closed_ || options.stop.stop_requested() || queue_.empty()) return std::nullopt;
    // The index points at list entries, so an entry that leaves the queue leaves the index too.
    Waiting one = std::move(queue_.front());
    if (auto it = by_id_.find(one.told->id); it != by_id_.end() && it->second == queue_.begin())
      by_id_.erase(it);
    queue_.pop_front();
    if (queue_.empty()) by_id_.clear();
    if (one.told->version > upto_) return to_change(*one.told, one.skipped);
  }
}

std::optional<error> LocalSubscription::failed() {
  std::lock_guard lock(mutex_);
  return failed_;
}

void LocalSubscription::close() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  wake_.notify_all();
  hub_->remove(number_);
}

}  // namespace pawl::lifecycle
