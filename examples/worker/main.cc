// An order that is charged and shipped. The program deploys the workflow, starts one order and runs
// its jobs until the order is done:
//   example_worker [HTTP_ADDRESS [GRPC_ADDRESS]]
// With --serve it only runs jobs, until SIGTERM.

#include <pawl/worker.h>

#include <boost/json.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

constexpr const char* kOrder = R"({"id": "example-order", "name": "Order", "steps": [
  {"id": "charge", "name": "Charge the card", "type": "SERVICE_TASK", "jobType": "charge", "retryCount": 3, "nextStep": "ship"},
  {"id": "ship", "name": "Ship the parcel", "type": "SERVICE_TASK", "jobType": "ship", "nextStep": "done"},
  {"id": "done", "name": "Done", "type": "END"}]})";

using Job = pawl::Worker::Job;
using Outcome = pawl::Worker::Outcome;

Outcome charge(const Job& job) {
  boost::json::value variables = boost::json::parse(job.variables);
  if (variables.at("amount").to_number<double>() <= 0)
    return pawl::Worker::fail_for_good("there is nothing to charge");
  // The id of the job is the idempotency key, so that charging twice is harmless.
  return boost::json::serialize(boost::json::object{{"chargeId", "ch-" + job.id}});
}

Outcome ship(const Job&) { return R"({"parcel": "P-1"})"; }

pawl::Worker* working = nullptr;

int show(const pawl::Result<pawl::Client::Instance>& order) {
  if (!order) {
    std::fprintf(stderr, "%s\n", order.error().message.c_str());
    return 1;
  }
  std::printf("%s %s\n", order->status.c_str(), order->variables.c_str());
  return order->status == "COMPLETED" ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  bool serve = count > 1 && std::strcmp(words[1], "--serve") == 0;
  if (serve) {
    --count;
    ++words;
  }
  pawl::WorkerOptions options;
  if (count > 1) options.http = words[1];
  if (count > 2) options.grpc = words[2];
  pawl::Worker worker(options);
  worker.on("charge", charge);
  worker.on("ship", ship);
  working = &worker;
  for (int number : {SIGTERM, SIGINT})
    std::signal(number, [](int) { working->stop(); });

  int code = 0;
  std::thread order;
  if (!serve) {
    order = std::thread([&] {
      pawl::Client client(options.http);
      auto deployed = client.deploy(kOrder);
      auto started = client.start(
          {.definition = "example-order", .variables = R"({"amount": 40})", .business_key = "order-1001"});
      code = show(started ? client.wait(started->id) : started);
      worker.stop();
    });
  }
  auto end = worker.run();
  if (order.joinable()) order.join();
  if (!end) std::fprintf(stderr, "%s\n", end.error().message.c_str());
  return end ? code : 1;
}
