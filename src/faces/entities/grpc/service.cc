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
  if (error.code == Code::exhausted || error.code == Code::unavailable)
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, error.message);
  return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "authentication is required");
}

// A large event is held several times: the message, the parsed document, the input and the frame.
constexpr size_t kBodyCopies = 4;
// Smaller events are not counted: the number of calls bounds them.
constexpr size_t kUncountedBytes = 1024;

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
  // Fills the next event; returns false when there is none.
  using Next = std::move_only_function<bool(CloudEvent&)>;
  void finish_with(grpc::Status status) { Finish(std::move(status)); }
  // The events that are there already are counted until the call has ended: the client may read
  // them slowly.
  void begin(Next next, size_t bytes, MemoryCharge charge) {
    charge_ = std::move(charge);
    if (!charge_.resize(bytes))
      return Finish(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 "unread answers use up the server's memory for them, or the "
                                 "tenant's share of it; ask for fewer entities, or retry later"));
    next_ = std::move(next);
    write();
  }
  Service::ClientLeft left() const { return left_; }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    write();
  }
  void OnCancel() override { *left_ = true; }
  void OnDone() override { delete this; }

 private:
  void write() {
    event_.Clear();
    if (!next_(event_)) return Finish(grpc::Status::OK);
    StartWrite(&event_);
  }
  // Shared with the search, which may run on after the call is over.
  const std::shared_ptr<std::atomic<bool>> left_ = std::make_shared<std::atomic<bool>>(false);
  MemoryCharge charge_;  // of the events that next_ holds
  Next next_;
  CloudEvent event_;
};

// Every method carries CloudEvents; the type of the event says what it asks for (see exchange.cc).
class CloudEvents final : public GrpcService,
                          public org::cyoda::cloud::api::grpc::CloudEventsService::CallbackService {
 public:
  CloudEvents(FaceOf face, wire::Admit admit) : face_(std::move(face)), admit_(std::move(admit)) {}
  ::grpc::Service* service() override { return this; }

  MemberReactor* startStreaming(grpc::CallbackServerContext* context) override {
    auto admitted = admit_(wire::stream_of(*context, operation_of("startStreaming", {})));
    if (!admitted) return refuse_member_stream(not_admitted(admitted.error()));
    Face& face = face_(admitted->caller.tenant);
    return start_member_stream(face, *std::move(admitted));
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
  // The operation of an event that a method brings; only the method counts when the type is empty.
  static std::string operation_of(std::string_view method, std::string_view event) {
    std::string operation = "/org.cyoda.cloud.api.grpc.CloudEventsService/";
    operation += method;
    if (!event.empty()) operation.append(" ").append(event);
    return operation;
  }

  using Finished = std::move_only_function<void(const std::string& tenant, std::vector<ReplyEvent>,
                                                GrpcExchange::More)>;
  // Starts the exchange, or returns the reason why it cannot start.
  // Refusals here are gRPC statuses; everything later is an event with success false, as in the
  // original.
  grpc::Status begin(GrpcMethod call, const grpc::CallbackServerContext& context,
                     const CloudEvent& in, entities::Service::ClientLeft left, Finished finished) {
    const EventRow* row = find_event(call, in.type());
    const std::string operation =
        operation_of(name_of(call), row ? row->request : std::string_view());
    auto admitted = admit_(wire::call_of(context, operation));
    if (!admitted) return not_admitted(admitted.error());
    if (!row) return invalid(fmt::format("this call does not take events of type '{}'", in.type()));
    auto payload = payload_of(in);
    if (!payload) return invalid(payload.error().message);
    if (!payload->is_object()) return invalid("the payload must be a JSON object");
    const json::Value* list = payload->find("payloads");
    // Empty collections are INVALID_ARGUMENT in the original, before the event is handled.
    if (in.type().ends_with("CollectionRequest") &&
        (!list || !list->is_array() || list->array().empty()))
      return invalid("the array of 'payloads' is empty");
    if (!row->required_argument.empty()) {
      const json::Value* given = payload->find(row->required_argument);
      if (!given || given->is_null())
        return invalid(fmt::format("{} needs a '{}'", row->request, row->required_argument));
    }
    const size_t size = in.ByteSizeLong();
    if (size > limits::kBodyBytes) return invalid("the event is larger than 10 MiB");
    Face& face = face_(admitted->caller.tenant);
    // Counted until the answer, as the body of an HTTP request is.
    MemoryCharge charge;
    if (size > kUncountedBytes)
      charge = face.service().charge(MemoryUse::bodies, admitted->caller.tenant);
    if (!charge.resize(size * kBodyCopies))
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                          "events use up the server's memory for them, or the tenant's share of "
                          "it; retry later, or send less at once");
    RequestContext request{.caller = std::move(admitted->caller),
                           .token = metadata(context, "tx-token")};
    auto done = [tenant = request.caller.tenant, charge = std::move(charge),
                 finished = std::move(finished)](std::vector<ReplyEvent> replies,
                                                 GrpcExchange::More more) mutable {
      charge.clear();
      finished(tenant, std::move(replies), std::move(more));
    };
    auto exchange = std::make_shared<GrpcExchange>(face, std::move(request), in.id(),
                                                   *std::move(payload), std::move(done));
    exchange->left = std::move(left);
    TransportCost cost(wire::kGrpcCallUs);
    run_event(*row, std::move(exchange));
    return grpc::Status::OK;
  }

  grpc::ServerUnaryReactor* unary(GrpcMethod call, grpc::CallbackServerContext* context,
                                  const CloudEvent* in, CloudEvent* out) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    grpc::Status status =
        begin(call, *context, *in, nullptr,
              [this, reactor, out](const std::string&, std::vector<ReplyEvent> replies,
                                   const GrpcExchange::More&) {
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
    auto finished = [this, replies](const std::string& tenant, std::vector<ReplyEvent> all,
                                    GrpcExchange::More more) {
      size_t bytes = 0;
      for (const ReplyEvent& event : all)
        bytes += event.payload.size();
      Replies::Next next = [this, all = std::move(all), more = std::move(more),
                            at = size_t{0}](CloudEvent& event) mutable {
        std::optional<ReplyEvent> next_event;
        if (at < all.size())
          next_event = std::move(all[at++]);
        else if (more)
          next_event = more();
        if (next_event)
          fill_event(event, new_id(), std::move(next_event->type), std::move(next_event->payload));
        return next_event.has_value();
      };
      replies->begin(std::move(next), bytes,
                     face_(tenant).service().charge(MemoryUse::answers, tenant));
    };
    grpc::Status status = begin(call, *context, *in, replies->left(), std::move(finished));
    if (!status.ok()) replies->finish_with(status);
    return replies;
  }

  std::string new_id() {
    return dice_from(fmt::format("{}.{}", face_({}).service().kernel().now(), count_.fetch_add(1)))
        .uuid4();
  }

  const FaceOf face_;
  wire::Admit admit_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace

std::unique_ptr<GrpcService> make_grpc_service(FaceOf face, wire::Admit admit) {
  return std::make_unique<CloudEvents>(std::move(face), std::move(admit));
}

}  // namespace pawl::entities
