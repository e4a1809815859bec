#pragma once
// The sender of a request whose handler runs on another thread than its connection, because its
// body is large or because it reads for long. Thread-safe.

#include <mutex>

#include "wire/message.h"

namespace pawl::server {

class DetachedPeer final : public wire::Peer {
 public:
  explicit DetachedPeer(std::string address) : address_(std::move(address)) {}

  // Called on the I/O thread, once the peer has disconnected.
  void leave() {
    std::function<void()> callback;
    {
      std::lock_guard lock(mutex_);
      left_ = true;
      callback = std::exchange(callback_, nullptr);
    }
    if (callback) callback();
  }

  bool has_left() const {
    std::lock_guard lock(mutex_);
    return left_;
  }

  void on_leave(std::function<void()> left) override {
    {
      std::lock_guard lock(mutex_);
      if (!left_) {
        callback_ = std::move(left);
        return;
      }
    }
    left();
  }
  std::string address() const override { return address_; }

 private:
  const std::string address_;
  mutable std::mutex mutex_;
  std::function<void()> callback_;
  bool left_ = false;
};

}  // namespace pawl::server
