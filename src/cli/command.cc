#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "json/text.h"

namespace pawl::cli {

using server::ValueKind;

std::span<const Flag> common_flags() {
  static constexpr Flag flags[] = {
      {"json", v::none(), "print one JSON document instead of text"},
      {"help", v::none(), "print what the command does and its flags"},
      {"quiet", v::none(), "print nothing but errors"},
  };
  return flags;
}

std::vector<Flag> Command::all_flags() const {
  std::vector<Flag> out;
  for (const Flag& flag : flags) {
    if (!flag.name.empty()) out.push_back(flag);
  }
  if (more_flags) {
    std::vector<Flag> more = more_flags();
    out.insert(out.end(), more.begin(), more.end());
  }
  out.insert(out.end(), common_flags().begin(), common_flags().end());
  return out;
}

// A multimap keeps equal keys in the order of insertion, so the one before the upper bound was
// given last.
std::string Args::get(std::string_view flag, std::string_view default_value) const {
  auto it = flags_.upper_bound(flag);
  if (it == flags_.begin() || std::prev(it)->first != flag) return std::string(default_value);
  return std::prev(it)->second;
}

// The parser has checked the text, so it is a number.
int64_t Args::number(std::string_view flag, int64_t default_value) const {
  return has(flag) ? *server::parse_whole_number(get(flag)) : default_value;
}

double Args::seconds(std::string_view flag, double default_value) const {
  return has(flag) ? *server::parse_seconds(get(flag)) : default_value;
}

std::vector<std::string> Args::all(std::string_view flag) const {
  std::vector<std::string> out;
  auto [a, b] = flags_.equal_range(flag);
  for (auto it = a; it != b; ++it)
    out.push_back(it->second);
  return out;
}

static Result<Flag> known_flag(std::string_view name, const std::vector<Flag>& flags) {
  std::vector<std::string_view> names;
  for (const Flag& flag : flags) {
    if (flag.name == name) return flag;
    names.push_back(flag.name);
  }
  return fail(Code::invalid, kUnknownFlag,
              fmt::format("there is no flag --{}{} (--help lists the flags)", name,
                          server::suggestion(name, names, "--")));
}

// The error for a flag without a value: it stands at the end of the line, or before a word that
// looks like another flag.
static Error no_value(const Flag& flag, const std::string* next) {
  std::string message = fmt::format("--{} needs a value", flag.name);
  if (flag.type.kind != ValueKind::one_of) message += fmt::format(", {}", flag.type.shown);
  message += fmt::format("; allowed: {}", server::allowed_values(flag.type));
  if (next)
    message +=
        fmt::format(" (a value that begins with dashes is written --{}={})", flag.name, *next);
  return {Code::invalid, std::string(kBadFlag.name), std::move(message)};
}

// Reads the value of a flag. `given` is the text after "=", `next` the following word; null when
// there is none. Sets `used_next` when the following word is the value.
static Result<std::string> flag_value(const Flag& flag, const std::string* given,
                                      const std::string* next, bool& used_next) {
  if (flag.type.kind == ValueKind::nothing) {
    if (given) return fail(Code::invalid, kBadFlag, fmt::format("--{} takes no value", flag.name));
    return std::string("true");
  }
  // A boolean flag alone means true, so the following word is not its value.
  if (flag.type.kind == ValueKind::boolean && !given) return std::string("true");
  used_next = !given && next && !next->starts_with("--");
  if (!given && !used_next) return fail(no_value(flag, next));
  const std::string& text = given ? *given : *next;
  if (auto value = server::normal_value(flag.type, text)) return *std::move(value);
  return fail(Code::invalid, kBadFlag,
              fmt::format("--{} is '{}'; allowed: {}", flag.name,
                          flag.type.kind == ValueKind::secret ? "***" : text,
                          server::allowed_values(flag.type)));
}

// How many words a command takes, from Command::words.
struct WordCount {
  size_t max = 0;
  bool any_number = false;
  bool takes_rest = false;  // words after "--"
};

static WordCount words_of(const Command& command) {
  WordCount count;
  std::string_view left = command.words;
  while (!left.empty()) {
    std::string_view word = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(word.size() + 1, left.size()));
    if (word == "--" || word == "[--") {
      count.takes_rest = true;
      break;
    }
    ++count.max;
    if (word.find("...") != word.npos) count.any_number = true;
  }
  return count;
}

static Result<void> check_words(const Command& command, const std::vector<Flag>& flags,
                                const Args& args) {
  WordCount count = words_of(command);
  if (!args.rest.empty() && !count.takes_rest)
    return fail(Code::invalid, kBadUsage,
                fmt::format("'{}' after -- is not used by pawl {}", args.rest[0], command.name));
  if (count.any_number || args.words.size() <= count.max) return {};
  bool has_boolean = std::any_of(flags.begin(), flags.end(), [](const Flag& flag) {
    return flag.type.kind == ValueKind::boolean;
  });
  return fail(
      Code::invalid, kBadUsage,
      fmt::format("the word '{}' is not used: write pawl {}{}{}{}", args.words[count.max],
                  command.name, command.words.empty() ? "" : " ", command.words,
                  has_boolean ? " [FLAGS]; a flag that is on or off takes its value as --name=false"
                              : " [FLAGS]"));
}

Result<Args> Args::parse(const Command& command, std::span<const std::string> words) {
  std::vector<Flag> flags = command.all_flags();
  Args args;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      args.rest.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!word.starts_with("--")) {
      args.words.push_back(word);
      continue;
    }
    size_t equals = word.find('=');
    std::string_view name = std::string_view(word).substr(0, equals);
    name.remove_prefix(2);
    TRY(Flag flag, known_flag(name, flags));
    std::string after_equals = equals == word.npos ? "" : word.substr(equals + 1);
    bool used_next = false;
    TRY(std::string value, flag_value(flag, equals == word.npos ? nullptr : &after_equals,
                                      i + 1 < words.size() ? &words[i + 1] : nullptr, used_next));
    args.flags_.emplace(flag.name, std::move(value));
    if (used_next) ++i;
  }
  TRY_OK(check_words(command, flags, args));
  return args;
}

void show(const Args& args, const json::Value& value, const std::function<void()>& text) {
  if (args.json())
    fmt::print("{}\n", json::print(value));
  else if (!args.has("quiet"))
    text();
}

int exit_code(const Error& error) {
  switch (error.code) {
    case Code::not_found: return kNotFound;
    case Code::conflict:
    case Code::precondition: return kConflict;
    case Code::unavailable:
    case Code::exhausted: return kUnreachable;
    default:
      return error.is(kBadUsage) || error.is(kUnknownFlag) || error.is(kBadFlag) ? kBadUse
                                                                                 : kFailed;
  }
}

static int64_t steady_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void ProgressLine::update(uint64_t done, uint64_t total) {
  if (!begun_ns_) begun_ns_ = steady_ns();
  // A command that ends within a second needs no bar.
  if (steady_ns() - begun_ns_ < 1'000'000'000 || !isatty(STDERR_FILENO)) return;
  drawn_ = true;
  // The bar is 30 characters wide.
  size_t filled = total ? static_cast<size_t>(30 * done / total) : 0;
  fmt::print(stderr, "\r{} [{}{}] {} of {} ", what_, std::string(filled, '='),
             std::string(30 - filled, ' '), done, total);
}

ProgressLine::~ProgressLine() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

}  // namespace pawl::cli
