#pragma once
// A watch reports the instances that exist and then every change, in commit order. A slow reader
// gets the newest state of each instance and the number of changes it missed; the queue does not
// grow.

#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

template <class T>
struct change {
  // The members have the meanings of any_change in store.h.
  T state{};  // for a deletion, the id only
  std::string id;
  revision rev = 0;
  bool snapshot = false;
  bool deleted = false;
  std::uint64_t skipped = 0;
};

using warn_function = std::function<void(std::string_view)>;

// Copies share one watch. It ends with the last copy, or with close().
template <participant T>
class watch_stream {
 public:
  watch_stream(std::shared_ptr<subscription> from, std::shared_ptr<const warn_function> warn)
      : from_(std::move(from)), warn_(std::move(warn)) {}

  // Waits for the next change. Returns nothing when stopped or closed, or when the deadline passes.
  // A state that does not fit the struct is skipped with a warning.
  std::optional<change<T>> next(const call_options& options = {}) {
    while (auto got = from_->next(options)) {
      change<T> out;
      out.id = got->state.id;
      out.rev = got->state.rev;
      out.snapshot = got->snapshot;
      out.deleted = got->deleted;
      out.skipped = got->skipped;
      if (got->deleted) {
        std::string only_id;
        record::put(only_id, T::fields.name_of(lifecycle::id), got->state.id);
        if (auto state = from_record<T>(only_id)) out.state = *std::move(state);
        return out;
      }
      auto state = from_record<T>(got->state.record);
      if (state) {
        out.state = *std::move(state);
        return out;
      }
      (*warn_)("watch skips '" + out.id + "': " + state.error().message());
    }
    return std::nullopt;
  }
  void close() { from_->close(); }
  // Why the watch ended by itself: a storage failure, or a server that refused it. Nothing while it
  // goes on or after it was stopped or closed.
  std::optional<error> failed() const { return from_->failed(); }

  // For `for (auto& c : stream)`: waits for each change without a deadline and ends when the watch
  // does.
  class iterator {
   public:
    using value_type = change<T>;
    using difference_type = std::ptrdiff_t;
    explicit iterator(watch_stream* of) : of_(of) { ++*this; }
    const change<T>& operator*() const { return *at_; }
    const change<T>* operator->() const { return &*at_; }
    iterator& operator++() {
      at_ = of_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !at_; }

   private:
    watch_stream* of_;
    std::optional<change<T>> at_;
  };
  iterator begin() { return iterator(this); }
  std::default_sentinel_t end() { return {}; }

 private:
  std::shared_ptr<subscription> from_;
  std::shared_ptr<const warn_function> warn_;
};

}  // namespace pawl::lifecycle
