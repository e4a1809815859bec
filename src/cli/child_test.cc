#include "cli/child.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

// True in a process that fork() made. There, no allocation is allowed before exec: it ends the
// process with a code that no test expects.
static bool forked = false;
void* operator new(size_t size) {
  if (forked) _exit(99);
  void* got = std::malloc(size ? size : 1);
  if (!got) throw std::bad_alloc();
  return got;
}
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }

namespace pawl::cli {
namespace {

size_t open_descriptors() {
  size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

TEST(child, text_goes_in_and_comes_out) {
  signal(SIGPIPE, SIG_IGN);
  std::string large(1 << 20, 'x');
  auto echoed = run_child({"sh", "-c", "cat; echo $WORD >&2; exit 3"}, large, {{"WORD", "said"}});
  ASSERT_TRUE(echoed);
  EXPECT_EQ(echoed->code, 3);
  EXPECT_EQ(echoed->out, large);
  EXPECT_EQ(echoed->err, "said\n");
}

TEST(child, a_program_need_not_read_its_input) {
  signal(SIGPIPE, SIG_IGN);
  auto ended = run_child({"true"}, std::string(1 << 20, 'x'), {});
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->code, 0);
}

TEST(child, a_missing_program_ends_with_127_and_a_signal_with_128_and_its_number) {
  auto missing = run_child({"/no/such/program"}, "", {});
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->code, 127);
  EXPECT_EQ(missing->err, "cannot run /no/such/program\n");
  EXPECT_EQ(run_child({"sh", "-c", "kill -9 $$"}, "", {})->code, 128 + SIGKILL);
}

TEST(child, nothing_is_allocated_between_fork_and_exec) {
  ASSERT_EQ(pthread_atfork(nullptr, nullptr, [] { forked = true; }), 0);
  auto said = run_child({"sh", "-c", "echo $WORD"}, "", {{"WORD", "said"}, {"OTHER", "x"}});
  ASSERT_TRUE(said);
  EXPECT_EQ(said->code, 0);
  EXPECT_EQ(said->out, "said\n");
  EXPECT_EQ(run_child({"no-such-program"}, "", {})->code, 127);
}

TEST(child, variables_replace_those_of_the_parent_and_scripts_need_no_first_line) {
  setenv("PAWL_CHILD_TEST", "old", 1);
  auto said =
      run_child({"sh", "-c", "env | grep PAWL_CHILD_TEST"}, "", {{"PAWL_CHILD_TEST", "new"}});
  unsetenv("PAWL_CHILD_TEST");
  EXPECT_EQ(said->out, "PAWL_CHILD_TEST=new\n");
  const std::string script = testing::TempDir() + "pawl-child-script";
  std::ofstream(script) << "echo \"got $1\"\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_EQ(run_child({script, "one"}, "", {})->out, "got one\n");
  std::filesystem::remove(script);
}

// Each round leaves room for one more descriptor, so each of the three pipes fails in some round.
TEST(child, a_failed_pipe_leaks_no_descriptor) {
  const size_t before = open_descriptors();
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  int refusals = 0;
  for (rlim_t spare = 0; spare < 8; ++spare) {
    rlimit tight = old;
    tight.rlim_cur = before - 1 + spare;  // the listing itself held one descriptor
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
    auto ran = run_child({"true"}, "", {});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    refusals += !ran;
    EXPECT_EQ(open_descriptors(), before) << spare;
  }
  EXPECT_GE(refusals, 3);
}

}  // namespace
}  // namespace pawl::cli
