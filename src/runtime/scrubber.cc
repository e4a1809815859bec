#include "runtime/scrubber.h"

#include <algorithm>

#include "base/log.h"

namespace pawl {

// Each step reads this much. It is also what a stop of the server waits for.
static constexpr uint64_t kStepBytes = 1u << 20;
static constexpr size_t kMaxFindings = 100;

Scrubber::Scrubber(const Journal& journal, Background& background, ScrubOptions options)
    : journal_(journal), background_(background), options_(options) {
  loop_ = background_.loop("scrubber", [this] { return step(); });
}

ScrubStatus Scrubber::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

void Scrubber::run_once() {
  std::lock_guard reading(reading_);
  next_ = 0;
  skip_ = 1;
  found_.clear();
  while (!read_some(kStepBytes)) {}
}

Time Scrubber::step() {
  std::lock_guard reading(reading_);
  const uint64_t bytes = std::min(kStepBytes, options_.bytes_per_second);
  if (read_some(bytes)) return background_.steady_now() + options_.pause;
  return background_.steady_now() +
         static_cast<Time>(static_cast<double>(bytes) /
                           static_cast<double>(options_.bytes_per_second) * kSecond);
}

// Returns true at the end of a pass.
bool Scrubber::read_some(uint64_t max_bytes) {
  next_ = std::max(next_, journal_.first());
  uint64_t bytes = 0;
  Result<void> read = journal_.read(next_, [&](Seq seq, BytesView entry) -> Result<bool> {
    next_ = seq + 1;
    skip_ = 1;
    bytes += entry.size();
    return bytes < max_bytes;
  });
  if (!read && read.error().code == Code::corrupt) {
    report(read.error());
    // The journal cannot read past damage. Entries after it are found by trying.
    next_ += skip_;
    skip_ *= 2;
  } else if (!read && !read.error().is(kTrimmed)) {
    report(read.error());
    next_ = journal_.last() + 1;
  }
  {
    std::lock_guard lock(mutex_);
    status_.bytes += bytes;
    status_.next = next_;
  }
  if (next_ <= journal_.last()) return false;
  end_pass();
  return true;
}

void Scrubber::report(const Error& error) {
  // Each try past the same damage finds it again, with other numbers behind the place.
  const std::string place = error.message.substr(0, error.message.find(';'));
  if (std::find(found_.begin(), found_.end(), place) != found_.end()) return;
  if (found_.size() < kMaxFindings) found_.push_back(place);
  std::lock_guard lock(mutex_);
  auto known = std::find(status_.findings.begin(), status_.findings.end(), place);
  if (known != status_.findings.end()) return;
  if (status_.findings.size() < kMaxFindings) status_.findings.push_back(place);
  log(Level::error, "the journal is damaged; take a backup of what can be read, then restore",
      {{"found", place}});
}

// Damage that a whole pass did not find again was repaired.
void Scrubber::end_pass() {
  next_ = 0;
  skip_ = 1;
  std::lock_guard lock(mutex_);
  ++status_.passes;
  status_.findings = std::exchange(found_, {});
}

}  // namespace pawl
