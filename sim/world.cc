#include "sim/world.h"

#include <fmt/format.h>

#include "faces/entities/face.h"
#include "faces/processes/state/job.h"
#include "sim/server_process.h"
#include "storage/file/file_journal.h"

namespace pawl::sim {

// Small segments, so that a life fills and compresses many of them.
static constexpr uint64_t kSegmentBytes = 128 * 1024;
static constexpr Time kHousekeeping = 600 * kSecond;

static server::Config config_of(std::map<std::string, std::string> settings) {
  settings.emplace("auth", "none");
  auto config = server::Config::load({.flags = std::move(settings), .variable = {}, .file = {}});
  CHECK(config);
  return *config;
}

World::World(WorldOptions options)
    : options_(options),
      schedule_(options.seed),
      disk_(schedule_, counts_),
      config_(config_of(options.settings)) {
  disk_.lies = options.mutation == Mutation::lying_flush;
  disk_.hides_failed_reads = options.mutation == Mutation::silent_read;
  disk_.while_flushing = [this] {
    if (disk_.max_flush > 10 * kMillisecond) hit_open_calls(Fault::slow_disk);
    if (dead_ || !server_ || !strikes(Fault::crash_in_flush, 400)) return;
    hit_open_calls(Fault::crash_in_flush);
    die(schedule_.chance(50) ? FalseDisk::Crash::kill : FalseDisk::Crash::power_cut);
  };
  disk_.before_names = [this] {
    if (!dead_ && server_ && threatens(Fault::undone_rename, 10)) die(FalseDisk::Crash::power_cut);
  };
  disk_.fails_read = [this] {
    if (reads_until_error_ > 0) return --reads_until_error_ == 0;
    return schedule_.in_storage_job() && threatens(Fault::failed_read, 30);
  };
  schedule_.at_wait = [this] {
    if (dead_ || !server_ || !strikes(Fault::crash_in_wait, 20)) return;
    hit_open_calls(Fault::crash_in_wait);
    die(schedule_.chance(50) ? FalseDisk::Crash::kill : FalseDisk::Crash::power_cut);
  };
  start();
}

World::~World() {
  schedule_.freeze(true);
  dead_ = true;
  server_.reset();
}

bool World::threatens(Fault fault, uint64_t one_in) const {
  return !calm_ && options_.faults.has(fault) && schedule_.one_in(one_in);
}

bool World::strikes(Fault fault, uint64_t one_in) {
  if (!threatens(fault, one_in)) return false;
  ++counts_[fault];
  return true;
}

void World::expect(bool held, const std::string& what) {
  if (held) return;
  note("BROKEN: " + what);
  broken_.push_back(what);
}

entities::Members* World::members() {
  if (dead_ || !server_ || !server_->handle || server_->stopped) return nullptr;
  return &server_->faces->entities().members();
}

void World::saw(Sighting sighting) {
  static constexpr size_t kRemembered = 64;
  if (sightings_.size() < kRemembered) return sightings_.push_back(std::move(sighting));
  sightings_[schedule_.roll(kRemembered)] = std::move(sighting);
}

void World::note(std::string text) {
  // The folder has another name each time.
  if (const size_t at = text.find(disk_.folder()); at != std::string::npos)
    text.replace(at, disk_.folder().size(), "DISK");
  const std::string line =
      fmt::format("{:.6f} {}", static_cast<double>(schedule_.elapsed()) / 1e9, text);
  hash_ = sha256(Bytes(view(hash_)) + line);
  if (options_.tell) story_.push_back(line);
}

Digest World::digest() const { return hash_; }

Result<std::unique_ptr<Journal>> World::open_journal() {
  FileJournalOptions options;
  options.folder = disk_.folder();
  options.segment_bytes = kSegmentBytes;
  options.first_segment_bytes = kSegmentBytes / 4;
  options.disk = &disk_;
  options.tasks = [this] { return schedule_.storage_tasks(); };
  options.salt = [this] { return schedule_.salt(); };
  TRY(std::unique_ptr<Journal> journal, FileJournal::open(std::move(options)));
  if (options_.mutation == Mutation::failed_append_acknowledged)
    journal = std::make_unique<MutantJournal>(std::move(journal));
  return journal;
}

Result<void> World::open_shard(Server& s) {
  TRY(auto journal, open_journal());
  ShardOptions options;
  options.scheduler = &schedule_;
  options.cache_bytes = 256 * 1024;  // small, so that cells are evicted and read again
  options.family_cells = 16;
  options.tenant_queued_inputs = kTenantQueuedInputs;
  options.tenant_open_turns = kTenantOpenTurns;
  options.dice = [this] { return schedule_.dice(); };
  if (options_.mutation != Mutation::no_quarantine) options.quarantine_folder = disk_.side_folder();
  const bool of_worlds =
      options_.mutation == Mutation::event_twice || options_.mutation == Mutation::lost_receipt;
  std::vector<const Program*> programs = programs_->list();
  wrapped_programs_.clear();
  for (const Program*& program : programs) {
    const bool is_mutant = program == (of_worlds ? programs.back() : programs.front());
    wrapped_programs_.push_back(
        std::make_unique<MutantProgram>(is_mutant ? options_.mutation : Mutation::none, *program));
    wrapped_programs_.back()->before_turn = [this](const Input& input) { before_turn(input); };
    program = wrapped_programs_.back().get();
  }
  TRY(s.shard, Shard::open(std::move(journal),
                           std::make_unique<WorldRows>(options_.mutation, schedule_, rows_, dead_),
                           programs, std::move(options)));
  return {};
}

void World::open_front(Server& s) {
  s.faces->add_routes(s.router);
  server::FrontOptions front;
  auto permissions = server::route_permissions(s.router);
  CHECK(permissions);
  front.permissions = std::move(*permissions);
  s.front =
      std::make_unique<server::HttpFront>(s.router, *s.authenticator, s.metrics, std::move(front));
  s.handle = s.front->handler();
  s.housekeeping = schedule_.loop("housekeeping", [this, &s, due = false]() mutable {
    if (std::exchange(due, true)) s.shard->forget_old_answers();
    return schedule_.steady_now() + kHousekeeping;
  });
  if (options_.token_key.empty()) return;
  // The real server looks every second. In a gap nobody has a stream that could end.
  s.streams = schedule_.loop("streams", [this, &s] {
    s.authenticator->end_expired_streams();
    return schedule_.steady_now() + (busy() ? 1 : 600) * kSecond;
  });
}

Result<void> World::try_start() {
  // A new process has no module in memory.
  programs_ = std::make_unique<assembly::Programs>(
      assembly::ProgramSettings{.wasm_cache = options_.wasm_cache});
  server_ = std::make_unique<Server>(memories_.emplace_back(kServerMemory));
  Server& s = *server_;
  server::AuthOptions auth;
  auth.memory = &s.memory;
  auth.signing_key = options_.token_key;
  if (!auth.signing_key.empty()) auth.mode = server::AuthMode::jwt;
  TRY(s.authenticator,
      server::Authenticator::make(std::move(auth), [this] { return schedule_.wall_now(); }));
  TRY_OK(open_shard(s));
  const bool leaks = options_.mutation == Mutation::leaked_charge;
  const ChargeFor charge = [&s, leaks](MemoryUse use, const std::string& tenant) {
    if (leaks) s.memory.force(use, 1);
    return MemoryCharge(&s.memory, use, s.authenticator->tenants().use(tenant)->account);
  };
  s.clock = std::make_unique<Clock>(*s.shard, schedule_);
  s.workers = std::make_unique<Workers>(*s.shard, schedule_, processes::created_at,
                                        WorkerLimits{.charge = charge});
  s.faces = std::make_unique<assembly::Faces>(assembly::FacesOver{
      config_, *programs_, *s.shard, *s.workers, *s.authenticator, s.internet, charge});
  s.to_clock = std::make_unique<MutantOutbox>(options_.mutation, schedule_, *s.clock, nullptr);
  s.to_workers =
      std::make_unique<MutantOutbox>(options_.mutation, schedule_, *s.workers, s.workers.get());
  s.shard->connect(To::clock, *s.to_clock);
  s.shard->connect(To::worker, *s.to_workers);
  s.to_clock->starting = s.to_workers->starting = true;
  TRY_OK(s.shard->start());
  s.to_clock->starting = s.to_workers->starting = false;
  s.clock->start();
  s.workers->start();
  TRY_OK(s.faces->start());
  open_front(s);
  return {};
}

void World::start() {
  ++life_;
  if (life_ > 1 && threatens(Fault::flipped_bit, 10)) read_with_flipped_bit();
  // A start that cannot read the journal ends with an error, and the next one finds everything.
  const uint64_t failed_reads = counts_[Fault::failed_read];
  reads_until_error_ = life_ > 1 && threatens(Fault::failed_read, 12) ? 1 + schedule_.roll(30) : 0;
  auto started = try_start();
  reads_until_error_ = 0;
  if (!started && !dead_ && counts_[Fault::failed_read] > failed_reads) {
    note("the server cannot start: " + started.error().message);
    expect(started.error().reason == "JOURNAL_IO",
           "a read that fails is taken for something else: " + started.error().message);
    return die(FalseDisk::Crash::kill);
  }
  // A disk that crashes the machine during a start is a crash like any other.
  if (!started && !dead_) expect(false, "the server cannot start: " + started.error().message);
  note(fmt::format("the server starts, life {}", life_));
}

void World::die(FalseDisk::Crash how) {
  note(how == FalseDisk::Crash::kill ? "the process is killed" : "the power is cut");
  count(how == FalseDisk::Crash::kill ? Fault::kill : Fault::power_cut);
  hit_open_calls(how == FalseDisk::Crash::kill ? Fault::kill : Fault::power_cut);
  for (const auto& [id, call] : open_calls_)
    if (call->stream) call->stream->cut();
  disk_.crash(how);
  dead_ = true;
  schedule_.freeze(true);
}

void World::kill() {
  if (!dead_) die(FalseDisk::Crash::kill);
}

void World::bury() {
  if (server_ && server_->shard) frames_ = server_->shard->durable();
  server_.reset();
  schedule_.freeze(false);
  disk_.restore();
  rows_.crash();
  if (options_.mutation == Mutation::forgotten_answer) forget_answers(rows_);
  dead_ = false;
  // The connections are gone: clients notice after a while.
  for (auto& [id, call] : std::exchange(open_calls_, {}))
    settle(call, std::nullopt, static_cast<Time>(schedule_.roll(kSecond)));
}

void World::stop_cleanly() {
  note("the server stops");
  hit_open_calls(Fault::clean_restart);
  server_->stop();
  if (dead_) return;
  die(FalseDisk::Crash::kill);
}

void World::disturb_disk() {
  if (threatens(Fault::slow_disk, 20))
    disk_.max_flush = static_cast<Time>(1 + schedule_.roll(2000)) * kMillisecond;
  else
    disk_.max_flush = static_cast<Time>(1 + schedule_.roll(4)) * kMillisecond;
  if (strikes(Fault::row_flush, 3)) CHECK(rows_.flush());
  if (threatens(Fault::full_disk, 300)) disk_.full = true;
  if (threatens(Fault::failed_flush, 300)) disk_.fails_flushes = true;
  if ((disk_.full || disk_.fails_flushes) && !server_->shard->healthy()) {
    hit_open_calls(disk_.full ? Fault::full_disk : Fault::failed_flush);
    note("the operator mends the disk and starts the server again");
    die(schedule_.chance(70) ? FalseDisk::Crash::kill : FalseDisk::Crash::power_cut);
  }
}

void World::move_clock() {
  if (strikes(Fault::clock_forward, 40)) {
    note("the clock is set forward");
    schedule_.set_wall(static_cast<Time>(schedule_.roll(7200)) * kSecond);
  }
  if (strikes(Fault::clock_back, 40)) {
    note("the clock is set back");
    schedule_.set_wall(-static_cast<Time>(schedule_.roll(600)) * kSecond);
  }
}

void World::before_turn(const Input& input) {
  if (dead_ || calm_ || input.verb != "timer" || input.settles.empty()) return;
  if (fatal_.empty() && threatens(Fault::crash_in_turn, 300)) {
    fatal_ = input.settles;
    fatal_since_ = schedule_.elapsed();
    killed_by_it_ = 0;
  }
  if (input.settles != fatal_) return;
  ++killed_by_it_;
  ++counts_[Fault::crash_in_turn];
  hit_open_calls(Fault::crash_in_turn);
  expect(killed_by_it_ <= Quarantine::kStrikes,
         "an effect killed the server twice and is delivered again: " + hex(fatal_));
  die(FalseDisk::Crash::kill);
}

// The operator mends what made the timer fatal, and releases it.
void World::release_parked() {
  if (!calm_ && fatal_.empty()) return;
  const std::vector<Quarantine::Parked> parked = server_->shard->quarantine().list();
  // It was withdrawn after its first crash.
  if (parked.empty() && schedule_.elapsed() - fatal_since_ > 3600 * kSecond) fatal_.clear();
  if (parked.empty() || (!calm_ && !schedule_.one_in(20))) return;
  for (const Quarantine::Parked& one : parked) {
    expect(one.effect_id == fatal_, "an effect is in quarantine that killed nobody");
    fatal_.clear();
    note("the operator releases an effect from quarantine");
    ++counts_[Fault::quarantined];
    auto released = server_->shard->release(one.effect_id);
    expect(bool(released) || dead_, "an effect in quarantine cannot be released");
    if (dead_) return;
  }
}

// Comes every few seconds, and in a gap every few hours.
void World::trouble() {
  if (dead_) return;
  check_limits();
  release_parked();
  if (dead_ || calm_) return;
  disturb_disk();
  if (dead_) return;
  move_clock();
  const uint64_t one_in = busy() ? 150 : 10;
  if (threatens(Fault::kill, one_in)) return die(FalseDisk::Crash::kill);
  if (threatens(Fault::power_cut, one_in)) return die(FalseDisk::Crash::power_cut);
}

Time World::pause() {
  const Time unit = schedule_.chance(90)   ? kSecond
                    : schedule_.chance(80) ? 60 * kSecond
                                           : 1800 * kSecond;
  return until_busy(static_cast<Time>(schedule_.roll(static_cast<uint64_t>(5 * unit))));
}

// Clients are busy for 5 to 30 minutes.
const World::Window& World::window_at(Time time) {
  auto some = [this](Time least, Time most) {
    return least + static_cast<Time>(schedule_.roll(static_cast<uint64_t>(most - least)));
  };
  while (windows_.empty() || windows_.back().ends <= time) {
    const Time begins = windows_.empty() ? 0 : windows_.back().ends + some(0, options_.longest_gap);
    windows_.push_back({begins, begins + some(300 * kSecond, 1800 * kSecond)});
  }
  return *std::upper_bound(windows_.begin(), windows_.end(), time,
                           [](Time t, const Window& w) { return t < w.ends; });
}

Time World::until_busy(Time delay) {
  if (options_.longest_gap == 0 || calm_) return delay;
  const Time at = schedule_.elapsed() + delay;
  const Time begins = window_at(at).begins;
  if (at >= begins) return delay;
  return begins - schedule_.elapsed() + static_cast<Time>(schedule_.roll(60 * kSecond));
}

void World::later(Time delay, Schedule::Task task) {
  const uint64_t id = next_sleeper_++;
  sleepers_.emplace(id, std::move(task));
  schedule_.after(until_busy(delay), [this, id] { wake(id); });
}

void World::wake(uint64_t sleeper) {
  if (auto found = sleepers_.extract(sleeper)) found.mapped()();
}

Time World::busy_time() const {
  if (options_.longest_gap == 0) return schedule_.elapsed();
  Time out = std::max<Time>(0, schedule_.elapsed() - ends_);  // the calm at the end
  for (const Window& w : windows_)
    out += std::max<Time>(0, std::min(w.ends, ends_) - w.begins);
  return out;
}

Time World::until_trouble() {
  const Time gap = until_busy(0);
  // A broken disk is mended soon, also in a gap.
  const bool broken_disk = disk_.full || disk_.fails_flushes;
  if (gap == 0 || broken_disk) return static_cast<Time>(schedule_.roll(10 * kSecond));
  const uint64_t often = 6 * 3600 * kSecond + static_cast<uint64_t>(options_.longest_gap) / 4;
  return std::min(gap, static_cast<Time>(schedule_.roll(often)));
}

void World::live(Time time) {
  const Time until = schedule_.elapsed() + time;
  if (!calm_) ends_ = until;
  Time next_trouble = 0;
  while (schedule_.elapsed() < until && broken_.empty()) {
    if (dead_) {
      bury();
      start();
      continue;
    }
    if (options_.trouble && schedule_.elapsed() >= next_trouble) {
      if (strikes(Fault::clean_restart, 300)) {
        stop_cleanly();
      } else {
        trouble();
      }
      next_trouble = schedule_.elapsed() + until_trouble();
      continue;
    }
    const Time pause = options_.trouble ? std::min(next_trouble, until) : until;
    schedule_.run_for(pause - schedule_.elapsed());
  }
}

void World::calm_down(Time time) {
  calm_ = true;
  note("all faults end");
  if (disk_.full || disk_.fails_flushes)
    if (!dead_) die(FalseDisk::Crash::kill);
  disk_.max_flush = kMillisecond;
  for (const auto& [id, task] : sleepers_)
    schedule_.after(static_cast<Time>(schedule_.roll(10 * kSecond)), [this, id] { wake(id); });
  live(time);
}

}  // namespace pawl::sim
