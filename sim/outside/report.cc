#include "sim/outside/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "expr/expression.h"
#include "json/text.h"

namespace pawl::sim {
namespace {

// Lives that share one world.
constexpr uint64_t kTogether = 100;
// Lives that are played alone to find a short story for one finding.
constexpr size_t kCandidates = 5;
constexpr size_t kMaxFailures = 20;  // reasons that are listed

struct Candidate {
  size_t length;
  uint64_t life;
};

class Simulation {
 public:
  Simulation(const Script& script, const SimulateOptions& options)
      : script_(script), options_(options) {
    report_.definition = script.definitions.empty()
                             ? fmt::format("{}/{}", script.model_name, script.model_version)
                             : std::string(script.definitions[0].string_or("id"));
    report_.seed = options.seed;
  }

  Result<Report> run() {
    TRY_OK(check_invariants());
    if (options_.only_life) {
      TRY_OK(play_alone());
    } else {
      for (uint64_t from = 0; from < script_.lives; from += kTogether) {
        TRY_OK(play_some(from, std::min(script_.lives, from + kTogether)));
        if (options_.progress) options_.progress(report_.lives, script_.lives);
      }
    }
    summarize();
    for (auto& [problem, candidates] : problems_)
      add_finding(problem, candidates);
    if (!options_.only_life) add_unreached();
    return std::move(report_);
  }

 private:
  Result<void> check_invariants() const {
    for (const std::string& text : script_.invariants) {
      const expr::Expression compiled(text);
      if (compiled.problem())
        return fail(Code::invalid, "BAD_INVARIANT",
                    fmt::format("the invariant \"{}\" is no expression: {}", text,
                                compiled.problem()->message));
    }
    return {};
  }

  PlayOptions play_options(std::vector<uint64_t> lives, bool crashes) const {
    return {options_.seed, std::move(lives), crashes, options_.run_worker};
  }

  Result<void> play_some(uint64_t from, uint64_t to) {
    std::vector<uint64_t> numbers;
    for (uint64_t n = from; n < to; ++n)
      numbers.push_back(n);
    TRY(std::vector<LifeEnd> ends, play(script_, play_options(numbers, options_.crashes)));
    for (const LifeEnd& end : ends)
      take(end);
    return {};
  }

  Result<void> play_alone() {
    TRY(std::vector<LifeEnd> ends,
        play(script_, play_options({*options_.only_life}, options_.crashes)));
    take(ends[0]);
    report_.story = std::move(ends[0].story);
    return {};
  }

  void take(const LifeEnd& end) {
    ++report_.lives;
    ++report_.ends[end.status];
    if (end.status == "FAILED" &&
        (report_.failures.size() < kMaxFailures || report_.failures.contains(end.reason)))
      ++report_.failures[end.reason];
    if (end.status != "WAITING") took_.push_back(end.took);
    steps_.insert(end.steps.begin(), end.steps.end());
    branches_.insert(end.branches.begin(), end.branches.end());
    for (const Problem& problem : end.problems)
      problems_[problem].push_back({end.story.size(), end.life});
  }

  void summarize() {
    std::sort(took_.begin(), took_.end());
    auto at = [&](size_t percent) {
      return took_.empty() ? 0 : took_[std::min(took_.size() - 1, took_.size() * percent / 100)];
    };
    report_.p50 = at(50);
    report_.p90 = at(90);
    report_.p99 = at(99);
    report_.max = took_.empty() ? 0 : took_.back();
    for (const json::Value& definition : script_.definitions)
      if (const json::Value* steps = definition.find("steps"); steps && steps->is_array())
        for (const json::Value& step : steps->array())
          add_not_in_script(step);
  }

  void add_not_in_script(const json::Value& step) {
    const std::string id(step.string_or("id")), type(step.string_or("type"));
    std::string what;
    if (type == "SERVICE_TASK" && !script_.jobs.contains(std::string(step.string_or("jobType"))))
      what = fmt::format("job {}", step.string_or("jobType"));
    if (type == "USER_TASK" && !script_.tasks.contains(id)) what = "task " + id;
    if (type == "WAIT" && !script_.signals.contains(id)) what = "signal " + id;
    auto& list = report_.not_in_script;
    if (!what.empty() && std::find(list.begin(), list.end(), what) == list.end())
      list.push_back(std::move(what));
  }

  // Plays the shortest lives that showed the problem alone, first without their crash, and keeps
  // the shortest story that shows it again.
  void add_finding(const Problem& problem, std::vector<Candidate>& candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.length, a.life) < std::pair(b.length, b.life);
    });
    Finding finding{problem, candidates.size(), candidates[0].life};
    if (options_.only_life) {
      finding.story = report_.story;
      report_.findings.push_back(std::move(finding));
      return;
    }
    for (bool crashes : {false, true})
      for (size_t i = 0; i < std::min(candidates.size(), kCandidates); ++i) {
        auto ends = play(script_, play_options({candidates[i].life}, crashes));
        if (!ends || !ends->front().problems.contains(problem)) continue;
        std::vector<StoryLine>& story = ends->front().story;
        const bool better = finding.story.empty() || (crashes == finding.needs_crashes &&
                                                      story.size() < finding.story.size());
        if (!better) continue;
        finding.life = candidates[i].life;
        finding.needs_crashes = crashes;
        finding.story = std::move(story);
      }
    report_.findings.push_back(std::move(finding));
  }

  void add_unreached() {
    std::set<std::string> steps, branches;
    add_facts(script_, steps, branches);
    report_.steps = steps.size();
    report_.branches = branches.size();
    for (const std::string& step : steps) {
      const std::string id = step.substr(step.find('/') + 1);
      const auto& allowed = script_.may_be_unreached;
      const bool reached = steps_.contains(step);
      report_.steps_reached += reached;
      if (!reached && std::find(allowed.begin(), allowed.end(), id) == allowed.end())
        report_.findings.push_back({{"step-never-reached", step}});
    }
    for (const std::string& branch : branches) {
      const bool reached = branches_.contains(branch);
      report_.branches_reached += reached;
      // A branch to a step that nobody reaches is reported as that step.
      const std::string definition = branch.substr(0, branch.find('/') + 1);
      const std::string target = branch.substr(branch.find(" -> ") + 4);
      if (!reached && steps_.contains(definition + target))
        report_.findings.push_back({{"branch-never-taken", branch}});
    }
  }

  const Script& script_;
  const SimulateOptions& options_;
  Report report_;
  std::vector<Time> took_;
  std::set<std::string> steps_, branches_;
  std::map<Problem, std::vector<Candidate>> problems_;
};

// "3d 4h", "12.5s": the two largest units.
std::string span_text(Time t) {
  const double seconds = static_cast<double>(t) / 1e9;
  if (seconds < 1) return fmt::format("{:.0f}ms", seconds * 1e3);
  if (seconds < 60) return fmt::format("{:.1f}s", seconds);
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 3600) return fmt::format("{}m {}s", whole / 60, whole % 60);
  if (whole < 86'400) return fmt::format("{}h {}m", whole / 3600, whole % 3600 / 60);
  return fmt::format("{}d {}h", whole / 86'400, whole % 86'400 / 3600);
}

std::string replay_command(const Finding& finding, const std::string& command) {
  return fmt::format("{} --life {}{}", command, finding.life,
                     finding.needs_crashes ? "" : " --no-crashes");
}

std::string story_text(const std::vector<StoryLine>& story) {
  std::string out;
  for (const StoryLine& line : story)
    out += fmt::format("    {:>8}  {}\n", span_text(line.at), line.text);
  return out;
}

std::string title(const Finding& finding) {
  const std::string& what = finding.problem.what;
  if (finding.problem.kind == "invariant") return fmt::format("the invariant broke: {}", what);
  if (finding.problem.kind == "step-never-reached")
    return fmt::format("no life reached the step {}", what);
  if (finding.problem.kind == "branch-never-taken")
    return fmt::format("no life took the branch {}", what);
  return what;
}

std::string xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      out += '?';
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<Report> simulate(const Script& script, const SimulateOptions& options) {
  return Simulation(script, options).run();
}

std::string report_text(const Report& report, const std::string& command) {
  std::string out =
      fmt::format("{} lives of {}, seed {}\n", report.lives, report.definition, report.seed);
  for (const auto& [status, lives] : report.ends)
    out += fmt::format("  {:<10} {:>8}  {:.1f} %\n", status, lives,
                       100.0 * static_cast<double>(lives) / static_cast<double>(report.lives));
  if (report.max)
    out +=
        fmt::format("  from start to end: p50 {}, p90 {}, p99 {}, max {}\n", span_text(report.p50),
                    span_text(report.p90), span_text(report.p99), span_text(report.max));
  if (report.steps)
    out += fmt::format("  reached: {} of {} steps, {} of {} branches\n", report.steps_reached,
                       report.steps, report.branches_reached, report.branches);
  for (const auto& [reason, lives] : report.failures)
    out += fmt::format("  failed {} times: {}\n", lives, reason);
  if (!report.not_in_script.empty())
    out += fmt::format(
        "  answered soon and without variables, because the script does not name "
        "them: {}\n",
        fmt::join(report.not_in_script, ", "));
  if (!report.story.empty()) out += "\nthe story of this life:\n" + story_text(report.story);
  for (const Finding& finding : report.findings) {
    out += fmt::format("\nFOUND: {}\n", title(finding));
    if (finding.lives == 0 || !report.story.empty()) continue;
    out += fmt::format("  in {} of {} lives; the shortest, life {}:\n{}  replay: {}\n",
                       finding.lives, report.lives, finding.life, story_text(finding.story),
                       replay_command(finding, command));
  }
  if (report.findings.empty()) out += "\nnothing found\n";
  return out;
}

json::Value report_json(const Report& report, const std::string& command) {
  auto counts = [](const std::map<std::string, uint64_t>& of) {
    json::Object out;
    for (const auto& [name, count] : of)
      out.set(name, count);
    return out;
  };
  auto story = [](const std::vector<StoryLine>& of) {
    json::Array out;
    for (const StoryLine& line : of)
      out.push_back(json::object({{"atMs", line.at / kMillisecond}, {"text", line.text}}));
    return out;
  };
  json::Array findings;
  for (const Finding& finding : report.findings) {
    json::Value one = json::object({{"kind", finding.problem.kind},
                                    {"what", finding.problem.what},
                                    {"title", title(finding)},
                                    {"lives", finding.lives}});
    if (finding.lives) {
      one.object().set("life", finding.life);
      one.object().set("needsCrashes", finding.needs_crashes);
      one.object().set("replay", replay_command(finding, command));
      one.object().set("story", story(finding.story));
    }
    findings.push_back(std::move(one));
  }
  json::Array defaults;
  for (const std::string& name : report.not_in_script)
    defaults.emplace_back(name);
  json::Value out =
      json::object({{"definition", report.definition},
                    {"seed", report.seed},
                    {"lives", report.lives},
                    {"ends", counts(report.ends)},
                    {"failures", counts(report.failures)},
                    {"durationMs", json::object({{"p50", report.p50 / kMillisecond},
                                                 {"p90", report.p90 / kMillisecond},
                                                 {"p99", report.p99 / kMillisecond},
                                                 {"max", report.max / kMillisecond}})},
                    {"steps", report.steps},
                    {"stepsReached", report.steps_reached},
                    {"branches", report.branches},
                    {"branchesReached", report.branches_reached},
                    {"notInScript", std::move(defaults)},
                    {"findings", std::move(findings)}});
  if (!report.story.empty()) out.object().set("story", story(report.story));
  return out;
}

std::string report_junit(const Report& report, const std::string& command) {
  const size_t tests = std::max<size_t>(1, report.findings.size());
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"pawl simulate {}\" "
      "tests=\"{}\" failures=\"{}\">\n",
      xml(report.definition), tests, report.findings.size());
  if (report.findings.empty())
    out += fmt::format("  <testcase name=\"{} lives\" classname=\"{}\"/>\n", report.lives,
                       xml(report.definition));
  for (const Finding& finding : report.findings)
    out += fmt::format(
        "  <testcase name=\"{0}\" classname=\"{1}\">\n    <failure message=\"{0}\">{2}{3}"
        "</failure>\n  </testcase>\n",
        xml(title(finding)), xml(report.definition), xml(story_text(finding.story)),
        finding.lives ? xml("replay: " + replay_command(finding, command)) : "");
  return out + "</testsuite>\n";
}

}  // namespace pawl::sim
