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

bool digit(std::string_view s, size_t i) { return i < s.size() && s[i] >= '0' && s[i] <= '9'; }

std::string padded(int64_t v, size_t digits, char with = '0') {
  bool minus = v < 0;
  std::string s = std::to_string(minus ? -v : v);
  if (s.size() < digits) s.insert(0, digits - s.size(), with);
  return minus ? "-" + s : s;
}

// What is printed: the wall clock of a moment.
struct Wall {
  Civil civil;
  int weekday, year_day;
  InEffect clock;
};

// What has been read so far.
struct Reading {
  std::string_view text;
  int64_t year = 0;
  int month = -1, day = -1, year_day = -1, hour = 0, minute = 0, second = 0;
  int32_t nanos = 0;
  bool am = false, pm = false, utc = false;
  std::optional<int64_t> offset;
  std::string_view abbreviation;
  std::string_view out_of_range;
};

struct Piece;
using Print = void (*)(const Piece& piece, const Wall& wall, std::string& out);
using Read = bool (*)(const Piece& piece, Reading& in);  // false: the text is not that

struct Piece {
  std::string_view layout;
  Print print;
  Read read;
  size_t digits = 0;  // a fraction's
};

// One or two digits, both wanted when `fixed`.
bool number(std::string_view& text, bool fixed, int& out) {
  if (!digit(text, 0) || (fixed && !digit(text, 1))) return false;
  size_t n = digit(text, 1) ? 2 : 1;
  out = n == 2 ? (text[0] - '0') * 10 + text[1] - '0' : text[0] - '0';
  text.remove_prefix(n);
  return true;
}

template <int Reading::*field, int least, int max>
bool bounded(const Piece& piece, Reading& in, std::string_view what) {
  if (!number(in.text, piece.layout.starts_with('0'), in.*field)) return false;
  if (in.*field < least || in.*field > max) in.out_of_range = what;
  return true;
}

// The index of the name that the text begins with, whatever its case.
template <size_t n>
bool named(const std::array<std::string_view, n>& names, size_t shown, std::string_view& text,
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

size_t name_length(const Piece& piece) {
  return piece.layout.size() == 3 ? 3 : std::string_view::npos;
}

bool read_month_name(const Piece& piece, Reading& in) {
  if (!named(kMonths, name_length(piece), in.text, in.month)) return false;
  ++in.month;
  return true;
}
bool read_day_name(const Piece& piece, Reading& in) {
  int ignored = 0;
  return named(kDays, name_length(piece), in.text, ignored);
}

bool read_year(const Piece& piece, Reading& in) {
  size_t n = piece.layout.size();
  for (size_t i = 0; i < n; ++i)
    if (!digit(in.text, i)) return false;
  in.year = 0;
  for (char c : in.text.substr(0, n))
    in.year = in.year * 10 + (c - '0');
  if (n == 2) in.year += in.year >= 69 ? 1900 : 2000;
  in.text.remove_prefix(n);
  return true;
}

bool read_day(const Piece& piece, Reading& in) {
  if (piece.layout == "_2" && in.text.starts_with(' ')) in.text.remove_prefix(1);
  return number(in.text, piece.layout == "02", in.day);
}

bool read_year_day(const Piece& piece, Reading& in) {
  for (int i = 0; i < 2; ++i)
    if (piece.layout == "__2" && in.text.starts_with(' ')) in.text.remove_prefix(1);
  size_t n = 0;
  for (in.year_day = 0; n < 3 && digit(in.text, n); ++n)
    in.year_day = in.year_day * 10 + (in.text[n] - '0');
  in.text.remove_prefix(n);
  return n == 3 || (n && piece.layout == "__2");
}

// A point or comma and `n` digits after it.
bool read_fraction(Reading& in, size_t n) {
  if (in.text.empty() || (in.text[0] != '.' && in.text[0] != ',')) return false;
  in.nanos = 0;
  int32_t place = 100'000'000;
  for (size_t i = 1; i <= n; ++i, place /= 10) {
    if (!digit(in.text, i)) return false;
    in.nanos += (in.text[i] - '0') * place;
  }
  in.text.remove_prefix(n + 1);
  return true;
}
size_t fraction_length(std::string_view text) {
  if (text.empty() || (text[0] != '.' && text[0] != ',')) return 0;
  size_t n = 0;
  while (digit(text, n + 1))
    ++n;
  return n;
}
bool read_wanted_fraction(const Piece& piece, Reading& in) {
  return read_fraction(in, piece.digits);
}
bool read_any_fraction(const Piece&, Reading& in) {
  size_t n = fraction_length(in.text);
  return !n || read_fraction(in, n);
}

bool read_half(const Piece& piece, Reading& in) {
  bool upper = piece.layout == "PM";
  in.pm = in.text.starts_with(upper ? "PM" : "pm");
  in.am = in.text.starts_with(upper ? "AM" : "am");
  if (!in.pm && !in.am) return false;
  in.text.remove_prefix(2);
  return true;
}

// "-07", "-0700", "-07:00", "-070000", "-07:00:00", and the same with Z for UTC.
bool read_offset(const Piece& piece, Reading& in) {
  if (piece.layout[0] == 'Z' && in.text.starts_with('Z')) {
    in.utc = true;
    in.text.remove_prefix(1);
    return true;
  }
  if (!in.text.starts_with('+') && !in.text.starts_with('-')) return false;
  int64_t sign = in.text[0] == '-' ? -1 : 1, out = 0, unit = 3600;
  in.text.remove_prefix(1);
  for (std::string_view shape = piece.layout.substr(1); !shape.empty();
       shape.remove_prefix(2), unit /= 60) {
    if (shape[0] == ':') {
      if (!in.text.starts_with(':')) return false;
      in.text.remove_prefix(1), shape.remove_prefix(1);
    }
    int part = 0;
    if (!number(in.text, true, part)) return false;
    if (part > (unit == 3600 ? 24 : 60)) in.out_of_range = "the offset";
    out += part * unit;
  }
  in.offset = sign * out;
  return true;
}

void print_offset(const Piece& piece, const Wall& wall, std::string& out) {
  int64_t offset = wall.clock.offset;
  if (piece.layout[0] == 'Z' && offset == 0) {
    out += 'Z';
    return;
  }
  out += offset < 0 ? '-' : '+';
  offset = offset < 0 ? -offset : offset;
  int64_t parts[] = {offset / 3600, offset / 60 % 60, offset % 60};
  size_t next = 0;
  for (std::string_view shape = piece.layout.substr(1); !shape.empty(); shape.remove_prefix(2)) {
    if (shape[0] == ':') out += ':', shape.remove_prefix(1);
    out += padded(parts[next++], 2);
  }
}

// How many characters of an abbreviation: three letters, four or five that end in T, an offset in
// hours, or GMT with one.
size_t abbreviation_length(std::string_view text) {
  auto hours = [](std::string_view s) -> size_t {
    if (!s.starts_with('+') && !s.starts_with('-')) return 0;
    size_t n = 1;
    int value = 0;
    for (; digit(s, n) && n < 8; ++n)
      value = value * 10 + (s[n] - '0');
    return n > 1 && value <= 23 && !digit(s, n) ? n : 0;
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

bool read_abbreviation(const Piece&, Reading& in) {
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

void print_abbreviation(const Piece&, const Wall& wall, std::string& out) {
  if (!wall.clock.name.empty()) {
    out += wall.clock.name;
    return;
  }
  int64_t minutes = wall.clock.offset / 60;
  out += minutes < 0 ? '-' : '+';
  minutes = minutes < 0 ? -minutes : minutes;
  out += padded(minutes / 60, 2) + padded(minutes % 60, 2);
}

void print_fraction(const Piece& piece, const Wall& wall, std::string& out) {
  std::string all = padded(wall.civil.nanos, 9).substr(0, piece.digits);
  if (piece.layout[1] == '9')
    while (all.ends_with('0'))
      all.pop_back();
  if (!all.empty()) out += piece.layout[0] + all;
}

int twelve(const Wall& w) { return (w.civil.hour + 11) % 12 + 1; }

// The longer stands before what it begins with.
constexpr Piece kPieces[] = {
    {"January",
     [](const Piece&, const Wall& w, std::string& out) { out += kMonths[w.civil.month - 1]; },
     read_month_name},
    {"Jan",
     [](const Piece&, const Wall& w, std::string& out) {
       out += kMonths[w.civil.month - 1].substr(0, 3);
     },
     read_month_name},
    {"Monday", [](const Piece&, const Wall& w, std::string& out) { out += kDays[w.weekday]; },
     read_day_name},
    {"Mon",
     [](const Piece&, const Wall& w, std::string& out) { out += kDays[w.weekday].substr(0, 3); },
     read_day_name},
    {"MST", print_abbreviation, read_abbreviation},
    {"002", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.year_day, 3); },
     read_year_day},
    {"01", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.month, 2); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::month, 1, 12>(p, in, "the month");
     }},
    {"02", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.day, 2); },
     read_day},
    {"03", [](const Piece&, const Wall& w, std::string& out) { out += padded(twelve(w), 2); },
     [](const Piece& p, Reading& in) { return bounded<&Reading::hour, 0, 12>(p, in, "the hour"); }},
    {"04", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.minute, 2); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::minute, 0, 59>(p, in, "the minute");
     }},
    {"05", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.second, 2); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::second, 0, 59>(p, in, "the second");
     }},
    {"06",
     [](const Piece&, const Wall& w, std::string& out) {
       out += padded((w.civil.year % 100 + 100) % 100, 2);
     },
     read_year},
    {"15", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.hour, 2); },
     [](const Piece& p, Reading& in) { return bounded<&Reading::hour, 0, 23>(p, in, "the hour"); }},
    {"1",
     [](const Piece&, const Wall& w, std::string& out) { out += std::to_string(w.civil.month); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::month, 1, 12>(p, in, "the month");
     }},
    {"2006", [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.year, 4); },
     read_year},
    {"2", [](const Piece&, const Wall& w, std::string& out) { out += std::to_string(w.civil.day); },
     read_day},
    {"__2",
     [](const Piece&, const Wall& w, std::string& out) { out += padded(w.year_day, 3, ' '); },
     read_year_day},
    {"_2",
     [](const Piece&, const Wall& w, std::string& out) { out += padded(w.civil.day, 2, ' '); },
     read_day},
    {"3", [](const Piece&, const Wall& w, std::string& out) { out += std::to_string(twelve(w)); },
     [](const Piece& p, Reading& in) { return bounded<&Reading::hour, 0, 12>(p, in, "the hour"); }},
    {"4",
     [](const Piece&, const Wall& w, std::string& out) { out += std::to_string(w.civil.minute); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::minute, 0, 59>(p, in, "the minute");
     }},
    {"5",
     [](const Piece&, const Wall& w, std::string& out) { out += std::to_string(w.civil.second); },
     [](const Piece& p, Reading& in) {
       return bounded<&Reading::second, 0, 59>(p, in, "the second");
     }},
    {"PM",
     [](const Piece&, const Wall& w, std::string& out) { out += w.civil.hour < 12 ? "AM" : "PM"; },
     read_half},
    {"pm",
     [](const Piece&, const Wall& w, std::string& out) { out += w.civil.hour < 12 ? "am" : "pm"; },
     read_half},
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
std::optional<Piece> piece_at(std::string_view layout) {
  if (layout[0] == '.' || layout[0] == ',') {
    char fill = layout.size() > 1 ? layout[1] : ' ';
    size_t n = 1;
    while (n < layout.size() && layout[n] == fill)
      ++n;
    if ((fill != '0' && fill != '9') || digit(layout, n)) return std::nullopt;
    return Piece{layout.substr(0, n), print_fraction,
                 fill == '0' ? read_wanted_fraction : read_any_fraction, n - 1};
  }
  if (layout.starts_with("_2006")) return std::nullopt;  // a stroke and a year
  for (const Piece& piece : kPieces) {
    if (!layout.starts_with(piece.layout)) continue;
    char after = layout.size() > piece.layout.size() ? layout[piece.layout.size()] : ' ';
    bool word = piece.layout == "Jan" || piece.layout == "Mon";
    if (word && after >= 'a' && after <= 'z') continue;  // Janet, Monty
    return piece;
  }
  return std::nullopt;
}

// Plain text of the layout, in which a space stands for any number of them.
bool skip_plain(char c, std::string_view& text) {
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

std::unexpected<Error> unreadable(std::string_view text, std::string what) {
  return fail(Code::invalid, "BAD_TIME",
              "'" + std::string(text.substr(0, 80)) + "' " + std::move(what));
}

// Day and month from the day of the year, which must not say otherwise.
bool settle_day(Reading& in) {
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
  in.month = day.month, in.day = day.day;
  return true;
}

// The moment that what was read names, by its own offset, by its abbreviation, or by the zone's
// clock.
Moment settle(const Reading& in, const Zone* zone, const std::function<const Zone*(Zone)>& keep) {
  int64_t wall = seconds_of({in.year, in.month, in.day, in.hour, in.minute, in.second, 0});
  if (in.utc) return {wall, in.nanos, nullptr};
  if (in.offset) {
    int64_t moment = wall - *in.offset;
    InEffect clock = in_effect(zone, moment);
    if (clock.offset == *in.offset && (in.abbreviation.empty() || clock.name == in.abbreviation))
      return {moment, in.nanos, zone};
    return {moment, in.nanos, keep(fixed_zone(in.abbreviation, *in.offset))};
  }
  if (in.abbreviation.empty()) return {moment_of(zone, wall), in.nanos, zone};
  if (std::optional<int64_t> offset = offset_of(zone, in.abbreviation, wall))
    return {wall - *offset, in.nanos, zone};
  int64_t hours = 0;
  if (in.abbreviation.starts_with("GMT"))
    for (char c : in.abbreviation.substr(3))
      if (c >= '0' && c <= '9') hours = hours * 10 + (c - '0');
  if (in.abbreviation.starts_with("GMT-")) hours = -hours;
  return {wall, in.nanos, keep(fixed_zone(in.abbreviation, hours * 3600))};
}

}  // namespace

std::string print_time(const Moment& m, std::string_view layout) {
  InEffect clock = in_effect(m.zone, m.seconds);
  int64_t wall = m.seconds + clock.offset;
  Wall w{civil_of(wall), weekday_of(wall), 0, clock};
  w.civil.nanos = m.nanos;
  w.year_day =
      static_cast<int>((wall - seconds_of({.year = w.civil.year, .month = 1, .day = 1})) / 86400) +
      1;
  std::string out;
  while (!layout.empty()) {
    std::optional<Piece> piece = piece_at(layout);
    if (piece)
      piece->print(*piece, w, out);
    else
      out += layout[0];
    layout.remove_prefix(piece ? piece->layout.size() : 1);
  }
  return out;
}

Result<Moment> read_time(std::string_view text, std::string_view layout, const Zone* zone,
                         const std::function<const Zone*(Zone)>& keep) {
  Reading in{.text = text};
  std::string_view whole = layout;
  auto refuse = [&] {
    return unreadable(text, "does not read as '" + std::string(whole.substr(0, 80)) + "'");
  };
  while (!layout.empty()) {
    std::optional<Piece> piece = piece_at(layout);
    std::string_view at = layout;
    layout.remove_prefix(piece ? piece->layout.size() : 1);
    if (!piece) {
      if (!skip_plain(at[0], in.text)) return refuse();
      while (at[0] == ' ' && layout.starts_with(' '))
        layout.remove_prefix(1);
      continue;
    }
    if (!piece->read(*piece, in)) return refuse();
    if (!in.out_of_range.empty())
      return unreadable(text, "has a value out of range: " + std::string(in.out_of_range));
    bool seconds = piece->layout == "05" || piece->layout == "5";
    std::optional<Piece> next = layout.empty() ? std::nullopt : piece_at(layout);
    bool fraction_follows = next && next->digits;
    if (size_t n = fraction_length(in.text); seconds && n && !fraction_follows)
      read_fraction(in, n);
  }
  if (!in.text.empty()) return refuse();
  if (in.pm && in.hour < 12)
    in.hour += 12;
  else if (in.am && in.hour == 12)
    in.hour = 0;
  if (!settle_day(in)) return unreadable(text, "names a day that the month does not have");
  return settle(in, zone, keep);
}

}  // namespace pawl::expr
