#include "base/memory_budget.h"

#include <gtest/gtest.h>

namespace pawl {

using Taken = MemoryBudget::Taken;

TEST(memory_budget, a_use_that_is_full_leaves_room_for_the_others) {
  MemoryBudget budget(800);
  EXPECT_EQ(budget.take(MemoryUse::bodies, 400), Taken::yes);
  EXPECT_EQ(budget.take(MemoryUse::bodies, 1), Taken::budget_full);
  EXPECT_EQ(budget.take(MemoryUse::answers, 400), Taken::yes);
  EXPECT_EQ(budget.take(MemoryUse::streams, 1), Taken::budget_full);  // the whole budget is taken
  budget.give_back(MemoryUse::bodies, 1);
  EXPECT_EQ(budget.take(MemoryUse::streams, 1), Taken::yes);
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

TEST(memory_budget, a_tenant_beside_others_holds_at_most_what_is_left_free) {
  MemoryBudget budget(1600);  // bodies may use 800
  auto loud = std::make_shared<MemoryAccount>(budget);
  MemoryCharge all(&budget, MemoryUse::bodies, loud);
  EXPECT_TRUE(all.resize(800));  // alone it may use everything
  all.clear();
  auto quiet = std::make_shared<MemoryAccount>(budget);
  MemoryCharge first(&budget, MemoryUse::bodies, loud);
  EXPECT_TRUE(first.resize(400));
  EXPECT_FALSE(first.resize(401));
  EXPECT_TRUE(first.over_share());
  EXPECT_EQ(budget.refused_by_share(), 1u);
  MemoryCharge second(&budget, MemoryUse::bodies, quiet);
  EXPECT_TRUE(second.resize(200));  // there is room for the other tenant
  EXPECT_FALSE(second.resize(201));
  MemoryCharge nobody(&budget, MemoryUse::bodies);
  EXPECT_TRUE(nobody.resize(200));
  EXPECT_FALSE(nobody.resize(201));
  EXPECT_FALSE(nobody.over_share());
}

TEST(memory_budget, a_tenant_does_not_fill_all_uses) {
  MemoryBudget budget(1600);
  auto loud = std::make_shared<MemoryAccount>(budget),
       quiet = std::make_shared<MemoryAccount>(budget);
  MemoryCharge bodies(&budget, MemoryUse::bodies, loud), answers(&budget, MemoryUse::answers, loud);
  MemoryCharge streams(&budget, MemoryUse::streams, loud);
  EXPECT_TRUE(bodies.resize(400));
  EXPECT_TRUE(answers.resize(400));
  EXPECT_FALSE(streams.resize(1));  // half of the budget
  MemoryCharge other(&budget, MemoryUse::streams, quiet);
  EXPECT_TRUE(other.resize(400));
}

TEST(memory_budget, a_charge_changes_its_account) {
  MemoryBudget budget(800);
  auto tenant = std::make_shared<MemoryAccount>(budget);
  MemoryCharge charge(&budget, MemoryUse::bodies);
  charge.force(100);
  EXPECT_EQ(tenant->used(), 0u);
  charge.move_to(tenant);
  EXPECT_EQ(tenant->used(MemoryUse::bodies), 100u);
  EXPECT_EQ(budget.used(), 100u);
  charge.move_to(nullptr);
  EXPECT_EQ(tenant->used(), 0u);
}

}  // namespace pawl
