// pawl: one binary for the server and its commands.

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/remote.h"
#include "json/text.h"

#ifndef PAWL_VERSION
#define PAWL_VERSION "0"
#endif

namespace pawl::cli {

static std::vector<Command> commands();

static Result<int> version(const Args& args) {
  json::Value v = json::object({{"version", PAWL_VERSION}, {"data", 1}, {"frame", 1}});
  show(args, v, [] { fmt::print("pawl {}\n", PAWL_VERSION); });
  return kDone;
}

static void print_help(const Command& c) {
  fmt::print("pawl {} {}\n  {}\n", c.name, c.words, c.doc);
  if (!c.flags.empty()) fmt::print("\n");
  auto line = [](const Flag& f) {
    fmt::print("  --{:<28} {}\n", fmt::format("{} {}", f.name, f.value), f.doc);
  };
  for (const Flag& f : c.flags)
    line(f);
  fmt::print("\n");
  for (const Flag& f : common_flags())
    line(f);
}

static void print_all() {
  fmt::print("pawl: a durable workflow engine\n\n");
  for (const Command& c : commands())
    fmt::print("  {:<34} {}\n", fmt::format("{} {}", c.name, c.words), c.doc);
  fmt::print(
      "\npawl COMMAND --help says more. Exit codes: 0 done, 1 failed, 2 bad use, 3 not found,\n"
      "4 conflict, 5 unreachable or timed out, 6 verification differs.\n");
}

// The commands that begin with this word, when it is none by itself.
static bool print_group(FILE* to, std::string_view word, const std::vector<Command>& all) {
  bool any = false;
  for (const Command& c : all) {
    if (!c.name.starts_with(std::string(word) + " ")) continue;
    fmt::print(to, "  {:<34} {}\n", fmt::format("{} {}", c.name, c.words), c.doc);
    any = true;
  }
  if (any) fmt::print(to, "\npawl {} COMMAND --help says more.\n", word);
  return any;
}

// Half a command, or none: says which there are.
static int print_unknown(std::span<const std::string> words, const std::vector<Command>& all) {
  const std::string& first = words[0];
  const bool asked = std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word == "--help" || word == "-h";
  });
  if (asked && print_group(stdout, first, all)) return kDone;
  const bool group = std::any_of(all.begin(), all.end(),
                                 [&](const Command& c) { return c.name.starts_with(first + " "); });
  if (!group) {
    fmt::print(stderr, "pawl: there is no command '{}'; `pawl help` lists them\n", first);
  } else {
    if (words.size() > 1 && !words[1].starts_with("-"))
      fmt::print(stderr, "pawl: there is no command '{} {}'; there are:\n", first, words[1]);
    print_group(stderr, first, all);
  }
  return kBadUse;
}

static Result<int> help(const Args& args) {
  std::string name;
  for (const auto& w : args.words)
    name += (name.empty() ? "" : " ") + w;
  for (const Command& c : commands())
    if (c.name == name) return print_help(c), kDone;
  if (name.empty() || !print_group(stdout, name, commands())) print_all();
  return kDone;
}

// Words that may follow `prefix`, for completion scripts.
static Result<int> completion(const Args& args) {
  std::string shell = args.words.empty() ? "" : args.words[0];
  std::string names;
  for (const Command& c : commands())
    names += fmt::format("{}\n", c.name);
  if (shell == "bash") {
    fmt::print(
        "_pawl() {{\n  local line=\"${{COMP_WORDS[*]:1:COMP_CWORD-1}}\" "
        "cur=\"${{COMP_WORDS[COMP_CWORD]}}\"\n"
        "  COMPREPLY=( $(compgen -W \"$(_pawl_words \"$line\" \"$cur\")\" -- \"$cur\") )\n}}\n"
        "_pawl_words() {{\n  pawl completion words -- $1 $2 2>/dev/null\n}}\ncomplete -o default "
        "-F _pawl pawl\n");
  } else if (shell == "zsh") {
    fmt::print(
        "#compdef pawl\n_pawl() {{\n  local -a w\n  w=(${{(f)\"$(pawl completion words -- "
        "${{words[2,-1]}} 2>/dev/null)\"}})\n  compadd -a w\n}}\ncompdef _pawl pawl\n");
  } else if (shell == "fish") {
    fmt::print(
        "complete -c pawl -f -a '(pawl completion words -- (commandline -opc)[2..-1] (commandline "
        "-ct) 2>/dev/null)'\n");
  } else if (shell == "words") {
    std::string line;
    for (size_t i = 0; i + 1 < args.rest.size(); ++i)
      line += args.rest[i] + " ";
    std::string cur = args.rest.empty() ? "" : args.rest.back();
    std::vector<std::string> seen;
    for (const Command& c : commands()) {
      std::string name = std::string(c.name) + " ";
      if (name.starts_with(line) && !cur.starts_with("--")) {
        std::string next = name.substr(line.size());
        next = next.substr(0, next.find(' '));
        if (!next.empty() && std::find(seen.begin(), seen.end(), next) == seen.end())
          seen.push_back(next);
      }
      if (line.starts_with(name) && (cur.starts_with("--") || cur.empty()))
        for (const Flag& f : c.flags)
          seen.push_back(fmt::format("--{}", f.name));
    }
    for (const auto& s : seen)
      if (s.starts_with(cur)) fmt::print("{}\n", s);
  } else {
    return fail(Code::invalid, "BAD_USE", "name a shell: pawl completion bash|zsh|fish");
  }
  return kDone;
}

static std::vector<Command> commands() {
  std::vector<Command> all = server_commands();
  for (auto more : {process_commands(), worker_commands(), entity_commands(), lifecycle_commands(),
                    world_commands(), data_commands(), doctor_commands()})
    all.insert(all.end(), more.begin(), more.end());
  all.push_back({"version", "", "which pawl this is", {}, version});
  all.push_back(
      {"completion", "bash|zsh|fish", "a completion script for the shell", {}, completion});
  all.push_back({"help", "[COMMAND]", "this text, or one command's", {}, help});
  return all;
}

static int fail_with(const Error& e, bool as_json) {
  if (as_json)
    fmt::print(stderr, "{}\n",
               json::print(json::object(
                   {{"error", e.reason}, {"message", e.message}, {"retryable", e.retryable}})));
  else
    fmt::print(stderr, "pawl: {}\n", e.message);
  return exit_code(e);
}

static int main(std::vector<std::string> words) {
  if (words.empty()) return print_all(), kBadUse;
  if (words[0] == "--help" || words[0] == "-h") return print_all(), kDone;
  if (words[0] == "--version") words[0] = "version";
  std::vector<Command> all = commands();
  const Command* found = nullptr;
  size_t used = 0;
  for (const Command& c : all) {
    size_t n = static_cast<size_t>(std::count(c.name.begin(), c.name.end(), ' ')) + 1;
    std::string head;
    for (size_t i = 0; i < n && i < words.size(); ++i)
      head += (i ? " " : "") + words[i];
    if (head == c.name && n > used) found = &c, used = n;
  }
  if (!found) return print_unknown(words, all);
  std::span<const std::string> rest(words.begin() + static_cast<ptrdiff_t>(used), words.end());
  auto args = Args::parse(rest, found->flags);
  if (!args) return fail_with(args.error(), false), kBadUse;
  if (args->has("help")) return print_help(*found), kDone;
  auto done = found->run(*args);
  return done ? *done : fail_with(done.error(), args->json());
}

}  // namespace pawl::cli

int main(int argc, char** argv) {
  return pawl::cli::main(std::vector<std::string>(argv + 1, argv + argc));
}
