#include "server/grpc/server.h"

#include <google/protobuf/struct.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace pawl::server {
namespace {

grpc::ByteBuffer buffer_of(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// A service that answers with the name of its caller.
class WhoService : public grpc::Service {
 public:
  explicit WhoService(Authenticator& authenticator) {
    using Handler = grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    AddMethod(new grpc::internal::RpcServiceMethod("/test.Who/Am",
                                                   grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRawCallback(
        0, new Handler([&authenticator](grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer*, grpc::ByteBuffer* answer) {
          auto* reactor = context->DefaultReactor();
          auto caller = grpc_caller(*context, authenticator);
          if (caller) *answer = buffer_of(caller->tenant);
          reactor->Finish(
              caller ? grpc::Status::OK
                     : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, caller.error().message));
          return reactor;
        }));
  }
};

// A service whose request is a message.
class StructService : public grpc::Service {
 public:
  StructService() {
    using google::protobuf::Struct;
    using Handler = grpc::internal::CallbackUnaryHandler<Struct, Struct>;
    AddMethod(new grpc::internal::RpcServiceMethod("/test.Struct/Put",
                                                   grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodCallback(
        0, new Handler([](grpc::CallbackServerContext* context, const Struct*, Struct*) {
          auto* reactor = context->DefaultReactor();
          reactor->Finish(grpc::Status::OK);
          return reactor;
        }));
  }
};

// Makes one call with raw bytes. Returns its status; `got` receives the answer.
grpc::Status status_of_call(uint16_t port, const std::string& method, const std::string& request,
                            const std::string& authorization, grpc::ByteBuffer& got) {
  auto channel =
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  grpc::CompletionQueue queue;
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  auto reader = stub.PrepareUnaryCall(&context, method, buffer_of(request), &queue);
  reader->StartCall();
  grpc::Status status;
  reader->Finish(&got, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

grpc::Status status_of_call(uint16_t port, const std::string& method, const std::string& request) {
  grpc::ByteBuffer got;
  return status_of_call(port, method, request, {}, got);
}

// The bytes of the answer to one call, or nothing when it fails.
std::optional<std::string> call(uint16_t port, const std::string& method,
                                const std::string& request, const std::string& authorization = {}) {
  grpc::ByteBuffer got;
  if (!status_of_call(port, method, request, authorization, got).ok()) return std::nullopt;
  std::vector<grpc::Slice> slices;
  std::string out;
  if (got.Dump(&slices).ok()) {
    for (const auto& piece : slices)
      out.append(reinterpret_cast<const char*>(piece.begin()), piece.size());
  }
  return out;
}

TEST(grpc_server, health_answers_on_the_port_it_reports) {
  auto server = GrpcServer::start({*parse_address("127.0.0.1:0")});
  ASSERT_TRUE(server) << server.error().message;
  uint16_t port = (*server)->address().port;
  EXPECT_NE(port, 0);
  EXPECT_EQ(call(port, "/grpc.health.v1.Health/Check", ""), "\x08\x01");
  (*server)->set_healthy(false);
  EXPECT_EQ(call(port, "/grpc.health.v1.Health/Check", ""), "\x08\x02");
  EXPECT_EQ(call(port, "/no.such.Service/Method", ""), std::nullopt);
  (*server)->stop(1000);
}

TEST(grpc_server, a_stranger_cannot_hold_all_connections) {
  auto server = GrpcServer::start({.address = *parse_address("127.0.0.1:0"), .connections = 3});
  ASSERT_TRUE(server) << server.error().message;
  const uint16_t port = (*server)->address().port;
  std::vector<int> idle;
  for (int i = 0; i < 3; ++i) {
    idle.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(idle.back(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  std::optional<std::string> answer;
  for (int i = 0; i < 50 && !answer; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    answer = call(port, "/grpc.health.v1.Health/Check", "");
  }
  EXPECT_EQ(answer, "\x08\x01");
  for (int fd : idle)
    close(fd);
  (*server)->stop(1000);
}

TEST(grpc_server, a_request_that_cannot_be_parsed_is_an_invalid_argument) {
  StructService service;
  auto server =
      GrpcServer::start({.address = *parse_address("127.0.0.1:0"), .services = {&service}});
  ASSERT_TRUE(server) << server.error().message;
  uint16_t port = (*server)->address().port;
  EXPECT_TRUE(status_of_call(port, "/test.Struct/Put", "").ok());
  grpc::Status refused = status_of_call(port, "/test.Struct/Put", "\x0a\xff");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(refused.error_message().find("/test.Struct/Put"), std::string::npos);
  EXPECT_EQ(status_of_call(port, "/test.Struct/Get", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED)
      << "a call that does not exist";
  (*server)->stop(1000);
}

TEST(grpc_server, the_metadata_names_the_caller) {
  AuthOptions options;
  options.mode = AuthMode::jwt;
  options.signing_key = RsaKey::generate().private_pem();
  auto authenticator = Authenticator::make(options, [] { return Time{1'800'000'000} * kSecond; });
  ASSERT_TRUE(authenticator);
  WhoService who(**authenticator);
  auto server = GrpcServer::start({*parse_address("127.0.0.1:0"), {}, {&who}});
  ASSERT_TRUE(server);
  uint16_t port = (*server)->address().port;
  std::string token =
      *(*authenticator)->issue(json::object({{"caas_org_id", "acme"}, {"sub", "ann"}}));
  EXPECT_EQ(call(port, "/test.Who/Am", "", "Bearer " + token), "acme");
  EXPECT_EQ(call(port, "/test.Who/Am", "", "Bearer x" + token), std::nullopt);
  EXPECT_EQ(call(port, "/test.Who/Am", ""), std::nullopt);
  (*server)->stop(1000);
}

// A service whose stream writes messages without end, or none.
class FloodService : public grpc::Service {
 public:
  class Stream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
   public:
    Stream(std::atomic<int>& open, bool writes) : open_(open) {
      ++open_;
      if (writes) StartWrite(&message_);
    }
    void OnWriteDone(bool ok) override {
      if (ok) return StartWrite(&message_);
      finish();
    }
    void OnCancel() override { finish(); }
    void OnDone() override {
      --open_;
      delete this;
    }

   private:
    void finish() {
      if (!finished_.exchange(true)) Finish(grpc::Status::CANCELLED);
    }
    std::atomic<int>& open_;
    std::atomic<bool> finished_{false};
    const grpc::ByteBuffer message_ = buffer_of(std::string(1 << 20, 'x'));
  };

  FloodService() {
    using Handler = grpc::internal::CallbackBidiHandler<grpc::ByteBuffer, grpc::ByteBuffer>;
    for (bool writes : {true, false}) {
      AddMethod(
          new grpc::internal::RpcServiceMethod(writes ? "/test.Flood/Loud" : "/test.Flood/Quiet",
                                               grpc::internal::RpcMethod::BIDI_STREAMING, nullptr));
      MarkMethodRawCallback(writes ? 0 : 1,
                            new Handler([this, writes](grpc::CallbackServerContext*) {
                              return new Stream(open, writes);
                            }));
    }
  }
  std::atomic<int> open{0};
};

// A client of a stream that reads nothing until finish().
class IdleReader {
 public:
  IdleReader(uint16_t port, const std::string& method, const std::string& authorization = {})
      : stub_(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                  grpc::InsecureChannelCredentials())) {
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    stream_ = stub_.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(this);
    next();
  }
  grpc::Status finish() {
    grpc::ByteBuffer got;
    do {
      stream_->Read(&got, this);
    } while (next());
    grpc::Status status;
    stream_->Finish(&status, this);
    next();
    return status;
  }

 private:
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

// Waits until the condition holds; false when it does not within five seconds.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 500 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

TEST(grpc_server, a_stream_whose_reader_does_not_read_is_ended) {
  FloodService flood;
  GrpcOptions options{*parse_address("127.0.0.1:0"), {}, {&flood}};
  options.stalled_ms = 300;
  auto server = GrpcServer::start(options);
  ASSERT_TRUE(server);
  const uint16_t port = (*server)->address().port;
  IdleReader loud(port, "/test.Flood/Loud"), quiet(port, "/test.Flood/Quiet");
  ASSERT_TRUE(soon([&] { return flood.open == 2; }));
  ASSERT_TRUE(soon([&] {
    (*server)->tend();
    return flood.open == 1;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  (*server)->tend();
  EXPECT_EQ(flood.open, 1);  // a stream without messages is not stalled
  EXPECT_EQ(loud.finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  (*server)->stop(0);
}

TEST(grpc_server, a_stream_ends_when_its_token_expires) {
  AuthOptions auth;
  auth.mode = AuthMode::jwt;
  auth.signing_key = RsaKey::generate().private_pem();
  auth.expiry_seconds = 100;
  std::atomic<Time> now{Time{1'800'000'000} * kSecond};
  auto authenticator = *Authenticator::make(auth, [&] { return now.load(); });
  FloodService flood;
  GrpcOptions options{*parse_address("127.0.0.1:0"), {}, {&flood}};
  options.authenticator = authenticator.get();
  auto server = GrpcServer::start(options);
  ASSERT_TRUE(server);
  IdleReader reader(
      (*server)->address().port, "/test.Flood/Quiet",
      "Bearer " + *authenticator->issue(json::object({{"caas_org_id", "acme"}, {"sub", "ann"}})));
  ASSERT_TRUE(soon([&] { return flood.open == 1 && authenticator->streams().size() == 1; }));
  authenticator->end_expired_streams();
  EXPECT_EQ(authenticator->streams().size(), 1u);
  now = now.load() + 200 * kSecond;
  authenticator->end_expired_streams();
  EXPECT_EQ(reader.finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(soon([&] { return flood.open == 0; }));
  (*server)->stop(0);
}

TEST(grpc_server, a_taken_port_is_refused) {
  auto first = GrpcServer::start({*parse_address("127.0.0.1:0")});
  ASSERT_TRUE(first);
  auto second = GrpcServer::start({(*first)->address()});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find((*first)->address().text()), std::string::npos);
}

TEST(grpc_server, a_missing_certificate_is_named) {
  auto server = GrpcServer::start(
      {*parse_address("127.0.0.1:0"), {"/nonexistent/c.pem", "/nonexistent/k.pem"}});
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("/nonexistent/c.pem"), std::string::npos);
}

}  // namespace
}  // namespace pawl::server
