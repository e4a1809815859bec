#include "base/calendar.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace pawl {

// Days since 1970-01-01 of a proleptic Gregorian date, and back. The arithmetic counts in eras of
// 400 years (146097 days) and years that begin in March, so that a leap day ends its year.
static int64_t days_from_civil(int64_t y, int m, int d) {
  y -= m <= 2;
  int64_t era = (y >= 0 ? y : y - 399) / 400;
  auto yoe = static_cast<unsigned>(y - era * 400);
  unsigned doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + static_cast<int64_t>(doe) - 719468;
}

static void civil_from_days(int64_t z, int64_t& y, int& m, int& d) {
  z += 719468;
  int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  auto doe = static_cast<unsigned>(z - era * 146097);
  unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  unsigned mp = (5 * doy + 2) / 153;
  d = static_cast<int>(doy - (153 * mp + 2) / 5 + 1);
  m = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  y = static_cast<int64_t>(yoe) + era * 400 + (m <= 2);
}

int days_in_month(int64_t y, int m) {
  static constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
  return m == 2 && leap ? 29 : days[m - 1];
}

Civil civil_of(int64_t seconds) {
  int64_t days = seconds / 86400;
  int64_t rem = seconds % 86400;
  if (rem < 0) {
    rem += 86400;
    --days;
  }
  Civil c{};
  civil_from_days(days, c.year, c.month, c.day);
  c.hour = static_cast<int>(rem / 3600);
  c.minute = static_cast<int>(rem / 60 % 60);
  c.second = static_cast<int>(rem % 60);
  return c;
}

int64_t seconds_of(const Civil& c) {
  int64_t days = days_from_civil(c.year, c.month, c.day);
  return ((days * 24 + c.hour) * 60 + c.minute) * 60 + c.second;
}

// The subtraction rounds the division down for times before 1970. Adding 11, which is 4 + 7, keeps
// the sum positive.
int weekday_of(int64_t seconds) {
  int64_t days = seconds / 86400 - (seconds % 86400 < 0);
  return static_cast<int>((days % 7 + 11) % 7);  // 1970-01-01 was a Thursday
}

Civil civil(Time t) {
  int64_t seconds = t / kSecond;
  int64_t nanos = t % kSecond;
  if (nanos < 0) {
    nanos += kSecond;
    --seconds;
  }
  Civil c = civil_of(seconds);
  c.nanos = static_cast<int>(nanos);
  return c;
}

Time from_civil(const Civil& c) { return seconds_of(c) * kSecond + c.nanos; }

std::string rfc3339(Time t, int digits, bool fixed) {
  Civil c = civil(t);
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", c.year, c.month, c.day,
                                c.hour, c.minute, c.second);
  if (digits > 0) {
    std::string frac = fmt::format("{:09}", c.nanos).substr(0, static_cast<size_t>(digits));
    while (!fixed && frac.ends_with('0'))
      frac.pop_back();
    if (!frac.empty()) out += "." + frac;
  }
  return out + "Z";
}

namespace {

// Times that nanoseconds in 64 bits can hold lie in these years.
constexpr int64_t kFirstYear = 1678;
constexpr int64_t kLastYear = 2261;
// How much of a refused text an error message shows.
constexpr size_t kShownBytes = 80;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes numbers and single characters from the front of a text. When one is missing, ok turns false
// and stays false.
struct Cursor {
  std::string_view in;
  bool ok = true;

  // A number of exactly `width` digits.
  int number(size_t width) {
    int v = 0;
    for (size_t i = 0; i < width; ++i) {
      if (i >= in.size() || !is_digit(in[i])) {
        ok = false;
        return 0;
      }
      v = v * 10 + (in[i] - '0');
    }
    in.remove_prefix(width);
    return v;
  }
  // The digits of a fraction in billionths; what follows the ninth digit is dropped. Nothing when
  // there is no digit.
  std::optional<int64_t> fraction() {
    int64_t billionths = 0;
    // The value of the next digit. It reaches zero after nine digits, so further digits add
    // nothing.
    int64_t place = 100'000'000;
    size_t digits = 0;
    for (; digits < in.size() && is_digit(in[digits]); ++digits, place /= 10)
      billionths += (in[digits] - '0') * place;
    if (digits == 0) return std::nullopt;
    in.remove_prefix(digits);
    return billionths;
  }
  bool take(char c) {
    if (in.empty() || in[0] != c) return false;
    in.remove_prefix(1);
    return true;
  }
  void expect(char c) { ok = take(c) && ok; }
};

std::unexpected<Error> bad_time(std::string_view text) {
  return fail(Code::invalid, "BAD_TIME",
              fmt::format("'{}' is not a time; write it as 2026-01-31T12:00:00Z",
                          text.substr(0, kShownBytes)));
}

// A parsed time, which Time may be unable to hold.
struct ParsedTime {
  Civil civil{};
  int64_t offset = 0;  // nanoseconds east of UTC
  bool fits() const { return civil.year >= kFirstYear && civil.year <= kLastYear; }
  Time time() const { return from_civil(civil) - offset; }
};

// Reads "Z" or "+01:00" in nanoseconds; the colon may be missing.
std::optional<int64_t> read_offset(Cursor& cursor) {
  if (cursor.take('Z') || cursor.take('z')) return 0;
  int sign = 1;
  if (!cursor.take('+')) {
    if (!cursor.take('-')) return std::nullopt;
    sign = -1;
  }
  int hours = cursor.number(2);
  cursor.take(':');
  int minutes = cursor.number(2);
  if (hours > 23 || minutes > 59) return std::nullopt;
  return sign * (hours * 60 + minutes) * 60 * kSecond;
}

bool is_valid(const Civil& c) {
  bool date =
      c.month >= 1 && c.month <= 12 && c.day >= 1 && c.day <= days_in_month(c.year, c.month);
  return date && c.hour <= 23 && c.minute <= 59 && c.second <= 60;  // 60 is a leap second
}

// More lenient than RFC 3339 in three ways: a space may separate date and time, the seconds may be
// missing, and the offset needs no colon.
Result<ParsedTime> read_rfc3339(std::string_view text) {
  Cursor cursor{text};
  ParsedTime out;
  Civil& c = out.civil;
  c.year = cursor.number(4);
  cursor.expect('-');
  c.month = cursor.number(2);
  cursor.expect('-');
  c.day = cursor.number(2);
  if (!cursor.ok) return bad_time(text);
  if (!cursor.take('T') && !cursor.take('t') && !cursor.take(' ')) return bad_time(text);
  c.hour = cursor.number(2);
  cursor.expect(':');
  c.minute = cursor.number(2);
  if (cursor.take(':')) c.second = cursor.number(2);
  if (cursor.take('.')) {
    std::optional<int64_t> fraction = cursor.fraction();
    if (!fraction) return bad_time(text);
    c.nanos = static_cast<int>(*fraction);
  }
  std::optional<int64_t> offset = read_offset(cursor);
  if (!offset) return bad_time(text);
  out.offset = *offset;
  if (!cursor.ok || !cursor.in.empty() || !is_valid(c)) return bad_time(text);
  return out;
}

}  // namespace

Result<Time> parse_rfc3339(std::string_view text) {
  TRY(ParsedTime parsed, read_rfc3339(text));
  if (!parsed.fits())
    return fail(Code::invalid, "BAD_TIME",
                fmt::format("'{}' is outside the years {} to {} that times can have",
                            text.substr(0, kShownBytes), kFirstYear, kLastYear));
  return parsed.time();
}

Result<Time> parse_rfc3339_clamped(std::string_view text) {
  TRY(ParsedTime parsed, read_rfc3339(text));
  if (parsed.fits()) return parsed.time();
  return parsed.civil.year < kFirstYear ? std::numeric_limits<Time>::min()
                                        : std::numeric_limits<Time>::max();
}

namespace {

std::unexpected<Error> bad_duration(std::string_view text) {
  return fail(Code::invalid, "BAD_DURATION",
              fmt::format("'{}' is not an ISO 8601 duration; write it as PT30S, P7D or P1DT2H",
                          text.substr(0, kShownBytes)));
}

// One unit of a duration: its letter, whether it stands after the T, and its length.
struct DurationUnit {
  char letter;
  bool in_time;
  int64_t months;
  int64_t nanos;
};
// In the order in which a duration names them.
constexpr DurationUnit kDurationUnits[] = {
    {'Y', false, 12, 0},
    {'M', false, 1, 0},
    {'W', false, 0, 7 * 86400 * kSecond},
    {'D', false, 0, 86400 * kSecond},
    {'H', true, 0, 3600 * kSecond},
    {'M', true, 0, 60 * kSecond},
    {'S', true, 0, kSecond},
};
// The largest number that may stand before a unit; it keeps months and nanoseconds in 64 bits.
constexpr uint64_t kMaxUnits = 1'000'000'000;

// A number and its unit, such as "7.5S".
struct DurationPart {
  int64_t whole = 0;
  int64_t billionths = 0;  // the fraction
  bool has_fraction = false;
};

std::optional<DurationPart> read_part(Cursor& cursor) {
  uint64_t whole = 0;
  const char* begin = cursor.in.data();
  auto [end, err] = std::from_chars(begin, begin + cursor.in.size(), whole);
  if (err != std::errc() || whole > kMaxUnits) return std::nullopt;
  cursor.in.remove_prefix(static_cast<size_t>(end - begin));
  DurationPart part{.whole = static_cast<int64_t>(whole)};
  part.has_fraction = cursor.take('.') || cursor.take(',');
  if (!part.has_fraction) return part;
  std::optional<int64_t> fraction = cursor.fraction();
  if (!fraction) return std::nullopt;
  part.billionths = *fraction;
  return part;
}

// False when the sum does not fit.
bool add_part(Duration& sum, const DurationPart& part, const DurationUnit& unit) {
  int64_t nanos = 0;
  if (__builtin_mul_overflow(part.whole, unit.nanos, &nanos)) return false;
  if (__builtin_add_overflow(nanos, part.billionths * (unit.nanos / kSecond), &nanos)) return false;
  sum.months += part.whole * unit.months;
  return !__builtin_add_overflow(sum.nanos, nanos, &sum.nanos);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  Cursor cursor{text};
  if (!cursor.take('P')) return bad_duration(text);
  Duration out;
  bool in_time = false;
  bool empty = true;  // no part has been read since 'P' or 'T'
  auto unit = std::begin(kDurationUnits);
  while (!cursor.in.empty()) {
    if (cursor.take('T')) {
      if (in_time) return bad_duration(text);
      in_time = true;
      empty = true;
      continue;
    }
    std::optional<DurationPart> part = read_part(cursor);
    if (!part || cursor.in.empty()) return bad_duration(text);
    // Each unit must come after the one before it.
    unit = std::find_if(unit, std::end(kDurationUnits), [&](const DurationUnit& u) {
      return u.letter == cursor.in[0] && u.in_time == in_time;
    });
    if (unit == std::end(kDurationUnits)) return bad_duration(text);
    cursor.in.remove_prefix(1);
    // Only the last part may have a fraction, and only hours, minutes and seconds.
    if (part->has_fraction && (!cursor.in.empty() || !in_time)) return bad_duration(text);
    if (!add_part(out, *part, *unit)) return bad_duration(text);
    ++unit;
    empty = false;
  }
  if (empty) return bad_duration(text);
  return out;
}

// Months are added first, in the calendar; a day that the new month does not have becomes its last
// day. Then the fixed length is added.
Time add(Time t, const Duration& d) {
  if (d.months) {
    Civil c = civil(t);
    int64_t month = c.month - 1 + d.months;
    c.year += month / 12;
    c.month = static_cast<int>(month % 12) + 1;
    if (c.year > kLastYear) return INT64_MAX;
    c.day = std::min(c.day, days_in_month(c.year, c.month));
    t = from_civil(c);
  }
  Time out;
  return __builtin_add_overflow(t, d.nanos, &out) ? INT64_MAX : out;
}

}  // namespace pawl
