// pawl.v1.Executors with a real client over loopback, against the face on memory stores.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <worlds/executors.grpc.pb.h>
#include "faces/worlds/grpc/executors.h"
#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

// gRPC calls come from threads of gRPC, here one at a time.
struct Wire : testing::Test {
  Stage stage;
  GrpcExecutors executors{[this](std::string_view) -> Service& { return stage.face->service(); },
                          [](const wire::Call& call) -> Result<wire::AdmittedCall> {
                            if (call.authorization == "bad")
                              return fail(Code::unauthenticated, "NO", "who are you?");
                            return wire::AdmittedCall{{"t", "grpc", ""}};
                          }};
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<v1::Executors::Stub> stub;

  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(executors.service());
    server = builder.BuildAndStart();
    stub = v1::Executors::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                      grpc::InsecureChannelCredentials()));
    ASSERT_TRUE(stage.create("w", test_air()));
  }
  void TearDown() override { server->Shutdown(); }

  void charge(const std::string& id, uint64_t amount) {
    ASSERT_TRUE(stage.send("w", "t/Do@1",
                           tell(id, output({"asked"}, {{"t/charge@1",
                                                        cbor::encode(cbor::Map{{"amount", amount}}),
                                                        {},
                                                        Bytes("mine")}}))));
  }
  v1::OpenWork poll() {
    v1::PollEffects request;
    request.set_worker("x");
    request.add_effects("t/charge@1");
    request.set_limit(10);
    v1::OpenWork work;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->Poll(&context, request, &work).ok());
    return work;
  }
  static v1::EffectFrame frame_of(const v1::OpenEffect& e, uint64_t seq) {
    v1::EffectFrame f;
    f.set_world_id(e.world_id());
    f.set_intent_hash(e.intent_hash());
    f.set_seq(seq);
    f.set_kind("progress");
    f.set_payload_json("50");
    f.set_origin_module_id(e.origin_module_id());
    f.set_origin_instance_key(e.origin_instance_key());
    f.set_effect(e.effect());
    f.set_effect_hash(e.effect_hash());
    f.set_emitted_at_seq(e.emitted_at_seq());
    return f;
  }
  static v1::EffectReceipt receipt_of(const v1::OpenEffect& e, const std::string& json) {
    v1::EffectReceipt r;
    r.set_world_id(e.world_id());
    r.set_intent_hash(e.intent_hash());
    r.set_payload_json(json);
    r.set_cost_cents(3);
    return r;
  }
};

// The first message of an executor for the effect of the tests.
v1::FromExecutor hello(uint32_t credit) {
  v1::FromExecutor say;
  say.mutable_hello()->set_worker("x");
  say.mutable_hello()->add_effects("t/charge@1");
  say.mutable_hello()->set_credit(credit);
  return say;
}

TEST_F(Wire, an_executor_polls_sends_frames_and_settles_once) {
  charge("a", 500);
  v1::OpenWork work = poll();
  ASSERT_EQ(work.work_size(), 1);
  const v1::OpenEffect& e = work.work(0);
  EXPECT_EQ(e.world_id(), "w");
  EXPECT_EQ(e.params_json(), R"({"amount":500})");
  EXPECT_EQ(e.params_cbor(), cbor::canonical(cbor::Map{{"amount", 500}}));
  EXPECT_EQ(e.requested_idempotency_key(), "mine");
  EXPECT_EQ(e.idempotency_key().size(), 32u);
  v1::FrameTaken taken;
  grpc::ClientContext first, second, third, fourth;
  ASSERT_TRUE(stub->SendFrame(&first, frame_of(e, 1), &taken).ok());
  EXPECT_EQ(taken.status(), "accepted");
  ASSERT_TRUE(stub->SendFrame(&second, frame_of(e, 1), &taken).ok());
  EXPECT_EQ(taken.status(), "dropped");
  v1::EffectSettled settled;
  v1::EffectReceipt receipt = receipt_of(e, R"({"code":0})");
  ASSERT_TRUE(stub->Settle(&third, receipt, &settled).ok());
  EXPECT_EQ(settled.status(), "settled");
  ASSERT_TRUE(stub->Settle(&fourth, receipt, &settled).ok());
  EXPECT_EQ(settled.status(), "ignored");
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")),
            (std::vector<std::string>{"asked", "Frame", "Receipt"}));
  EXPECT_EQ(poll().work_size(), 0);
  EXPECT_EQ(stage.verify_all().difference, "");
}

TEST_F(Wire, refusals_have_grpc_codes_and_the_reasons_of_the_routes) {
  v1::EffectSettled settled;
  v1::EffectReceipt receipt;
  auto code = [&](auto... metadata) {
    grpc::ClientContext context;
    (context.AddMetadata("authorization", metadata), ...);
    return stub->Settle(&context, receipt, &settled).error_code();
  };
  EXPECT_EQ(code(), grpc::INVALID_ARGUMENT);  // no world
  receipt.set_world_id("nowhere");
  receipt.set_intent_hash("sha256:" + std::string(64, '0'));
  EXPECT_EQ(code(), grpc::NOT_FOUND);
  receipt.set_world_id("w");
  EXPECT_EQ(code(), grpc::NOT_FOUND);
  EXPECT_EQ(code("bad"), grpc::UNAUTHENTICATED);
  receipt.set_payload_json("{");
  EXPECT_EQ(code(), grpc::INVALID_ARGUMENT);
  v1::PollEffects nothing;
  v1::OpenWork work;
  grpc::ClientContext context;
  EXPECT_EQ(stub->Poll(&context, nothing, &work).error_code(), grpc::INVALID_ARGUMENT);
}

TEST_F(Wire, work_is_pushed_within_the_credit) {
  charge("a", 1);
  charge("b", 2);
  grpc::ClientContext context;
  auto stream = stub->Work(&context);
  v1::FromExecutor say = hello(1);
  ASSERT_TRUE(stream->Write(say));
  v1::ToExecutor heard;
  ASSERT_TRUE(stream->Read(&heard));
  ASSERT_EQ(heard.work().work_size(), 1);
  const v1::OpenEffect first = heard.work().work(0);
  *say.mutable_frame() = frame_of(first, 1);
  ASSERT_TRUE(stream->Write(say));
  ASSERT_TRUE(stream->Read(&heard));
  EXPECT_TRUE(heard.done().is_frame());
  EXPECT_EQ(heard.done().status(), "accepted");
  *say.mutable_receipt() = receipt_of(first, R"({"code":0})");
  ASSERT_TRUE(stream->Write(say));
  // The answer and the next work, in either order.
  bool done = false;
  std::optional<v1::OpenEffect> next;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Read(&heard));
    if (heard.has_done())
      done = heard.done().status() == "settled";
    else if (heard.work().work_size() == 1)
      next = heard.work().work(0);
  }
  EXPECT_TRUE(done);
  ASSERT_TRUE(next.has_value());
  EXPECT_NE(next->intent_hash(), first.intent_hash());
  *say.mutable_receipt() = receipt_of(*next, R"({"nonsense":1})");  // a fault is settled too
  ASSERT_TRUE(stream->Write(say));
  ASSERT_TRUE(stream->WritesDone());
  ASSERT_TRUE(stream->Read(&heard));
  EXPECT_EQ(heard.done().status(), "settled");
  EXPECT_FALSE(stream->Read(&heard));
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")).back(), "Receipt");
  EXPECT_EQ(stage.head("w").inflight, 0u);
}

TEST_F(Wire, work_offered_again_takes_no_second_credit) {
  charge("a", 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  auto stream = stub->Work(&context);
  v1::FromExecutor say = hello(2);
  say.mutable_hello()->set_lease_ms(1000);
  ASSERT_TRUE(stream->Write(say));
  v1::ToExecutor heard;
  ASSERT_TRUE(stream->Read(&heard));
  ASSERT_EQ(heard.work().work_size(), 1);
  const v1::OpenEffect first = heard.work().work(0);
  stage.clock += 2 * kSecond;
  say.set_credit(0);  // asks for no more work, but makes the stream poll
  ASSERT_TRUE(stream->Write(say));
  ASSERT_TRUE(stream->Read(&heard));
  ASSERT_EQ(heard.work().work_size(), 1);
  EXPECT_EQ(heard.work().work(0).intent_hash(), first.intent_hash());
  charge("b", 2);
  charge("c", 3);
  charge("d", 4);
  *say.mutable_receipt() = receipt_of(first, R"({"code":0})");
  ASSERT_TRUE(stream->Write(say));
  int pushed = 0;
  for (bool done = false; !done || pushed < 2;) {
    ASSERT_TRUE(stream->Read(&heard));
    done |= heard.has_done();
    pushed += heard.work().work_size();
  }
  EXPECT_EQ(pushed, 2);
  context.TryCancel();
  stream->Finish();
}

TEST_F(Wire, an_intent_as_bare_hex_returns_its_credit) {
  charge("a", 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  auto stream = stub->Work(&context);
  v1::FromExecutor say = hello(1);
  ASSERT_TRUE(stream->Write(say));
  v1::ToExecutor heard;
  ASSERT_TRUE(stream->Read(&heard));
  ASSERT_EQ(heard.work().work_size(), 1);
  v1::OpenEffect first = heard.work().work(0);
  charge("b", 2);
  ASSERT_TRUE(first.intent_hash().starts_with("sha256:"));
  first.set_intent_hash(first.intent_hash().substr(7));
  *say.mutable_receipt() = receipt_of(first, R"({"code":0})");
  ASSERT_TRUE(stream->Write(say));
  // With the credit of the first, the second comes.
  bool pushed = false;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(stream->Read(&heard)) << "the credit was not returned";
    pushed |= heard.work().work_size() == 1;
  }
  EXPECT_TRUE(pushed);
  context.TryCancel();
  stream->Finish();
}

TEST_F(Wire, a_stream_begins_with_a_hello) {
  grpc::ClientContext context;
  auto stream = stub->Work(&context);
  v1::FromExecutor say;
  say.set_credit(1);
  stream->Write(say);
  v1::ToExecutor heard;
  EXPECT_FALSE(stream->Read(&heard));
  EXPECT_EQ(stream->Finish().error_code(), grpc::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace pawl::worlds
