#include "base/memory_budget.h"

#include <gtest/gtest.h>

namespace pawl {

TEST(memory_budget, a_use_that_is_full_leaves_room_for_the_others) {
  MemoryBudget budget(800);
  EXPECT_TRUE(budget.take(MemoryUse::bodies, 400));
  EXPECT_FALSE(budget.take(MemoryUse::bodies, 1));
  EXPECT_TRUE(budget.take(MemoryUse::answers, 400));
  EXPECT_FALSE(budget.take(MemoryUse::streams, 1));  // the whole budget is taken
  budget.give_back(MemoryUse::bodies, 1);
  EXPECT_TRUE(budget.take(MemoryUse::streams, 1));
  EXPECT_EQ(budget.used(), 800u);
  EXPECT_EQ(budget.refused(MemoryUse::bodies), 1u);
}

TEST(memory_budget, a_charge_gives_back_what_it_holds) {
  MemoryBudget budget(800);
  {
    MemoryCharge charge(&budget, MemoryUse::streams);
    EXPECT_TRUE(charge.resize(300));
    EXPECT_FALSE(charge.resize(500));
    EXPECT_EQ(charge.bytes(), 300u);
    charge.force(500);
    EXPECT_EQ(budget.used(MemoryUse::streams), 500u);
    MemoryCharge moved = std::move(charge);
    EXPECT_TRUE(moved.resize(100));
    EXPECT_EQ(budget.used(MemoryUse::streams), 100u);
  }
  EXPECT_EQ(budget.used(), 0u);
  MemoryCharge uncounted;
  EXPECT_TRUE(uncounted.resize(1 << 30));
}

}  // namespace pawl
