// The entities face: creation with two automated transitions, manual transitions, reads, searches,
// calls to a compute member, and the cost of a transition in a large data set.

#include <fmt/format.h>

#include "bench/site.h"
#include "bench/stream.h"
#include "faces/entities/grpc/service.h"
#include "server/grpc/server.h"

namespace pawl::bench {

namespace {

// new and checked are left by automated transitions on creation; toggle switches between open and
// shut; call stays in open and calls a member.
constexpr std::string_view kWorkflow =
    R"({"workflows":[{"version":"1","name":"w","initialState":"new","states":{
  "new":{"transitions":[{"name":"check","next":"checked","manual":false,"disabled":false}]},
  "checked":{"transitions":[{"name":"open","next":"open","manual":false,"disabled":false}]},
  "open":{"transitions":[{"name":"toggle","next":"shut","manual":true,"disabled":false},
    {"name":"call","next":"open","manual":true,"processors":[{"type":"EXTERNAL","name":"p","executionMode":"SYNC","config":{"attachEntity":true,"calculationNodesTags":"bench"}}]}]},
  "shut":{"transitions":[{"name":"toggle","next":"open","manual":true,"disabled":false}]}}}],"importMode":"REPLACE"})";

std::string sample(uint64_t i) {
  return fmt::format(
      R"({{"name":"customer {}","group":{},"amount":{}.5,"active":true,"address":{{"city":"Utrecht","zip":"{:05}"}}}})",
      i, i / 10, i % 1000, i % 100000);
}

// Cut out of the text without parsing it, because client and server share the processor.
std::string first_id(std::string_view body) {
  size_t at = body.find("\"entityIds\":[\"");
  return at == std::string_view::npos ? std::string() : std::string(body.substr(at + 14, 36));
}

void must_be_good(size_t, int status, std::string_view body) {
  if (status >= 400) fmt::print("{}\n", body);
  CHECK(status == 200);
}

// A server with the model and its workflow, and the ids of the entities.
struct Customers {
  explicit Customers(const std::string& name) : site(name) {
    site.call("POST", "/api/model/import/JSON/SAMPLE_DATA/bench/1", sample(1));
    site.call("POST", "/api/model/bench/1/workflow/import", kWorkflow);
    site.call("PUT", "/api/model/bench/1/lock");
  }
  double create(double for_seconds) {
    return run({site.address(), 64, for_seconds,
                [&](size_t) { return request("POST", "/api/entity/JSON/bench/1", sample(made++)); },
                [&](size_t connection, int status, std::string_view body) {
                  must_be_good(connection, status, body);
                  ids.push_back(first_id(body));
                }})
        .rps;
  }
  // Filling uses large batches and is not measured.
  void grow_to(size_t count) {
    while (ids.size() < count) {
      std::string all = "[";
      size_t piece = std::min<size_t>(1000, count - ids.size());
      for (size_t i = 0; i < piece; ++i)
        all += (i ? "," : "") + sample(made++);
      auto answer = site.call("POST", "/api/entity/JSON/bench/1?transactionWindow=500", all + "]");
      for (const auto& chunk : answer.array())
        for (const auto& id : chunk.find("entityIds")->array())
          ids.push_back(id.string());
    }
  }
  std::string transition(size_t which, std::string_view name) {
    return request("PUT", fmt::format("/api/entity/JSON/{}/{}", ids[which % ids.size()], name),
                   sample(made));
  }
  Loaded toggle_any(double for_seconds, size_t connections = 64) {
    return run({site.address(), connections, for_seconds,
                // A prime step spreads the requests over all entities without a random generator.
                [&](size_t) { return transition(++next * 7919, "toggle"); }, must_be_good});
  }
  double get_any(double for_seconds) {
    return run({site.address(), 64, for_seconds,
                [&](size_t) {
                  return request("GET", "/api/entity/" + ids[next++ * 7919 % ids.size()]);
                },
                must_be_good})
        .rps;
  }
  Loaded search(std::string_view path, std::string_view value, int times) {
    std::string condition = fmt::format(
        R"({{"type":"simple","jsonPath":"{}","operatorType":"EQUALS","value":{}}})", path, value);
    int left = times;
    Load load{site.address(), 1, 30, [&](size_t) {
                return left-- > 0
                           ? request("POST", "/api/search/direct/bench/1?limit=20", condition)
                           : std::string();
              }};
    load.until = [&] { return left < 0; };
    return run(load);
  }

  Site site;
  std::vector<std::string> ids{};
  uint64_t made = 0;
  size_t next = 0;
};

// Processor time of the whole process for each transition, in microseconds. Other load on the
// machine does not change it much.
template <class Run>
double cost_us(Run&& run) {
  double before = cpu_seconds();
  Loaded loaded = run();
  return (cpu_seconds() - before) * 1e6 / static_cast<double>(loaded.answers);
}

}  // namespace

void bench_requests(Report& report, Facts&) {
  Customers customers("entities");
  double bare = 0, create = 0, move = 0, get = 0;
  for (int round = 0; round < 3; ++round) {
    bare += bare_load(64, 1).rps / 3;
    create += customers.create(2) / 3;
  }
  customers.grow_to(100'000);
  let_settle();
  for (int round = 0; round < 3; ++round) {
    move += customers.toggle_any(1.5).rps / 3;
    get += customers.get_any(1.5) / 3;
  }
  report.line("bare HTTP, 64 connections", bare, "/s");
  report.line("create with two automated transitions", create, "/s");
  report.bar({"create / bare", create / bare, 0.30, true, ""});
  report.line(fmt::format("manual transition of one of {}", customers.ids.size()), move, "/s");
  report.bar({"manual transition / bare", move / bare, 0.30, true, ""});
  report.line("get by id", get, "/s");
  report.bar({"get / bare", get / bare, 0.60, true, ""});
  customers.site.call("PUT", "/api/model/bench/1/indexes", R"({"fields":["$.group"]})");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the index is built while serving
  Loaded indexed = customers.search("$.group", "777", 300);
  report.bar({"indexed equality returning 10, p50", indexed.p50_us / 1000, 1, false, "ms"});
  customers.search("$.name", "\"nobody\"", 5);
  Loaded scan = customers.search("$.name", "\"nobody\"", 10);
  report.bar({"unindexed scan", static_cast<double>(customers.ids.size()) / (scan.p50_us / 1e6),
              1'000'000, true, "entities/s"});
}

static std::unique_ptr<server::GrpcServer> serve(grpc::Service* service) {
  server::GrpcOptions options;
  options.address = *server::parse_address("127.0.0.1:0");
  options.services = {service};
  return *server::GrpcServer::start(options);
}

// First a bare stream with as many requests in flight as there are connections, then the same
// member on the stream of the face.
void bench_member(Report& report, Facts&) {
  constexpr size_t kWindow = 64;
  Customers customers("entities-member");
  customers.grow_to(1000);
  BareStream bare(
      kWindow,
      R"({"requestId":"00000000-0000-1000-8000-000000000000","entityId":"00000000-0000-1000-8000-000000000000","payload":)" +
          std::string(600, ' ') + "{}}");
  auto nobody = [](const wire::Call&) -> Result<wire::AdmittedCall> {
    return wire::AdmittedCall{{"mock-tenant", "mock-user-001", "ROLE_ADMIN,ROLE_M2M"}};
  };
  auto face = entities::make_grpc_service(
      [&](std::string_view) -> entities::Face& { return customers.site.entities(); }, nobody);
  auto bare_server = serve(bare.service()), face_server = serve(face->service());
  double alone = 0, called = 0;
  for (int round = 0; round < 3; ++round) {
    {
      EchoMember member(bare_server->address().text(), "bench");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      uint64_t before = bare.round_trips();
      double begin = seconds();
      std::this_thread::sleep_for(std::chrono::milliseconds(1000));
      alone += static_cast<double>(bare.round_trips() - before) / (seconds() - begin) / 3;
    }
    EchoMember member(face_server->address().text(), "bench");
    size_t next = 0;
    called += run({customers.site.address(), kWindow, 1.5,
                   [&](size_t) { return customers.transition(next++, "call"); }, must_be_good})
                  .rps /
              3;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // wait for the calls in flight
  }
  report.line("bare gRPC stream, window 64, round trips", alone, "/s");
  report.line("SYNC processor, one member, 64 connections", called, "/s");
  report.bar({"SYNC round trips / bare stream", called / alone, 0.50, true, ""});
  bare_server->stop(100);
  face_server->stop(100);
}

void bench_growth(Report& report, Facts&) {
  Customers customers("entities-growth");
  customers.grow_to(1000);
  customers.toggle_any(0.5);
  double few = cost_us([&] { return customers.toggle_any(2); });
  // Many entities with ten revisions each, then one entity with ten thousand.
  double young = cost_us([&] {
    size_t at = 0;
    return run({customers.site.address(), 1, 1.5,
                [&](size_t) { return customers.transition(at++ / 10, "toggle"); }, must_be_good});
  });
  auto same = [&](double for_seconds, uint64_t until) {
    uint64_t done = 0;
    Load load{customers.site.address(), 1, for_seconds,
              [&](size_t) { return customers.transition(0, "toggle"); },
              [&](size_t c, int status, std::string_view body) {
                must_be_good(c, status, body);
                ++done;
              }};
    load.until = [&] { return done >= until; };
    return run(load);
  };
  same(60, 10'000);
  double old = cost_us([&] { return same(1.5, ~0ull); });
  customers.grow_to(1'000'000);
  let_settle();
  customers.toggle_any(1);
  double many = cost_us([&] { return customers.toggle_any(4); });
  report.line("a transition among 1,000 entities", few, "us of processor time");
  report.line("a transition among 1,000,000 entities", many, "us of processor time");
  report.bar({"cost at 1,000,000 / at 1,000", many / few, 1.2, false, ""});
  report.line("a transition of an entity after 10 revisions, 1 connection", young,
              "us of processor time");
  report.line("the same after 10,000 revisions", old, "us of processor time");
  report.bar({"cost after 10,000 revisions / after 10", old / young, 1.2, false, ""});
}

}  // namespace pawl::bench
