#include "base/calendar.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace pawl {

// Days since 1970-01-01 of a proleptic Gregorian date, and back: the usual era arithmetic.
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
  int64_t days = seconds / 86400, rem = seconds % 86400;
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

int weekday_of(int64_t seconds) {
  int64_t days = seconds / 86400 - (seconds % 86400 < 0);
  return static_cast<int>((days % 7 + 11) % 7);
}

Civil civil(Time t) {
  int64_t seconds = t / kSecond, nanos = t % kSecond;
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
    if (!fixed)
      while (!frac.empty() && frac.back() == '0')
        frac.pop_back();
    if (!frac.empty()) out += "." + frac;
  }
  return out + "Z";
}

namespace {
struct Cursor {
  std::string_view in;
  bool ok = true;
  int number(size_t width) {
    int v = 0;
    if (in.size() < width) return ok = false, 0;
    for (size_t i = 0; i < width; ++i) {
      if (in[i] < '0' || in[i] > '9') return ok = false, 0;
      v = v * 10 + (in[i] - '0');
    }
    in.remove_prefix(width);
    return v;
  }
  bool take(char c) {
    if (in.empty() || in[0] != c) return false;
    in.remove_prefix(1);
    return true;
  }
  void want(char c) { ok = take(c) && ok; }
};
}  // namespace

static std::unexpected<Error> bad_time(std::string_view text) {
  return fail(
      Code::invalid, "BAD_TIME",
      fmt::format("'{}' is not a time; write it as 2026-01-31T12:00:00Z", text.substr(0, 80)));
}

// What a text says, which may be before or after all that Time can hold.
struct Spoken {
  Civil civil{};
  int64_t offset = 0;
  bool fits() const { return civil.year >= 1678 && civil.year <= 2261; }
  Time time() const { return from_civil(civil) - offset; }
};

static Result<Spoken> read_rfc3339(std::string_view text) {
  Cursor cur{text};
  Spoken out;
  Civil& c = out.civil;
  c.year = cur.number(4);
  cur.want('-');
  c.month = cur.number(2);
  cur.want('-');
  c.day = cur.number(2);
  if (!cur.ok || !(cur.take('T') || cur.take('t') || cur.take(' '))) return bad_time(text);
  c.hour = cur.number(2);
  cur.want(':');
  c.minute = cur.number(2);
  if (cur.take(':')) c.second = cur.number(2);
  if (cur.take('.')) {
    int place = 100'000'000, seen = 0;
    while (!cur.in.empty() && cur.in[0] >= '0' && cur.in[0] <= '9') {
      c.nanos += (cur.in[0] - '0') * place;
      place /= 10;
      ++seen;
      cur.in.remove_prefix(1);
    }
    if (!seen) return bad_time(text);
  }
  if (!(cur.take('Z') || cur.take('z'))) {
    int sign = cur.take('+') ? 1 : cur.take('-') ? -1 : 0;
    if (!sign) return bad_time(text);
    int hours = cur.number(2);
    cur.take(':');
    int minutes = cur.number(2);
    if (hours > 23 || minutes > 59) return bad_time(text);
    out.offset = sign * (hours * 60 + minutes) * 60 * kSecond;
  }
  bool leap_second = c.second == 60;
  if (!cur.ok || !cur.in.empty() || c.month < 1 || c.month > 12 || c.day < 1 ||
      c.day > days_in_month(c.year, c.month) || c.hour > 23 || c.minute > 59 ||
      (c.second > 59 && !leap_second))
    return bad_time(text);
  return out;
}

Result<Time> parse_rfc3339(std::string_view text) {
  TRY(Spoken spoken, read_rfc3339(text));
  if (!spoken.fits())
    return fail(Code::invalid, "BAD_TIME",
                fmt::format("'{}' is outside the years 1678 to 2261 that times can have",
                            text.substr(0, 80)));
  return spoken.time();
}

Result<Time> parse_rfc3339_clamped(std::string_view text) {
  TRY(Spoken spoken, read_rfc3339(text));
  if (spoken.fits()) return spoken.time();
  return spoken.civil.year < 1678 ? std::numeric_limits<Time>::min()
                                  : std::numeric_limits<Time>::max();
}

static std::unexpected<Error> bad_duration(std::string_view text) {
  return fail(Code::invalid, "BAD_DURATION",
              fmt::format("'{}' is not an ISO 8601 duration; write it as PT30S, P7D or P1DT2H",
                          text.substr(0, 80)));
}

// One designator of a duration: its letter, which half it stands in, and what it is worth.
struct Designator {
  char letter;
  bool in_time;
  int64_t months;
  int64_t nanos;
};
static constexpr Designator kDesignators[] = {
    {'Y', false, 12, 0},
    {'M', false, 1, 0},
    {'W', false, 0, 7 * 86400 * kSecond},
    {'D', false, 0, 86400 * kSecond},
    {'H', true, 0, 3600 * kSecond},
    {'M', true, 0, 60 * kSecond},
    {'S', true, 0, kSecond},
};

Result<Duration> parse_duration(std::string_view text) {
  std::string_view in = text;
  if (in.empty() || in[0] != 'P') return bad_duration(text);
  in.remove_prefix(1);
  Duration out;
  bool in_time = false, any = false, any_time = false;
  size_t row = 0;
  while (!in.empty()) {
    if (in[0] == 'T') {
      if (in_time) return bad_duration(text);
      in_time = true;
      in.remove_prefix(1);
      continue;
    }
    uint64_t whole = 0;
    auto [end, err] = std::from_chars(in.data(), in.data() + in.size(), whole);
    if (err != std::errc() || whole > 1'000'000'000) return bad_duration(text);
    in.remove_prefix(static_cast<size_t>(end - in.data()));
    int64_t frac = 0;
    bool has_frac = !in.empty() && (in[0] == '.' || in[0] == ',');
    if (has_frac) {
      in.remove_prefix(1);
      int64_t place = 100'000'000;
      size_t seen = 0;
      for (; seen < in.size() && in[seen] >= '0' && in[seen] <= '9'; ++seen, place /= 10)
        frac += (in[seen] - '0') * place;
      if (!seen) return bad_duration(text);
      in.remove_prefix(seen);
    }
    if (in.empty()) return bad_duration(text);
    while (row < std::size(kDesignators) &&
           !(kDesignators[row].letter == in[0] && kDesignators[row].in_time == in_time))
      ++row;
    if (row == std::size(kDesignators)) return bad_duration(text);
    const Designator& d = kDesignators[row++];
    in.remove_prefix(1);
    // Only the last part may have a fraction, and only hours, minutes and seconds.
    if (has_frac && (!in.empty() || !in_time)) return bad_duration(text);
    frac *= d.nanos / kSecond;
    int64_t nanos = 0;
    if (__builtin_mul_overflow(static_cast<int64_t>(whole), d.nanos, &nanos) ||
        __builtin_add_overflow(nanos, frac, &nanos) ||
        __builtin_add_overflow(out.nanos, nanos, &out.nanos))
      return bad_duration(text);
    out.months += static_cast<int64_t>(whole) * d.months;
    any = true;
    any_time = any_time || in_time;
  }
  if (!any || (in_time && !any_time)) return bad_duration(text);
  return out;
}

Time add(Time t, const Duration& d) {
  if (d.months) {
    Civil c = civil(t);
    int64_t month = c.month - 1 + d.months;
    c.year += month / 12;
    c.month = static_cast<int>(month % 12) + 1;
    if (c.year > 2261) return INT64_MAX;
    c.day = std::min(c.day, days_in_month(c.year, c.month));
    t = from_civil(c);
  }
  Time out;
  return __builtin_add_overflow(t, d.nanos, &out) ? INT64_MAX : out;
}

}  // namespace pawl
