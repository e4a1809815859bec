// Mutated documents and random expressions are refused or run; they never crash, and every frame
// can be replayed. The seed is fixed, so failures are repeatable.

#include <fstream>
#include <sstream>

#include "base/dice.h"
#include "expr/expression.h"
#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : dice_({seed, 99}) {}
  size_t below(size_t n) { return n ? dice_.next() % n : 0; }

  json::Value junk() {
    switch (below(9)) {
      case 0: return json::Value();
      case 1: return json::Value(json::Number{"-1"});
      case 2: return json::Value(json::Number{"1E400"});
      case 3: return json::Value("");
      case 4: return json::Value("${x + }");
      case 5: return json::Value(std::string(600, 'x'));
      case 6:
        return json::Value(json::Array{json::Value("end-approved"), json::Value("auto-approve")});
      case 7: return json::Value(json::Object{});
      default: return json::Value("auto-approve");
    }
  }

  // Replaces or removes one random part of the value.
  void mutate(json::Value& v) {
    bool stop = below(4) == 0;
    if (!stop && v.is_array() && !v.array().empty())
      return mutate(v.array()[below(v.array().size())]);
    if (!stop && v.is_object() && !v.object().empty()) {
      json::Member& m = v.object().begin()[static_cast<ptrdiff_t>(below(v.object().size()))];
      if (below(6) == 0) {
        std::string name = m.name;
        v.object().erase(name);
        return;
      }
      return mutate(m.value);
    }
    v = junk();
  }

 private:
  Dice dice_;
};

json::Value document(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return *json::parse(text.str());
}

TEST(hostile, mutated_documents_are_refused_or_run) {
  FaceFixture s;
  Mutator mutator(4);
  size_t accepted = 0;
  for (int round = 0; round < 1'500; ++round) {
    json::Value d = document(round % 2 ? "examples/loan/loan-application.json"
                                       : "examples/loan/loan-disbursement.json");
    for (size_t n = 1 + mutator.below(3); n > 0; --n)
      mutator.mutate(d);
    if (d.is_object()) d.object().set("id", json::Value("v" + std::to_string(round)));
    s.post("/v1/definitions", json::print(d));
    ASSERT_TRUE(s.last_status == 201 || s.last_status == 400)
        << s.last_status << " for " << json::print(d);
    if (s.last_status != 201) continue;
    ++accepted;
    json::Value started =
        s.post("/v1/instances",
               R"({"definitionId":"v)" + std::to_string(round) +
                   R"(","variables":{"loanAmount":600000000,"creditScore":600,"fraudScore":0.1}})");
    ASSERT_EQ(s.last_status, 201) << json::print(started);
    for (int step = 0; step < 8; ++step) {
      for (const char* type :
           {"validate-application", "credit-score", "fraud-screen", "approve-loan",
            "prepare-disbursement", "transfer-funds", "auto-approve"})
        if (std::string job = s.take(type); !job.empty()) {
          ASSERT_EQ(s.complete(job, R"({"creditScore":600,"seniorDecision":"APPROVED"})"), 204);
        }
      s.pass(10 * 3600 * kSecond);
    }
  }
  EXPECT_GT(accepted, 100u);
  s.verify();
}

// clang-format off
constexpr const char* kPieces[] = {
    "a", "#b", "${", "}", "(", ")", "[", "]", "{", "}", ",", ".", "?.", "??", "?:", "?", ":", ";",
    "|", "||", "&&", "!", "not", "in", "==", "<", "..", "+", "-", "*", "/", "%", "**", "1", "2.5",
    "'x'", "\"y\"", "nil", "true", "#", "#acc", "len", "map", "filter", "reduce", "sum",
    "matches", "if", "else", "contains", "date('2024-01-15')", "duration('1h')",
    "9223372036854775807", "split", "sort", "arr", "m",
};
// clang-format on

TEST(hostile, random_expressions_never_crash) {
  Mutator mutator(7);
  auto variables = *json::parse(R"({"a":1,"b":"text","arr":[1,2,3,"x",null],"m":{"k":{"z":[1]}}})");
  size_t good = 0;
  for (int round = 0; round < 60'000; ++round) {
    std::string text;
    for (size_t n = 1 + mutator.below(9); n > 0; --n)
      text +=
          std::string(kPieces[mutator.below(std::size(kPieces))]) + (mutator.below(3) ? " " : "");
    expr::Expression e(text);
    auto value = e.evaluate(variables.object(), 1'794'700'000 * kSecond);
    if (value)
      ++good;
    else
      EXPECT_FALSE(value.error().message.empty()) << text;
  }
  EXPECT_GT(good, 500u);
}

}  // namespace
}  // namespace pawl::processes
