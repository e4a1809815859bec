#include "sim/fleet.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <thread>

#include "base/bytes.h"
#include "base/log.h"
#include "server/auth/jwt.h"
#include "sim/life.h"

namespace pawl::sim {
namespace {

struct Options {
  uint64_t from = 1, to = 1;
  double minutes = 0;  // 0: until the last seed
  double hours = 0;    // simulated, with faults; 0: the seed decides
  std::string wasm_cache{}, token_key{};
  bool without_worlds = false;
  bool tell = false, twice = false, mutations = false, shrink = false, coverage = false;
  unsigned clients = ~0u;
  unsigned cores = 0;
  Mutation mutation = Mutation::none;
};

constexpr const char* kUsage =
    "usage: sim --seed N [--tell] [--shrink]   one life; --tell prints its story\n"
    "       sim --seeds A-B [--minutes T]      many lives on all cores\n"
    "       sim --mutations --seeds A-B        every deliberate bug must be found in these seeds\n"
    "options: --mutation NAME  --hours H (simulated, with faults)  --twice (run each seed twice)\n"
    "         --cores N  --clients MASK  --coverage (which fault hit which request)\n";

// Compiled modules, for all lives of this run.
struct ModuleCache {
  ModuleCache() {
    const std::filesystem::path memory = "/dev/shm";
    folder = (std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path()) /
             "pawl-sim-modules.XXXXXX";
    CHECK(::mkdtemp(folder.data()) != nullptr);
  }
  ~ModuleCache() {
    std::error_code ignored;  // a folder that stays behind in memory harms nobody
    std::filesystem::remove_all(folder, ignored);
  }
  std::string folder;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

LifeOptions life_of(const Options& o, uint64_t seed) {
  LifeOptions life;
  life.seed = seed;
  life.mutation = o.mutation;
  life.clients = o.clients;
  life.time = static_cast<Time>(o.hours * 3600e9);
  life.tell = o.tell;
  life.wasm_cache = o.wasm_cache;
  life.token_key = o.token_key;
  life.without_worlds = o.without_worlds;
  return life;
}

// Counts of all processes of the fleet, in memory that they share.
struct Totals {
  std::atomic<uint64_t> next{0};  // the next seed
  std::atomic<uint64_t> lives{0}, failed{0}, frames{0}, answers{0}, starts{0};
  std::atomic<uint64_t> simulated_seconds{0}, busy_seconds{0};
  std::atomic<uint64_t> lives_with_gaps{0}, seconds_with_gaps{0}, lives_with_tenants{0};
  std::atomic<uint64_t> faults[kFaults];
  std::atomic<uint64_t> reached[kReaches];
  std::atomic<uint64_t> path_answers[kPaths.size()];
  std::atomic<uint64_t> hits[kFaults][kPaths.size()];
  std::atomic<uint64_t> first_failed{~uint64_t{0}};
};

void add(Totals& totals, const Outcome& out) {
  ++totals.lives;
  totals.frames += out.frames;
  totals.answers += out.answers;
  totals.starts += out.lives;
  const uint64_t seconds = static_cast<uint64_t>(out.simulated / kSecond);
  totals.simulated_seconds += seconds;
  totals.busy_seconds += static_cast<uint64_t>(out.busy / kSecond);
  if (out.has_gaps) {
    ++totals.lives_with_gaps;
    totals.seconds_with_gaps += seconds;
  }
  if (out.has_tenants) ++totals.lives_with_tenants;
  for (size_t i = 0; i < kReaches; ++i)
    totals.reached[i] += out.reached.of[i];
  for (size_t path = 0; path < kPaths.size(); ++path)
    totals.path_answers[path] += out.coverage.answers[path];
  for (size_t i = 0; i < kFaults; ++i) {
    totals.faults[i] += out.counts.of[i];
    for (size_t path = 0; path < kPaths.size(); ++path)
      totals.hits[i][path] += out.coverage.hits[i][path];
  }
}

// Faults that hit requests, by the kind of request.
constexpr Fault kOfRequests[] = {Fault::kill,
                                 Fault::power_cut,
                                 Fault::crash_in_flush,
                                 Fault::crash_in_wait,
                                 Fault::crash_in_turn,
                                 Fault::slow_disk,
                                 Fault::full_disk,
                                 Fault::failed_flush,
                                 Fault::clean_restart,
                                 Fault::lost_request,
                                 Fault::lost_answer,
                                 Fault::late_request,
                                 Fault::reordered_request,
                                 Fault::doubled_request,
                                 Fault::client_left};

void print_coverage(const Totals& totals) {
  std::printf("%-28s %-9s", "", "answers");
  for (Fault fault : kOfRequests)
    std::printf(" %-9.9s", kFaultRows[static_cast<size_t>(fault)].name.data());
  std::printf("\n");
  for (size_t path = 0; path < kPaths.size(); ++path) {
    std::printf("  %-26.*s", static_cast<int>(kPaths[path].name.size()), kPaths[path].name.data());
    std::printf(" %-9lu", totals.path_answers[path].load());
    for (Fault fault : kOfRequests)
      std::printf(" %-9lu", totals.hits[static_cast<size_t>(fault)][path].load());
    std::printf("\n");
  }
}

Outcome run_seed(const Options& o, uint64_t seed) {
  LifeOptions life = life_of(o, seed);
  if (!o.twice) return live(life);
  life.tell = true;
  Outcome out = live(life);
  const Outcome again = live(life);
  if (again.digest == out.digest) return out;
  size_t at = 0;
  while (at < out.story.size() && at < again.story.size() && out.story[at] == again.story[at])
    ++at;
  auto line = [at](const Outcome& one) {
    return at < one.story.size() ? one.story[at].substr(0, 300) : std::string("its end");
  };
  out.broken.push_back("the same seed gave another life: " + line(out) + " | " + line(again));
  return out;
}

void work(const Options& o, Totals& totals, double until) {
  for (;;) {
    const uint64_t seed = totals.next++;
    if (seed > o.to || (o.minutes > 0 && seconds_now() > until)) return;
    const Outcome out = run_seed(o, seed);
    add(totals, out);
    if (out.broken.empty()) continue;
    ++totals.failed;
    uint64_t first = totals.first_failed;
    while (seed < first && !totals.first_failed.compare_exchange_weak(first, seed)) {}
    std::printf("seed %lu: %s\n", seed, out.broken[0].c_str());
    std::fflush(stdout);
  }
}

// Answers by face.
void print_faces(const Totals& totals) {
  std::map<std::string_view, uint64_t> faces;
  for (size_t path = 0; path < kPaths.size(); ++path)
    faces[face_of(path)] += totals.path_answers[path];
  for (const auto& [face, answers] : faces)
    std::printf("  %lu answers of %.*s\n", answers, static_cast<int>(face.size()), face.data());
}

// What a run of many lives must have brought about and did not.
std::vector<std::string_view> never_reached(const Totals& totals) {
  static constexpr uint64_t kMany = 200;
  std::vector<std::string_view> out;
  if (totals.lives < kMany) return out;
  for (const FaultRow& row : kFaultRows)
    if (totals.faults[static_cast<size_t>(row.fault)] == 0) out.push_back(row.name);
  for (const ReachRow& row : kReachRows)
    if (totals.reached[static_cast<size_t>(row.reach)] == 0) out.push_back(row.what);
  return out;
}

void print_totals(const Totals& totals) {
  auto hours = [](const std::atomic<uint64_t>& seconds) {
    return static_cast<double>(seconds.load()) / 3600;
  };
  std::printf("%lu lives, %.0f simulated hours, %lu starts, %lu frames, %lu answers\n",
              totals.lives.load(), hours(totals.simulated_seconds), totals.starts.load(),
              totals.frames.load(), totals.answers.load());
  const double busy = hours(totals.busy_seconds);
  std::printf(
      "busy hours %.0f (clients are active), idle hours %.0f (timers, schedules, retention, "
      "crashes)\n",
      busy, hours(totals.simulated_seconds) - busy);
  std::printf("%lu of the lives have gaps (%.0f hours), %lu have two tenants with tokens\n",
              totals.lives_with_gaps.load(), hours(totals.seconds_with_gaps),
              totals.lives_with_tenants.load());
  print_faces(totals);
  for (const FaultRow& row : kFaultRows)
    std::printf("  %-18.*s %lu\n", static_cast<int>(row.name.size()), row.name.data(),
                totals.faults[static_cast<size_t>(row.fault)].load());
  for (const ReachRow& row : kReachRows)
    std::printf("  %-44.*s %lu\n", static_cast<int>(row.what.size()), row.what.data(),
                totals.reached[static_cast<size_t>(row.reach)].load());
  for (std::string_view what : never_reached(totals))
    std::printf("NEVER REACHED: %.*s\n", static_cast<int>(what.size()), what.data());
  std::printf("%lu passed, %lu failed\n", totals.lives - totals.failed, totals.failed.load());
}

// Runs the seeds on all cores. The processes share nothing but the totals.
Totals& run_seeds(const Options& o) {
  void* memory =
      ::mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  Totals& totals = *new (memory) Totals;
  totals.next = o.from;
  const double until = seconds_now() + o.minutes * 60;
  const unsigned cores = o.cores ? o.cores : std::max(1u, std::thread::hardware_concurrency());
  std::vector<pid_t> children;
  for (unsigned i = 0; i < cores; ++i) {
    const pid_t child = ::fork();
    CHECK(child >= 0);
    if (child == 0) {
      work(o, totals, until);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    if (status == 0) continue;
    ++totals.failed;
    std::printf("a process of the fleet died (status %d): a seed before %lu crashed it\n", status,
                totals.next.load());
  }
  return totals;
}

// Leaves out clients, faults and time as long as the seed still fails.
LifeOptions shrink(LifeOptions life) {
  auto fails = [](const LifeOptions& smaller) { return !live(smaller).broken.empty(); };
  for (size_t i = 0; i < client_count(); ++i) {
    LifeOptions smaller = life;
    smaller.clients &= ~(1u << i);
    if (fails(smaller)) life = smaller;
  }
  for (const FaultRow& row : kFaultRows) {
    LifeOptions smaller = life;
    smaller.faults.drop(row.fault);
    if (fails(smaller)) life = smaller;
  }
  for (int halvings = 0; halvings < 6; ++halvings) {
    LifeOptions smaller = life;
    smaller.divisor *= 2;
    if (!fails(smaller)) break;
    life = smaller;
  }
  return life;
}

int run_one(const Options& o) {
  LifeOptions life = life_of(o, o.from);
  Outcome out = live(life);
  if (o.shrink && !out.broken.empty()) {
    life = shrink(life);
    life.tell = true;
    out = live(life);
    std::printf("smallest life: clients %x, 1/%ld of the time with faults:", life.clients,
                life.divisor);
    for (const FaultRow& row : kFaultRows)
      if (life.faults.has(row.fault))
        std::printf(" %.*s;", static_cast<int>(row.name.size()), row.name.data());
    std::printf("\n");
  }
  for (const std::string& line : out.story)
    std::printf("%s\n", line.c_str());
  std::printf(
      "seed %lu: %.1f simulated hours, %lu starts, %lu frames, %lu answers, %lu steps, %s\n",
      o.from, static_cast<double>(out.simulated) / 3600e9, out.lives, out.frames, out.answers,
      out.steps, hex(view(out.digest)).substr(0, 16).c_str());
  for (const std::string& what : out.broken)
    std::printf("  broken: %s\n", what.c_str());
  return out.broken.empty() ? 0 : 1;
}

// Every mutation must be found within the seeds.
int run_mutations(Options o) {
  int missed = 0;
  for (const MutationRow& row : kMutations) {
    if (o.mutation != Mutation::none && o.mutation != row.mutation) continue;
    Options one = o;
    one.mutation = row.mutation;
    bool found = false;
    for (uint64_t seed = o.from; seed <= o.to && !found; ++seed) {
      const Outcome out = live(life_of(one, seed));
      found = !out.broken.empty();
      if (found)
        std::printf("%-28.*s found by seed %lu: %s\n", static_cast<int>(row.name.size()),
                    row.name.data(), seed, out.broken[0].substr(0, 150).c_str());
    }
    if (!found) {
      ++missed;
      std::printf("%-28.*s NOT FOUND (%.*s)\n", static_cast<int>(row.name.size()), row.name.data(),
                  static_cast<int>(row.what.size()), row.what.data());
    }
    std::fflush(stdout);
  }
  std::printf("%d mutations missed\n", missed);
  return missed ? 1 : 0;
}

bool read_seeds(std::string_view text, Options& o) {
  const char* end = text.data() + text.size();
  auto first = std::from_chars(text.data(), end, o.from);
  o.to = o.from;
  if (first.ec != std::errc()) return false;
  if (first.ptr == end) return true;
  if (*first.ptr != '-') return false;
  return std::from_chars(first.ptr + 1, end, o.to).ptr == end && o.to >= o.from;
}

bool read_mutation(std::string_view name, Options& o) {
  for (const MutationRow& row : kMutations)
    if (row.name == name) o.mutation = row.mutation;
  return o.mutation != Mutation::none;
}

bool read_flag(std::string_view flag, Options& o) {
  if (flag == "--tell") return o.tell = true;
  if (flag == "--twice") return o.twice = true;
  if (flag == "--mutations") return o.mutations = true;
  if (flag == "--shrink") return o.shrink = true;
  if (flag == "--coverage") return o.coverage = true;
  return false;
}

// `many` is set when --seeds is given.
bool read_options(int argc, char** argv, Options& o, bool& many) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (read_flag(flag, o)) continue;
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    const char* text = argv[i];
    if (flag == "--seed" || flag == "--seeds") {
      many = flag == "--seeds";
      if (!read_seeds(value, o)) return false;
    } else if (flag == "--minutes") {
      o.minutes = std::strtod(text, nullptr);
    } else if (flag == "--hours") {
      o.hours = std::strtod(text, nullptr);
    } else if (flag == "--cores") {
      o.cores = static_cast<unsigned>(std::strtoul(text, nullptr, 10));
    } else if (flag == "--clients") {
      o.clients = static_cast<unsigned>(std::strtoul(text, nullptr, 0));
    } else if (flag != "--mutation" || !read_mutation(value, o)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int run_fleet(int argc, char** argv) {
  Options o;
  bool many = false;
  if (!read_options(argc, argv, o, many)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  log_level(Level::off);
  if (const std::string why = worlds_left_out(); !why.empty()) {
    o.without_worlds = true;
    std::fprintf(stderr, "sim: %s\n", why.c_str());
  }
  const ModuleCache cache;
  o.wasm_cache = cache.folder;
  o.token_key = server::RsaKey::generate().private_pem();
  if (o.mutations) return run_mutations(o);
  if (!many) return run_one(o);
  const Totals& totals = run_seeds(o);
  if (o.coverage) print_coverage(totals);
  print_totals(totals);
  if (totals.first_failed != ~uint64_t{0})
    std::printf("repeat with: sim --seed %lu --hours %g --shrink\n", totals.first_failed.load(),
                o.hours);
  return totals.failed || !never_reached(totals).empty() ? 1 : 0;
}

}  // namespace pawl::sim
