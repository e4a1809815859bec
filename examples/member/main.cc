// A prize with a manual transition whose SYNC processor runs in this program:
//   example_member [HTTP_ADDRESS [GRPC_ADDRESS]]
// The program registers the model and its workflow, joins with the tag approval-service, creates a
// prize, approves it and prints the result. With --serve it only answers calls, until SIGTERM.

#include <pawl/member.h>

#include <boost/json.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {

namespace js = boost::json;

constexpr const char* kPrize = R"({"year": "2023", "category": "physics", "notified": false})";
constexpr const char* kLifecycle = R"({"importMode": "REPLACE", "workflows": [{
  "version": "1", "name": "prize-lifecycle", "desc": "State machine for Nobel Prize entities", "initialState": "NEW", "active": true,
  "states": {
    "NEW": {"transitions": [
      {"name": "APPROVE", "next": "APPROVED", "manual": true, "disabled": false, "processors": [
        {"type": "EXTERNAL", "name": "notify-approval", "executionMode": "SYNC", "config": {
          "attachEntity": true, "calculationNodesTags": "approval-service", "responseTimeoutMs": 30000}}]},
      {"name": "AUTO_VALIDATE", "next": "VALIDATED", "manual": false, "disabled": false,
       "criterion": {"type": "simple", "jsonPath": "$.year", "operatorType": "EQUALS", "value": "2024"}}]},
    "APPROVED": {"transitions": []}, "VALIDATED": {"transitions": []}}}]})";

pawl::Member::Processed notify(const pawl::Member::Call& call) {
  js::value prize = js::parse(call.data);
  std::printf("approved: %s\n", prize.at("category").as_string().c_str());
  prize.as_object()["notified"] = true;
  return js::serialize(prize);
}

// Creates a prize and approves it as soon as the member has joined.
pawl::Result<std::string> approve_one(pawl::Client& client) {
  auto imported = client.call("POST", "/api/model/import/JSON/SAMPLE_DATA/nobel-prize/1", kPrize);
  const bool locked_already = !imported && imported.error().code == pawl::Code::conflict;
  if (!imported && !locked_already) return imported;
  auto locked = client.call("PUT", "/api/model/nobel-prize/1/lock");
  auto workflow = client.call("POST", "/api/model/nobel-prize/1/workflow/import", kLifecycle);
  if (!workflow) return workflow;
  auto made = client.call("POST", "/api/entity/JSON/nobel-prize/1", kPrize);
  if (!made) return made;
  std::string id(js::parse(*made).at(0).at("entityIds").at(0).as_string());
  // The server answers 503 until a member has joined; the client tries again by itself.
  auto approved = client.call("PUT", "/api/entity/JSON/" + id + "/APPROVE", kPrize);
  if (!approved) return approved;
  return client.call("GET", "/api/entity/" + id);
}

pawl::Member* answering = nullptr;

}  // namespace

int main(int count, char** words) {
  bool serve = count > 1 && std::strcmp(words[1], "--serve") == 0;
  if (serve) {
    --count;
    ++words;
  }
  pawl::MemberOptions options{.tags = {"approval-service"}};
  std::string http = count > 1 ? words[1] : "127.0.0.1:8080";
  if (count > 2) options.grpc = words[2];
  pawl::Member member(options);
  member.processor("notify-approval", notify);
  member.criterion("is-physics", [](const pawl::Member::Call& call) -> pawl::Member::Matched {
    return js::parse(call.data).at("category").as_string() == "physics";
  });
  answering = &member;
  for (int number : {SIGTERM, SIGINT})
    std::signal(number, [](int) { answering->stop(); });

  int code = 0;
  std::thread prize;
  if (!serve) {
    prize = std::thread([&] {
      pawl::Client client(http);
      auto entity = approve_one(client);
      std::printf("%s\n", entity ? entity->c_str() : entity.error().message.c_str());
      code = entity ? 0 : 1;
      member.stop();
    });
  }
  auto end = member.run();
  if (prize.joinable()) prize.join();
  if (!end) std::fprintf(stderr, "%s\n", end.error().message.c_str());
  return end ? code : 1;
}
