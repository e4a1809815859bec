#include "runtime/quarantine.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "storage/test_folder.h"

namespace pawl {
namespace {

struct QuarantineTest : testing::Test {
  std::unique_ptr<Quarantine> open() {
    auto opened = Quarantine::open(folder.path(), 7 * kSecond);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  // A process that is killed while it settles the effect.
  void crash_in(const std::string& effect) {
    const pid_t child = fork();
    if (child == 0) {
      auto quarantine = Quarantine::open(folder.path(), 7 * kSecond);
      if (quarantine) (*quarantine)->enter(effect);
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  TestFolder folder;
};

TEST_F(QuarantineTest, an_effect_that_kills_the_process_twice_is_parked) {
  crash_in("timer:1");
  EXPECT_EQ(open()->in_doubt(), "timer:1");
  EXPECT_EQ(open()->size(), 0u) << "one crash may have another cause";
  crash_in("timer:1");
  auto quarantine = open();
  EXPECT_TRUE(quarantine->holds("timer:1"));
  EXPECT_FALSE(quarantine->holds("timer:2"));
  ASSERT_EQ(quarantine->list().size(), 1u);
  EXPECT_EQ(quarantine->list()[0].effect_id, "timer:1");
  EXPECT_EQ(quarantine->list()[0].since, 7 * kSecond);
  EXPECT_TRUE(open()->holds("timer:1")) << "it stays there";
}

TEST_F(QuarantineTest, two_effects_that_crash_once_each_are_not_parked) {
  crash_in("a");
  crash_in("b");
  EXPECT_EQ(open()->size(), 0u);
}

TEST_F(QuarantineTest, a_turn_that_ends_well_clears_its_strike) {
  crash_in("a");
  {
    auto quarantine = open();
    quarantine->enter("a");
    quarantine->leave();
  }
  crash_in("a");
  auto quarantine = open();
  EXPECT_EQ(quarantine->in_doubt(), "a");
  EXPECT_EQ(quarantine->size(), 0u);
}

TEST_F(QuarantineTest, a_clean_stop_leaves_nothing_in_doubt) {
  {
    auto quarantine = open();
    quarantine->enter("a");
    quarantine->leave();
  }
  EXPECT_EQ(open()->in_doubt(), "");
}

TEST_F(QuarantineTest, a_released_effect_is_free_and_needs_two_strikes_again) {
  const std::string odd("bin\0ary\n id", 11);
  crash_in(odd);
  crash_in(odd);
  {
    auto quarantine = open();
    ASSERT_TRUE(quarantine->holds(odd));
    EXPECT_EQ(quarantine->release("other").error().code, Code::not_found);
    ASSERT_TRUE(quarantine->release(odd));
    EXPECT_FALSE(quarantine->holds(odd));
  }
  crash_in(odd);
  EXPECT_FALSE(open()->holds(odd));
}

TEST_F(QuarantineTest, damaged_files_and_long_ids_do_no_harm) {
  std::ofstream(folder.path() + "/quarantine") << "nonsense\n3 x y\n2 5 zz\n";
  auto quarantine = open();
  EXPECT_EQ(quarantine->size(), 0u);
  quarantine->enter(std::string(Quarantine::kMaxIdBytes + 1, 'x'));
  quarantine->leave();
  EXPECT_EQ(open()->in_doubt(), "");
}

TEST(quarantine, without_a_folder_nothing_is_recorded) {
  auto quarantine = Quarantine::open("", 0);
  ASSERT_TRUE(quarantine);
  (*quarantine)->enter("a");
  (*quarantine)->leave();
  EXPECT_EQ((*quarantine)->size(), 0u);
}

}  // namespace
}  // namespace pawl
