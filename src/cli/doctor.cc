// `pawl doctor` looks for things on this machine that make pawl slow, unsafe or unable to start.
// Each finding comes with its remedy.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/command.h"
#include "runtime/shard.h"
#include "server/http/address.h"

namespace pawl::cli {

namespace {

// One row of the report. The remedy is shown only when the check is not good.
struct Finding {
  std::string_view check;
  bool good;
  std::string found;
  std::string remedy;
};

Finding disk_space(const std::string& folder) {
  struct statvfs s {};
  if (statvfs(folder.c_str(), &s) != 0)
    return {"disk space", false, fmt::format("cannot read the file system of {}", folder),
            "name an existing folder with --data"};
  double free_gib = static_cast<double>(s.f_bavail) * static_cast<double>(s.f_frsize) / (1 << 30);
  return {"disk space", free_gib > 2, fmt::format("{:.1f} GiB free", free_gib),
          "free some space: when the disk is full pawl stops taking requests"};
}

Finding sync_speed(const std::string& folder) {
  std::string path = folder + "/.pawl-doctor";
  int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (fd < 0)
    return {"disk sync", false, fmt::format("cannot write in {}", folder),
            "correct the folder's permissions or choose another --data"};
  std::string block(4096, 'x');
  std::vector<double> ms;
  // The same block is written each time: what is measured is the flush, not the allocation of new
  // blocks.
  for (int i = 0; i < 60; ++i) {
    auto begin = std::chrono::steady_clock::now();
    bool ok = pwrite(fd, block.data(), block.size(), 0) == static_cast<ssize_t>(block.size()) &&
              fdatasync(fd) == 0;
    if (!ok) break;
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
                     .count());
  }
  close(fd);
  unlink(path.c_str());
  if (ms.empty())
    return {"disk sync", false, "fdatasync failed",
            "read the system log: the disk may be failing or full"};
  std::sort(ms.begin(), ms.end());
  double p50 = ms[ms.size() / 2], p99 = ms[ms.size() * 99 / 100];
  return {"disk sync", p50 < 5, fmt::format("p50 {:.2f} ms, p99 {:.2f} ms", p50, p99),
          "every acknowledged write waits for one sync: use a local SSD, not a network disk"};
}

// Only a clock that was never set is noticed; a small error cannot be seen from here.
Finding clock_sane() {
  Time now = system_now();
  bool sane = now > *parse_rfc3339("2025-01-01T00:00:00Z");
  return {"clock", sane, rfc3339(now, 0), "set the clock and run an NTP client: timers follow it"};
}

Finding file_limit() {
  rlimit r{};
  getrlimit(RLIMIT_NOFILE, &r);
  return {"open files", r.rlim_cur >= 4096, fmt::format("limit {}", r.rlim_cur),
          "raise it: ulimit -n 65536, or LimitNOFILE= in the unit"};
}

Finding memory() {
  std::ifstream in("/proc/meminfo");
  std::string word;
  long kib = 0;
  while (in >> word)
    if (word == "MemAvailable:") {
      in >> kib;
      break;
    }
  return {"memory", kib > 512 * 1024, fmt::format("{} MiB available", kib / 1024),
          "pawl needs half a gigabyte for its caches"};
}

// Listens as the server would, on the address itself: a port that is free for IPv4 may be taken for
// IPv6, and an address that this machine does not have is no place to listen.
Finding port_free(std::string_view check, const std::string& text) {
  auto address = server::parse_address(text);
  if (!address)
    return {check, false, address.error().message, "write the address as 127.0.0.1:8080"};
  auto listener = server::listen_on(*address);
  if (!listener)
    return {check, false, listener.error().message,
            "stop the program that listens there, or choose another address"};
  close(listener->fd);
  return {check, true, text + " is free", ""};
}

Result<int> run(const Args& args) {
  std::string folder = args.get("data", "./data");
  std::error_code ec;
  // A server that has never run has no data folder yet; the current folder is measured instead.
  if (!std::filesystem::exists(folder, ec)) folder = ".";
  std::vector<Finding> all = {disk_space(folder),
                              sync_speed(folder),
                              memory(),
                              clock_sane(),
                              file_limit(),
                              port_free("http port", args.get("http", "127.0.0.1:8080")),
                              port_free("grpc port", args.get("grpc", "127.0.0.1:9090")),
                              port_free("admin port", args.get("admin", "127.0.0.1:9091"))};
  json::Array rows;
  bool good = true;
  for (const Finding& f : all) {
    good = good && f.good;
    json::Object o;
    o.add("check", f.check);
    o.add("good", f.good);
    o.add("found", f.found);
    if (!f.good) o.add("remedy", f.remedy);
    rows.emplace_back(std::move(o));
  }
  show(args, json::object({{"good", good}, {"findings", std::move(rows)}}), [&] {
    for (const Finding& f : all) {
      fmt::print("{}  {:<12} {}\n", f.good ? "ok  " : "LOOK", f.check, f.found);
      if (!f.good) fmt::print("      {}\n", f.remedy);
    }
  });
  return good ? kDone : kFailed;
}

}  // namespace

static constexpr Command kDoctorCommands[] = {
    {"doctor",
     "",
     "check disk, sync speed, memory, clock, limits and ports",
     {{"data", v::path("DIR"), "the data folder (default ./data)"},
      {"http", v::address(), "address that must be free"},
      {"grpc", v::address(), "address that must be free"},
      {"admin", v::address(), "address that must be free"}},
     run}};

std::span<const Command> doctor_commands() { return kDoctorCommands; }

}  // namespace pawl::cli
