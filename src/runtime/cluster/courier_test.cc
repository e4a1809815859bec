#include "runtime/cluster/courier.h"

#include <fmt/format.h>

#include "runtime/cluster/post_test.h"
#include "storage/file/file_journal.h"
#include "storage/test_folder.h"

namespace pawl {

struct Offices {
  LocalLink local;
  std::vector<std::unique_ptr<PostOffice>> all;
  explicit Offices(uint32_t count, Link* link = nullptr) {
    for (uint32_t i = 0; i < count; ++i)
      all.push_back(std::make_unique<PostOffice>(i, local, link ? *link : local));
  }
  PostOffice& operator[](size_t i) { return *all[i]; }
  void open() {
    for (auto& office : all)
      office->open();
  }
  bool all_settled() {
    size_t open = 0;
    for (auto& office : all) {
      office->reopen_if_failed();
      open += office->cells(kEffectPrefix);
    }
    return open == 0;
  }
  bool marks_are_forgotten() {
    return becomes_true([&] {
      for (auto& office : all)
        if (office->marks() > 0) return false;
      return true;
    });
  }
  void expect_verified() {
    for (auto& office : all)
      EXPECT_EQ(office->verify(), "") << "shard " << office->number;
  }
};

TEST(courier, an_effect_happens_in_the_other_shard_and_its_receipt_comes_back) {
  Offices offices(2);
  offices.open();
  ASSERT_TRUE(offices[0].say("send 1", "parcel"));
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "parcel") == "1"; }));
  EXPECT_EQ(offices[0].value("answer", "parcel"), "1 for ann");
  EXPECT_EQ(offices[1].value("taken", "parcel"), "1");
  EXPECT_EQ(offices[0].value("taken", "parcel"), "");
  EXPECT_TRUE(offices.marks_are_forgotten());
  EXPECT_EQ(offices[0].courier->stats().delivered, 1u);
  EXPECT_EQ(offices[0].courier->stats().open, 0u);
  offices.expect_verified();
}

TEST(courier, a_shard_may_send_to_itself) {
  Offices offices(1);
  offices.open();
  ASSERT_TRUE(offices[0].say("send 0", "card"));
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "card") == "1"; }));
  EXPECT_EQ(offices[0].value("taken", "card"), "1");
  offices.expect_verified();
}

TEST(courier, a_second_delivery_changes_nothing_and_gets_the_same_receipt) {
  Offices offices(2);
  offices.open();
  Effect effect = effect_to_shard("e", "post", 1, "take", "e", {"t", "bob", ""});
  Effect::Address address = *effect.address;
  address.number = 1;
  effect.address = std::make_shared<const Effect::Address>(address);
  auto first = offices[1].submit(delivery_of(effect, 0, 1));
  auto second = offices[1].submit(delivery_of(effect, 0, 1));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->body, second->body);
  EXPECT_EQ(first->seq, second->seq);
  EXPECT_EQ(decode_delivery_receipt(second->body)->answer, "1 for bob");
  EXPECT_EQ(offices[1].value("taken", "e"), "1");
  // Once the source has settled it, a late delivery is refused and does nothing.
  ASSERT_TRUE(offices[1].submit(forget_delivered(0, 2)));
  EXPECT_EQ(offices[1].marks(), 0u);
  auto late = offices[1].submit(delivery_of(effect, 0, 1));
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().is(kDeliveryForgotten));
  EXPECT_EQ(offices[1].value("taken", "e"), "1");
  offices.expect_verified();
}

TEST(courier, a_number_that_a_source_uses_twice_is_an_alarm) {
  Offices offices(2);
  offices.open();
  auto numbered = [](const std::string& id) {
    Effect effect = effect_to_shard(id, "post", 1, "take", id, {"t", "bob", ""});
    effect.address =
        std::make_shared<const Effect::Address>(Effect::Address{1, "post", "bob", "", 1});
    return effect;
  };
  ASSERT_TRUE(offices[1].submit(delivery_of(numbered("one"), 0, 1)));
  auto other = offices[1].submit(delivery_of(numbered("two"), 0, 1));
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().is(kDeliveryNumberReused));
  EXPECT_EQ(offices[1].value("taken", "two"), "");
}

TEST(courier, a_refusal_is_a_receipt_and_is_never_done_later) {
  Offices offices(2);
  offices.open();
  ASSERT_TRUE(offices[0].say("send 1", "no thanks"));
  ASSERT_TRUE(offices[0].say("send 1", "big one"));
  ASSERT_TRUE(becomes_true([&] { return offices.all_settled(); }));
  EXPECT_EQ(offices[0].value("answer", "no thanks"), "NO");
  EXPECT_EQ(offices[0].value("settled", "no thanks"), "1");
  EXPECT_EQ(offices[1].value("taken", "no thanks"), "") << "what it wrote before is undone";
  EXPECT_EQ(offices[0].value("answer", "big one"), "RECEIPT_TOO_LARGE");
  EXPECT_EQ(offices[0].courier->stats().refused, 2u);
  EXPECT_TRUE(offices.marks_are_forgotten());
  offices.expect_verified();
}

TEST(courier, an_unavailable_target_is_tried_again_until_it_is_there) {
  Offices offices(2);
  offices.open();
  offices[1].close();
  ASSERT_TRUE(offices[0].say("send 1", "a"));
  ASSERT_TRUE(becomes_true([&] { return offices[0].courier->stats().repeated > 2; }));
  EXPECT_EQ(offices[0].courier->stats().failing, 1u);
  EXPECT_NE(offices[0].courier->stats().last_failure.find("SHARD_NOT_HERE"), std::string::npos);
  offices[1].open();
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "a") == "1"; }));
  EXPECT_EQ(offices[1].value("taken", "a"), "1");
}

TEST(courier, one_effect_that_fails_does_not_hold_up_the_others) {
  Offices offices(2);
  offices.open();
  ASSERT_TRUE(offices[0].say("send 1", "shut out"));
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(offices[0].say("send 1", "p" + std::to_string(i)));
  ASSERT_TRUE(becomes_true([&] { return offices[0].cells(kEffectPrefix) == 1; }));
  EXPECT_EQ(offices[0].value("settled", "shut out"), "");
  EXPECT_GT(offices[1].marks(), 0u) << "marks above the lowest open effect are kept";
  ASSERT_TRUE(offices[1].say("take", "door"));
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "shut out") == "1"; }));
  EXPECT_EQ(offices[1].value("taken", "shut out"), "1");
  EXPECT_TRUE(offices.marks_are_forgotten());
  offices.expect_verified();
}

TEST(courier, a_withdrawn_effect_is_not_delivered_later) {
  Offices offices(2);
  offices.open();
  offices[1].close();
  ASSERT_TRUE(offices[0].say("send 1", "gone"));
  ASSERT_TRUE(offices[0].say("send 1", "stays"));
  ASSERT_TRUE(offices[0].say("withdraw", "gone"));
  offices[1].open();
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "stays") == "1"; }));
  EXPECT_EQ(offices[1].value("taken", "gone"), "");
  EXPECT_TRUE(offices.marks_are_forgotten());
  offices.expect_verified();
}

// The same id may be used again once its effect is settled: it is another effect.
TEST(courier, an_id_that_is_used_again_is_delivered_again) {
  Offices offices(2);
  offices.open();
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(offices[0].say("send 1", "again"));
    ASSERT_TRUE(becomes_true(
        [&] { return offices[0].value("settled", "again") == std::to_string(round); }));
    EXPECT_EQ(offices[1].value("taken", "again"), std::to_string(round));
  }
  offices.expect_verified();
}

// Every append of either end fails once, with its entries stored or not, and the shard comes back
// from its journal.
TEST(courier, a_crash_at_any_append_of_either_end_loses_and_doubles_nothing) {
  for (int end = 0; end < 2; ++end)
    for (bool stored : {false, true})
      for (int at = 1; at <= 7; ++at) {
        SCOPED_TRACE(fmt::format("end {}, append {}, {}", end, at, stored ? "stored" : "lost"));
        Offices offices(2);
        offices[end].kept->fails_at = at;
        offices[end].kept->stores = stored;
        offices.open();
        for (const char* name : {"a", "b", "no c"})
          offices[0].insist("send 1", name);
        ASSERT_TRUE(becomes_true([&] { return offices.all_settled(); }));
        for (const char* name : {"a", "b", "no c"})
          EXPECT_EQ(offices[0].value("settled", name), "1") << name;
        EXPECT_EQ(offices[1].value("taken", "a"), "1");
        EXPECT_EQ(offices[1].value("taken", "b"), "1");
        EXPECT_EQ(offices[1].value("taken", "no c"), "");
        offices.expect_verified();
      }
}

TEST(courier, three_shards_over_a_lossy_link_with_crashes_agree) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    LocalLink local;
    LossyLink lossy(local, seed);
    std::vector<std::unique_ptr<PostOffice>> all;
    for (uint32_t i = 0; i < 3; ++i)
      all.push_back(std::make_unique<PostOffice>(i, local, lossy));
    for (auto& office : all)
      office->open();
    Dice dice({seed, 11});
    const int count = 60;
    for (int i = 0; i < count; ++i) {
      const size_t from = dice.next() % 3, to = dice.next() % 3;
      all[from]->insist(fmt::format("send {}", to), fmt::format("p{}", i));
      if (dice.next() % 8 == 0) {  // a crash: what was not stored is lost
        const size_t victim = dice.next() % 3;
        all[victim]->kept->stores = dice.next() % 2 == 0;
        all[victim]->kept->fails_at = all[victim]->kept->appends + 1;
      }
      for (auto& office : all)
        office->reopen_if_failed();
    }
    ASSERT_TRUE(becomes_true([&] {
      size_t open = 0;
      for (auto& office : all) {
        office->reopen_if_failed();
        open += office->cells(kEffectPrefix);
      }
      return open == 0;
    }));
    lossy.calm();
    lossy.send_kept();  // late copies of what is settled
    for (int i = 0; i < count; ++i) {
      int taken = 0, settled = 0;
      for (auto& office : all) {
        taken += office->value("taken", fmt::format("p{}", i)) == "1";
        settled += office->value("settled", fmt::format("p{}", i)) == "1";
      }
      EXPECT_EQ(taken, 1) << i;
      EXPECT_EQ(settled, 1) << i;
    }
    for (auto& office : all)
      EXPECT_EQ(office->verify(), "");
  }
}

TEST(courier, marks_of_thousands_of_effects_are_forgotten) {
  Offices offices(2);
  offices.open();
  const int count = 3000;
  std::atomic<int> left{count};
  {
    BatchScope scope;
    for (int i = 0; i < count; ++i)
      offices[0].shard->submit({.program = "post",
                                .verb = "send 1",
                                .body = "p" + std::to_string(i),
                                .caller = {"t", "ann", ""}},
                               [&](Result<Answer> a) { left -= a.has_value(); });
  }
  ASSERT_TRUE(becomes_true([&] { return left == 0 && offices[0].cells(kEffectPrefix) == 0; }));
  EXPECT_EQ(offices[0].courier->stats().delivered, 3000u);
  EXPECT_EQ(offices[1].value("taken", "p2999"), "1");
  EXPECT_TRUE(offices.marks_are_forgotten());
  offices.expect_verified();
}

TEST(courier, file_journals_carry_deliveries_over_a_restart) {
  TestFolder folder;
  Offices offices(2);
  for (auto& office : offices.all)
    office->journal = [&folder, n = office->number]() -> std::unique_ptr<Journal> {
      FileJournalOptions options;
      options.folder = folder.sub(std::to_string(n));
      return *FileJournal::open(options);
    };
  offices.open();
  offices[1].close();
  ASSERT_TRUE(offices[0].say("send 1", "a"));
  offices[0].close();
  offices.open();
  ASSERT_TRUE(becomes_true([&] { return offices[0].value("settled", "a") == "1"; }));
  offices[1].close();
  offices[1].open();
  EXPECT_EQ(offices[1].value("taken", "a"), "1");
  offices.expect_verified();
}

// A delivery whose turn waits for a member is not run a second time meanwhile.
TEST(courier, a_delivery_that_waits_is_not_run_twice) {
  Offices offices(2);
  offices.open();
  Effect effect = effect_to_shard("slow", "post", 1, "ask-then-take", "slow", {"t", "bob", ""});
  effect.address =
      std::make_shared<const Effect::Address>(Effect::Address{1, "post", "bob", "", 1});
  std::promise<Result<Answer>> first;
  offices[1].shard->submit(delivery_of(effect, 0, 1),
                           [&](Result<Answer> a) { first.set_value(std::move(a)); });
  auto second = offices[1].submit(delivery_of(effect, 0, 1));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().reason, "DELIVERY_RUNNING");
  Input receipt{.program = "post", .verb = "take", .body = {}, .caller = {"t", "u", ""}};
  receipt.settles = "slow";
  ASSERT_TRUE(offices[1].submit(std::move(receipt)));
  EXPECT_TRUE(first.get_future().get());
  EXPECT_EQ(offices[1].value("taken", "slow"), "1");
  offices.expect_verified();
}

}  // namespace pawl
