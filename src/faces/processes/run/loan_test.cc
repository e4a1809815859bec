// The loan example of examples/loan: all eight rows of its table of terminal states, with timers at
// their real lengths.

#include <fstream>
#include <sstream>

#include "faces/processes/face_fixture_test.h"

namespace pawl::processes {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Loan {
  FaceFixture s;
  std::string application;

  explicit Loan(int64_t amount) {
    s.upload(text_of("examples/loan/loan-disbursement.json"));
    s.upload(text_of("examples/loan/loan-application.json"));
    application = s.start("LOS::loan-application-full",
                          R"({"applicantId":"APP-1","loanAmount":)" + std::to_string(amount) +
                              R"(,"applicantEmail":"a@example.com"})");
  }
  void score(int credit, const std::string& fraud) {
    s.finish("validate-application");
    s.finish("credit-score", R"({"creditScore":)" + std::to_string(credit) + "}");
    s.finish("fraud-screen", R"({"fraudScore":)" + fraud + "}");
  }
  void approve() { s.finish("approve-loan", R"({"loanId":"LOAN-1"})"); }
  void disburse() {
    for (const char* type : {"prepare-disbursement", "transfer-funds", "notify-disbursement"})
      s.finish(type);
  }
  std::string disbursement() {
    return std::string(s.get("/v1/instances/" + application).string_or("nextInstanceId"));
  }
  void decide(const std::string& id, const std::string& task, const std::string& variables) {
    s.post("/v1/instances/" + id + "/user-tasks/" + task + "/complete",
           R"({"variables":)" + variables + "}");
    EXPECT_EQ(s.last_status, 204);
  }
  // The id of the END step that an instance reached.
  std::string end_of(const std::string& id) {
    if (id.empty()) return "(not started)";
    EXPECT_EQ(s.status(id), "COMPLETED");
    std::string history = s.history(id);
    history.resize(history.rfind(':'));
    return history.substr(history.rfind(' ') + 1);
  }
  void ends(const char* first, const char* second) {
    EXPECT_EQ(end_of(application), first);
    EXPECT_EQ(end_of(disbursement()), second);
    EXPECT_EQ(s.open_jobs() + s.open_timers(), 0u) << "nothing is left open";
    s.verify();
  }
};

constexpr int64_t kSmall = 200'000'000, kLarge = 600'000'000;
constexpr Time kHour = 3600 * kSecond;

TEST(loan, row_1_a_good_score_is_disbursed) {
  Loan loan(kSmall);
  loan.score(720, "0.12");
  loan.approve();
  loan.disburse();
  loan.ends("end-approved", "end-disbursed");
}

TEST(loan, row_2_a_senior_approves_a_large_amount) {
  Loan loan(kLarge);
  loan.score(720, "0.12");
  loan.approve();
  loan.decide(loan.disbursement(), "senior-approval-task", R"({"seniorDecision":"APPROVED"})");
  loan.disburse();
  loan.ends("end-approved", "end-disbursed");
}

TEST(loan, row_3_a_senior_rejects_it) {
  Loan loan(kLarge);
  loan.score(800, "0.12");
  loan.approve();
  loan.decide(loan.disbursement(), "senior-approval-task", R"({"seniorDecision":"REJECTED"})");
  loan.ends("end-approved", "end-disbursement-rejected");
}

TEST(loan, row_4_the_senior_approval_expires_after_eight_hours) {
  Loan loan(kLarge);
  loan.score(720, "0.12");
  loan.approve();
  loan.s.pass(8 * kHour - 1);
  EXPECT_TRUE(loan.s.take("notify-approval-overdue").empty());
  loan.s.pass(1);
  loan.s.finish("notify-approval-overdue");
  loan.ends("end-approved", "end-disbursement-timeout");
}

TEST(loan, row_5_a_low_score_or_fraud_is_rejected) {
  for (auto [credit, fraud] : {std::pair(450, "0.1"), std::pair(720, "0.9")}) {
    Loan loan(kSmall);
    loan.score(credit, fraud);
    loan.ends("end-rejected", "(not started)");
  }
}

TEST(loan, row_6_a_reviewer_approves) {
  Loan loan(kSmall);
  loan.score(600, "0.12");
  loan.decide(loan.application, "manual-review-task", R"({"reviewDecision":"APPROVED"})");
  loan.approve();
  loan.disburse();
  loan.ends("end-approved", "end-disbursed");
}

TEST(loan, row_7_a_reviewer_rejects) {
  Loan loan(kSmall);
  loan.score(600, "0.12");
  loan.decide(loan.application, "manual-review-task", R"({"reviewDecision":"REJECTED"})");
  loan.ends("end-rejected", "(not started)");
}

TEST(loan, row_8_the_review_is_escalated_after_two_days) {
  Loan loan(kSmall);
  loan.score(600, "0.12");
  loan.s.pass(48 * kHour);
  loan.s.finish("escalate-review");
  loan.ends("end-escalated", "(not started)");
}

}  // namespace
}  // namespace pawl::processes
