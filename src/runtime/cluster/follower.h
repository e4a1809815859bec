#pragma once
// A follower keeps the rows of a shard warm that another node owns. It reads what the owner appends
// and applies it as a start would (kernel/replay.h), so that a takeover has little left to replay.
// A follower never acts: it runs no program, has no outbox and appends nothing.
//
// When the journal no longer has the next frame, the follower begins again from a checkpoint.

#include <atomic>
#include <mutex>

#include "kernel/replay.h"
#include "runtime/background.h"

namespace pawl {

struct FollowerOptions {
  // Opens new rows that hold the newest checkpoint, or empty rows when there is none; the rows
  // before are closed first. Null: the follower stops with an error when it would need this.
  std::function<Result<std::unique_ptr<Rows>>()> restore{};
  // How often the store is asked: at first after the one, later and later up to the other while
  // nothing comes.
  Time quick = 5 * kMillisecond, idle = 250 * kMillisecond;
};

struct FollowerStats {
  Seq applied = 0;  // the last frame that the rows hold
  Seq head = 0;     // the last frame of the journal, as it was seen last
  uint64_t frames = 0;
  uint64_t restored = 0;       // checkpoints that were begun from
  Time behind = 0;             // how long the rows have not been at the head
  std::string last_failure{};  // of the newest attempts; empty when they succeeded
  bool broken = false;         // it has stopped: rows and journal contradict each other
};

class Follower {
 public:
  // `journal` needs no claim. Programs and background must outlive the follower.
  Follower(std::unique_ptr<Journal> journal, std::unique_ptr<Rows> rows,
           std::vector<const Program*> programs, Background& background,
           FollowerOptions options = {});
  ~Follower();
  void start();
  // Ends following and hands over the rows, to be opened with the owner's journal. Null when it has
  // none: a restore has failed.
  std::unique_ptr<Rows> take();
  FollowerStats stats() const;

 private:
  Time step();
  Result<void> follow();
  Result<void> begin_again();

  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Rows> rows_;  // of the loop alone while it runs
  const std::vector<const Program*> programs_;
  Background& background_;
  const FollowerOptions options_;
  Time pause_;

  mutable std::mutex mutex_;  // guards the members below
  FollowerStats stats_;
  Time at_head_ = 0;  // when the rows were last at the head
  std::unique_ptr<BackgroundLoop> loop_;
};

}  // namespace pawl
