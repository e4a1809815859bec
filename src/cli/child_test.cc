#include "cli/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

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
