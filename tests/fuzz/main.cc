// fuzz [--seed N] [--runs N | --seconds S] [TARGET...]   runs targets on mutated seeds
// fuzz --file FILE TARGET                                runs one input, for example
// fuzz-last-input
//
// The seeds come from tests/vectors and from tests/fuzz/seeds/TARGET, which has one file for each
// bug that was found. A crash leaves its input in the file fuzz-last-input.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/result.h"
#include "fuzz.h"
#include "json/text.h"

namespace pawl::fuzz {

namespace {

// Limits of one input, and of the seeds that one call of vectors() returns.
constexpr size_t kMaxInputBytes = 64 << 10;
constexpr double kMaxSeconds = 5;  // for one input, with sanitizers
constexpr size_t kMaxVectors = 400;

std::string read_whole(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// The input that runs, in a mapped file that survives a crash.
class LastInput {
 public:
  LastInput() {
    fd_ = open("fuzz-last-input", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(fd_ >= 0 && ftruncate(fd_, kRoom) == 0);
    at_ = static_cast<char*>(mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
    CHECK(at_ != MAP_FAILED);
  }
  ~LastInput() {
    munmap(at_, kRoom);
    close(fd_);
    unlink("fuzz-last-input");
  }
  // The size stands before the input, because the rest of the file is zeros.
  void set(BytesView bytes) {
    uint64_t size = bytes.size();
    std::memcpy(at_, &size, 8);
    std::memcpy(at_ + 8, bytes.data(), std::min(bytes.size(), kRoom - 8));
  }
  static std::string get(std::string text) {
    uint64_t size = 0;
    if (text.size() != kRoom) return text;  // a file that was written by hand
    std::memcpy(&size, text.data(), 8);
    return text.substr(8, size);
  }

 private:
  static constexpr size_t kRoom = (1 << 20) + 8;
  int fd_;
  char* at_;
};

// Pieces of text and bytes that mean something to one of the parsers.
constexpr std::string_view kTokens[] = {"\"",
                                        "{",
                                        "}",
                                        "[",
                                        "]",
                                        ":",
                                        ",",
                                        "null",
                                        "true",
                                        "-1",
                                        "0",
                                        "1e999",
                                        "9223372036854775808",
                                        "\\u0000",
                                        "\\ud800",
                                        "\r\n",
                                        "\r\n\r\n",
                                        "%00",
                                        "$",
                                        "${",
                                        "#",
                                        "(",
                                        ")",
                                        "..",
                                        "?.",
                                        "??",
                                        "'",
                                        "\xff",
                                        "\xc3\x28",
                                        std::string_view("\0\0\0\0", 4),
                                        "<",
                                        "/>",
                                        "]]>",
                                        "&#",
                                        "P1Y",
                                        "T",
                                        "=",
                                        "\x5f\x41",
                                        "\xd9\xd9\xf7",
                                        "\xfb",
                                        "\xbf\xff"};

// Changes inputs at random, from a seed. A change is a flipped bit, another byte, a piece that is
// removed, repeated, replaced by a token or taken from another input, another number, or a constant
// that the code compared with.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : dice_(seed) {}
  size_t below(size_t n) { return n ? dice_() % n : 0; }

  std::string mutate(std::string in, const std::vector<std::string>& others) {
    for (size_t n = 1 + below(1 << below(4)); n > 0; --n)
      once(in, others);
    if (in.size() > kMaxInputBytes) in.resize(kMaxInputBytes);
    return in;
  }

 private:
  void once(std::string& in, const std::vector<std::string>& others) {
    size_t at = below(in.size() + 1);
    size_t length = std::min(in.size() - at, 1 + below(1 << below(8)));
    switch (below(9)) {
      case 0:
        if (at < in.size()) in[at] = static_cast<char>(in[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < in.size()) in[at] = static_cast<char>(dice_());
        break;
      case 2: in.erase(at, length); break;
      case 3: in.insert(at, in.substr(below(in.size() + 1), length)); break;
      case 4: in.insert(at, kTokens[below(std::size(kTokens))]); break;
      case 5: in.replace(at, length, kTokens[below(std::size(kTokens))]); break;
      case 6:
        if (!others.empty()) splice(in, others[below(others.size())], at);
        break;
      case 7: number(in, at); break;
      case 8: constant(in, at); break;
    }
  }
  void splice(std::string& in, const std::string& other, size_t at) {
    size_t from = below(other.size() + 1);
    std::string piece = other.substr(from, 1 + below(1 << below(10)));
    if (below(2))
      in.insert(at, piece);
    else
      in = in.substr(0, at) + piece;
  }
  // Replaces a decimal number by another one.
  void number(std::string& in, size_t at) {
    size_t from = in.find_first_of("0123456789", at);
    if (from == std::string::npos) return;
    size_t to = std::min(in.find_first_not_of("0123456789", from), in.size());
    static const char* kNumbers[] = {"0",
                                     "1",
                                     "255",
                                     "256",
                                     "65535",
                                     "65536",
                                     "2147483647",
                                     "2147483648",
                                     "4294967295",
                                     "4294967296",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "18446744073709551615",
                                     "18446744073709551616",
                                     "00",
                                     "99999999999999999999999999999999"};
    in.replace(from, to - from, kNumbers[below(std::size(kNumbers))]);
  }
  // Inserts a constant that the code compared values with.
  void constant(std::string& in, size_t at) {
    const auto& all = coverage::compared();
    if (all.empty()) return;
    uint64_t v = all[below(all.size())];
    size_t width = v < 256 ? 1 : v < 65536 ? 2 : v < (1ull << 32) ? 4 : 8;
    std::string bytes(reinterpret_cast<const char*>(&v), width);
    if (below(2)) std::reverse(bytes.begin(), bytes.end());
    in.replace(at, std::min(width, in.size() - at), bytes);
  }
  std::mt19937_64 dice_;
};

struct Options {
  uint64_t seed = 1, runs = 20'000;
  double seconds = 0;  // instead of runs
  std::string file;
  std::vector<std::string> targets;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs one target: first every seed, then mutations. An input that reaches new code joins the
// corpus, and later inputs are made from it.
class Campaign {
 public:
  Campaign(const Target& target, const Options& options, LastInput& last)
      : target_(target), options_(options), last_(last), mutator_(options.seed) {}

  void go() {
    double begin = now();
    for (std::string& seed : target_.seeds())
      corpus_.push_back(std::move(seed));
    std::filesystem::path own = std::filesystem::path("tests/fuzz/seeds") / target_.name;
    if (std::filesystem::exists(own))
      for (const auto& file : std::filesystem::directory_iterator(own))
        corpus_.push_back(read_whole(file.path()));
    corpus_.push_back("");
    size_t seeds = corpus_.size();
    for (size_t i = 0; i < seeds; ++i)
      run(corpus_[i]);
    while (options_.seconds > 0 ? now() - begin < options_.seconds
                                : runs_ < options_.runs + seeds) {
      std::string input = mutator_.mutate(corpus_[mutator_.below(corpus_.size())], corpus_);
      if (run(input)) corpus_.push_back(std::move(input));
    }
    fmt::print("{:24} {:9} inputs, {:6} kept beside {} seeds, {:.1f} s\n", target_.name, runs_,
               corpus_.size() - seeds, seeds, now() - begin);
  }

 private:
  bool run(const std::string& input) {
    last_.set(input);
    coverage::clear();
    double begin = now();
    target_.run(input);
    // A slow input is a bug too: a client could send it.
    CHECK(now() - begin < kMaxSeconds);
    ++runs_;
    return coverage::grew();
  }

  const Target& target_;
  const Options& options_;
  LastInput& last_;
  Mutator mutator_;
  std::vector<std::string> corpus_;
  uint64_t runs_ = 0;
};

void add_parts(const json::Value& value, int depth, std::string_view member,
               std::vector<std::string>& out) {
  if (depth < 0 || (!value.is_object() && !value.is_array())) return;
  if (member.empty() || (value.is_object() && value.find(member)))
    out.push_back(json::print(value));
  if (value.is_object())
    for (const auto& [name, inner] : value.object())
      add_parts(inner, depth - 1, member, out);
  else
    for (const json::Value& item : value.array())
      add_parts(item, depth - 1, member, out);
}

void add_file(const std::filesystem::path& path, int depth, std::string_view member,
              std::vector<std::string>& out) {
  if (path.extension() != ".json") return;
  if (auto parsed = json::parse(read_whole(path))) add_parts(*parsed, depth, member, out);
}

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word.starts_with("--") && i + 1 == argc) {
      fmt::print(stderr, "{} needs a value\n", word);
      return 2;
    }
    if (word == "--seed")
      options.seed = std::stoull(argv[++i]);
    else if (word == "--runs")
      options.runs = std::stoull(argv[++i]);
    else if (word == "--seconds")
      options.seconds = std::stod(argv[++i]);
    else if (word == "--file")
      options.file = argv[++i];
    else
      options.targets.emplace_back(word);
  }
  std::vector<Target> all;
  for (auto& some :
       {base_targets(), wire_targets(), face_targets(), cell_targets(), world_targets()})
    all.insert(all.end(), some.begin(), some.end());
  size_t ran = 0;
  LastInput last;
  for (const Target& target : all) {
    if (!options.targets.empty() && std::find(options.targets.begin(), options.targets.end(),
                                              target.name) == options.targets.end())
      continue;
    ++ran;
    fmt::print(stderr, "{}\n", target.name);
    if (options.file.empty())
      Campaign(target, options, last).go();
    else
      target.run(LastInput::get(read_whole(options.file)));
  }
  if (ran == 0) fmt::print(stderr, "no such target\n");
  return ran ? 0 : 2;
}

}  // namespace

std::vector<std::string> vectors(std::string_view path, int depth, std::string_view member) {
  std::vector<std::string> out;
  std::filesystem::path at = std::filesystem::path("tests/vectors") / path;
  if (!std::filesystem::is_directory(at))
    add_file(at, depth, member, out);
  else
    for (const auto& file : std::filesystem::recursive_directory_iterator(at))
      add_file(file.path(), depth, member, out);
  std::erase_if(out, [](const std::string& text) { return text.size() > kMaxInputBytes; });
  // A random selection, so that every file is represented.
  std::mt19937_64 dice(7);
  std::shuffle(out.begin(), out.end(), dice);
  if (out.size() > kMaxVectors) out.resize(kMaxVectors);
  return out;
}

}  // namespace pawl::fuzz

int main(int argc, char** argv) { return pawl::fuzz::main(argc, argv); }
