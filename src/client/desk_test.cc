#include "client/desk.h"

#include <gtest/gtest.h>

namespace pawl::client {
namespace {

Worker::Job job(std::string id, int retries_left = 0) {
  return {.id = std::move(id),
          .type = "t",
          .instance_id = "i",
          .step_id = "s",
          .retries_left = retries_left,
          .variables = "{}"};
}
Done good(std::string id, int retries_left = 0) {
  return {std::move(id), retries_left, R"({"a":1})"};
}
Done bad(std::string id, int retries_left = 0) {
  return {std::move(id), retries_left, Worker::fail("no")};
}
constexpr size_t kMany = 100;

TEST(desk, an_attempt_that_is_here_is_not_taken_twice) {
  Desk desk(4);
  EXPECT_TRUE(desk.put(job("a", 2)));
  EXPECT_FALSE(desk.put(job("a", 2)));
  EXPECT_EQ(desk.take()->id, "a");
  EXPECT_FALSE(desk.put(job("a", 2))) << "it is being done";
  EXPECT_TRUE(desk.put(job("a", 1))) << "the next attempt is another one";
}

TEST(desk, room_counts_until_the_server_confirms) {
  Desk desk(1);
  ASSERT_TRUE(desk.put(job("a")));
  desk.take();
  desk.done(good("a"));
  EXPECT_EQ(desk.results({}, kMany).size(), 1u);
  EXPECT_EQ(desk.room(), 0u);
  EXPECT_FALSE(desk.idle());
  desk.confirm("a");
  EXPECT_EQ(desk.room(), 1u);
  EXPECT_TRUE(desk.idle());
}

TEST(desk, a_lost_link_sends_completions_again_and_failures_never_twice) {
  Desk desk(4);
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(desk.put(job(id)));
    desk.take();
  }
  desk.done(good("a"));
  desk.done(bad("b"));
  EXPECT_EQ(desk.results({}, kMany).size(), 2u);
  desk.lost();
  auto again = desk.results({}, kMany);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].job_id, "a");
  EXPECT_TRUE(desk.put(job("b"))) << "the failed one may come again";
}

TEST(desk, a_refused_completion_becomes_a_failure_for_good_and_a_refused_failure_ends) {
  Desk desk(4);
  ASSERT_TRUE(desk.put(job("a")));
  desk.take();
  desk.done(good("a"));
  desk.results({}, kMany);
  desk.refuse("a", "not an object");
  auto failure = desk.results({}, kMany);
  ASSERT_EQ(failure.size(), 1u);
  EXPECT_FALSE(failure[0].outcome.error().retryable);
  desk.refuse("a", "unknown job");
  EXPECT_TRUE(desk.idle());
}

TEST(desk, draining_takes_nothing_and_forgets_what_nobody_began) {
  Desk desk(4);
  ASSERT_TRUE(desk.put(job("a")));
  ASSERT_TRUE(desk.put(job("b")));
  desk.take();
  desk.link_gives_back(true);
  desk.drain();
  EXPECT_FALSE(desk.put(job("c")));
  desk.done(good("a"));
  desk.results({}, kMany);
  desk.confirm("a");
  EXPECT_TRUE(desk.idle());
}

TEST(desk, draining_does_what_is_leased_when_the_link_cannot_give_it_back) {
  Desk desk(4);
  ASSERT_TRUE(desk.put(job("a")));
  desk.drain();
  EXPECT_FALSE(desk.idle());
  EXPECT_EQ(desk.take()->id, "a");
}

TEST(desk, a_stopped_wait_for_results_is_empty) {
  Desk desk(4);
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(desk.results(source.get_token(), kMany).empty());
}

}  // namespace
}  // namespace pawl::client
