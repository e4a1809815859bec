// Kills a process under load with SIGKILL at a random moment, many times on the same data. After
// each kill the data is opened and checked: every acknowledged change is there, and every effect is
// either open or settled once. At the end `verify` repeats the whole journal.

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "kernel/verify.h"
#include "runtime/clock.h"
#include "runtime/shard.h"
#include "storage/memory/memory.h"
#include "storage/open.h"

using namespace pawl;

namespace {

// "add" increments the cell of its caller and opens a timer at every third addition. The receipt of
// the timer increments the cell "timers".
class Count final : public Program {
 public:
  std::string_view name() const override { return "count"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    std::string cell_name = input.settles.empty() ? input.caller.user : "timers";
    TRY(Cell cell, turn.read(key({"count", cell_name})));
    int64_t n = cell.exists() ? std::stoll(std::string(cell.value())) : 0;
    turn.write(key({"count", cell_name}), std::to_string(n + 1));
    if (input.settles.empty() && n % 3 == 0)
      turn.open({input.caller.user + "-" + std::to_string(n), To::clock, "count", "t", "",
                 turn.now() + 5 * kMillisecond, ""});
    return std::to_string(n + 1);
  }
  void view(const Committed& frame, ViewRows& rows) const override {
    for (const Change& c : frame.changes) {
      if (c.before.exists()) rows.erase(Bytes(c.before.value()) + "/" + Bytes(c.key));
      rows.put(Bytes(c.after.value()) + "/" + Bytes(c.key), "");
    }
  }
};

std::unique_ptr<Shard> open_shard(const std::string& folder, const Count& count) {
  auto journal =
      open_journal({.backend = "file", .folder = folder + "/journal", .segment_bytes = 1 << 20});
  CHECK(journal);
  auto rows = open_rows({.backend = "rocksdb", .folder = folder + "/rows"});
  CHECK(rows);
  auto shard = Shard::open(std::move(*journal), std::move(*rows), {&count});
  CHECK(shard);
  return std::move(*shard);
}

// Runs eight chains of additions for ever. Each acknowledgement is written to the pipe, with one
// write, before the next addition of its chain is submitted.
void child(const std::string& folder, int out) {
  Count count;
  auto shard = open_shard(folder, count);
  Clock clock(*shard, shard->scheduler());
  shard->connect(To::clock, clock);
  CHECK(shard->start());
  clock.start();
  std::function<void(int)> go = [&](int chain) {
    shard->submit({.program = "count",
                   .verb = "add",
                   .body = std::string(200, 'x'),
                   .caller = {"t", "c" + std::to_string(chain), ""}},
                  [&, chain](Result<Answer> answer) {
                    CHECK(answer);
                    char line[64];
                    int n =
                        std::snprintf(line, sizeof line, "%d %s\n", chain, answer->body.c_str());
                    // A write of this size to a pipe is atomic, so lines of several chains do not
                    // mix.
                    if (write(out, line, static_cast<size_t>(n)) != n) _exit(3);
                    go(chain);
                  });
  };
  for (int chain = 0; chain < 8; ++chain)
    go(chain);
  while (true)
    pause();
}

struct Checked {
  uint64_t frames, acknowledged;
};

// Exits when an acknowledged addition is missing or a timer is lost.
Checked check_data(const std::string& folder, const std::map<int, int64_t>& acknowledged) {
  Count count;
  auto shard = open_shard(folder, count);
  for (auto [chain, n] : acknowledged) {
    auto cell = shard->read(key({"count", "c" + std::to_string(chain)}));
    CHECK(cell);
    int64_t stored = cell->exists() ? std::stoll(std::string(cell->value())) : 0;
    if (stored < n) {
      std::fprintf(stderr, "chain %d: %ld was acknowledged but %ld is stored\n", chain, n, stored);
      std::exit(1);
    }
  }
  // Every third addition opened a timer, and each timer is either settled or open.
  int64_t opened = 0, settled = 0, open = 0;
  ReadSnapshot snapshot = shard->snapshot();
  for (int chain = 0; chain < 8; ++chain) {
    auto cell = snapshot.read(key({"count", "c" + std::to_string(chain)}));
    // Additions 1, 4, 7 and so on open a timer: n / 3, rounded up.
    if (cell->exists()) opened += (std::stoll(std::string(cell->value())) + 2) / 3;
  }
  auto timers = snapshot.read(key({"count", "timers"}));
  if (timers->exists()) settled = std::stoll(std::string(timers->value()));
  CHECK(snapshot.scan(kEffectPrefix, [&](BytesView, const Cell&) {
    ++open;
    return true;
  }));
  if (opened != settled + open) {
    std::fprintf(stderr, "%ld timers were opened; %ld are settled and %ld open\n", opened, settled,
                 open);
    std::exit(1);
  }
  return {shard->durable(), static_cast<uint64_t>(opened)};
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  std::string folder =
      (std::filesystem::temp_directory_path() / ("pawl-crash-" + std::to_string(getpid())))
          .string();
  std::filesystem::create_directories(folder);
  std::mt19937 random(12345);
  std::map<int, int64_t> acknowledged;  // the largest count of each chain
  Checked last{};
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      close(ends[0]);
      child(folder, ends[1]);
    }
    close(ends[1]);
    usleep(30'000 + random() % 120'000);
    kill(pid, SIGKILL);
    // Everything that was written before the kill was acknowledged.
    std::string text;
    char piece[65536];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) {
      std::fprintf(stderr, "round %d: the process ended by itself with %d\n", round, status);
      return 1;
    }
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      int chain = 0;
      long n = 0;
      std::sscanf(text.c_str() + at, "%d %ld", &chain, &n);
      acknowledged[chain] = std::max<int64_t>(acknowledged[chain], n);
    }
    last = check_data(folder, acknowledged);
  }
  {
    Count count;
    auto journal = open_journal({.backend = "file", .folder = folder + "/journal"});
    CHECK(journal);
    MemoryRows scratch;
    const Program* programs[] = {&count};
    auto verified = verify(**journal, scratch, programs);
    CHECK(verified);
    if (!verified->difference.empty()) {
      std::fprintf(stderr, "verify: %s\n", verified->difference.c_str());
      return 1;
    }
  }
  std::filesystem::remove_all(folder);
  std::printf("%d kills, %lu frames, nothing acknowledged was lost\n", rounds, last.frames);
  return 0;
}
