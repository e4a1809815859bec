#include "cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>

#include "json/text.h"

namespace pawl::cli {

std::span<const Flag> common_flags() {
  static constexpr Flag flags[] = {
      {"json", "", "print one JSON document instead of text"},
      {"help", "", "say what the command does"},
      {"quiet", "", "print nothing but errors"},
  };
  return flags;
}

std::string Args::get(std::string_view flag, std::string_view default_value) const {
  auto it = flags_.find(flag);
  return it == flags_.end() ? std::string(default_value) : it->second;
}

std::vector<std::string> Args::all(std::string_view flag) const {
  std::vector<std::string> out;
  auto [a, b] = flags_.equal_range(flag);
  for (auto it = a; it != b; ++it)
    out.push_back(it->second);
  return out;
}

static const Flag* find(std::string_view name, std::span<const Flag> known) {
  for (const Flag& f : known)
    if (f.name == name) return &f;
  for (const Flag& f : common_flags())
    if (f.name == name) return &f;
  return nullptr;
}

Result<Args> Args::parse(std::span<const std::string> words, std::span<const Flag> known) {
  Args args;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "--") {
      args.rest.assign(words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!word.starts_with("--") || word.size() == 2) {
      args.words.emplace_back(word);
      continue;
    }
    word.remove_prefix(2);
    size_t equals = word.find('=');
    std::string_view name = word.substr(0, equals);
    const Flag* flag = find(name, known);
    if (!flag)
      return fail(Code::invalid, "UNKNOWN_FLAG",
                  fmt::format("there is no flag --{}; see --help", name));
    if (flag->value == kOnOff) {
      // Alone it means true, so what follows is not its value: false must be written --name=false.
      args.flags_.emplace(
          name, equals == std::string_view::npos ? "true" : std::string(word.substr(equals + 1)));
    } else if (flag->value.empty()) {
      if (equals != std::string_view::npos)
        return fail(Code::invalid, "BAD_FLAG", fmt::format("--{} takes no value", name));
      args.flags_.emplace(name, "true");
    } else if (equals != std::string_view::npos) {
      args.flags_.emplace(name, word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      args.flags_.emplace(name, words[++i]);
    } else {
      return fail(Code::invalid, "BAD_FLAG",
                  fmt::format("--{} wants a value: {}", name, flag->value));
    }
  }
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
      return error.reason == "BAD_USE" || error.reason == "UNKNOWN_FLAG" ||
                     error.reason == "BAD_FLAG"
                 ? kBadUse
                 : kFailed;
  }
}

static int64_t steady_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void ProgressLine::update(uint64_t done, uint64_t total) {
  if (!begun_ns_) begun_ns_ = steady_ns();
  // What is over within a second needs no bar.
  if (steady_ns() - begun_ns_ < 1'000'000'000 || !isatty(STDERR_FILENO)) return;
  drawn_ = true;
  size_t filled = total ? static_cast<size_t>(30 * done / total) : 0;
  fmt::print(stderr, "\r{} [{}{}] {} of {} ", what_, std::string(filled, '='),
             std::string(30 - filled, ' '), done, total);
}

ProgressLine::~ProgressLine() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

}  // namespace pawl::cli
