#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(schedule, a_timer_fires_once_and_a_withdrawn_one_never) {
  FaceFixture s;
  s.add_model();
  s.import_workflow(
      R"({"A":{"transitions":[{"name":"late","next":"B","schedule":{"delayMs":1000}}]},"B":{}})");
  std::string id = s.create();
  EXPECT_EQ(s.send("PUT", "/entity/JSON/" + id, R"({"n":5})").status, 200);
  ASSERT_EQ(s.kernel.timers.size(), 2u);
  auto fire = [&](size_t i) {
    Input input;
    input.verb = "timer";
    input.settles = s.kernel.timers[i].id;
    std::string reason;
    s.kernel.submit(std::move(input),
                    [&](Result<Answer> a) { reason = a ? "" : a.error().reason; });
    return reason;
  };
  EXPECT_EQ(fire(0), "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.state(id), "A");
  EXPECT_EQ(fire(1), "");
  EXPECT_EQ(s.state(id), "B");
  EXPECT_EQ(fire(1), "EFFECT_NOT_OPEN");
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
