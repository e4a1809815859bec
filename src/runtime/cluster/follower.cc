#include "runtime/cluster/follower.h"

#include "base/log.h"

namespace pawl {

Follower::Follower(std::unique_ptr<Journal> journal, std::unique_ptr<Rows> rows,
                   std::vector<const Program*> programs, Background& background,
                   FollowerOptions options)
    : journal_(std::move(journal)),
      rows_(std::move(rows)),
      programs_(std::move(programs)),
      background_(background),
      options_(std::move(options)),
      pause_(options_.quick),
      at_head_(background.steady_now()) {
  stats_.applied = rows_->applied();
}

Follower::~Follower() { (void)take(); }

void Follower::start() {
  std::lock_guard lock(mutex_);
  loop_ = background_.loop("follower", [this] { return step(); });
}

std::unique_ptr<Rows> Follower::take() {
  journal_->give_up();
  std::unique_ptr<BackgroundLoop> ended;
  {
    std::lock_guard lock(mutex_);
    ended = std::move(loop_);
  }
  ended.reset();  // waits for a running step
  return std::move(rows_);
}

FollowerStats Follower::stats() const {
  std::lock_guard lock(mutex_);
  FollowerStats out = stats_;
  if (out.applied < out.head || !out.last_failure.empty())
    out.behind = background_.steady_now() - at_head_;
  return out;
}

// Rows and journal that contradict each other are for an operator: rows that were thrown away would
// hide what has been lost.
static bool is_contradiction(const Error& error) {
  return error.code == Code::corrupt && error.reason != "ROWS_TOO_OLD" && !error.is(kRowsCorrupt);
}

Time Follower::step() {
  const Seq before = rows_ ? rows_->applied() : 0;
  Result<void> followed = follow();
  std::lock_guard lock(mutex_);
  stats_.applied = rows_ ? rows_->applied() : 0;
  stats_.head = std::max(journal_->last(), stats_.applied);
  stats_.last_failure = followed ? "" : followed.error().message;
  const Time now = background_.steady_now();
  if (followed) {
    stats_.frames += stats_.applied > before ? stats_.applied - before : 0;
    if (stats_.applied == stats_.head) at_head_ = now;
    pause_ = stats_.applied > before ? options_.quick : std::min(pause_ * 2, options_.idle);
    return now + pause_;
  }
  if (is_contradiction(followed.error())) {
    stats_.broken = true;
    log(Level::error, "the rows of a standby and the journal contradict each other",
        {{"applied", stats_.applied}, {"why", followed.error().message}});
    return BackgroundLoop::kNever;
  }
  pause_ = std::min(pause_ * 2, options_.idle);
  return now + pause_;
}

Result<void> Follower::follow() {
  TRY(Seq head, journal_->wait(rows_ ? rows_->applied() : 0, std::chrono::nanoseconds(0)));
  if (!rows_) return begin_again();
  // A standby of the database may be behind what the rows have already.
  if (head < rows_->applied())
    return fail(Code::unavailable, "STORE_BEHIND",
                "the store shows an older state than this node has seen");
  if (head == rows_->applied()) return {};
  Result<Replayed> replayed = replay(*journal_, *rows_, programs_);
  if (replayed) return {};
  // Trimmed before the read, or while it ran.
  if (replayed.error().reason == "ROWS_TOO_OLD" || replayed.error().is(kTrimmed) ||
      replayed.error().is(kRowsCorrupt))
    return begin_again();
  return fail(std::move(replayed.error()));
}

Result<void> Follower::begin_again() {
  if (!options_.restore)
    return fail(Code::unavailable, "NO_CHECKPOINT",
                "the journal no longer has the next frame, and there is no archive with a "
                "checkpoint: set --archive");
  rows_.reset();
  TRY(rows_, options_.restore());
  std::lock_guard lock(mutex_);
  ++stats_.restored;
  return {};
}

}  // namespace pawl
