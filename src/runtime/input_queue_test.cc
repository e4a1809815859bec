#include "runtime/input_queue.h"

#include <gtest/gtest.h>

namespace pawl {

static QueuedInput input(const std::string& tenant, int number, size_t bytes = 0) {
  Input made{.program = "p",
             .verb = std::to_string(number),
             .body = Bytes(bytes, 'x'),
             .caller = {tenant, "u", ""}};
  return {std::move(made), {}, {}};
}

// Runs the slice, as far as it may run, and returns what ran.
static std::vector<std::string> run(InputQueue::Slice& slice) {
  std::vector<std::string> out;
  for (; slice.next < slice.end; ++slice.next) {
    const Input& ran = slice.items[slice.next].input;
    out.push_back(ran.caller.tenant + ran.verb);
  }
  return out;
}

// Runs everything that may run at that time; with `finish` each slice is committed at once.
static std::vector<std::string> drain(InputQueue& queue, int64_t now_ms = 0, bool finish = true) {
  std::vector<std::string> out;
  InputQueue::Slice slice;
  while (queue.serves(now_ms)) {
    queue.take(slice, now_ms);
    const size_t first = slice.next;
    for (std::string& ran : run(slice))
      out.push_back(std::move(ran));
    InputQueue::Lane& lane = *slice.lane;
    const size_t ran = slice.next - first;
    queue.put_back(slice);
    if (finish) queue.finished(lane, ran);
  }
  return out;
}

TEST(input_queue, a_flood_delays_another_tenant_by_one_slice) {
  InputQueue queue(0);
  for (int i = 0; i < 10'000; ++i)
    queue.push(input("flood", i), 0);
  queue.push(input("quiet", 0), 0);
  std::vector<std::string> order = drain(queue);
  ASSERT_EQ(order.size(), 10'001u);
  EXPECT_LE(std::find(order.begin(), order.end(), "quiet0") - order.begin(), 128);
  std::erase(order, "quiet0");
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(order[static_cast<size_t>(i)], "flood" + std::to_string(i));
}

TEST(input_queue, large_inputs_make_short_slices) {
  InputQueue queue(0);
  for (int i = 0; i < 8; ++i)
    queue.push(input("large", i, 512 * 1024), 0);
  queue.push(input("small", 0), 0);
  std::vector<std::string> order = drain(queue);
  EXPECT_LE(std::find(order.begin(), order.end(), "small0") - order.begin(), 2);
}

TEST(input_queue, the_rest_of_a_slice_keeps_its_place_in_the_lane) {
  InputQueue queue(0);
  for (int i = 0; i < 300; ++i)
    queue.push(input("a", i), 0);
  queue.push(input("b", 0), 0);
  InputQueue::Slice slice;
  queue.take(slice, 0);
  slice.next = 10;  // ten have run, then the driver gave way
  EXPECT_TRUE(queue.others_wait());
  InputQueue::Lane& lane = *slice.lane;
  queue.put_back(slice);
  queue.finished(lane, 10);
  EXPECT_EQ(queue.size(), 291u);
  std::vector<std::string> order = drain(queue);
  std::erase(order, "b0");
  ASSERT_EQ(order.size(), 290u);
  for (int i = 10; i < 300; ++i)
    ASSERT_EQ(order[static_cast<size_t>(i - 10)], "a" + std::to_string(i));
  EXPECT_FALSE(queue.others_wait());
}

TEST(input_queue, a_tenant_fills_its_own_lane_only) {
  InputQueue queue(100);
  for (int i = 0; i < 100; ++i)
    queue.push(input("a", i), 0);
  EXPECT_TRUE(queue.full("a"));
  EXPECT_FALSE(queue.full("b"));
  drain(queue);
  EXPECT_FALSE(queue.full("a"));
}

TEST(input_queue, one_tenant_alone_is_not_paced) {
  InputQueue queue(0);
  for (int i = 0; i < 1000; ++i)
    queue.push(input("a", i), 0);
  EXPECT_FALSE(queue.paced(0));
  EXPECT_EQ(drain(queue, 0, false).size(), 1000u);
}

TEST(input_queue, several_active_tenants_have_a_window_each) {
  InputQueue queue(0);
  for (int i = 0; i < 100; ++i)
    queue.push(input("loud", i), 0);
  queue.push(input("quiet", 0), 0);
  EXPECT_TRUE(queue.paced(0));
  // Nothing is committed: the loud tenant gets one window, the quiet one all that it asked for.
  std::vector<std::string> order = drain(queue, 0, false);
  EXPECT_EQ(order.size(), 9u);
  EXPECT_NE(std::find(order.begin(), order.end(), "quiet0"), order.end());
  EXPECT_EQ(queue.size(), 92u);
  EXPECT_FALSE(queue.serves(0));
  EXPECT_EQ(queue.rests_until(0), 0);
  // Nobody else has been active for a while: the window no longer holds.
  EXPECT_TRUE(queue.serves(60'000));
  queue.stop_pacing();
  EXPECT_TRUE(queue.serves(0));
}

TEST(input_queue, a_committed_window_lets_the_lane_go_on) {
  InputQueue queue(0);
  queue.push(input("quiet", 0), 0);
  for (int i = 0; i < 100; ++i)
    queue.push(input("loud", i), 0);
  EXPECT_EQ(drain(queue).size(), 101u);
  EXPECT_TRUE(queue.empty());
}

TEST(input_queue, a_long_slice_is_followed_by_a_rest) {
  InputQueue queue(0);
  queue.push(input("quiet", 0), 0);
  for (int i = 0; i < 4; ++i)
    queue.push(input("heavy", i, 1 << 20), 0);
  drain(queue, 0);
  queue.push(input("heavy", 9), 100);
  InputQueue::Slice slice;
  queue.take(slice, 100);
  run(slice);
  InputQueue::Lane& lane = *slice.lane;
  queue.took(lane, 500'000, 600);
  queue.put_back(slice);
  queue.finished(lane, 1);
  queue.push(input("heavy", 10), 600);
  queue.push(input("quiet", 1), 600);
  EXPECT_EQ(drain(queue, 600), std::vector<std::string>{"quiet1"});
  EXPECT_EQ(queue.rests_until(600), 2100);
  EXPECT_FALSE(queue.serves(2099));
  EXPECT_EQ(drain(queue, 2100), std::vector<std::string>{"heavy10"});
}

TEST(input_queue, a_costly_transport_makes_its_tenant_rest) {
  InputQueue queue(0, 2);
  queue.push(input("quiet", 0), 0);
  queue.push(input("loud", 0), 0);
  drain(queue);
  queue.push(input("loud", 1), 100);
  InputQueue::Slice slice;
  queue.take(slice, 100);
  run(slice);
  InputQueue::Lane& lane = *slice.lane;
  queue.put_back(slice);
  queue.finished(lane, 1);
  // Nineteen calls of 100 microseconds are little; the twentieth makes it two milliseconds.
  queue.carried(lane, 1'900, 100);
  queue.push(input("loud", 2), 100);
  EXPECT_TRUE(queue.serves(100));
  queue.carried(lane, 100, 100);
  EXPECT_FALSE(queue.serves(100));
  EXPECT_EQ(queue.rests_until(100), 104);
  queue.push(input("quiet", 1), 100);
  EXPECT_EQ(drain(queue, 100), std::vector<std::string>{"quiet1"});
  EXPECT_EQ(drain(queue, 104), std::vector<std::string>{"loud2"});
}

}  // namespace pawl
