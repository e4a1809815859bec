#include "cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// Runs in the new process: becomes the program or ends with 127, as a shell would.
[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::vector<std::pair<std::string, std::string>>& env) {
  for (const auto& [name, value] : env)
    setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv;
  for (const auto& word : command)
    argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  dprintf(STDERR_FILENO, "cannot run %s\n", argv[0]);
  _exit(127);
}

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
    become(command, env);
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

}  // namespace pawl::cli
