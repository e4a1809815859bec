// Calls through the door: to the services inside, to another node, and to nobody.

#include "server/proxy/grpc_door.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>

namespace pawl::server {
namespace {

using namespace std::chrono_literals;

grpc::ByteBuffer buffer_of(const std::string& text) {
  grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}
std::string text_of(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "unreadable";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// Sends every message back, with its name before it. "stop" ends the call with a status.
class Echo final : public grpc::CallbackGenericService {
 public:
  explicit Echo(std::string name) : name_(std::move(name)) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    struct Reactor final : grpc::ServerGenericBidiReactor {
      Reactor(Echo& echo, grpc::GenericCallbackServerContext* context) : echo(echo) {
        const auto& metadata = context->client_metadata();
        auto mine = metadata.find("x-mine");
        if (mine != metadata.end())
          context->AddTrailingMetadata("x-back",
                                       std::string(mine->second.data(), mine->second.size()));
        StartRead(&in);
      }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::OK);
        if (text_of(in) == "stop") return Finish({grpc::StatusCode::NOT_FOUND, "as asked"});
        out = buffer_of(echo.name_ + ":" + text_of(in));
        StartWrite(&out);
      }
      void OnWriteDone(bool ok) override {
        if (ok) StartRead(&in);
      }
      void OnDone() override {
        --echo.open;
        delete this;
      }
      Echo& echo;
      grpc::ByteBuffer in, out;
    };
    ++open;
    ++calls;
    return new Reactor(*this, context);
  }
  std::atomic<int> open{0}, calls{0};

 private:
  const std::string name_;
};

struct Served {
  Served(grpc::CallbackGenericService& service) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service);
    server = builder.BuildAndStart();
  }
  ~Served() { server->Shutdown(std::chrono::system_clock::now() + 100ms); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }
  int port = 0;
  std::unique_ptr<grpc::Server> server;
};

class DoorTest : public ::testing::Test {
 protected:
  DoorTest() {
    door_.set_inside(inner_.server->InProcessChannel({}));
    channel_ = grpc::CreateChannel(outer_.address(), grpc::InsecureChannelCredentials());
  }
  Result<GrpcTarget> where(std::string_view token) {
    if (token == "there") return GrpcTarget{other_.address()};
    if (token == "gone") return GrpcTarget{"127.0.0.1:1"};
    if (token == "moving") return fail(Code::unavailable, "SHARD_MOVES", "nobody owns the shard");
    return GrpcTarget{};
  }
  struct Got {
    std::vector<std::string> messages;
    grpc::Status status;
    std::string trailer;
  };
  // Sends the messages one after the other, each when the one before was answered.
  Got talk(const std::string& token, const std::vector<std::string>& messages,
           bool from_another_node = false) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.AddMetadata("authorization", token);
    context.AddMetadata("x-mine", "value");
    if (from_another_node) context.AddMetadata("pawl-hop", "1");
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    auto call = stub.PrepareCall(&context, "/a.Service/Method", &queue);
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    Got got;
    for (const std::string& message : messages) {
      if (!ok) break;
      call->Write(buffer_of(message), nullptr);
      queue.Next(&tag, &ok);
      grpc::ByteBuffer answer;
      call->Read(&answer, nullptr);
      queue.Next(&tag, &ok);
      if (ok) got.messages.push_back(text_of(answer));
    }
    call->WritesDone(nullptr);
    queue.Next(&tag, &ok);
    call->Finish(&got.status, nullptr);
    queue.Next(&tag, &ok);
    for (const auto& [name, value] : context.GetServerTrailingMetadata())
      if (name == "x-back") got.trailer = std::string(value.data(), value.size());
    return got;
  }

  Echo inside_{"inside"}, elsewhere_{"elsewhere"};
  Served inner_{inside_}, other_{elsewhere_};
  GrpcDoor door_{{.where = [this](std::string_view token) { return where(token); }}};
  Served outer_{door_.service()};
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(DoorTest, calls_reach_the_services_inside) {
  Got got = talk("here", {"a", "b", "c"});
  EXPECT_EQ(got.messages, (std::vector<std::string>{"inside:a", "inside:b", "inside:c"}));
  EXPECT_TRUE(got.status.ok()) << got.status.error_message();
  EXPECT_EQ(got.trailer, "value");
}

TEST_F(DoorTest, calls_of_another_shard_reach_its_owner) {
  const std::string large(1 << 20, 'l');
  Got got = talk("there", {"a", large});
  EXPECT_EQ(got.messages, (std::vector<std::string>{"elsewhere:a", "elsewhere:" + large}));
  EXPECT_TRUE(got.status.ok());
  EXPECT_EQ(got.trailer, "value");
}

TEST_F(DoorTest, the_status_of_the_owner_is_the_answer) {
  for (const char* token : {"here", "there"}) {
    Got got = talk(token, {"a", "stop"});
    EXPECT_EQ(got.messages.size(), 1u);
    EXPECT_EQ(got.status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(got.status.error_message(), "as asked");
  }
}

TEST_F(DoorTest, a_call_that_nobody_can_take_is_unavailable) {
  for (const char* token : {"gone", "moving"})
    EXPECT_EQ(talk(token, {"a"}).status.error_code(), grpc::StatusCode::UNAVAILABLE) << token;
}

TEST_F(DoorTest, a_call_is_sent_on_once) {
  EXPECT_EQ(talk("there", {"a"}, true).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(talk("here", {"a"}, true).status.ok());
}

TEST_F(DoorTest, a_client_that_leaves_ends_the_call_at_its_owner) {
  for (const char* token : {"here", "there"}) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.AddMetadata("authorization", token);
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    auto call = stub.PrepareCall(&context, "/a.Service/Method", &queue);
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    call->Write(buffer_of("a"), nullptr);
    queue.Next(&tag, &ok);
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    queue.Next(&tag, &ok);
    ASSERT_TRUE(ok);
    context.TryCancel();
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
  }
  for (int i = 0; i < 500 && inside_.open + elsewhere_.open > 0; ++i)
    std::this_thread::sleep_for(10ms);
  EXPECT_EQ(inside_.calls, 1);
  EXPECT_EQ(elsewhere_.calls, 1);
  EXPECT_EQ(inside_.open, 0);
  EXPECT_EQ(elsewhere_.open, 0);
}

TEST_F(DoorTest, many_calls_at_once) {
  std::vector<std::future<bool>> all;
  for (int t = 0; t < 8; ++t)
    all.push_back(std::async(std::launch::async, [&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(t * 1000 + i);
        Got got = talk(t % 2 ? "here" : "there", {text, text});
        if (!got.status.ok() || got.messages.size() != 2 || !got.messages[1].ends_with(":" + text))
          return false;
      }
      return true;
    }));
  for (auto& one : all)
    EXPECT_TRUE(one.get());
}

}  // namespace
}  // namespace pawl::server
