// Searches over gRPC, with a real client over loopback, against the face on memory stores.

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "entities/cloud_events_service.grpc.pb.h"
#include "faces/entities/face_fixture_test.h"
#include "faces/entities/grpc/service.h"

namespace pawl::entities {
namespace {

using io::cloudevents::v1::CloudEvent;
using org::cyoda::cloud::api::grpc::CloudEventsService;

struct Wire : testing::Test {
  FaceFixture s;
  std::unique_ptr<GrpcService> service =
      make_grpc_service([&](std::string_view) -> Face& { return *s.face; },
                        [](const wire::Call&) -> Result<wire::AdmittedCall> {
                          return wire::AdmittedCall{{"t", "grpc", "ROLE_ADMIN,ROLE_M2M"}};
                        });
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<CloudEventsService::Stub> stub;

  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service->service());
    server = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(64 << 20);
    stub = CloudEventsService::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
    s.add_model();
  }
  void TearDown() override { server->Shutdown(); }

  static CloudEvent search_event(const std::string& condition, const std::string& more = "") {
    CloudEvent event;
    event.set_id("e1");
    event.set_source("test");
    event.set_spec_version("1.0");
    event.set_type("EntitySearchRequest");
    event.set_text_data(R"({"id":"e1","model":{"name":"m","version":1},"condition":)" + condition +
                        more + "}");
    return event;
  }
  enum class CallMethod : uint8_t { manage, search };
  // The reply to one event.
  json::Value ask(CallMethod method, const std::string& type, const std::string& body) {
    CloudEvent event = search_event("null");
    event.set_type(type);
    event.set_text_data(body);
    grpc::ClientContext context;
    CloudEvent reply;
    EXPECT_TRUE((method == CallMethod::manage ? stub->entityManage(&context, event, &reply)
                                              : stub->entitySearch(&context, event, &reply))
                    .ok());
    return *json::parse(reply.text_data());
  }
  // The replies of one search.
  std::vector<json::Value> search(const std::string& condition, const std::string& more = "") {
    grpc::ClientContext context;
    auto stream = stub->entitySearchCollection(&context, search_event(condition, more));
    std::vector<json::Value> out;
    CloudEvent event;
    while (stream->Read(&event))
      out.push_back(*json::parse(event.text_data()));
    EXPECT_TRUE(stream->Finish().ok());
    return out;
  }
};

const std::string kAll = R"({"type":"group","operator":"AND","conditions":[]})";

TEST_F(Wire, a_large_result_comes_whole_and_in_order) {
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i)
    ids.push_back(s.create(fmt::format(R"({{"k":"{}","n":{}}})", std::string(20'000, 'x'), i)));
  std::sort(ids.begin(), ids.end());
  std::vector<std::string> found;
  for (const json::Value& reply : search(kAll)) {
    ASSERT_TRUE(reply.find("success")->boolean());
    found.emplace_back(reply.find("payload")->find("meta")->string_or("id"));
  }
  EXPECT_EQ(found, ids);
}

TEST_F(Wire, results_that_are_not_read_are_bounded) {
  for (int i = 0; i < 40; ++i)
    s.create(fmt::format(R"({{"k":"{}","n":{}}})", std::string(200'000, 'x'), i));
  std::vector<StreamSlots::SlotPtr> held;
  for (size_t i = 0; i < limits::kTenantStreamedSearches; ++i)
    held.push_back(*s.face->stream_slots().take("t"));
  std::vector<json::Value> refused = search(kAll);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_FALSE(refused[0].find("success")->boolean());
  EXPECT_NE(json::print(refused[0]).find("large search results"), std::string::npos);
  EXPECT_EQ(search(kAll, R"(,"limit":1)").size(), 1u);
  held.clear();
  EXPECT_EQ(search(kAll).size(), 40u);
}

TEST_F(Wire, a_search_without_a_condition_is_an_invalid_argument) {
  for (const char* type : {"EntitySearchRequest", "EntitySnapshotSearchRequest"}) {
    CloudEvent event = search_event("null");
    event.set_type(type);
    grpc::ClientContext context;
    grpc::Status status;
    if (std::string_view(type) == "EntitySearchRequest") {
      status = stub->entitySearchCollection(&context, event)->Finish();
    } else {
      CloudEvent reply;
      status = stub->entitySearch(&context, event, &reply);
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << type;
    EXPECT_NE(status.error_message().find("condition"), std::string::npos);
  }
}

TEST_F(Wire, cancelling_a_finished_snapshot_answers_its_status) {
  s.create();
  std::string id = s.send("POST", "/search/async/m/1", kAll).body.string();
  ASSERT_TRUE(s.wait_until([&] {
    return s.send("GET", "/search/async/" + id + "/status").text.find("SUCCESSFUL") !=
           std::string::npos;
  }));
  json::Value reply = ask(CallMethod::search, "SnapshotCancelRequest",
                          fmt::format(R"({{"id":"e1","snapshotId":"{}"}})", id));
  EXPECT_TRUE(reply.find("success")->boolean()) << json::print(reply);
  EXPECT_EQ(reply.find("status")->string_or("status"), "SUCCESSFUL");
  EXPECT_EQ(reply.find("status")->find("entitiesCount")->as_int64(), 1);
}

TEST_F(Wire, a_create_takes_one_document) {
  json::Value reply =
      ask(CallMethod::manage, "EntityCreateRequest",
          R"({"id":"e1","payload":{"model":{"name":"m","version":1},"data":[{"n":1}]}})");
  EXPECT_FALSE(reply.find("success")->boolean());
  EXPECT_NE(json::print(reply).find("EntityCreateCollectionRequest"), std::string::npos);
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1").body.find("count")->as_int64(), 0);
}

TEST_F(Wire, the_default_workflow_is_a_warning_of_every_write) {
  std::string id = s.create();
  json::Value updated =
      ask(CallMethod::manage, "EntityUpdateRequest",
          fmt::format(R"({{"id":"e1","payload":{{"entityId":"{}","data":{{"n":2}}}}}})", id));
  EXPECT_NE(json::print(updated).find("default workflow"), std::string::npos);
  json::Value fired =
      ask(CallMethod::manage, "EntityTransitionRequest",
          fmt::format(R"({{"id":"e1","entityId":"{}","transition":"UPDATE"}})", id));
  EXPECT_NE(json::print(fired).find("default workflow"), std::string::npos);
}

// Both threads of the pool search for a client that leaves. The next search waits for neither.
TEST_F(Wire, a_search_ends_when_its_client_leaves) {
  for (int i = 0; i < 40; ++i)
    s.create(fmt::format(R"({{"k":"{}","n":{}}})", std::string(1'000'000, 'x'), i));
  std::string conditions;
  for (int i = 0; i < 500; ++i)
    conditions += std::string(i ? "," : "") +
                  R"({"type":"simple","jsonPath":"$.k","operatorType":"CONTAINS","value":"x)" +
                  std::to_string(i) + "y\"}";
  const std::string slow = R"({"type":"group","operator":"OR","conditions":[)" + conditions + "]}";
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<CloudEvent>>> streams;
  for (int i = 0; i < 4; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    streams.push_back(stub->entitySearchCollection(contexts.back().get(), search_event(slow)));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (auto& context : contexts)
    context->TryCancel();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(search(kAll, R"(,"limit":1)").size(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  for (auto& stream : streams)
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace pawl::entities
