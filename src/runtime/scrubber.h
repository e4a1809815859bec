#pragma once
// The scrubber reads the whole journal in the background, slowly and again and again, so that
// damage to an old segment is found while a backup still has the entries, and not at the next
// restore.

#include <mutex>
#include <string>
#include <vector>

#include "runtime/background.h"
#include "storage/journal.h"

namespace pawl {

struct ScrubOptions {
  uint64_t bytes_per_second = 4u << 20;
  Time pause = 24 * 3600 * kSecond;  // between two passes
};

struct ScrubStatus {
  uint64_t passes = 0;  // that reached the end of the journal
  uint64_t bytes = 0;   // read since the start
  Seq next = 0;         // the entry that is read next
  // Damage that the current pass and the one before it found, in the words of the journal's error.
  std::vector<std::string> findings;
};

class Scrubber {
 public:
  // The journal and the background must outlive the scrubber.
  Scrubber(const Journal& journal, Background& background, ScrubOptions options);

  ScrubStatus status() const;
  // Begins a new pass now, without a limit on its speed, and returns when it has ended.
  void run_once();

 private:
  Time step();
  bool read_some(uint64_t max_bytes);
  void report(const Error& error);
  void end_pass();

  const Journal& journal_;
  Background& background_;
  const ScrubOptions options_;
  std::mutex reading_;  // one pass at a time; guards the three members below
  Seq next_ = 0;
  Seq skip_ = 1;  // entries to skip after the next damaged one; doubles while damage follows
  std::vector<std::string> found_;
  mutable std::mutex mutex_;  // guards status_
  ScrubStatus status_;
  std::unique_ptr<BackgroundLoop> loop_;  // the last member: it ends before the others
};

}  // namespace pawl
