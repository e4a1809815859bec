#include "server/grpc/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <gtest/gtest.h>

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

// Makes one call with raw bytes. Returns the bytes of the answer, or nothing.
std::optional<std::string> call(uint16_t port, const std::string& method,
                                const std::string& request, const std::string& authorization = {}) {
  auto channel =
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  grpc::CompletionQueue queue;
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
  grpc::ByteBuffer sent = buffer_of(request), got;
  auto reader = stub.PrepareUnaryCall(&context, method, sent, &queue);
  reader->StartCall();
  grpc::Status status;
  reader->Finish(&got, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  if (!status.ok()) return std::nullopt;
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
