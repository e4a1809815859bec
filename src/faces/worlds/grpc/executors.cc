#include "faces/worlds/grpc/executors.h"

#include "faces/worlds/grpc/work_stream.h"

namespace pawl::worlds {
namespace {

// The reason becomes the wire's name of the error, as the HTTP routes say it.
Error named(Error error) {
  error.reason = std::string(error_name(error));
  return error;
}

template <class T>
Result<T> named(Result<T> result) {
  if (!result) return fail(named(std::move(result.error())));
  return result;
}

// Worlds are looked up in the caller's tenant only.
Result<WorldId> world_of(const Caller& caller, const std::string& world) {
  if (world.empty()) return fail(Code::invalid, "invalid_request", "world_id is required");
  return WorldId{caller.tenant, world};
}

// FrameTaken and EffectSettled have the same two fields.
template <class Out>
auto outcome_into(Out* out) {
  return [out](const InputOutcome& outcome) {
    out->set_status(outcome.status);
    out->set_height(outcome.height);
  };
}

}  // namespace

Result<Caller> ExecutorVerbs::caller_of(const grpc::ServerContextBase& context,
                                        std::string_view method) const {
  std::string operation = "/pawl.v1.Executors/";
  operation += method;
  TRY(wire::AdmittedCall admitted, admit_(wire::call_of(context, operation)));
  return std::move(admitted.caller);
}

void ExecutorVerbs::poll(const Caller& caller, const v1::PollEffects& in,
                         Done<v1::OpenWork> done) const {
  // A refusal comes from the call itself, an answer later: only one of them is given.
  auto shared = std::make_shared<Done<v1::OpenWork>>(std::move(done));
  auto waiting =
      service_(caller.tenant).poll(caller, work_request(in), [shared](std::vector<OpenWork> work) {
        (*shared)(open_work_message(work));
      });
  if (!waiting) (*shared)(fail(named(std::move(waiting.error()))));
}

void ExecutorVerbs::send_frame(const Caller& caller, const v1::EffectFrame& in,
                               Done<InputOutcome> done) const {
  Service& service = service_(caller.tenant);
  auto frame = [&]() -> Result<SendFrame> {
    TRY(WorldId world_id, world_of(caller, in.world_id()));
    TRY_OK(service.world_ref(world_id));
    TRY(StreamFrame out, stream_frame(in));
    return SendFrame{world_id.world, std::move(out)};
  }();
  if (!frame) return done(fail(named(std::move(frame.error()))));
  service.send_frame(caller, *frame,
                     [done = std::move(done)](Result<InputOutcome> outcome) mutable {
                       done(named(std::move(outcome)));
                     });
}

void ExecutorVerbs::settle(const Caller& caller, const v1::EffectReceipt& in,
                           Done<InputOutcome> done) const {
  Service& service = service_(caller.tenant);
  // Each line runs only if the one before succeeded; `open` has the first error.
  auto given = given_receipt(in);
  auto world_id = given ? world_of(caller, in.world_id()) : Result<WorldId>(fail(given.error()));
  auto world = world_id ? service.world_ref(*world_id) : Result<WorldRef>(fail(world_id.error()));
  auto intent = world ? parse_intent(in.intent_hash()) : Result<Bytes>(fail(world.error()));
  auto open = intent ? service.find_intent(*world, *intent)
                     : Result<std::optional<PendingIntent>>(fail(intent.error()));
  if (!open) return done(fail(named(std::move(open.error()))));
  // A repeated receipt needs no turn.
  if (!*open) return done(named(service.settled_before(*world_id, *intent)));
  auto payload = service.receipt_payload(*world, **open, given->payload);
  if (!payload) return done(fail(named(std::move(payload.error()))));
  given->receipt.intent = *intent;
  given->receipt.payload = std::move(*payload);
  service.settle(caller, *world, std::move(given->receipt),
                 [done = std::move(done)](Result<InputOutcome> outcome) mutable {
                   done(named(std::move(outcome)));
                 });
}

Result<void> ExecutorVerbs::release(const Caller& caller, const v1::EffectName& in) const {
  auto intent = parse_intent(in.intent_hash());
  if (!intent) return fail(named(std::move(intent.error())));
  service_(caller.tenant).release({caller.tenant, in.world_id()}, *intent);
  return {};
}

class GrpcExecutors::Calls final : public v1::Executors::CallbackService {
 public:
  Calls(ServiceOf service, wire::Admit admit) : verbs_(std::move(service), std::move(admit)) {}
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Poll(Context* context, const v1::PollEffects* in, v1::OpenWork* out) override {
    return call<v1::OpenWork>(context, "Poll", &ExecutorVerbs::poll, *in,
                              [out](v1::OpenWork& work) { out->Swap(&work); });
  }
  Reactor* SendFrame(Context* context, const v1::EffectFrame* in, v1::FrameTaken* out) override {
    return call<InputOutcome>(context, "SendFrame", &ExecutorVerbs::send_frame, *in,
                              outcome_into(out));
  }
  Reactor* Settle(Context* context, const v1::EffectReceipt* in, v1::EffectSettled* out) override {
    return call<InputOutcome>(context, "Settle", &ExecutorVerbs::settle, *in, outcome_into(out));
  }
  Reactor* Release(Context* context, const v1::EffectName* in, v1::EffectReleased*) override {
    Reactor* reactor = context->DefaultReactor();
    auto caller = verbs_.caller_of(*context, "Release");
    auto released = caller ? verbs_.release(*caller, *in) : Result<void>(fail(caller.error()));
    reactor->Finish(released ? grpc::Status::OK : status_of(released.error()));
    return reactor;
  }
  grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* Work(Context* context) override {
    return open_stream(verbs_, *context);
  }

 private:
  template <class Outcome, class In, class Fill>
  // `in` and the fields that `fill` writes belong to gRPC and live until Finish().
  Reactor* call(Context* context, std::string_view method,
                void (ExecutorVerbs::*verb)(const Caller&, const In&, ExecutorVerbs::Done<Outcome>)
                    const,
                const In& in, Fill fill) {
    Reactor* reactor = context->DefaultReactor();
    auto caller = verbs_.caller_of(*context, method);
    if (!caller) {
      reactor->Finish(status_of(caller.error()));
      return reactor;
    }
    TransportCost cost(wire::kGrpcCallUs);
    (verbs_.*verb)(*caller, in, [reactor, fill](Result<Outcome> answer) {
      if (answer) fill(*answer);
      reactor->Finish(answer ? grpc::Status::OK : status_of(answer.error()));
    });
    return reactor;
  }

  const ExecutorVerbs verbs_;
};

GrpcExecutors::GrpcExecutors(ServiceOf service, wire::Admit admit)
    : calls_(std::make_unique<Calls>(std::move(service), std::move(admit))) {}
GrpcExecutors::~GrpcExecutors() = default;
grpc::Service* GrpcExecutors::service() { return calls_.get(); }

}  // namespace pawl::worlds
