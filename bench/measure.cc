#include "bench/measure.h"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace pawl::bench {

void pause(double for_seconds) {
  if (for_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(for_seconds));
}

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(r.ru_utime) + of(r.ru_stime);
}

// Time that threads waited for a processor: on a busy machine a low processor time alone says
// little.
static double waited_seconds() {
  double ns = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(task.path() / "schedstat");
    double ran = 0, waited = 0;
    if (in >> ran >> waited) ns += waited;
  }
  return ns * 1e-9;
}

// Settled: less than a tenth of one core is used or waited for during half a second. Gives up after
// two minutes.
void let_settle() {
  for (double until = seconds() + 120; seconds() < until;) {
    double before = cpu_seconds() + waited_seconds();
    pause(0.5);
    if (cpu_seconds() + waited_seconds() - before < 0.05) return;
  }
}

// The nearest rank; sorts the samples in place.
double Latencies::p(double percent) {
  if (us.empty()) return 0;
  std::sort(us.begin(), us.end());
  return us[std::min(us.size() - 1,
                     static_cast<size_t>(static_cast<double>(us.size()) * percent / 100))];
}

Folder::Folder(const std::string& name) : path_(fmt::format("bench-data-{}-{}", name, getpid())) {
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}
Folder::~Folder() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

void Report::line(const std::string& what, double value, const std::string& unit) {
  fmt::print("  {:<64} {:>14.3f} {}\n", what, value, unit);
  fflush(stdout);
}

void Report::bar(Bar b) {
  bool met = b.at_least ? b.value >= b.bar : b.value <= b.bar;
  if (!met) ++missed_;
  fmt::print("{} {:<64} {:>14.3f} {} (bar: at {} {})\n", met ? "+" : "-", b.what, b.value, b.unit,
             b.at_least ? "least" : "most", b.bar);
  fflush(stdout);
}

// The second number of statm is the resident set, in pages.
size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  size_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

double sync_ms(const std::string& folder) {
  std::string path = folder + "/sync";
  int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  std::string block(4096, 'x');
  Latencies l;
  for (int i = 0; i < 200; ++i) {
    double begin = seconds();
    // The first 64 writes allocate the blocks of the file and are not counted.
    if (pwrite(fd, block.data(), block.size(), (i % 64) * 4096) < 0 || fdatasync(fd) < 0) break;
    if (i >= 64) l.us.push_back((seconds() - begin) * 1e6);
  }
  close(fd);
  unlink(path.c_str());
  return l.p(50) / 1000;
}

}  // namespace pawl::bench
