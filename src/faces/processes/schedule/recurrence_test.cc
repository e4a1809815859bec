// When schedules are due: cron, calendar, interval, and the two days a year on which clocks change.

#include "faces/processes/schedule/recurrence.h"

#include <gtest/gtest.h>

#include "json/text.h"

namespace pawl::processes {
namespace {

Time at(std::string_view text) { return *parse_rfc3339(text); }

Result<Recurrence> parse(const std::string& text, Time anchor = 0) {
  return Recurrence::parse(*json::parse(text), anchor);
}

// The next `count` runs after a moment, in UTC without the date's seconds.
std::string runs(const std::string& schedule, std::string_view from, int count) {
  auto recurrence = parse(schedule, at("2026-01-01T00:00:00Z"));
  if (!recurrence) return recurrence.error().message;
  std::string out;
  Time t = at(from);
  for (int i = 0; i < count; ++i) {
    auto next = recurrence->next(t);
    if (!next) return out + "none";
    t = *next;
    out += rfc3339(t) + " ";
  }
  return out;
}
std::string cron(const std::string& text, std::string_view from, int count,
                 const std::string& zone = "UTC") {
  return runs(R"({"cron":")" + text + R"(","timeZone":")" + zone + "\"}", from, count);
}

TEST(cron, fields_lists_ranges_steps_and_names) {
  EXPECT_EQ(cron("*/20 * * * *", "2026-11-18T10:00:00Z", 3),
            "2026-11-18T10:20:00Z 2026-11-18T10:40:00Z 2026-11-18T11:00:00Z ");
  EXPECT_EQ(cron("5,35 9-11/2 * * *", "2026-11-18T09:05:00Z", 3),
            "2026-11-18T09:35:00Z 2026-11-18T11:05:00Z 2026-11-18T11:35:00Z ");
  EXPECT_EQ(cron("0 9 * * mon-FRI", "2026-11-20T09:00:00Z", 2),
            "2026-11-23T09:00:00Z 2026-11-24T09:00:00Z ");
  EXPECT_EQ(cron("0 0 1 jan,JUL *", "2026-02-01T00:00:00Z", 2),
            "2026-07-01T00:00:00Z 2027-01-01T00:00:00Z ");
  EXPECT_EQ(cron("0 12 * * 7", "2026-11-18T00:00:00Z", 1), "2026-11-22T12:00:00Z ");
  EXPECT_EQ(cron("30/15 8 * * *", "2026-11-18T00:00:00Z", 3),
            "2026-11-18T08:30:00Z 2026-11-18T08:45:00Z 2026-11-19T08:30:00Z ");
  EXPECT_EQ(cron("@monthly", "2026-11-18T00:00:00Z", 1), "2026-12-01T00:00:00Z ");
}

TEST(cron, a_day_of_month_or_a_weekday_is_enough_when_both_are_given) {
  EXPECT_EQ(cron("0 0 13 * FRI", "2026-11-01T00:00:00Z", 3),
            "2026-11-06T00:00:00Z 2026-11-13T00:00:00Z 2026-11-20T00:00:00Z ");
}

TEST(cron, short_months_leap_days_and_the_last_day) {
  EXPECT_EQ(cron("0 0 31 * *", "2026-01-31T00:00:00Z", 2),
            "2026-03-31T00:00:00Z 2026-05-31T00:00:00Z ");
  EXPECT_EQ(cron("0 0 29 2 *", "2026-01-01T00:00:00Z", 2),
            "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z ");
  EXPECT_EQ(cron("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), "2104-02-29T00:00:00Z ")
      << "2100 has no leap day";
  EXPECT_EQ(cron("0 0 L * *", "2028-01-31T00:00:00Z", 2),
            "2028-02-29T00:00:00Z 2028-03-31T00:00:00Z ");
  EXPECT_EQ(cron("0 0 30 2 *", "2026-01-01T00:00:00Z", 1), "none");
}

TEST(cron, what_cannot_be_read_is_named) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {"* * * *", "got 4 fields"},
           {"60 * * * *", "\"60\" is no minute from 0 to 59"},
           {"* 24 * * *", "is no hour"},
           {"* * 0 * *", "is no day of month"},
           {"* * * 13 *", "is no month"},
           {"* * * * 8", "is no day of week"},
           {"5-1 * * * *", "ends before it begins"},
           {"*/0 * * * *", "is no step"},
           {"1, * * * *", "\"\" is no minute"},
           {"a * * * *", "\"a\" is no minute"},
           {"", "got 0 fields"}})
    EXPECT_NE(cron(text, "2026-01-01T00:00:00Z", 1).find(message), std::string::npos)
        << text << ": " << cron(text, "2026-01-01T00:00:00Z", 1);
}

// Berlin goes forward on 2026-03-29 at 02:00 (01:00 UTC) and back on 2026-10-25 at 03:00.
TEST(daylight_saving, a_skipped_time_is_due_once_when_the_clocks_go_forward) {
  EXPECT_EQ(cron("30 2 * * *", "2026-03-28T00:00:00Z", 3, "Europe/Berlin"),
            "2026-03-28T01:30:00Z 2026-03-29T01:00:00Z 2026-03-30T00:30:00Z ");
  EXPECT_EQ(cron("0,30 2 * * *", "2026-03-29T00:00:00Z", 2, "Europe/Berlin"),
            "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z ")
      << "both skipped times are one run";
}

TEST(daylight_saving, a_time_that_is_shown_twice_is_due_the_first_time) {
  EXPECT_EQ(cron("30 2 * * *", "2026-10-24T12:00:00Z", 2, "Europe/Berlin"),
            "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z ");
}

TEST(daylight_saving, every_hour_counts_hours_that_pass) {
  EXPECT_EQ(cron("15 * * * *", "2026-10-24T23:30:00Z", 4, "Europe/Berlin"),
            "2026-10-25T00:15:00Z 2026-10-25T01:15:00Z 2026-10-25T02:15:00Z "
            "2026-10-25T03:15:00Z ");
  EXPECT_EQ(cron("15 * * * *", "2026-03-28T23:30:00Z", 3, "Europe/Berlin"),
            "2026-03-29T00:15:00Z 2026-03-29T01:15:00Z 2026-03-29T02:15:00Z ");
}

TEST(daylight_saving, holds_for_years_that_only_the_rule_of_the_zone_knows) {
  EXPECT_EQ(cron("30 2 * * *", "2060-03-27T12:00:00Z", 2, "Europe/Berlin"),
            "2060-03-28T01:00:00Z 2060-03-29T00:30:00Z ");
  EXPECT_EQ(cron("30 1 * * *", "2060-11-06T12:00:00Z", 2, "America/New_York"),
            "2060-11-07T05:30:00Z 2060-11-08T06:30:00Z ");
}

TEST(daylight_saving, half_hour_shifts_and_offsets) {
  // Lord Howe goes forward by half an hour on 2026-10-04 at 02:00.
  EXPECT_EQ(cron("15 2 * * *", "2026-10-03T00:00:00Z", 2, "Australia/Lord_Howe"),
            "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z ");
  EXPECT_EQ(cron("0 9 * * *", "2026-11-18T00:00:00Z", 1, "Asia/Kathmandu"),
            "2026-11-18T03:15:00Z ");
}

// Each run of a whole year, compared with a search in steps of ten minutes.
TEST(daylight_saving, agrees_with_a_search_over_a_year) {
  for (const char* zone : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"}) {
    auto recurrence = parse(R"({"cron":"20 */3 * * *","timeZone":")" + std::string(zone) + "\"}");
    ASSERT_TRUE(recurrence);
    auto found = expr::find_zone(zone);
    std::set<Time> wanted;
    std::set<int64_t> seen;  // local times that were due already
    const Time begin = at("2026-01-01T00:00:00Z"), end = at("2027-01-01T00:00:00Z");
    for (Time t = begin; t < end; t += 600 * kSecond) {
      const int64_t local = t / kSecond + expr::period_at(&*found, t / kSecond).offset;
      if (local % 10'800 == 1200 && seen.insert(local).second) wanted.insert(t);
    }
    std::set<Time> got;
    for (auto t = recurrence->next(begin - 1); t && *t < end; t = recurrence->next(*t))
      got.insert(*t);
    EXPECT_EQ(got, wanted) << zone;
  }
}

TEST(calendar, days_months_dates_and_exceptions) {
  const std::string office = R"({"calendar":{"at":["17:30","09:00:15"],
      "daysOfWeek":["MON","TUE","WED","THU","FRI"],"except":["2026-12-25"]},
      "timeZone":"Europe/Berlin"})";
  EXPECT_EQ(runs(office, "2026-12-24T12:00:00Z", 3),
            "2026-12-24T16:30:00Z 2026-12-28T08:00:15Z 2026-12-28T16:30:00Z ");
  EXPECT_EQ(runs(R"({"calendar":{"at":["00:00"],"daysOfMonth":[-1],"months":[2,6]}})",
                 "2026-01-01T00:00:00Z", 3),
            "2026-02-28T00:00:00Z 2026-06-30T00:00:00Z 2027-02-28T00:00:00Z ");
  EXPECT_EQ(runs(R"({"calendar":{"at":["12:00"],"dates":["2026-12-31","2026-12-24"]}})",
                 "2026-01-01T00:00:00Z", 3),
            "2026-12-24T12:00:00Z 2026-12-31T12:00:00Z none");
  EXPECT_EQ(runs(R"({"calendar":{"at":["12:00"],"daysOfWeek":["FRI"],"daysOfMonth":[13]}})",
                 "2026-03-14T00:00:00Z", 1),
            "2026-11-13T12:00:00Z ")
      << "a calendar wants both";
}

TEST(calendar, what_cannot_be_read_is_named) {
  for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"calendar":{}})", "calendar.at is missing"},
           {R"({"calendar":{"at":["9:00"]}})", "is no time of day"},
           {R"({"calendar":{"at":["24:00"]}})", "is no time of day"},
           {R"({"calendar":{"at":["09:0x"]}})", "is no time of day"},
           {R"({"calendar":{"at":["09:00"],"days":[1]}})", "no member \"days\""},
           {R"({"calendar":{"at":["09:00"],"daysOfWeek":["MONDAY"]}})", "is none of MON"},
           {R"({"calendar":{"at":["09:00"],"daysOfMonth":[0]}})", "except 0"},
           {R"({"calendar":{"at":["09:00"],"daysOfMonth":[32]}})", "from -31 to 31"},
           {R"({"calendar":{"at":["09:00"],"dates":["2026-02-30"]}})", "is no date"},
           {R"({"cron":"* * * * *","timeZone":"Europe/Berlyn"})", "is no time zone"},
           {R"({"cron":"* * * * *","interval":"PT1M"})", "exactly one of"},
           {R"({})", "exactly one of"},
           {R"({"interval":"P1M"})", "no fixed length"},
           {R"({"interval":"PT0.5S"})", "at least PT1S"},
           {R"({"interval":"PT1H","timeZone":"UTC"})", "an interval has none"}})
    EXPECT_NE(runs(text, "2026-01-01T00:00:00Z", 1).find(message), std::string::npos)
        << text << ": " << runs(text, "2026-01-01T00:00:00Z", 1);
}

TEST(interval, counts_from_its_anchor) {
  EXPECT_EQ(runs(R"({"interval":"PT90M"})", "2026-01-01T04:00:00Z", 2),
            "2026-01-01T04:30:00Z 2026-01-01T06:00:00Z ");
  EXPECT_EQ(runs(R"({"interval":"PT90M"})", "2025-06-01T00:00:00Z", 1), "2026-01-01T00:00:00Z ");
  auto recurrence = parse(R"({"interval":"PT1S"})");
  ASSERT_TRUE(recurrence);
  const Time from = recurrence->skip_ahead(0, 1'000'000 * kSecond, 1000);
  size_t count = 0;
  for (Time t = from; t <= 1'000'000 * kSecond; t = *recurrence->next(t))
    ++count;
  EXPECT_EQ(count, 1000u);
}

}  // namespace
}  // namespace pawl::processes
