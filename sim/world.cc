#include "sim/world.h"

#include <fmt/format.h>

#include "assembly/faces.h"
#include "base/limits.h"
#include "faces/entities/face.h"
#include "faces/processes/state/job.h"
#include "faces/worlds/executors.h"
#include "kernel/verify.h"
#include "runtime/clock.h"
#include "server/http/front.h"
#include "sim/false_stream.h"
#include "storage/file/file_journal.h"

namespace pawl::sim {

// Small segments, so that a life fills and compresses many of them.
static constexpr uint64_t kSegmentBytes = 128 * 1024;
static constexpr Time kHousekeeping = 600 * kSecond;

namespace {

// No world of the simulator has leave to send requests, so a call here is a bug.
class NoInternet final : public worlds::HttpClient {
 public:
  void send(worlds::HttpCall,
            std::move_only_function<void(Result<worlds::HttpReply>)> done) override {
    done(fail(Code::unavailable, "NO_INTERNET", "the simulated world has no internet"));
  }
};

// The client's end of a connection.
class FalsePeer final : public wire::Peer {
 public:
  void on_leave(std::function<void()> left) override { left_ = std::move(left); }
  std::string address() const override { return "10.0.0.1"; }
  void leave() {
    if (auto left = std::exchange(left_, nullptr)) left();
  }

 private:
  std::function<void()> left_;
};

// The journal of a server that runs, for a second shard that only reads.
class BorrowedJournal final : public Journal {
 public:
  explicit BorrowedJournal(const Journal& inner) : inner_(inner) {}
  Result<void> append(std::span<const BytesView>, Seq) override {
    return fail(Code::unavailable, "BORROWED", "this journal is only read");
  }
  Result<void> read(Seq from, const Visit& visit) const override {
    return inner_.read(from, visit);
  }
  Seq first() const override { return inner_.first(); }
  Seq last() const override { return inner_.last(); }
  Result<void> trim(Seq) override { return {}; }
  uint64_t bytes() const override { return inner_.bytes(); }

 private:
  const Journal& inner_;
};

}  // namespace

// One process, put together as in cli/host.cc. The members are destroyed in the reverse order.
struct World::Server {
  NoInternet internet;
  server::Metrics metrics;
  std::unique_ptr<server::Authenticator> authenticator;
  // They outlive the shard: requests of a dead process that were never answered end with it.
  wire::Router router;
  std::unique_ptr<server::HttpFront> front;
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Clock> clock;
  std::unique_ptr<Workers> workers;
  std::unique_ptr<MutantOutbox> to_clock, to_workers;
  std::unique_ptr<assembly::Faces> faces;
  wire::Handler handle;
  std::unique_ptr<BackgroundLoop> housekeeping;
  bool stopped = false;
  bool closed = false;  // no answer reaches a client any more

  void stop() {
    if (std::exchange(stopped, true)) return;
    housekeeping.reset();
    if (workers) workers->stop();
    if (faces) faces->stop();
    closed = true;  // the listeners close here
    if (faces) faces->end_reads();
    if (clock) clock->stop();
    if (shard) shard->stop();
  }
  ~Server() { stop(); }
};

struct World::Call {
  uint64_t id = 0;
  uint64_t life = 0;  // of the server that has the request
  Sent sent;
  Answered answered;
  std::vector<std::unique_ptr<FalsePeer>> peers;  // one for each copy of the request
  std::shared_ptr<FalseStream> stream;            // of an answer that is read piece by piece
};

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
  disk_.while_flushing = [this] {
    if (disk_.max_flush > 10 * kMillisecond) hit_open_calls(Fault::slow_disk);
    if (dead_ || !server_ || !strikes(Fault::crash_in_flush, 400)) return;
    hit_open_calls(Fault::crash_in_flush);
    die(schedule_.chance(50) ? FalseDisk::Crash::kill : FalseDisk::Crash::power_cut);
  };
  disk_.before_names = [this] {
    if (!dead_ && server_ && threatens(Fault::undone_rename, 10)) die(FalseDisk::Crash::power_cut);
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

Result<void> World::try_start() {
  // A new process has no module in memory.
  programs_ = std::make_unique<assembly::Programs>(
      assembly::ProgramSettings{.wasm_cache = options_.wasm_cache});
  server_ = std::make_unique<Server>();
  Server& s = *server_;
  TRY(s.authenticator, server::Authenticator::make({}, [this] { return schedule_.wall_now(); }));
  TRY(auto journal, open_journal());
  ShardOptions options;
  options.scheduler = &schedule_;
  options.cache_bytes = 256 * 1024;  // small, so that cells are evicted and read again
  options.family_cells = 16;
  options.dice = [this] { return schedule_.dice(); };
  std::vector<const Program*> programs = programs_->list();
  const bool of_worlds =
      options_.mutation == Mutation::event_twice || options_.mutation == Mutation::lost_receipt;
  if (of_worlds || options_.mutation == Mutation::impure_program) {
    const Program*& mutant = of_worlds ? programs.back() : programs.front();
    mutant_program_ = std::make_unique<MutantProgram>(options_.mutation, *mutant);
    mutant = mutant_program_.get();
  }
  TRY(s.shard, Shard::open(std::move(journal),
                           std::make_unique<WorldRows>(options_.mutation, schedule_, rows_, dead_),
                           programs, std::move(options)));
  s.clock = std::make_unique<Clock>(*s.shard, schedule_);
  s.workers = std::make_unique<Workers>(*s.shard, schedule_, processes::created_at);
  s.faces = std::make_unique<assembly::Faces>(assembly::FacesOver{
      config_, *programs_, *s.shard, *s.workers, *s.authenticator, s.internet, {}});
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
  s.faces->add_routes(s.router);
  server::FrontOptions front;
  TRY(front.permissions, server::route_permissions(s.router));
  s.front =
      std::make_unique<server::HttpFront>(s.router, *s.authenticator, s.metrics, std::move(front));
  s.handle = s.front->handler();
  s.housekeeping = schedule_.loop("housekeeping", [this, &s, due = false]() mutable {
    if (std::exchange(due, true)) s.shard->forget_old_answers();
    return schedule_.steady_now() + kHousekeeping;
  });
  return {};
}

// A journal of which one bit has changed is refused, or every entry that it gives is as it was.
void World::read_with_flipped_bit() {
  auto entries = [this]() -> Result<Digest> {
    TRY(std::unique_ptr<Journal> journal, open_journal());
    Digest all{};
    TRY_OK(journal->read(journal->first(), [&](Seq, BytesView entry) -> Result<bool> {
      all = sha256(Bytes(view(all)) + Bytes(entry));
      return true;
    }));
    return all;
  };
  if (!disk_.flip_a_bit()) return;
  const auto flipped = entries();
  note(flipped ? "a bit of the journal changed and is not noticed"
               : "a bit of the journal changed: " + flipped.error().message);
  disk_.mend();
  const auto whole = entries();
  expect(bool(whole), "the mended journal cannot be read");
  expect(!flipped || !whole || *flipped == *whole,
         "a journal with a flipped bit gives entries that were never written");
}

void World::start() {
  ++life_;
  if (life_ > 1 && threatens(Fault::flipped_bit, 10)) read_with_flipped_bit();
  auto started = try_start();
  // A disk that crashes the machine during a start is a crash like any other.
  if (!started && !dead_) expect(false, "the server cannot start: " + started.error().message);
  note(fmt::format("the server starts, life {}", life_));
}

void World::hit_open_calls(Fault fault) {
  for (const auto& [id, call] : open_calls_)
    coverage_.hit(fault, call->sent.method, call->sent.path);
}

bool World::strikes_call(Fault fault, uint64_t one_in, const Sent& sent) {
  if (!strikes(fault, one_in)) return false;
  coverage_.hit(fault, sent.method, sent.path);
  return true;
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

// Comes every few seconds, and in a gap every few hours.
void World::trouble() {
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
  Time out = schedule_.elapsed() - ends_;  // the calm at the end
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

void World::settle(const CallPtr& call, std::optional<wire::Response> response, Time delay) {
  if (!call->answered) return;
  open_calls_.erase(call->id);
  schedule_.after(delay, [this, answered = std::exchange(call->answered, nullptr), call,
                          response = std::move(response)] {
    ++answers_;
    note(fmt::format("#{} {}", call->id,
                     response ? std::to_string(response->status) : std::string("no answer")));
    answered(response);
  });
}

void World::deliver(const CallPtr& call) {
  if (dead_ || !server_) return;  // also a copy that comes after the answer
  if (server_->stopped || !server_->handle) return;
  call->life = life_;
  wire::Request request{.method = call->sent.method,
                        .path = call->sent.path,
                        .query = {},
                        .headers = call->sent.headers,
                        .body = call->sent.body,
                        .caller = {}};
  if (const size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  request.headers.emplace_back("Host", "localhost");
  call->peers.push_back(std::make_unique<FalsePeer>());
  request.peer = call->peers.back().get();
  server_->handle(std::move(request), [this, call, life = life_](wire::Response response) {
    // An answer of a dead process reaches nobody.
    if (dead_ || life != life_ || server_->closed || !call->answered) return;
    const Time latency = static_cast<Time>(schedule_.roll(3 * kMillisecond));
    if (strikes_call(Fault::lost_answer, 80, call->sent))
      return settle(call, std::nullopt, call->sent.patience);
    if (!response.stream) return settle(call, std::move(response), latency);
    // The head is on its way; the body follows it.
    schedule_.after(latency, [this, call, life, response = std::move(response)] {
      if (dead_ || life != life_ || server_->closed || !call->answered || call->stream) return;
      read_stream(call, response);
    });
  });
}

// Bytes that a reader may leave unread: those of the real server, or few.
static constexpr size_t kSmallRoom = 2000;

void World::read_stream(const CallPtr& call, wire::Response response) {
  const auto open = std::exchange(response.stream, nullptr);
  // Shared by the functions of the reader, which outlive this call.
  auto answer = std::make_shared<wire::Response>(std::move(response));
  const bool slow = strikes_call(Fault::slow_reader, 10, call->sent);
  StreamReader reader;
  reader.room = threatens(Fault::full_buffer, 10) ? kSmallRoom : limits::kStreamBytes;
  reader.latency = [this, slow] {
    const uint64_t unit = slow ? 20 * kSecond : 3 * kMillisecond;
    return static_cast<Time>(schedule_.roll(unit));
  };
  reader.piece = [this, call, answer](std::string text) {
    if (options_.mutation == Mutation::lost_piece && schedule_.one_in(10)) return;
    note(fmt::format("#{} reads {}", call->id, text.substr(0, 300)));
    if (call->sent.piece) return call->sent.piece(std::move(text));
    answer->body += text;
  };
  reader.over = [this, call, answer](bool whole) {
    if (call->stream->overrun()) {
      ++counts_[Fault::full_buffer];
      coverage_.hit(Fault::full_buffer, call->sent.method, call->sent.path);
    }
    if (whole) return settle(call, std::move(*answer), 0);
    settle(call, std::nullopt, 0);
  };
  call->stream = std::make_shared<FalseStream>(schedule_, std::move(reader));
  open(call->stream);
}

void World::call(Sent sent, Answered answered) {
  auto call = std::make_shared<Call>();
  call->id = ++next_call_;
  call->sent = std::move(sent);
  call->answered = std::move(answered);
  note(fmt::format("#{} {} {} {}", call->id, call->sent.method, call->sent.path,
                   call->sent.body.substr(0, 200)));
  open_calls_.emplace(call->id, call);
  Time latency = static_cast<Time>(schedule_.roll(3 * kMillisecond));
  if (strikes_call(Fault::late_request, 60, call->sent))
    latency += static_cast<Time>(schedule_.roll(60 * kSecond));
  const Time patience = call->sent.patience;
  if (!strikes_call(Fault::lost_request, 80, call->sent))
    schedule_.after(latency, [this, call] { deliver(call); });
  if (strikes_call(Fault::doubled_request, 60, call->sent))
    schedule_.after(latency + static_cast<Time>(schedule_.roll(5 * kSecond)),
                    [this, call] { deliver(call); });
  const Time leaves = strikes_call(Fault::client_left, 80, call->sent)
                          ? static_cast<Time>(schedule_.roll(static_cast<uint64_t>(patience)))
                          : patience;
  schedule_.after(leaves, [this, call] {
    if (!call->answered) return;
    if (!dead_ && call->life == life_ && call->stream)
      call->stream->leave();
    else if (!dead_ && call->life == life_)
      for (auto& peer : call->peers)
        peer->leave();
    settle(call, std::nullopt, 0);
  });
}

static std::map<Bytes, Bytes> all_rows(const Rows& rows) {
  std::map<Bytes, Bytes> out;
  CHECK(rows.snapshot()->scan("", "", [&](BytesView key, BytesView value) {
    out.emplace(key, value);
    return true;
  }));
  out.erase("mviews");  // the version of the views, and not their state
  return out;
}

// The first key at which the two differ, in words.
static std::string difference(const std::map<Bytes, Bytes>& live,
                              const std::map<Bytes, Bytes>& rebuilt) {
  for (const auto& [key, value] : live) {
    auto other = rebuilt.find(key);
    if (other == rebuilt.end()) return "a row too many: " + hex(key);
    if (other->second != value) return "another value: " + hex(key);
  }
  for (const auto& [key, value] : rebuilt)
    if (!live.contains(key)) return "a row is missing: " + hex(key);
  return {};
}

void World::compare_with_rebuild(Server& server) {
  auto fresh = std::make_unique<MemoryRows>();
  const MemoryRows& rebuilt = *fresh;
  ShardOptions options;
  options.scheduler = &schedule_;
  options.dice = [] { return std::array<uint64_t, 2>{1, 2}; };
  auto second = Shard::open(std::make_unique<BorrowedJournal>(server.shard->journal()),
                            std::move(fresh), programs_->list(), std::move(options));
  expect(bool(second), "the journal cannot be replayed");
  if (!second) return;
  const std::string differs = difference(all_rows(rows_), all_rows(rebuilt));
  expect(differs.empty(), "a rebuild from the journal gives other rows: " + differs);
}

void World::check_journal() {
  if (!server_ || !server_->shard || dead_) return expect(false, "the server is down at the end");
  server_->stop();
  frames_ = server_->shard->durable();
  MemoryRows scratch;
  auto verified = verify(server_->shard->journal(), scratch, programs_->all());
  expect(bool(verified), verified ? "" : "verify fails: " + verified.error().message);
  if (verified) expect(verified->difference.empty(), "verify: " + verified->difference);
  compare_with_rebuild(*server_);
  note(fmt::format("{} frames", frames_));
}

}  // namespace pawl::sim
