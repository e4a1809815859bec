// Unique keys: equal numbers in other spellings, and claims while a transaction waits for a member.

#include <fmt/format.h>

#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(unique, numbers_are_compared_by_amount) {
  FaceFixture s;
  EXPECT_EQ(s.send("POST", "/model/import/JSON/SAMPLE_DATA/m/1", R"({"k":"a","n":1.5})").status,
            200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/unique-keys", R"([{"id":"by-n","fields":["$.n"]}])").status,
            200);
  EXPECT_EQ(s.send("PUT", "/model/m/1/lock").status, 200);
  for (const char* n : {"1", "0", "-2.5", "1.25e-3"})
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n)).status, 200) << n;
  for (const char* n : {"1.0", "10e-1", "1.000", "-0", "0.0", "0e7", "-2.50", "-25e-1", "0.00125"})
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", fmt::format(R"({{"n":{}}})", n)).code(),
              "UNIQUE_VIOLATION")
        << n;
  EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", R"({"n":1.0000000000001})").status, 200);
  EXPECT_EQ(plain_number("1e400"), plain_number("10E+399"));
  EXPECT_EQ(plain_number("-0.001e-60"), plain_number("-1e-63"));
  EXPECT_EQ(plain_number("120.50") + " " + plain_number("12e1") + " " + plain_number("0.00"),
            "120.5 120 0");
}

TEST(unique, values_claimed_by_a_callback_are_released) {
  FaceFixture s;
  s.add_model();
  EXPECT_EQ(s.send("PUT", "/model/m/1/unique-keys", R"([{"id":"by-k","fields":["$.k"]}])").status,
            200);
  s.import_processors(processor("p", "SYNC"));
  auto fake = std::make_shared<FakeMember>();
  std::string member = s.join(fake), id = s.create(R"({"k":"mine"})"),
              other = s.create(R"({"k":"theirs"})");
  // At first the entity has a value that another entity holds; the processor replaces it.
  TestResponsePtr waiting = s.start("PUT", "/entity/JSON/" + id + "/go", R"({"k":"theirs"})");
  EXPECT_EQ(
      s.send("PUT", "/entity/JSON/" + id, R"({"k":"between"})", {{"X-Tx-Token", fake->token(0)}})
          .status,
      200);
  s.face->members().answered(member, fake->request(0), Call::processor,
                             {.data = R"({"k":"last"})"});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  auto made = [&](const std::string& k) {
    return s.send("POST", "/entity/JSON/m/1", R"({"k":")" + k + "\"}").code();
  };
  EXPECT_EQ(made("theirs"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("last"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("between"), "");
  EXPECT_EQ(made("mine"), "");
  // A value that is still held by another entity at the end is a violation.
  std::string third = s.create(R"({"k":"third"})");
  waiting = s.start("PUT", "/entity/JSON/" + third + "/go", R"({"k":"theirs"})");
  s.face->members().answered(member, fake->request(1), Call::processor, {});
  EXPECT_EQ(waiting->code(), "UNIQUE_VIOLATION");
  // An entity that is deleted meanwhile does not release the value of another entity.
  waiting = s.start("PUT", "/entity/JSON/" + third + "/go", R"({"k":"theirs"})");
  EXPECT_EQ(s.send("DELETE", "/entity/" + third, "", {{"X-Tx-Token", fake->token(2)}}).status, 200);
  s.face->members().answered(member, fake->request(2), Call::processor, {});
  EXPECT_EQ(waiting->status, 200) << waiting->text;
  EXPECT_EQ(made("theirs"), "UNIQUE_VIOLATION");
  EXPECT_EQ(made("third"), "");
  EXPECT_EQ(s.kernel.verify(), "");
}

}  // namespace
}  // namespace pawl::entities
