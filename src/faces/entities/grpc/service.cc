#include "faces/entities/grpc/service.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "entities/cloud_events_service.grpc.pb.h"
#include "faces/entities/grpc/exchange.h"
#include "faces/entities/grpc/member_stream.h"

namespace pawl::entities {

namespace {

// Empty when absent.
std::string metadata(const grpc::CallbackServerContext& context, const char* key) {
  auto it = context.client_metadata().find(key);
  return it == context.client_metadata().end() ? std::string()
                                               : std::string(it->second.data(), it->second.size());
}

grpc::Status invalid(const std::string& why) {
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, why);
}

grpc::Status not_admitted(const Error& error) {
  if (error.code == Code::denied)
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, error.message);
  return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "authentication is required");
}

std::string_view name_of(GrpcMethod method) {
  switch (method) {
    case GrpcMethod::model_manage: return "entityModelManage";
    case GrpcMethod::manage: return "entityManage";
    case GrpcMethod::manage_collection: return "entityManageCollection";
    case GrpcMethod::search: return "entitySearch";
    case GrpcMethod::search_collection: return "entitySearchCollection";
  }
  CHECK(false);
}

// Writes the replies one after the other, ends the call and deletes itself.
class Replies final : public grpc::ServerWriteReactor<CloudEvent> {
 public:
  void finish_with(grpc::Status status) { Finish(std::move(status)); }
  void begin(std::vector<CloudEvent> events) {
    events_ = std::move(events);
    next();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    next();
  }
  void OnDone() override { delete this; }

 private:
  void next() {
    if (at_ == events_.size()) return Finish(grpc::Status::OK);
    StartWrite(&events_[at_++]);
  }
  std::vector<CloudEvent> events_;
  size_t at_ = 0;
};

// Every method carries CloudEvents; the type of the event says what it asks for (see exchange.cc).
class CloudEvents final : public GrpcService,
                          public org::cyoda::cloud::api::grpc::CloudEventsService::CallbackService {
 public:
  CloudEvents(Face& face, wire::Admit admit) : face_(face), admit_(std::move(admit)) {}
  ::grpc::Service* service() override { return this; }

  MemberReactor* startStreaming(grpc::CallbackServerContext* context) override {
    auto caller = caller_of(*context, "startStreaming", {});
    if (!caller) return refuse_member_stream(not_admitted(caller.error()));
    return start_member_stream(face_, *caller);
  }

  grpc::ServerUnaryReactor* entityModelManage(grpc::CallbackServerContext* c, const CloudEvent* in,
                                              CloudEvent* out) override {
    return unary(GrpcMethod::model_manage, c, in, out);
  }
  grpc::ServerUnaryReactor* entityManage(grpc::CallbackServerContext* c, const CloudEvent* in,
                                         CloudEvent* out) override {
    return unary(GrpcMethod::manage, c, in, out);
  }
  grpc::ServerUnaryReactor* entitySearch(grpc::CallbackServerContext* c, const CloudEvent* in,
                                         CloudEvent* out) override {
    return unary(GrpcMethod::search, c, in, out);
  }
  grpc::ServerWriteReactor<CloudEvent>* entityManageCollection(grpc::CallbackServerContext* c,
                                                               const CloudEvent* in) override {
    return streamed(GrpcMethod::manage_collection, c, in);
  }
  grpc::ServerWriteReactor<CloudEvent>* entitySearchCollection(grpc::CallbackServerContext* c,
                                                               const CloudEvent* in) override {
    return streamed(GrpcMethod::search_collection, c, in);
  }

 private:
  // The caller, if it may send this type of event by this method. Only the method counts when the
  // type is empty.
  Result<Caller> caller_of(const grpc::CallbackServerContext& context, std::string_view method,
                           std::string_view event) {
    std::string operation = "/org.cyoda.cloud.api.grpc.CloudEventsService/";
    operation += method;
    if (!event.empty()) operation.append(" ").append(event);
    return admit_(metadata(context, "authorization"), operation);
  }

  // Starts the exchange, or returns the reason why it cannot start.
  // Refusals here are gRPC statuses; everything later is an event with success false, as in the
  // original.
  grpc::Status begin(GrpcMethod call, const grpc::CallbackServerContext& context,
                     const CloudEvent& in, GrpcExchange::Finished finished) {
    const EventRow* row = find_event(call, in.type());
    auto caller = caller_of(context, name_of(call), row ? row->request : std::string_view());
    if (!caller) return not_admitted(caller.error());
    if (!row) return invalid(fmt::format("this call does not take events of type '{}'", in.type()));
    auto payload = payload_of(in);
    if (!payload) return invalid(payload.error().message);
    if (!payload->is_object()) return invalid("the payload must be a JSON object");
    const json::Value* list = payload->find("payloads");
    // Empty collections are INVALID_ARGUMENT in the original, before the event is handled.
    if (in.type().ends_with("CollectionRequest") &&
        (!list || !list->is_array() || list->array().empty()))
      return invalid("the array of 'payloads' is empty");
    if (in.ByteSizeLong() > limits::kBodyBytes) return invalid("the event is larger than 10 MiB");
    RequestContext request{.caller = *std::move(caller), .token = metadata(context, "tx-token")};
    run_event(*row, std::make_shared<GrpcExchange>(face_, std::move(request), in.id(),
                                                   *std::move(payload), std::move(finished)));
    return grpc::Status::OK;
  }

  grpc::ServerUnaryReactor* unary(GrpcMethod call, grpc::CallbackServerContext* context,
                                  const CloudEvent* in, CloudEvent* out) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    grpc::Status status =
        begin(call, *context, *in, [this, reactor, out](std::vector<ReplyEvent> replies) {
          // Unary events add exactly one reply.
          fill_event(*out, new_id(), std::move(replies.front().type),
                     std::move(replies.front().payload));
          reactor->Finish(grpc::Status::OK);
        });
    if (!status.ok()) reactor->Finish(status);
    return reactor;
  }

  grpc::ServerWriteReactor<CloudEvent>* streamed(GrpcMethod call,
                                                 grpc::CallbackServerContext* context,
                                                 const CloudEvent* in) {
    auto* replies = new Replies();
    grpc::Status status = begin(call, *context, *in, [this, replies](std::vector<ReplyEvent> all) {
      std::vector<CloudEvent> events(all.size());
      for (size_t i = 0; i < all.size(); ++i)
        fill_event(events[i], new_id(), std::move(all[i].type), std::move(all[i].payload));
      replies->begin(std::move(events));
    });
    if (!status.ok()) replies->finish_with(status);
    return replies;
  }

  std::string new_id() {
    return dice_from(fmt::format("{}.{}", face_.service().kernel().now(), count_.fetch_add(1)))
        .uuid4();
  }

  Face& face_;
  wire::Admit admit_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace

std::unique_ptr<GrpcService> make_grpc_service(Face& face, wire::Admit admit) {
  return std::make_unique<CloudEvents>(face, std::move(admit));
}

}  // namespace pawl::entities
