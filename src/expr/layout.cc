#include "expr/layout.h"

#include <array>

#include "base/calendar.h"

namespace pawl::expr {

namespace {

constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};
constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};

bool is_digit_at(std::string_view s, size_t i) {
  return i < s.size() && s[i] >= '0' && s[i] <= '9';
}

std::string padded(int64_t v, size_t digits, char with = '0') {
  bool minus = v < 0;
  std::string s = std::to_string(minus ? -v : v);
  if (s.size() < digits) s.insert(0, digits - s.size(), with);
  return minus ? "-" + s : s;
}

// A moment in local time, for printing.
struct LocalTime {
  Civil civil;
  int weekday, year_day;
  ZonePeriod period;
};

// The fields that have been parsed, and the text that is left.
struct ParsedTime {
  std::string_view text;
  int64_t year = 0;
  int month = -1, day = -1, year_day = -1, hour = 0, minute = 0, second = 0;
  int32_t nanos = 0;
  bool am = false, pm = false, utc = false;
  std::optional<int64_t> offset;
  std::string_view abbreviation;
  std::string_view out_of_range;
};

struct LayoutField;
using PrintField = void (*)(const LayoutField& field, const LocalTime& local, std::string& out);
using ReadField = bool (*)(const LayoutField& field, ParsedTime& in);  // false: does not match

// One field of a layout, such as "2006" or "Jan".
struct LayoutField {
  std::string_view layout;
  PrintField print;
  ReadField read;
  size_t digits = 0;  // of a fraction
};

// Reads one or two digits; two are required when `fixed`.
bool read_number(std::string_view& text, bool fixed, int& out) {
  if (!is_digit_at(text, 0) || (fixed && !is_digit_at(text, 1))) return false;
  size_t n = is_digit_at(text, 1) ? 2 : 1;
  out = n == 2 ? (text[0] - '0') * 10 + text[1] - '0' : text[0] - '0';
  text.remove_prefix(n);
  return true;
}

template <int ParsedTime::*member, int min, int max>
bool read_bounded(const LayoutField& field, ParsedTime& in, std::string_view what) {
  if (!read_number(in.text, field.layout.starts_with('0'), in.*member)) return false;
  if (in.*member < min || in.*member > max) in.out_of_range = what;
  return true;
}

// Reads one of the names in any case and returns its index in `out`.
template <size_t n>
bool read_name(const std::array<std::string_view, n>& names, size_t shown, std::string_view& text,
               int& out) {
  for (size_t i = 0; i < n; ++i) {
    std::string_view name = names[i].substr(0, shown);
    bool same = text.size() >= name.size() &&
                std::equal(name.begin(), name.end(), text.begin(),
                           [](char a, char b) { return (a | 0x20) == (b | 0x20); });
    if (!same) continue;
    text.remove_prefix(name.size());
    out = static_cast<int>(i);
    return true;
  }
  return false;
}

size_t name_length(const LayoutField& field) {
  return field.layout.size() == 3 ? 3 : std::string_view::npos;
}

bool read_month_name(const LayoutField& field, ParsedTime& in) {
  if (!read_name(kMonths, name_length(field), in.text, in.month)) return false;
  ++in.month;
  return true;
}
bool read_day_name(const LayoutField& field, ParsedTime& in) {
  int ignored = 0;
  return read_name(kDays, name_length(field), in.text, ignored);
}

bool read_year(const LayoutField& field, ParsedTime& in) {
  size_t n = field.layout.size();
  for (size_t i = 0; i < n; ++i)
    if (!is_digit_at(in.text, i)) return false;
  in.year = 0;
  for (char c : in.text.substr(0, n))
    in.year = in.year * 10 + (c - '0');
  if (n == 2) in.year += in.year >= 69 ? 1900 : 2000;
  in.text.remove_prefix(n);
  return true;
}

bool read_day(const LayoutField& field, ParsedTime& in) {
  if (field.layout == "_2" && in.text.starts_with(' ')) in.text.remove_prefix(1);
  return read_number(in.text, field.layout == "02", in.day);
}

bool read_year_day(const LayoutField& field, ParsedTime& in) {
  for (int i = 0; i < 2; ++i)
    if (field.layout == "__2" && in.text.starts_with(' ')) in.text.remove_prefix(1);
  size_t n = 0;
  for (in.year_day = 0; n < 3 && is_digit_at(in.text, n); ++n)
    in.year_day = in.year_day * 10 + (in.text[n] - '0');
  in.text.remove_prefix(n);
  return n == 3 || (n && field.layout == "__2");
}

// Reads a point or comma and `n` digits.
bool read_fraction(ParsedTime& in, size_t n) {
  if (in.text.empty() || (in.text[0] != '.' && in.text[0] != ',')) return false;
  in.nanos = 0;
  int32_t place = 100'000'000;
  for (size_t i = 1; i <= n; ++i, place /= 10) {
    if (!is_digit_at(in.text, i)) return false;
    in.nanos += (in.text[i] - '0') * place;
  }
  in.text.remove_prefix(n + 1);
  return true;
}
size_t fraction_length(std::string_view text) {
  if (text.empty() || (text[0] != '.' && text[0] != ',')) return 0;
  size_t n = 0;
  while (is_digit_at(text, n + 1))
    ++n;
  return n;
}
bool read_fixed_fraction(const LayoutField& field, ParsedTime& in) {
  return read_fraction(in, field.digits);
}
bool read_optional_fraction(const LayoutField&, ParsedTime& in) {
  size_t n = fraction_length(in.text);
  return !n || read_fraction(in, n);
}

bool read_am_pm(const LayoutField& field, ParsedTime& in) {
  bool upper = field.layout == "PM";
  in.pm = in.text.starts_with(upper ? "PM" : "pm");
  in.am = in.text.starts_with(upper ? "AM" : "am");
  if (!in.pm && !in.am) return false;
  in.text.remove_prefix(2);
  return true;
}

// Reads an offset in the form of the layout: "-07", "-0700", "-07:00", "-070000" or "-07:00:00". A
// layout that begins with Z also accepts Z for UTC.
bool read_offset(const LayoutField& field, ParsedTime& in) {
  if (field.layout[0] == 'Z' && in.text.starts_with('Z')) {
    in.utc = true;
    in.text.remove_prefix(1);
    return true;
  }
  if (!in.text.starts_with('+') && !in.text.starts_with('-')) return false;
  int64_t sign = in.text[0] == '-' ? -1 : 1, out = 0, unit = 3600;
  in.text.remove_prefix(1);
  for (std::string_view shape = field.layout.substr(1); !shape.empty();
       shape.remove_prefix(2), unit /= 60) {
    if (shape[0] == ':') {
      if (!in.text.starts_with(':')) return false;
      in.text.remove_prefix(1);
      shape.remove_prefix(1);
    }
    int part = 0;
    if (!read_number(in.text, true, part)) return false;
    if (part > (unit == 3600 ? 24 : 60)) in.out_of_range = "the offset";
    out += part * unit;
  }
  in.offset = sign * out;
  return true;
}

void print_offset(const LayoutField& field, const LocalTime& local, std::string& out) {
  int64_t offset = local.period.offset;
  if (field.layout[0] == 'Z' && offset == 0) {
    out += 'Z';
    return;
  }
  out += offset < 0 ? '-' : '+';
  offset = offset < 0 ? -offset : offset;
  int64_t parts[] = {offset / 3600, offset / 60 % 60, offset % 60};
  size_t next = 0;
  for (std::string_view shape = field.layout.substr(1); !shape.empty(); shape.remove_prefix(2)) {
    if (shape[0] == ':') {
      out += ':';
      shape.remove_prefix(1);
    }
    out += padded(parts[next++], 2);
  }
}

// Length of the time zone abbreviation at the front of the text: three letters, four or five
// letters that end in T, an offset in hours, or GMT with an offset. 0 when there is none.
size_t abbreviation_length(std::string_view text) {
  auto hours = [](std::string_view s) -> size_t {
    if (!s.starts_with('+') && !s.starts_with('-')) return 0;
    size_t n = 1;
    int value = 0;
    for (; is_digit_at(s, n) && n < 8; ++n)
      value = value * 10 + (s[n] - '0');
    return n > 1 && value <= 23 && !is_digit_at(s, n) ? n : 0;
  };
  if (text.starts_with("ChST") || text.starts_with("MeST")) return 4;
  if (text.starts_with("GMT")) return 3 + hours(text.substr(3));
  if (size_t n = hours(text)) return n;
  size_t n = 0;
  while (n < text.size() && n < 6 && text[n] >= 'A' && text[n] <= 'Z')
    ++n;
  if (n == 3) return 3;
  if (n == 4 && (text[3] == 'T' || text.starts_with("WITA"))) return 4;
  return n == 5 && text[4] == 'T' ? 5 : 0;
}

bool read_abbreviation(const LayoutField&, ParsedTime& in) {
  if (in.text.starts_with("UTC")) {
    in.utc = true;
    in.text.remove_prefix(3);
    return true;
  }
  size_t n = abbreviation_length(in.text);
  in.abbreviation = in.text.substr(0, n);
  in.text.remove_prefix(n);
  return n > 0;
}

void print_abbreviation(const LayoutField&, const LocalTime& local, std::string& out) {
  if (!local.period.name.empty()) {
    out += local.period.name;
    return;
  }
  int64_t minutes = local.period.offset / 60;
  out += minutes < 0 ? '-' : '+';
  minutes = minutes < 0 ? -minutes : minutes;
  out += padded(minutes / 60, 2) + padded(minutes % 60, 2);
}

void print_fraction(const LayoutField& field, const LocalTime& local, std::string& out) {
  std::string all = padded(local.civil.nanos, 9).substr(0, field.digits);
  if (field.layout[1] == '9')
    while (all.ends_with('0'))
      all.pop_back();
  if (!all.empty()) out += field.layout[0] + all;
}

int hour12(const LocalTime& local) { return (local.civil.hour + 11) % 12 + 1; }

// Longer fields stand before their prefixes.
constexpr LayoutField kLayoutFields[] = {
    {"January",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += kMonths[local.civil.month - 1];
     },
     read_month_name},
    {"Jan",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += kMonths[local.civil.month - 1].substr(0, 3);
     },
     read_month_name},
    {"Monday",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += kDays[local.weekday];
     },
     read_day_name},
    {"Mon",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += kDays[local.weekday].substr(0, 3);
     },
     read_day_name},
    {"MST", print_abbreviation, read_abbreviation},
    {"002",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.year_day, 3);
     },
     read_year_day},
    {"01",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.month, 2);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::month, 1, 12>(p, in, "the month");
     }},
    {"02",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.day, 2);
     },
     read_day},
    {"03",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(hour12(local), 2);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::hour, 0, 12>(p, in, "the hour");
     }},
    {"04",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.minute, 2);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::minute, 0, 59>(p, in, "the minute");
     }},
    {"05",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.second, 2);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::second, 0, 59>(p, in, "the second");
     }},
    {"06",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded((local.civil.year % 100 + 100) % 100, 2);
     },
     read_year},
    {"15",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.hour, 2);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::hour, 0, 23>(p, in, "the hour");
     }},
    {"1",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += std::to_string(local.civil.month);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::month, 1, 12>(p, in, "the month");
     }},
    {"2006",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.year, 4);
     },
     read_year},
    {"2",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += std::to_string(local.civil.day);
     },
     read_day},
    {"__2",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.year_day, 3, ' ');
     },
     read_year_day},
    {"_2",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += padded(local.civil.day, 2, ' ');
     },
     read_day},
    {"3",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += std::to_string(hour12(local));
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::hour, 0, 12>(p, in, "the hour");
     }},
    {"4",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += std::to_string(local.civil.minute);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::minute, 0, 59>(p, in, "the minute");
     }},
    {"5",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += std::to_string(local.civil.second);
     },
     [](const LayoutField& p, ParsedTime& in) {
       return read_bounded<&ParsedTime::second, 0, 59>(p, in, "the second");
     }},
    {"PM",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += local.civil.hour < 12 ? "AM" : "PM";
     },
     read_am_pm},
    {"pm",
     [](const LayoutField&, const LocalTime& local, std::string& out) {
       out += local.civil.hour < 12 ? "am" : "pm";
     },
     read_am_pm},
    {"-07:00:00", print_offset, read_offset},
    {"-070000", print_offset, read_offset},
    {"-07:00", print_offset, read_offset},
    {"-0700", print_offset, read_offset},
    {"-07", print_offset, read_offset},
    {"Z07:00:00", print_offset, read_offset},
    {"Z070000", print_offset, read_offset},
    {"Z07:00", print_offset, read_offset},
    {"Z0700", print_offset, read_offset},
    {"Z07", print_offset, read_offset},
};

// The piece at the front of a layout: a row of the table, or a fraction such as ".000" or ",999".
std::optional<LayoutField> field_at(std::string_view layout) {
  if (layout[0] == '.' || layout[0] == ',') {
    char fill = layout.size() > 1 ? layout[1] : ' ';
    size_t n = 1;
    while (n < layout.size() && layout[n] == fill)
      ++n;
    if ((fill != '0' && fill != '9') || is_digit_at(layout, n)) return std::nullopt;
    return LayoutField{layout.substr(0, n), print_fraction,
                       fill == '0' ? read_fixed_fraction : read_optional_fraction, n - 1};
  }
  if (layout.starts_with("_2006")) return std::nullopt;  // an underscore and a year
  for (const LayoutField& field : kLayoutFields) {
    if (!layout.starts_with(field.layout)) continue;
    char after = layout.size() > field.layout.size() ? layout[field.layout.size()] : ' ';
    bool word = field.layout == "Jan" || field.layout == "Mon";
    if (word && after >= 'a' && after <= 'z') continue;  // part of a longer word: Janet, Monty
    return field;
  }
  return std::nullopt;
}

// Reads a character of the layout that is not a field. A space matches any number of spaces.
bool read_literal(char c, std::string_view& text) {
  if (c == ' ') {
    if (!text.empty() && text[0] != ' ') return false;
    while (text.starts_with(' '))
      text.remove_prefix(1);
    return true;
  }
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

std::unexpected<Error> bad_time(std::string_view text, std::string what) {
  return fail(Code::invalid, "BAD_TIME",
              "'" + std::string(text.substr(0, 80)) + "' " + std::move(what));
}

// Computes month and day from the day of the year if there is one; both must agree. Returns false
// when there is no such day.
bool resolve_day(ParsedTime& in) {
  if (in.year_day < 0) {
    in.month = std::max(in.month, 1);
    if (in.day < 0) in.day = 1;
    return in.day >= 1 && in.day <= days_in_month(in.year, in.month);
  }
  int year_length = days_in_month(in.year, 2) == 29 ? 366 : 365;
  if (in.year_day < 1 || in.year_day > year_length) return false;
  Civil day =
      civil_of(seconds_of({.year = in.year, .month = 1, .day = 1}) + 86400 * (in.year_day - 1));
  if ((in.month >= 0 && in.month != day.month) || (in.day >= 0 && in.day != day.day)) return false;
  in.month = day.month;
  in.day = day.day;
  return true;
}

// Computes the moment from the parsed fields: by their offset, by their abbreviation, or by the
// zone.
ZonedTime resolve(const ParsedTime& in, const Zone* zone,
                  const std::function<const Zone*(Zone)>& keep) {
  int64_t local = seconds_of({in.year, in.month, in.day, in.hour, in.minute, in.second, 0});
  if (in.utc) return {local, in.nanos, nullptr};
  if (in.offset) {
    int64_t utc = local - *in.offset;
    ZonePeriod period = period_at(zone, utc);
    if (period.offset == *in.offset && (in.abbreviation.empty() || period.name == in.abbreviation))
      return {utc, in.nanos, zone};
    return {utc, in.nanos, keep(fixed_zone(in.abbreviation, *in.offset))};
  }
  if (in.abbreviation.empty()) return {utc_of(zone, local), in.nanos, zone};
  if (std::optional<int64_t> offset = offset_of(zone, in.abbreviation, local))
    return {local - *offset, in.nanos, zone};
  int64_t hours = 0;
  if (in.abbreviation.starts_with("GMT"))
    for (char c : in.abbreviation.substr(3))
      if (c >= '0' && c <= '9') hours = hours * 10 + (c - '0');
  if (in.abbreviation.starts_with("GMT-")) hours = -hours;
  return {local, in.nanos, keep(fixed_zone(in.abbreviation, hours * 3600))};
}

}  // namespace

std::string print_time(const ZonedTime& m, std::string_view layout) {
  ZonePeriod period = period_at(m.zone, m.seconds);
  int64_t seconds = m.seconds + period.offset;
  LocalTime local{civil_of(seconds), weekday_of(seconds), 0, period};
  local.civil.nanos = m.nanos;
  local.year_day =
      static_cast<int>((seconds - seconds_of({.year = local.civil.year, .month = 1, .day = 1})) /
                       86400) +
      1;
  std::string out;
  while (!layout.empty()) {
    std::optional<LayoutField> field = field_at(layout);
    if (field)
      field->print(*field, local, out);
    else
      out += layout[0];
    layout.remove_prefix(field ? field->layout.size() : 1);
  }
  return out;
}

Result<ZonedTime> read_time(std::string_view text, std::string_view layout, const Zone* zone,
                            const std::function<const Zone*(Zone)>& keep) {
  ParsedTime in{.text = text};
  std::string_view whole = layout;
  auto refuse = [&] {
    return bad_time(text, "does not read as '" + std::string(whole.substr(0, 80)) + "'");
  };
  while (!layout.empty()) {
    std::optional<LayoutField> field = field_at(layout);
    std::string_view at = layout;
    layout.remove_prefix(field ? field->layout.size() : 1);
    if (!field) {
      if (!read_literal(at[0], in.text)) return refuse();
      while (at[0] == ' ' && layout.starts_with(' '))
        layout.remove_prefix(1);
      continue;
    }
    if (!field->read(*field, in)) return refuse();
    if (!in.out_of_range.empty())
      return bad_time(text, "has a value out of range: " + std::string(in.out_of_range));
    bool seconds = field->layout == "05" || field->layout == "5";
    std::optional<LayoutField> next = layout.empty() ? std::nullopt : field_at(layout);
    bool fraction_follows = next && next->digits;
    if (size_t n = fraction_length(in.text); seconds && n && !fraction_follows)
      read_fraction(in, n);
  }
  if (!in.text.empty()) return refuse();
  if (in.pm && in.hour < 12)
    in.hour += 12;
  else if (in.am && in.hour == 12)
    in.hour = 0;
  if (!resolve_day(in)) return bad_time(text, "names a day that the month does not have");
  return resolve(in, zone, keep);
}

}  // namespace pawl::expr
