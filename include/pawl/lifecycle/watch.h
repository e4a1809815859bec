#pragma once
// A watch gives the instances that are there and then every change, in commit order. A reader that
// falls behind gets each instance's newest state and a count of what it missed, never a growing
// queue.

#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

template <class T>
struct change {
  T state{};  // of a deletion: the id only
  std::string id;
  revision rev = 0;
  bool snapshot = false;
  bool deleted = false;
  std::uint64_t skipped = 0;
};

using warn_function = std::function<void(std::string_view)>;

// Copies share one watch; it ends with the last of them, or with close().
template <participant T>
class watch_stream {
 public:
  watch_stream(std::shared_ptr<subscription> from, std::shared_ptr<const warn_function> warn)
      : from_(std::move(from)), warn_(std::move(warn)) {}

  // Waits. Nothing: stopped, closed, or past the deadline. A state that does not fit the struct is
  // warned of and skipped.
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
  // Why it ended by itself: storage trouble, a server that refuses it. Nothing: it goes on, or it
  // was stopped or closed.
  std::optional<error> failed() const { return from_->failed(); }

  class iterator {
   public:
    using value_type = change<T>;
    using difference_type = std::ptrdiff_t;
    explicit iterator(watch_stream* of) : of_(of) { ++*this; }
    const change<T>& operator*() const { return *at_; }
    const change<T>* operator->() const { return &*at_; }
    iterator& operator++() { return at_ = of_->next(), *this; }
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
