#pragma once
// A trace is a window of a world's records: those that follow from one event, or those of one cell.

#include "faces/worlds/service/service.h"

namespace pawl::worlds {

inline constexpr uint64_t kDefaultWindow = 400;
inline constexpr uint64_t kMaxWindow = 10'000;

// One of: an event by its hash; the cell of a workflow with `key`; or the last event of a schema
// whose value has `value` at the path `correlate_by`.
struct TraceQuery {
  std::optional<std::string> event_hash{};
  std::optional<std::string> workflow{};
  Bytes key{};
  std::optional<std::string> schema{}, correlate_by{}, value{};
  uint64_t limit = kDefaultWindow;
};

struct TraceWindow {
  std::optional<Key> cell{};       // set for the timeline of one cell
  std::optional<uint64_t> root{};  // seq of the first record
  std::vector<std::pair<uint64_t, Bytes>> entries{};
  size_t bytes = 0;
  // False when the window is full.
  bool add(uint64_t seq, BytesView payload, uint64_t limit);
};
// Errors: invalid_request when the query names none of the three, not_found when nothing matches.
Result<TraceWindow> find_window(const WorldSnapshot& world, const TraceQuery& query);

// Kinds of failures among the records of a window.
struct TraceFailures {
  bool error = false, timeout = false, failed_step = false, fault = false;
};
TraceFailures failures_in(const TraceWindow& window);

// The state that a trace ends in: that of the cell for a cell's timeline, else that of the world.
// failed, waiting_receipt, waiting_event or completed, in this order of precedence.
Result<std::string_view> terminal_state(const WorldSnapshot& world, const TraceWindow& window,
                                        const TraceFailures& failures);

}  // namespace pawl::worlds
