#include "client/job_buffer.h"

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
JobResult good(std::string id, int retries_left = 0) {
  return {std::move(id), retries_left, R"({"a":1})"};
}
JobResult bad(std::string id, int retries_left = 0) {
  return {std::move(id), retries_left, Worker::fail("no")};
}
// More results than any test has, so that results() returns all of them.
constexpr size_t kMany = 100;

TEST(job_buffer, an_attempt_is_accepted_once) {
  JobBuffer buffer(4);
  EXPECT_TRUE(buffer.put(job("a", 2)));
  EXPECT_FALSE(buffer.put(job("a", 2)));
  EXPECT_EQ(buffer.take()->id, "a");
  EXPECT_FALSE(buffer.put(job("a", 2))) << "it is running";
  EXPECT_TRUE(buffer.put(job("a", 1))) << "the next attempt is another one";
}

TEST(job_buffer, a_job_takes_room_until_the_server_confirms_it) {
  JobBuffer buffer(1);
  ASSERT_TRUE(buffer.put(job("a")));
  buffer.take();
  buffer.done(good("a"));
  EXPECT_EQ(buffer.results({}, kMany).size(), 1u);
  EXPECT_EQ(buffer.room(), 0u);
  EXPECT_FALSE(buffer.idle());
  buffer.confirm("a");
  EXPECT_EQ(buffer.room(), 1u);
  EXPECT_TRUE(buffer.idle());
}

TEST(job_buffer, a_broken_connection_repeats_completions_but_not_failures) {
  JobBuffer buffer(4);
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(buffer.put(job(id)));
    buffer.take();
  }
  buffer.done(good("a"));
  buffer.done(bad("b"));
  EXPECT_EQ(buffer.results({}, kMany).size(), 2u);
  buffer.connection_lost();
  auto again = buffer.results({}, kMany);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].job_id, "a");
  EXPECT_TRUE(buffer.put(job("b"))) << "the failed one may come again";
}

TEST(job_buffer, a_refused_completion_becomes_a_failure_and_a_refused_failure_is_dropped) {
  JobBuffer buffer(4);
  ASSERT_TRUE(buffer.put(job("a")));
  buffer.take();
  buffer.done(good("a"));
  buffer.results({}, kMany);
  buffer.refuse("a", "not an object");
  auto failure = buffer.results({}, kMany);
  ASSERT_EQ(failure.size(), 1u);
  EXPECT_FALSE(failure[0].outcome.error().retryable);
  buffer.refuse("a", "unknown job");
  EXPECT_TRUE(buffer.idle());
}

TEST(job_buffer, draining_drops_jobs_that_no_handler_has_taken) {
  JobBuffer buffer(4);
  ASSERT_TRUE(buffer.put(job("a")));
  ASSERT_TRUE(buffer.put(job("b")));
  buffer.take();
  buffer.set_returns_jobs(true);
  buffer.drain();
  EXPECT_FALSE(buffer.put(job("c")));
  buffer.done(good("a"));
  buffer.results({}, kMany);
  buffer.confirm("a");
  EXPECT_TRUE(buffer.idle());
}

TEST(job_buffer, draining_runs_leased_jobs_when_the_transport_cannot_return_them) {
  JobBuffer buffer(4);
  ASSERT_TRUE(buffer.put(job("a")));
  buffer.drain();
  EXPECT_FALSE(buffer.idle());
  EXPECT_EQ(buffer.take()->id, "a");
}

TEST(job_buffer, a_stopped_wait_for_results_returns_none) {
  JobBuffer buffer(4);
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(buffer.results(source.get_token(), kMany).empty());
}

}  // namespace
}  // namespace pawl::client
