#include "sim/outside/cores.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace pawl::sim {
namespace {

// What a process writes before the bytes of a task.
struct Head {
  uint64_t task, size;
};

struct Child {
  pid_t pid;
  int from;  // the end of the pipe that this process reads; -1 when it was closed
  Bytes unread{};
};

bool write_all(int to, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t wrote = ::write(to, bytes, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    bytes += wrote;
    size -= static_cast<size_t>(wrote);
  }
  return true;
}

[[noreturn]] void work(const CoreTasks& tasks, std::atomic<size_t>& next, int to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it ends with the process that wants its answers
  for (size_t task = next++; task < tasks.count; task = next++) {
    const Bytes bytes = tasks.run(task);
    const Head head{task, bytes.size()};
    if (!write_all(to, reinterpret_cast<const char*>(&head), sizeof head) ||
        !write_all(to, bytes.data(), bytes.size()))
      std::_Exit(1);
  }
  std::_Exit(0);
}

Result<Child> start(const CoreTasks& tasks, std::atomic<size_t>& next) {
  int ends[2];
  if (::pipe(ends) != 0)
    return fail(Code::unavailable, "NO_PIPE", "no pipe for a process of the simulation");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    work(tasks, next, ends[1]);
  }
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(Code::unavailable, "NO_PROCESS",
                "cannot start a process of the simulation: use --jobs 1");
  }
  return Child{pid, ends[0]};
}

// Takes the answers that are complete.
size_t take(Child& child, std::vector<Bytes>& out) {
  size_t taken = 0;
  size_t at = 0;
  Head head{};
  while (child.unread.size() - at >= sizeof head) {
    std::memcpy(&head, child.unread.data() + at, sizeof head);
    if (child.unread.size() - at - sizeof head < head.size) break;
    out[head.task] = child.unread.substr(at + sizeof head, head.size);
    at += sizeof head + head.size;
    ++taken;
  }
  child.unread.erase(0, at);
  return taken;
}

// Reads what there is; closes the pipe at its end.
void read_some(Child& child) {
  char buffer[64 * 1024];
  const ssize_t had = ::read(child.from, buffer, sizeof buffer);
  if (had < 0 && errno == EINTR) return;
  if (had > 0) {
    child.unread.append(buffer, static_cast<size_t>(had));
    return;
  }
  ::close(child.from);
  child.from = -1;
}

void collect(std::vector<Child>& children, const CoreTasks& tasks, std::vector<Bytes>& out) {
  size_t done = 0;
  for (;;) {
    std::vector<pollfd> waits;
    std::vector<Child*> of;
    for (Child& child : children)
      if (child.from >= 0) {
        waits.push_back({child.from, POLLIN, 0});
        of.push_back(&child);
      }
    if (waits.empty()) return;
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (!waits[i].revents) continue;
      read_some(*of[i]);
      const size_t taken = take(*of[i], out);
      done += taken;
      if (taken && tasks.progress) tasks.progress(done);
    }
  }
}

}  // namespace

size_t core_count() { return std::max(1u, std::thread::hardware_concurrency()); }

Result<std::vector<Bytes>> run_on_cores(size_t processes, const CoreTasks& tasks) {
  std::vector<Bytes> out(tasks.count);
  processes = std::min(processes, tasks.count);
  if (processes <= 1) {
    for (size_t task = 0; task < tasks.count; ++task) {
      out[task] = tasks.run(task);
      if (tasks.progress) tasks.progress(task + 1);
    }
    return out;
  }
  void* memory = ::mmap(nullptr, sizeof(std::atomic<size_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  auto& next = *new (memory) std::atomic<size_t>(0);
  std::vector<Child> children;
  Result<void> started{};
  while (children.size() < processes && started) {
    auto child = start(tasks, next);
    if (child)
      children.push_back(*child);
    else
      started = fail(std::move(child.error()));
  }
  if (!started) next = tasks.count;
  collect(children, tasks, out);
  int bad = 0;
  for (const Child& child : children) {
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {}
    if (status != 0) bad = status;
  }
  ::munmap(memory, sizeof(std::atomic<size_t>));
  TRY_OK(started);
  if (bad)
    return fail(Code::internal, "PROCESS_DIED",
                fmt::format("a process of the simulation died (status {}): run it with --jobs 1 to "
                            "see why",
                            bad));
  return out;
}

}  // namespace pawl::sim
