// The C++ programs that tests/run_sdk.py runs:
//   sdk_check client HTTP PREFIX        calls the client's functions and prints the results as JSON
//   sdk_check worker HTTP GRPC RECORD   writes a line to RECORD when a slow job begins and ends
//   sdk_check member GRPC TAG

#include <pawl/member.h>
#include <pawl/worker.h>

#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace {

namespace js = boost::json;
using Job = pawl::Worker::Job;
using Words = std::vector<std::string>;

std::function<void()> stop;

void stop_on_signals(std::function<void()> how) {
  stop = std::move(how);
  for (int number : {SIGTERM, SIGINT})
    std::signal(number, [](int) { stop(); });
}

int ended(const pawl::Result<void>& end) {
  if (!end) std::fprintf(stderr, "%s\n", end.error().message.c_str());
  return end ? 0 : 1;
}

// The token of a machine client, when the server requires one.
pawl::Token token() {
  const char* id = std::getenv("PAWL_CLIENT_ID");
  return id ? pawl::credentials(std::getenv("PAWL_URL"), id, std::getenv("PAWL_CLIENT_SECRET"))
            : pawl::Token();
}

// Opened for each line and appended, because several workers write to the same file.
void note(const std::string& record, const char* word, const Job& job) {
  std::string line = std::string(word) + " " + job.instance_id + " " + job.step_id + "\n";
  int fd = open(record.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (write(fd, line.data(), line.size()) < 0) std::perror("record");
  close(fd);
}

int work(const Words& words) {
  const std::string record = words.at(2);
  pawl::Worker worker(
      {.http = words.at(0), .grpc = words.at(1), .token = token(), .concurrency = 4, .credit = 8});
  // Fails until one retry is left: once by an exception, then by a returned failure.
  worker.on("cc-flaky", [](const Job& job) -> pawl::Worker::Outcome {
    if (job.retries_left == 3) throw std::runtime_error("not yet");
    if (job.retries_left > 1) return pawl::Worker::fail("not yet");
    return js::serialize(js::object{{"retriesLeft", job.retries_left}});
  });
  worker.on("cc-final", [](const Job&) -> pawl::Worker::Outcome {
    return pawl::Worker::fail_for_good("no further attempt helps");
  });
  worker.on("cc-odd",
            [](const Job&) -> pawl::Worker::Outcome { return "[\"not\", \"an\", \"object\""; });
  worker.on("cc-slow", [&](const Job& job) -> pawl::Worker::Outcome {
    note(record, "begin", job);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(js::parse(job.variables).at("ms").to_number<int>()));
    note(record, "end", job);
    return js::serialize(js::object{{job.step_id, getpid()}});
  });
  stop_on_signals([&] { worker.stop(); });
  return ended(worker.run());
}

int answer_calls(const Words& words) {
  using Call = pawl::Member::Call;
  using Processed = pawl::Member::Processed;
  pawl::Member member({.grpc = words.at(0), .tags = {words.at(1)}, .token = token()});
  auto with = [](const std::string& data, std::string_view name, js::value value) {
    js::value entity = js::parse(data);
    entity.as_object()[name] = std::move(value);
    return js::serialize(entity);
  };
  member.processor("mark",
                   [&](const Call& call) -> Processed { return with(call.data, "marked", true); });
  member.processor("slow", [&](const Call& call) -> Processed {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return with(call.data, "marked", true);
  });
  // Creates, patches and reads another entity inside the transaction of the call.
  member.processor("child", [&](const Call& call) -> Processed {
    js::object payload{
        {"model", js::parse(call.meta).at("modelKey")},
        {"data", {{"name", "child"}, {"good", false}, {"marked", false}, {"child", ""}}}};
    auto made = member.ask("EntityCreateRequest",
                           js::serialize(js::object{{"dataFormat", "JSON"}, {"payload", payload}}),
                           call.tx_token);
    if (!made) return std::unexpected(made.error());
    js::value id = js::parse(*made).at("transactionInfo").at("entityIds").at(0);
    js::object patch{{"entityId", id}, {"data", {{"name", "child"}}}};
    auto patched = member.ask("EntityPatchRequest", js::serialize(js::object{{"payload", patch}}),
                              call.tx_token);
    if (!patched) return std::unexpected(patched.error());
    auto seen =
        member.ask("EntityGetRequest", js::serialize(js::object{{"entityId", id}}), call.tx_token);
    if (!seen) return std::unexpected(seen.error());
    return with(call.data, "child", id);
  });
  member.processor("reject",
                   [](const Call&) -> Processed { throw std::runtime_error("after all, no"); });
  member.criterion("is-good", [](const Call& call) -> pawl::Member::Matched {
    return js::parse(call.data).at("good").as_bool();
  });
  member.schedule("soon", [](const Call& call) -> pawl::Member::Scheduled {
    int64_t ms = js::parse(call.data).at("ms").to_number<int64_t>();
    if (ms < 0) return pawl::Member::fail("it is too late");
    return pawl::Member::Schedule{.fire_after = ms, .expire_after = 60'000};
  });
  stop_on_signals([&] { member.stop(); });
  return ended(member.run());
}

int use_client(const Words& words) {
  pawl::Client client(words.at(0), {.token = token()});
  const std::string people = words.at(1) + "-people";
  pawl::Client::Start start{.definition = people,
                            .variables = R"({"n":1})",
                            .business_key = words.at(1) + "-key",
                            .idempotency_key = words.at(1) + "-once"};
  std::string id = client.start(start).value().id;
  bool same = client.start(start).value().id == id;
  bool late = client.wait(id, 100).error().reason == "timed-out";
  std::string at = client.get(id).value().steps.at(0);
  client.complete_task(id, "approve", R"({"approved":true})").value();
  client.signal(id, "paid", R"({"amount":5})").value();
  auto done = client.wait(id).value();
  js::value variables = js::parse(done.variables);
  js::array steps;
  js::value history = js::parse(client.history(id).value());
  for (const js::value& step : history.at("items").as_array())
    steps.push_back(step.at("StepID"));
  auto cancelled =
      client.cancel(client.start({.definition = people}).value().id, "changed my mind").value();
  js::object out{
      {"same", same},
      {"late", late},
      {"tasks", js::array{at}},
      {"done", js::array{done.status, variables.at("approved"), variables.at("amount")}},
      {"history", steps},
      {"cancelled", cancelled.status},
      {"missing", client.get("01M7AAAAAAAAAAAAAAAAAAAAAA").error().code == pawl::Code::not_found}};
  std::printf("%s\n", js::serialize(out).c_str());
  return 0;
}

}  // namespace

int main(int count, char** given) {
  const std::map<std::string, int (*)(const Words&)> modes{
      {"client", use_client}, {"worker", work}, {"member", answer_calls}};
  auto mode = modes.find(count > 1 ? given[1] : "");
  if (mode == modes.end()) {
    std::fprintf(stderr, "use: sdk_check client|worker|member ...\n");
    return 2;
  }
  return mode->second(Words(given + 2, given + count));
}
