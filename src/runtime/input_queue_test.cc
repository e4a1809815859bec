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

static std::vector<std::string> drain(InputQueue& queue) {
  std::vector<std::string> out;
  InputQueue::Slice slice;
  while (!queue.empty()) {
    queue.take(slice);
    for (; slice.next < slice.items.size(); ++slice.next) {
      const Input& ran = slice.items[slice.next].input;
      out.push_back(ran.caller.tenant + ran.verb);
    }
  }
  return out;
}

TEST(input_queue, a_flood_delays_another_tenant_by_one_slice) {
  InputQueue queue(0);
  for (int i = 0; i < 10'000; ++i)
    queue.push(input("flood", i));
  queue.push(input("quiet", 0));
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
    queue.push(input("large", i, 512 * 1024));
  queue.push(input("small", 0));
  std::vector<std::string> order = drain(queue);
  EXPECT_LE(std::find(order.begin(), order.end(), "small0") - order.begin(), 2);
}

TEST(input_queue, the_rest_of_a_slice_keeps_its_place_in_the_lane) {
  InputQueue queue(0);
  for (int i = 0; i < 300; ++i)
    queue.push(input("a", i));
  queue.push(input("b", 0));
  InputQueue::Slice slice;
  queue.take(slice);
  slice.next = 10;  // ten have run, then the driver gave way
  EXPECT_TRUE(queue.others_wait());
  queue.put_back(slice);
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
    queue.push(input("a", i));
  EXPECT_TRUE(queue.full("a"));
  EXPECT_FALSE(queue.full("b"));
  drain(queue);
  EXPECT_FALSE(queue.full("a"));
}

}  // namespace pawl
