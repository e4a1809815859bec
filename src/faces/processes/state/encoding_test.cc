// The stored bytes of commands, jobs, definition heads and user tasks. A journal of an older
// version must stay readable, so these literals never change.

#include <gtest/gtest.h>

#include "faces/processes/run/commands.h"
#include "faces/processes/state/cells.h"
#include "faces/processes/state/job.h"

namespace pawl::processes {
namespace {

VariablesPtr variables() {
  json::Object out;
  out.add("a", json::Value(int64_t{1}));
  return make_variables(std::move(out));
}

TEST(encoding, of_a_job_is_stable) {
  const Job job{"j1", "i1", "e1", "charge", 300, -5, "{\"a\":1}"};
  const std::string bytes = "01026a3102693102653106636861726765ac0209077b2261223a317d";
  EXPECT_EQ(hex(encode(job)), bytes);
  auto read = decode_job(*unhex(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(hex(encode(*read)), bytes);
}

// Effects of other programs have bodies of their own, which may look like a job's.
TEST(encoding, only_effects_of_processes_have_a_time_of_creation) {
  const Bytes body = encode(Job{"j1", "i1", "e1", "charge", 300, 7 * kSecond, "{}"});
  EXPECT_EQ(created_at(Effect{"e", To::worker, std::string(kProgram), "t", "charge", 0, body}),
            7 * kSecond);
  EXPECT_EQ(created_at(Effect{"e", To::worker, "worlds", "t", "charge", 0, body}), 0);
}

TEST(encoding, of_a_definition_head_is_stable) {
  DefinitionHead head;
  head.versions = {{"d1", "one", 7}, {"d2", "two", 1000}};
  head.paused = true;
  head.pause_reason = "why";
  const std::string bytes = "01010377687902026431036f6e650e0264320374776fd00f";
  EXPECT_EQ(hex(encode(head)), bytes);
  auto read = decode_head(*unhex(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(hex(encode(*read)), bytes);
}

TEST(encoding, of_a_user_task_is_stable) {
  const UserTask task{"i1", "def", "bk", "step", "form", 200, 64};
  const std::string bytes = "0269310364656602626b047374657004666f726dc8018001";
  EXPECT_EQ(hex(encode(task)), bytes);
  auto read = decode_user_task(*unhex(bytes));
  ASSERT_TRUE(read);
  EXPECT_EQ(hex(encode(*read)), bytes);
}

TEST(encoding, of_commands_is_stable) {
  const StartCommand start{"def", 3, "bk", variables(), "at", "prev", "why"};
  EXPECT_EQ(hex(encode(start)), "036465660302626b077b2261223a317d026174047072657603776879");
  const ResultCommand result{"j1", "step", "w", variables()};
  EXPECT_EQ(hex(encode(result)), "026a3104737465700177077b2261223a317d");
  const FailCommand failed{"j1", "w", "boom", true};
  EXPECT_EQ(hex(encode(failed)), "026a31017704626f6f6d01");
  const CancelCommand cancel{"i1", "why"};
  EXPECT_EQ(hex(encode(cancel)), "02693103776879");
  EXPECT_EQ(encode(*decode_start(encode(start))), encode(start));
  EXPECT_EQ(encode(*decode_result(encode(result))), encode(result));
  EXPECT_EQ(encode(*decode_fail(encode(failed))), encode(failed));
  EXPECT_EQ(encode(*decode_cancel(encode(cancel))), encode(cancel));
}

TEST(encoding, of_truncated_bytes_is_refused) {
  const Bytes whole = encode(Job{"j1", "i1", "e1", "charge", 300, -5, "{}"});
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(decode_job(BytesView(whole).substr(0, n))) << n;
  EXPECT_FALSE(decode_job(whole + "x"));
  EXPECT_FALSE(decode_start(encode(CancelCommand{"i1", "why"})));
}

}  // namespace
}  // namespace pawl::processes
