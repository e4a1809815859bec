#include "server/http/parties.h"

#include <algorithm>

#include "base/result.h"

namespace pawl::server {

// Requests that one turn of a loop with one active party begins, besides the first of each
// connection.
static constexpr size_t kTurnRequests = 32;
// Requests that one party begins in a turn while several are active. A request takes some ten
// microseconds of its thread.
static constexpr size_t kPartyRequests = 4;
// A party begins no further request of a turn after this time. Lists and searches take longer.
static constexpr int64_t kPartyUs = 100;
// Several parties count as active for this long, so that a tenant that sends a request every few
// seconds finds short turns.
static constexpr int64_t kSharedMs = 10'000;

Parties::Parties()
    : strangers_(parties_.emplace("", std::make_unique<Party>()).first->second.get()) {}

Party& Parties::join_strangers() {
  ++strangers_->connections;
  return *strangers_;
}

Party& Parties::move(Party& from, std::string_view tenant) {
  if (from.tenant == tenant) return from;
  std::unique_ptr<Party>& to = parties_[std::string(tenant)];
  if (!to) {
    to = std::make_unique<Party>();
    to->tenant = tenant;
  }
  ++to->connections;
  Party& joined = *to;
  leave(from);
  return joined;
}

void Parties::leave(Party& party) {
  --party.connections;
  drop_if_unused(party);
}

void Parties::drop_if_unused(Party& party) {
  if (&party == strangers_ || party.connections > 0 || !party.ready.empty() || party.begun > 0)
    return;
  if (newest_ == &party) newest_ = nullptr;
  parties_.erase(std::string(party.tenant));
}

void Parties::add_ready(Party& party, int fd, uint64_t id) {
  if (party.ready.empty()) turn_.push_back(&party);
  party.ready.emplace_back(fd, id);
  ++ready_;
}

void Parties::begin_turn(int64_t now_ms) {
  now_ms_ = now_ms;
  shared_ = now_ms < shared_until_ms_;
  serving_ = nullptr;
  turn_.insert(turn_.end(), waiting_.begin(), waiting_.end());
  waiting_.clear();
  for (Party* party : served_) {
    party->begun = 0;
    party->used_us = 0;
    drop_if_unused(*party);
  }
  served_.clear();
  left_ = ready_;
  of_connection_ = std::max<size_t>(1, kTurnRequests / std::max<size_t>(1, ready_));
}

int64_t Parties::serving_us() const {
  using std::chrono::microseconds;
  const auto took = std::chrono::steady_clock::now() - serving_since_;
  return std::chrono::duration_cast<microseconds>(took).count();
}

bool Parties::next(std::pair<int, uint64_t>& connection) {
  // The party is still there: it has begun something in this turn.
  if (Party* before = std::exchange(serving_, nullptr)) before->used_us += serving_us();
  while (left_ > 0 && !turn_.empty()) {
    Party& party = *turn_.front();
    turn_.pop_front();
    if (shared_ && (party.begun >= kPartyRequests || party.used_us >= kPartyUs)) {
      waiting_.push_back(&party);
      continue;
    }
    connection = party.ready.front();
    party.ready.pop_front();
    --ready_;
    --left_;
    if (!party.ready.empty()) turn_.push_back(&party);
    // Serving a connection counts as a request: it may only bring a part of one.
    if (party.begun++ == 0) served_.push_back(&party);
    if (!shared_) return true;
    serving_ = &party;
    serving_since_ = std::chrono::steady_clock::now();
    return true;
  }
  return false;
}

bool Parties::may_begin(const Party& party, size_t begun) const {
  if (!shared_) return begun < of_connection_;
  return begun == 0 || (party.begun < kPartyRequests && party.used_us + serving_us() < kPartyUs);
}

void Parties::began(Party& party, size_t begun) {
  if (begun > 1 && party.begun++ == 0) served_.push_back(&party);
  if (newest_ && newest_ != &party) shared_until_ms_ = now_ms_ + kSharedMs;
  newest_ = &party;
}

}  // namespace pawl::server
