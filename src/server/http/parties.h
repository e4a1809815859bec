#pragma once
// The connections of one I/O thread that are ready to be served, grouped by the tenant of their
// last request. The groups, called parties, are served in turn: while several of them are active,
// each begins a few requests in a turn of the loop, so a tenant with many busy connections delays
// another one by these few. With one active party every ready connection is served.
//
// Connections without a known tenant (new ones, and those of strangers) are one party.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pawl::server {

struct Party {
  std::string tenant;                            // empty: not known
  std::deque<std::pair<int, uint64_t>> ready{};  // descriptors and ids, the next to serve first
  size_t connections = 0;                        // that belong to it
  size_t begun = 0;                              // requests begun in this turn of the loop
  int64_t used_us = 0;                           // time that they took
};

class Parties {
 public:
  Parties();

  // A new connection belongs to the strangers until a request names its tenant.
  Party& join_strangers();
  Party& move(Party& from, std::string_view tenant);
  void leave(Party& party);
  bool is_strangers(const Party& party) const { return &party == strangers_; }

  // Lists the connection. It must not be listed already.
  void add_ready(Party& party, int fd, uint64_t id);
  bool any_ready() const { return ready_ > 0; }

  // Begins a turn, in which the connections that are listed now are served. `now_ms` is of a
  // monotonic clock.
  void begin_turn(int64_t now_ms);
  // Takes the next connection to serve in this turn, which also ends the time of the one before.
  // False: this turn is over.
  bool next(std::pair<int, uint64_t>& connection);
  // Whether a connection that has begun so many requests since it was taken may begin another.
  bool may_begin(const Party& party, size_t begun) const;
  // A connection has begun another request, its `begun`th since it was taken.
  void began(Party& party, size_t begun);

 private:
  void drop_if_unused(Party& party);
  int64_t serving_us() const;  // since next() returned the connection that is being served

  std::unordered_map<std::string, std::unique_ptr<Party>> parties_;
  Party* const strangers_;
  std::deque<Party*> turn_;        // parties with ready connections, the next to serve first
  std::vector<Party*> waiting_;    // parties with ready connections whose share of the turn is used
  std::vector<Party*> served_;     // parties with a share of this turn
  size_t ready_ = 0;               // connections in all lists
  size_t left_ = 0;                // of this turn
  size_t of_connection_ = 1;       // requests of one connection in this turn, with one active party
  const Party* newest_ = nullptr;  // party of the newest request
  int64_t now_ms_ = 0;
  int64_t shared_until_ms_ = 0;
  bool shared_ = false;       // several parties are active
  Party* serving_ = nullptr;  // while shared: the party whose connection is being served
  std::chrono::steady_clock::time_point serving_since_{};
};

}  // namespace pawl::server
