#pragma once
// Mailboxes hold the deliveries that wait for their step. Each cell has a mailbox. Cells with mail
// take turns, one delivery each (round robin), so no cell starves and each keeps its order.

#include <deque>
#include <map>
#include <optional>

#include "faces/worlds/air/manifest.h"
#include "faces/worlds/step/abi.h"

namespace pawl::worlds {

// About the bytes that a delivery takes when it is stored for a further turn.
inline size_t waiting_bytes(const Workflow& workflow, const Event& event) {
  return 256 + workflow.def.name.size() + event.schema.size() + event.value.size() +
         (event.key ? 2 * event.key->size() : 0);
}

struct Delivery {
  const Workflow* workflow;  // in the current manifest
  Event event;               // with its key when the workflow is keyed
  Moment moment;
  BytesView key() const { return event.key ? BytesView(*event.key) : BytesView(); }
  size_t bytes() const { return waiting_bytes(*workflow, event); }
};

class Mailboxes {
 public:
  bool empty() const { return !only_ && ring_.empty(); }
  size_t size() const {
    size_t out = only_ ? 1 : 0;
    for (const auto& [slot, box] : boxes_)
      out += box.size();
    return out;
  }
  size_t bytes() const { return bytes_; }
  void push(Delivery delivery) {
    bytes_ += delivery.bytes();
    if (empty()) {
      only_ = std::move(delivery);
      return;
    }
    if (only_) {
      file(std::move(*only_));
      only_.reset();
    }
    file(std::move(delivery));
  }
  // The next delivery. There must be one.
  Delivery pop() {
    Delivery out = take();
    bytes_ -= out.bytes();
    return out;
  }

 private:
  using Slot = std::pair<const Workflow*, Bytes>;
  Delivery take() {
    if (only_) {
      Delivery out = std::move(*only_);
      only_.reset();
      return out;
    }
    Slot slot = std::move(ring_.front());
    ring_.pop_front();
    auto box = boxes_.find(slot);
    Delivery out = std::move(box->second.front());
    box->second.pop_front();
    if (box->second.empty())
      boxes_.erase(box);
    else
      ring_.push_back(std::move(slot));
    return out;
  }
  // A cell joins the ring when its mailbox gets its first delivery.
  void file(Delivery delivery) {
    Slot slot{delivery.workflow, Bytes(delivery.key())};
    auto& box = boxes_[slot];
    if (box.empty()) ring_.push_back(std::move(slot));
    box.push_back(std::move(delivery));
  }

  std::optional<Delivery> only_;  // fast path: most inputs reach one cell
  std::deque<Slot> ring_;
  std::map<Slot, std::deque<Delivery>> boxes_;
  size_t bytes_ = 0;
};

}  // namespace pawl::worlds
