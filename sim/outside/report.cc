#include "sim/outside/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/codec.h"
#include "expr/expression.h"
#include "json/text.h"
#include "sim/outside/cores.h"
#include "sim/outside/world_parts.h"

namespace pawl::sim {
namespace {

// Lives that share one world.
constexpr uint64_t kTogether = 100;
// Lives that are played alone to find a short story for one finding.
constexpr size_t kCandidates = 5;
constexpr size_t kMaxFailures = 20;  // reasons that are listed

// The kinds of parts, how they are counted, and what is found when nobody reaches one.
struct PartKind {
  std::string_view kind, plural, finding, title;
};
constexpr PartKind kPartKinds[] = {
    {"step", "steps", "step-never-reached", "no life reached the step"},
    {"branch", "branches", "branch-never-taken", "no life took the branch"},
    {"rule", "rules", "rule-never-chosen", "no life chose the rule"},
    {"workflow", "workflows", "workflow-never-reached", "no life reached the workflow"},
    {"state", "states", "state-never-reached", "no cell was ever in the state"},
    {"effect", "effects", "effect-never-requested", "no life requested the effect"},
    {"route", "routes", "route-never-taken", "no life took the route"},
};

struct Candidate {
  size_t length;
  uint64_t life;
};

// One world that is played.
struct PlayedWorld {
  std::vector<uint64_t> lives;
  bool crashes = true;
};

Bytes encode_ends(const Result<std::vector<LifeEnd>>& ends) {
  Bytes out;
  Writer w(out);
  w.boolean(ends.has_value());
  if (!ends) {
    w.u8(static_cast<uint8_t>(ends.error().code));
    w.str(ends.error().reason);
    w.str(ends.error().message);
    return out;
  }
  w.uint(ends->size());
  for (const LifeEnd& end : *ends)
    w.str(encode(end));
  return out;
}

Result<std::vector<LifeEnd>> decode_ends(BytesView bytes) {
  Reader r(bytes);
  if (!r.boolean()) {
    const auto code = static_cast<Code>(r.u8());
    std::string reason(r.str());
    return fail(code, std::move(reason), std::string(r.str()));
  }
  std::vector<LifeEnd> out;
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    TRY(LifeEnd end, decode_life_end(r.str()));
    out.push_back(std::move(end));
  }
  return out;
}

class Simulation {
 public:
  Simulation(const Script& script, const SimulateOptions& options)
      : script_(script), options_(options) {
    report_.seed = options.seed;
    if (script.world)
      report_.definition = script.world->name;
    else if (script.definitions.empty())
      report_.definition = fmt::format("{}/{}", script.model_name, script.model_version);
    else
      report_.definition = script.definitions[0].string_or("id");
  }

  Result<Report> run() {
    TRY_OK(check_invariants());
    if (options_.only_life) {
      TRY_OK(play_alone());
    } else {
      TRY_OK(play_all());
    }
    TRY_OK(refuse_unchecked());
    summarize();
    TRY_OK(add_findings());
    if (!options_.only_life) add_unreached();
    return std::move(report_);
  }

 private:
  Result<void> check_invariants() const {
    for (const std::string& text : script_.invariants) {
      const expr::Expression compiled(text);
      if (compiled.problem())
        return fail(Code::invalid, kBadInvariant,
                    fmt::format("the invariant \"{}\" is no expression: {}", text,
                                compiled.problem()->message));
    }
    return {};
  }

  // An invariant that no life could evaluate would hold whatever happens.
  Result<void> refuse_unchecked() const {
    if (options_.only_life) return {};
    for (const auto& [invariant, unchecked] : report_.unchecked)
      if (!checked_.contains(invariant))
        return fail(Code::invalid, kBadInvariant,
                    fmt::format("the invariant \"{}\" could not be evaluated in any life: {}",
                                invariant, unchecked.why));
    return {};
  }

  Result<std::vector<LifeEnd>> play_one(const PlayedWorld& one) const {
    return play(script_, {options_.seed, one.lives, one.crashes, options_.run_worker});
  }

  // Plays worlds on all cores. The ends come in the order of the worlds.
  using Ends = std::vector<Result<std::vector<LifeEnd>>>;
  Result<Ends> play_each(const std::vector<PlayedWorld>& worlds,
                         std::function<void(size_t done)> progress = {}) const {
    TRY(std::vector<Bytes> played,
        run_on_cores(options_.processes,
                     {worlds.size(), [&](size_t i) { return encode_ends(play_one(worlds[i])); },
                      std::move(progress)}));
    Ends out;
    for (const Bytes& bytes : played)
      out.push_back(decode_ends(bytes));
    return out;
  }

  Result<void> play_all() {
    std::vector<PlayedWorld> worlds;
    for (uint64_t n = 0; n < script_.lives; ++n) {
      if (n % kTogether == 0) worlds.push_back({{}, options_.crashes});
      worlds.back().lives.push_back(n);
    }
    TRY(Ends played, play_each(worlds, [this](size_t done) {
          if (options_.progress)
            options_.progress(std::min(script_.lives, done * kTogether), script_.lives);
        }));
    for (auto& ends : played) {
      if (!ends) return fail(std::move(ends.error()));
      for (const LifeEnd& end : *ends)
        take(end);
    }
    return {};
  }

  Result<void> play_alone() {
    TRY(std::vector<LifeEnd> ends, play_one({{*options_.only_life}, options_.crashes}));
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
    reached_.insert(end.reached.begin(), end.reached.end());
    for (const auto& [how, cells] : end.cells)
      report_.cells[how] += cells;
    for (const auto& [invariant, times] : end.checked)
      checked_.insert(invariant);
    for (const auto& [invariant, why] : end.unchecked) {
      ++report_.unchecked[invariant].lives;
      report_.unchecked[invariant].why = why;
    }
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
    if (!script_.world) return;
    for (const std::string& effect : asked_effects(*script_.world))
      if (!script_.effects.contains(effect)) report_.not_in_script.push_back("effect " + effect);
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

  Result<void> add_findings() {
    for (auto& [problem, candidates] : problems_) {
      std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::pair(a.length, a.life) < std::pair(b.length, b.life);
      });
      report_.findings.push_back({problem, candidates.size(), candidates[0].life});
      if (options_.only_life) report_.findings.back().story = report_.story;
    }
    if (options_.only_life) return {};
    TRY_OK(find_stories(false));
    return find_stories(true);
  }

  // Plays the shortest lives that showed a problem alone, and keeps the shortest story that shows
  // it again. Findings that have a story without a crash keep it.
  Result<void> find_stories(bool crashes) {
    std::vector<Finding*> open;
    std::vector<PlayedWorld> worlds;
    std::map<uint64_t, size_t> place;  // of a life in `worlds`
    for (Finding& finding : report_.findings) {
      if (!finding.story.empty()) continue;
      open.push_back(&finding);
      for (const Candidate& one : shortest(finding.problem))
        if (place.emplace(one.life, worlds.size()).second) worlds.push_back({{one.life}, crashes});
    }
    TRY(Ends played, play_each(worlds));
    for (Finding* finding : open)
      for (const Candidate& one : shortest(finding->problem)) {
        const auto& ends = played[place.at(one.life)];
        if (!ends || !ends->front().problems.contains(finding->problem)) continue;
        const std::vector<StoryLine>& story = ends->front().story;
        if (!finding->story.empty() && story.size() >= finding->story.size()) continue;
        finding->life = one.life;
        finding->needs_crashes = crashes;
        finding->story = story;
      }
    return {};
  }

  std::span<const Candidate> shortest(const Problem& problem) const {
    const std::vector<Candidate>& all = problems_.at(problem);
    return {all.data(), std::min(all.size(), kCandidates)};
  }

  bool may_be_unreached(const std::string& name) const {
    const std::string plain = name.substr(0, name.find(": "));  // without the text of a rule
    const std::string within = plain.substr(plain.find('/') + 1);
    for (const std::string& allowed : script_.may_be_unreached)
      if (allowed == plain || allowed == within) return true;
    return false;
  }

  void add_unreached() {
    const AllParts all = parts_of(script_);
    for (const PartKind& kind : kPartKinds)
      for (const auto& [part, instead] : all) {
        if (part.kind != kind.kind) continue;
        Reached& count = report_.parts[part.kind];
        ++count.all;
        if (reached_.contains(part)) {
          ++count.reached;
          continue;
        }
        const bool reported_as = all.contains(instead) && !reached_.contains(instead);
        if (!reported_as && !may_be_unreached(part.name))
          report_.findings.push_back({{std::string(kind.finding), part.name}});
      }
  }

  const Script& script_;
  const SimulateOptions& options_;
  Report report_;
  std::vector<Time> took_;
  std::set<Part> reached_;
  std::set<std::string> checked_;  // invariants that some life could evaluate
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
  if (finding.problem.kind == "invariant-fails")
    return fmt::format("the invariant cannot be evaluated: {}", what);
  for (const PartKind& kind : kPartKinds)
    if (finding.problem.kind == kind.finding) return fmt::format("{} {}", kind.title, what);
  return what;
}

// "  reached: 9 of 9 steps, 4 of 5 branches"
std::string reached_text(const Report& report) {
  std::vector<std::string> counts;
  for (const PartKind& kind : kPartKinds)
    if (auto found = report.parts.find(std::string(kind.kind)); found != report.parts.end())
      counts.push_back(
          fmt::format("{} of {} {}", found->second.reached, found->second.all, kind.plural));
  return counts.empty() ? "" : fmt::format("  reached: {}\n", fmt::join(counts, ", "));
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
  out += reached_text(report);
  for (const auto& [how, cells] : report.cells)
    out += fmt::format("  {:>8} cells of {}\n", cells, how);
  for (const auto& [reason, lives] : report.failures)
    out += fmt::format("  failed {} times: {}\n", lives, reason);
  for (const auto& [invariant, unchecked] : report.unchecked)
    out += fmt::format("  not checked in {} lives while a variable was missing: {}: {}\n",
                       unchecked.lives, invariant, unchecked.why);
  if (!report.not_in_script.empty())
    out += fmt::format(
        "  answered soon and by default, because the script does not name "
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
                    {"notInScript", std::move(defaults)},
                    {"findings", std::move(findings)}});
  for (const auto& [kind, count] : report.parts) {
    const PartKind& row = *std::find_if(std::begin(kPartKinds), std::end(kPartKinds),
                                        [&](const PartKind& one) { return one.kind == kind; });
    out.object().set(std::string(row.plural), count.all);
    out.object().set(std::string(row.plural) + "Reached", count.reached);
  }
  if (!report.cells.empty()) out.object().set("cells", counts(report.cells));
  json::Array unchecked;
  for (const auto& [invariant, one] : report.unchecked)
    unchecked.push_back(
        json::object({{"invariant", invariant}, {"lives", one.lives}, {"why", one.why}}));
  if (!unchecked.empty()) out.object().set("notChecked", std::move(unchecked));
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
