#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>

#include "json/text.h"

namespace pawl::cli {
namespace {

// An open file descriptor. It is closed with its owner, so a failure half way leaks none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read_end, write_end;
};

// Closed on exec: dup2() in the child makes the copies that the program keeps.
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return fail(Code::unavailable, "NO_PIPE",
                std::string("cannot make a pipe: ") + std::strerror(errno));
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

// Everything that exec() needs, made before the fork. Between fork and exec the new process has
// only one thread, and a lock that another thread held at the fork is never released: it must not
// allocate memory.
class ChildStart {
 public:
  ChildStart(const std::vector<std::string>& command,
             const std::vector<std::pair<std::string, std::string>>& env)
      : words_(command), refusal_("cannot run " + command.at(0) + "\n") {
    for (char** at = environ; at && *at; ++at)
      if (!is_replaced(*at, env)) variables_.emplace_back(*at);
    for (const auto& [name, value] : env)
      variables_.push_back(name + "=" + value);
    argv_ = pointers(words_);
    envp_ = pointers(variables_);
    find_places();
  }

  // Runs in the new process: becomes the program or ends with 127, as a shell would.
  [[noreturn]] void become() const {
    for (const Place& place : places_) {
      execve(place.path.c_str(), argv_.data(), envp_.data());
      // A script without a first line that names its shell.
      if (errno == ENOEXEC) execve("/bin/sh", place.shell_argv.data(), envp_.data());
    }
    (void)!write(STDERR_FILENO, refusal_.data(), refusal_.size());
    _exit(127);
  }

 private:
  static bool is_replaced(std::string_view variable,
                          const std::vector<std::pair<std::string, std::string>>& env) {
    const std::string_view name = variable.substr(0, variable.find('='));
    for (const auto& row : env)
      if (row.first == name) return true;
    return false;
  }
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (std::string& text : texts)
      out.push_back(text.data());
    out.push_back(nullptr);
    return out;
  }
  // The places where a shell would look, in its order. execvp() does the same, but POSIX does not
  // allow it between fork and exec.
  void find_places() {
    if (words_[0].find('/') != std::string::npos) return add_place(words_[0]);
    const char* set = getenv("PATH");
    const std::string_view path = set ? set : "/usr/local/bin:/bin:/usr/bin";
    for (size_t at = 0; at <= path.size();) {
      const size_t end = std::min(path.find(':', at), path.size());
      const std::string_view folder = path.substr(at, end - at);
      add_place((folder.empty() ? "." : std::string(folder)) + "/" + words_[0]);
      at = end + 1;
    }
  }
  void add_place(std::string path) {
    Place& place = places_.emplace_back();
    place.path = std::move(path);
    place.shell_argv.push_back(shell_.data());
    place.shell_argv.push_back(place.path.data());
    place.shell_argv.insert(place.shell_argv.end(), argv_.begin() + 1, argv_.end());
  }

  struct Place {
    std::string path;
    std::vector<char*> shell_argv;
  };
  std::vector<std::string> words_, variables_;
  std::string shell_ = "sh";
  std::deque<Place> places_;  // not moved: shell_argv points into them
  const std::string refusal_;
  std::vector<char*> argv_, envp_;
};

// Writes the next piece of `in`. Closes the pipe when everything is written, or when the program
// does not read its input.
void write_some(Descriptor& to, const std::string& in, size_t& sent) {
  ssize_t n = write(to.get(), in.data() + sent, in.size() - sent);
  if (n > 0) sent += static_cast<size_t>(n);
  bool refused = n < 0 && errno != EAGAIN && errno != EINTR;
  if (refused || sent == in.size()) to.reset();
}

// Closes the descriptor at the end of the output.
void read_some(Descriptor& from, std::string& out) {
  char piece[65536];
  ssize_t n = read(from.get(), piece, sizeof piece);
  if (n > 0)
    out.append(piece, static_cast<size_t>(n));
  else if (n == 0 || errno != EINTR)
    from.reset();
}

// Feeds and reads the program until it has closed both of its outputs.
void exchange_text(Descriptor to, Descriptor from, Descriptor errors, const std::string& in,
                   ChildResult& result) {
  size_t sent = 0;
  // Writing must not block: a program that fills its output before it reads its input would wait
  // for this side, and this side for it.
  fcntl(to.get(), F_SETFL, O_NONBLOCK);
  if (in.empty()) to.reset();
  while (from.is_open() || errors.is_open()) {
    // A closed descriptor is -1, which poll() ignores.
    pollfd fds[3] = {{to.get(), POLLOUT, 0}, {from.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
    if (poll(fds, 3, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (fds[0].revents) write_some(to, in, sent);
    if (fds[1].revents) read_some(from, result.out);
    if (fds[2].revents) read_some(errors, result.err);
  }
}

}  // namespace

Result<ChildResult> run_child(const std::vector<std::string>& command, const std::string& in,
                              const std::vector<std::pair<std::string, std::string>>& env) {
  if (command.empty()) return fail(Code::invalid, "NO_COMMAND", "name the program to run");
  const ChildStart start(command, env);
  TRY(Pipe to, make_pipe());
  TRY(Pipe from, make_pipe());
  TRY(Pipe errors, make_pipe());
  pid_t pid = fork();
  if (pid < 0)
    return fail(Code::unavailable, "NO_PROCESS",
                std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    dup2(to.read_end.get(), STDIN_FILENO);
    dup2(from.write_end.get(), STDOUT_FILENO);
    dup2(errors.write_end.get(), STDERR_FILENO);
    start.become();
  }
  // The parent's copies of the child's ends are closed, or the end of the output would never be
  // seen.
  to.read_end.reset();
  from.write_end.reset();
  errors.write_end.reset();
  ChildResult result;
  exchange_text(std::move(to.write_end), std::move(from.read_end), std::move(errors.read_end), in,
                result);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    continue;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

Result<json::Object> run_job(const std::vector<std::string>& command, const json::Value& job) {
  const json::Value* variables = job.find("variables");
  TRY(ChildResult ran, run_child(command, variables ? json::print(*variables) + "\n" : "{}\n",
                                 {{"PAWL_JOB_ID", std::string(job.string_or("id"))},
                                  {"PAWL_JOB_TYPE", std::string(job.string_or("jobType"))},
                                  {"PAWL_INSTANCE_ID", std::string(job.string_or("instanceId"))}}));
  if (ran.code != 0)
    return fail(Code::invalid, kWorkerFailed,
                fmt::format("{} ended with {}: {}", command[0], ran.code, ran.err.substr(0, 2000)));
  if (ran.out.find_first_not_of(" \t\r\n") == std::string::npos) return json::Object{};
  auto result = json::parse(ran.out);
  if (!result || !result->is_object())
    return fail(Code::invalid, kWorkerFailed,
                fmt::format("{} printed something that is not a JSON object", command[0]));
  return std::move(result->object());
}

}  // namespace pawl::cli
