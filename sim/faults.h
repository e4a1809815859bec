#pragma once
// What goes wrong in a simulated world, how often, and how often it did.

#include <array>
#include <cstdint>
#include <string_view>

namespace pawl::sim {

enum class Fault : uint8_t {
  kill,            // the process dies and the page cache lives on
  power_cut,       // the machine dies: writes that were not flushed are lost, torn or kept
  torn_write,      // a write of which a power cut kept a part
  lost_write,      // a write of which a power cut kept nothing
  kept_write,      // a write that reached the disk although nobody flushed it
  undone_rename,   // a new name of a file that a power cut took back
  flipped_bit,     // a bit of the journal that changed while no process ran
  crash_in_flush,  // a crash while the committer waits for the disk
  slow_disk,       // a flush that takes long; everything else goes on
  full_disk,       // no space left: the shard stops, and a new process starts
  failed_flush,    // fdatasync fails
  failed_read,     // pread fails: at a start, or when a segment is compressed
  crash_in_wait,   // a crash while a thread waits for an answer
  crash_in_turn,   // a timer whose turn kills the process, again and again
  quarantined,     // an effect that the server parked, and that an operator released
  clean_restart,   // the server stops as it should and starts again
  lost_request,
  lost_answer,
  doubled_request,
  late_request,
  reordered_request,  // a request that arrived after one that was sent later
  client_left,        // a client that hangs up before its answer
  slow_reader,        // a reader of a stream that takes the pieces late
  full_buffer,        // a reader that left too much unread and was cut off
  clock_forward,
  clock_back,
  lost_lease,   // a worker that takes a job and is never heard of again
  late_answer,  // a worker that answers after the end of its lease
  twice_answered,
  row_flush,  // the rows become durable at some moment
  count
};
inline constexpr size_t kFaults = static_cast<size_t>(Fault::count);

struct FaultRow {
  Fault fault;
  std::string_view name;
};
inline constexpr std::array<FaultRow, kFaults> kFaultRows{{
    {Fault::kill, "kill"},
    {Fault::power_cut, "power cut"},
    {Fault::torn_write, "torn write"},
    {Fault::lost_write, "lost write"},
    {Fault::kept_write, "kept write"},
    {Fault::undone_rename, "undone rename"},
    {Fault::flipped_bit, "flipped bit"},
    {Fault::crash_in_flush, "crash in a flush"},
    {Fault::slow_disk, "slow disk"},
    {Fault::full_disk, "full disk"},
    {Fault::failed_flush, "failed flush"},
    {Fault::failed_read, "failed read"},
    {Fault::crash_in_wait, "crash in a wait"},
    {Fault::crash_in_turn, "crash in a turn"},
    {Fault::quarantined, "quarantined"},
    {Fault::clean_restart, "clean restart"},
    {Fault::lost_request, "lost request"},
    {Fault::lost_answer, "lost answer"},
    {Fault::doubled_request, "doubled request"},
    {Fault::late_request, "late request"},
    {Fault::reordered_request, "reordered request"},
    {Fault::client_left, "client left"},
    {Fault::slow_reader, "slow reader"},
    {Fault::full_buffer, "full buffer"},
    {Fault::clock_forward, "clock forward"},
    {Fault::clock_back, "clock back"},
    {Fault::lost_lease, "lost lease"},
    {Fault::late_answer, "late answer"},
    {Fault::twice_answered, "answered twice"},
    {Fault::row_flush, "row flush"},
}};

// How often each fault happened.
struct FaultCounts {
  std::array<uint64_t, kFaults> of{};
  uint64_t& operator[](Fault fault) { return of[static_cast<size_t>(fault)]; }
};

// Which faults a life has. A shrunk life has fewer.
struct FaultSet {
  std::array<bool, kFaults> on{};
  static FaultSet all() {
    FaultSet set;
    set.on.fill(true);
    return set;
  }
  bool has(Fault fault) const { return on[static_cast<size_t>(fault)]; }
  void drop(Fault fault) { on[static_cast<size_t>(fault)] = false; }
};

}  // namespace pawl::sim
