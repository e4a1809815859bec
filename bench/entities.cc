// The entities face: create with two automated transitions, manual transitions, gets, searches.

#include <fmt/format.h>

#include "bench/site.h"

namespace pawl::bench {

static constexpr std::string_view kWorkflow = R"({"workflows":[{"version":"1","name":"w","initialState":"new","states":{
  "new":{"transitions":[{"name":"check","next":"checked","manual":false,"disabled":false}]},
  "checked":{"transitions":[{"name":"open","next":"open","manual":false,"disabled":false}]},
  "open":{"transitions":[{"name":"toggle","next":"shut","manual":true,"disabled":false}]},
  "shut":{"transitions":[{"name":"toggle","next":"open","manual":true,"disabled":false}]}}}],"importMode":"REPLACE"})";

static std::string sample(uint64_t i) {
  return fmt::format(R"({{"name":"customer {}","group":{},"amount":{}.5,"active":true,"address":{{"city":"Utrecht","zip":"{:05}"}}}})", i, i / 10, i % 1000, i % 100000);
}

static std::string first_id(std::string_view body) {
  size_t at = body.find("\"entityIds\":[\"");
  return at == std::string_view::npos ? std::string() : std::string(body.substr(at + 14, 36));
}

void bench_entities(Report& report, Facts&) {
  Site site("entities");
  site.call("POST", "/api/model/import/JSON/SAMPLE_DATA/bench/1", sample(1));
  site.call("POST", "/api/model/bench/1/workflow/import", kWorkflow);
  site.call("PUT", "/api/model/bench/1/lock");
  std::vector<std::string> ids;
  uint64_t made = 0;
  double bare = 0, create = 0, move = 0, get = 0;
  auto creating = [&](double s) {
    Loaded l = run({site.address(), 64, s, [&](size_t) { return request("POST", "/api/entity/JSON/bench/1", sample(made++)); },
                    [&](size_t, int status, std::string_view body) {
                      CHECK(status == 200);
                      ids.push_back(first_id(body));
                    }});
    return l.rps;
  };
  for (int round = 0; round < 3; ++round) {
    bare += bare_load(64, 1).rps / 3;
    create += creating(2) / 3;
  }
  // Up to 100,000 in larger pieces, then the rest is measured on that many.
  while (ids.size() < 100'000) {
    std::string all = "[";
    for (int i = 0; i < 500; ++i) all += (i ? "," : "") + sample(made++);
    auto answer = site.call("POST", "/api/entity/JSON/bench/1", all + "]");
    if (answer.is_array())
      for (const auto& chunk : answer.array())
        for (const auto& id : chunk.find("entityIds")->array()) ids.push_back(id.string());
  }
  for (int round = 0; round < 3; ++round) {
    size_t next = 0;
    move += run({site.address(), 64, 1.5, [&](size_t) { return request("PUT", fmt::format("/api/entity/JSON/{}/toggle", ids[++next * 7919 % ids.size()]), sample(made)); },
                 [](size_t, int status, std::string_view body) {
                   if (status >= 400) fmt::print("{}\n", body);
                   CHECK(status == 200);
                 }}).rps / 3;
    get += run({site.address(), 64, 1.5, [&](size_t) { return request("GET", "/api/entity/" + ids[next++ * 7919 % ids.size()]); },
                [](size_t, int status, std::string_view) { CHECK(status == 200); }}).rps / 3;
  }
  report.line("bare HTTP, 64 connections", bare, "/s");
  report.line("create with two automated transitions", create, "/s");
  report.bar({"create / bare", create / bare, 0.30, true, ""});
  report.line(fmt::format("manual transition of one of {}", ids.size()), move, "/s");
  report.bar({"manual transition / bare", move / bare, 0.30, true, ""});
  report.line("get by id", get, "/s");
  report.bar({"get / bare", get / bare, 0.60, true, ""});
  site.call("PUT", "/api/model/bench/1/indexes", R"({"indexes":["$.group"]})");
  auto search = [&](std::string_view path, std::string_view op, std::string_view value, int times) {
    std::string condition = fmt::format(R"({{"type":"simple","jsonPath":"{}","operatorType":"{}","value":{}}})", path, op, value);
    int left = times;
    Load load{site.address(), 1, 30, [&](size_t) { return left-- > 0 ? request("POST", "/api/search/direct/bench/1?limit=20", condition) : std::string(); }};
    load.until = [&] { return left < 0; };
    return run(load);
  };
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the index is built while serving
  Loaded indexed = search("$.group", "EQUALS", "777", 300);
  report.bar({"indexed equality returning 10, p50", indexed.p50_us / 1000, 1, false, "ms"});
  Loaded scan = search("$.amount", "EQUALS", "\"none\"", 5);
  scan = search("$.name", "EQUALS", "\"nobody\"", 10);
  report.bar({"unindexed scan", static_cast<double>(ids.size()) / (scan.p50_us / 1e6), 1'000'000, true, "entities/s"});
}

}  // namespace pawl::bench
