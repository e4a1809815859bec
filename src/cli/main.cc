// `pawl` is one binary for the server and its commands. The commands come from the tables of the
// other files; this file finds the one that the words name, and prints help and completions from
// the same rows.

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/remote.h"
#include "json/text.h"
#include "pawl/version.h"

namespace pawl::cli {

static std::vector<Command> commands();

// `data` and `frame` are the versions of the data folder and of the frame format.
static Result<int> version(const Args& args) {
  json::Value v = json::object({{"version", PAWL_VERSION}, {"data", 1}, {"frame", 1}});
  show(args, v, [] { fmt::print("pawl {}\n", PAWL_VERSION); });
  return kDone;
}

static void print_help(const Command& command) {
  fmt::print("pawl {} {}\n  {}\n\n", command.name, command.words, command.doc);
  for (const Flag& flag : command.all_flags()) {
    bool boolean = flag.type.kind == server::ValueKind::boolean;
    fmt::print("  --{:<28} {}\n",
               fmt::format("{}{}{}", flag.name, boolean ? "" : " ", flag.type.shown), flag.doc);
  }
}

static void print_row(FILE* to, const Command& command) {
  fmt::print(to, "  {:<34} {}\n", fmt::format("{} {}", command.name, command.words), command.doc);
}

static void print_all() {
  fmt::print("pawl: a durable workflow engine\n\n");
  for (const Command& c : commands())
    print_row(stdout, c);
  fmt::print(
      "\n`pawl COMMAND --help` prints the flags of a command.\n"
      "Exit codes: 0 done, 1 failed, 2 bad use, 3 not found, 4 conflict,\n"
      "5 unreachable or timed out, 6 verification differs.\n");
}

// Prints the commands that begin with this word. Returns whether there are any.
static bool print_group(FILE* to, std::string_view word, const std::vector<Command>& all) {
  bool any = false;
  for (const Command& c : all) {
    if (!c.name.starts_with(std::string(word) + " ")) continue;
    print_row(to, c);
    any = true;
  }
  if (any) fmt::print(to, "\n`pawl {} COMMAND --help` prints the flags of a command.\n", word);
  return any;
}

// Words after "--" belong to another program, whose --help is its own.
static bool asks_for_help(std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

// The words name no command, or only the beginning of several: prints those that exist.
static int print_unknown(std::span<const std::string> words, const std::vector<Command>& all) {
  const std::string& first = words[0];
  if (asks_for_help(words) && print_group(stdout, first, all)) return kDone;
  const bool group = std::any_of(all.begin(), all.end(),
                                 [&](const Command& c) { return c.name.starts_with(first + " "); });
  if (!group) {
    std::vector<std::string_view> names;
    for (const Command& c : all)
      names.push_back(c.name.substr(0, c.name.find(' ')));
    fmt::print(stderr, "pawl: there is no command '{}'{} (`pawl help` lists all commands)\n", first,
               server::suggestion(first, names));
    return kBadUse;
  }
  if (words.size() > 1 && !words[1].starts_with("-"))
    fmt::print(stderr, "pawl: there is no command '{} {}'; there are:\n", first, words[1]);
  print_group(stderr, first, all);
  return kBadUse;
}

static Result<int> help(const Args& args) {
  std::string name;
  for (const auto& w : args.words)
    name += (name.empty() ? "" : " ") + w;
  for (const Command& c : commands()) {
    if (c.name != name) continue;
    print_help(c);
    return kDone;
  }
  if (name.empty() || !print_group(stdout, name, commands())) print_all();
  return kDone;
}

struct CompletionScript {
  std::string_view shell, text;
};
// Each script calls `pawl completion words`, so that completions come from the installed binary and
// never lag behind it.
static constexpr CompletionScript kCompletionScripts[] = {
    {"bash",
     "_pawl() {\n"
     "  local line=\"${COMP_WORDS[*]:1:COMP_CWORD-1}\" cur=\"${COMP_WORDS[COMP_CWORD]}\"\n"
     "  COMPREPLY=( $(compgen -W \"$(_pawl_words \"$line\" \"$cur\")\" -- \"$cur\") )\n"
     "}\n"
     "_pawl_words() {\n"
     "  pawl completion words -- $1 $2 2>/dev/null\n"
     "}\n"
     "complete -o default -F _pawl pawl\n"},
    {"zsh",
     "#compdef pawl\n"
     "_pawl() {\n"
     "  local -a w\n"
     "  w=(${(f)\"$(pawl completion words -- ${words[2,-1]} 2>/dev/null)\"})\n"
     "  compadd -a w\n"
     "}\n"
     "compdef _pawl pawl\n"},
    {"fish",
     "complete -c pawl -f -a '(pawl completion words -- (commandline -opc)[2..-1] (commandline "
     "-ct) 2>/dev/null)'\n"},
};

// The words that may stand at the end of a command line whose last word has begun with `begun`.
static std::vector<std::string> next_words(const std::string& line, const std::string& begun) {
  std::vector<std::string> found;
  for (const Command& c : commands()) {
    std::string name = std::string(c.name) + " ";
    if (name.starts_with(line) && !begun.starts_with("--")) {
      std::string next = name.substr(line.size());
      next = next.substr(0, next.find(' '));
      if (!next.empty() && std::find(found.begin(), found.end(), next) == found.end())
        found.push_back(next);
    }
    if (line.starts_with(name) && (begun.starts_with("--") || begun.empty()))
      for (const Flag& f : c.all_flags())
        found.push_back(fmt::format("--{}", f.name));
  }
  std::erase_if(found, [&](const std::string& word) { return !word.starts_with(begun); });
  return found;
}

static Result<int> completion(const Args& args) {
  std::string shell = args.words.empty() ? "" : args.words[0];
  for (const CompletionScript& script : kCompletionScripts) {
    if (script.shell != shell) continue;
    fmt::print("{}", script.text);
    return kDone;
  }
  if (shell != "words")
    return fail(Code::invalid, kBadUsage, "name a shell: pawl completion bash|zsh|fish");
  // The last word is the one being typed; the words before it are complete.
  std::string line;
  for (size_t i = 0; i + 1 < args.rest.size(); ++i)
    line += args.rest[i] + " ";
  for (const std::string& word : next_words(line, args.rest.empty() ? "" : args.rest.back()))
    fmt::print("{}\n", word);
  return kDone;
}

static constexpr Command kGeneralCommands[] = {
    {"version", "", "print the version", {}, version},
    {"completion",
     "bash|zsh|fish [-- WORD...]",
     "print a completion script for the shell",
     {},
     completion},
    {"help", "[COMMAND...]", "print this text, or the help of one command", {}, help},
};

static std::vector<Command> commands() {
  std::vector<Command> all;
  for (std::span<const Command> table :
       {server_commands(), process_commands(), operator_commands(), job_commands(),
        schedule_commands(), worker_commands(), simulate_commands(), entity_commands(),
        lifecycle_commands(), world_commands(), world_folder_commands(), data_commands(),
        quarantine_commands(), doctor_commands(), health_commands(), permission_commands(),
        std::span<const Command>(kGeneralCommands)})
    all.insert(all.end(), table.begin(), table.end());
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

static size_t words_in(std::string_view name) {
  return static_cast<size_t>(std::count(name.begin(), name.end(), ' ')) + 1;
}

// The command with the longest name that the words begin with.
static const Command* find_command(const std::vector<std::string>& words,
                                   const std::vector<Command>& all) {
  const Command* found = nullptr;
  for (const Command& c : all) {
    std::string head;
    for (size_t i = 0; i < words_in(c.name) && i < words.size(); ++i)
      head += (i ? " " : "") + words[i];
    if (head == c.name && (!found || words_in(c.name) > words_in(found->name))) found = &c;
  }
  return found;
}

// `pawl --version` and `pawl --help` work as people expect. No words at all is a mistake, and the
// help is printed for it too.
static int main(std::vector<std::string> words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    print_all();
    return words.empty() ? kBadUse : kDone;
  }
  if (words[0] == "--version") words[0] = "version";
  std::vector<Command> all = commands();
  const Command* command = find_command(words, all);
  if (!command) return print_unknown(words, all);
  std::span<const std::string> rest = std::span(words).subspan(words_in(command->name));
  if (asks_for_help(rest)) {
    print_help(*command);
    return kDone;
  }
  auto args = Args::parse(*command, rest);
  if (!args) return fail_with(args.error(), false);
  auto done = command->run(*args);
  return done ? *done : fail_with(done.error(), args->json());
}

}  // namespace pawl::cli

int main(int argc, char** argv) {
  return pawl::cli::main(std::vector<std::string>(argv + 1, argv + argc));
}
