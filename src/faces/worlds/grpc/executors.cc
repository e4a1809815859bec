#include "faces/worlds/grpc/executors.h"

#include "faces/worlds/grpc/work_stream.h"

namespace pawl::worlds {

void Verbs::post(const Caller& caller, Said said, Heard done) const {
  for (const wire::Route& route : routes) {
    if (route.method != "POST" || route.pattern != said.route) continue;
    wire::Request request;
    request.method = route.method;
    request.path = said.route;
    request.caller = caller;
    request.body = json::print(json::Value(std::move(said.body)));
    if (!said.world.empty())
      request.params.push_back(std::move(said.world));
    else if (route.pattern.find('{') != std::string::npos)
      return done(fail(Code::invalid, "invalid_request", "world_id is required"));
    return route.handle(
        std::move(request),
        [done = std::move(done)](wire::Response response) mutable { done(heard(response)); });
  }
  done(fail(Code::unsupported, "not_implemented", "this server has no route " + said.route));
}

Result<Caller> Verbs::caller_of(const grpc::ServerContextBase& context) const {
  auto it = context.client_metadata().find("authorization");
  return authenticate(it == context.client_metadata().end()
                          ? std::string_view()
                          : std::string_view(it->second.data(), it->second.size()));
}

// What came of a frame or a receipt.
template <class Out>
static auto outcome(Out* out) {
  return [out](const json::Value& answer) {
    out->set_status(std::string(answer.string_or("status")));
    out->set_height(height_of(answer));
  };
}

class GrpcExecutors::Calls final : public v1::Executors::CallbackService {
 public:
  Calls(std::vector<wire::Route> routes, Authenticate authenticate)
      : verbs_{std::move(routes), std::move(authenticate)} {}
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Poll(Context* context, const v1::PollEffects* in, v1::OpenWork* out) override {
    return call(context, say(*in), [out](const json::Value& answer) { fill(out, answer); });
  }
  Reactor* SendFrame(Context* context, const v1::EffectFrame* in, v1::FrameTaken* out) override {
    return call(context, say(*in), outcome(out));
  }
  Reactor* Settle(Context* context, const v1::EffectReceipt* in, v1::EffectSettled* out) override {
    return call(context, say(*in), outcome(out));
  }
  Reactor* Release(Context* context, const v1::EffectName* in, v1::EffectReleased*) override {
    return call(context, say(*in), [](const json::Value&) {});
  }
  grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* Work(Context* context) override {
    return open_stream(verbs_, *context);
  }

 private:
  template <class Filled>
  Reactor* call(Context* context, Result<Said> said, Filled filled) {
    Reactor* reactor = context->DefaultReactor();
    auto caller = said ? verbs_.caller_of(*context) : Result<Caller>(fail(said.error()));
    if (!caller) {
      reactor->Finish(status_of(caller.error()));
      return reactor;
    }
    verbs_.post(*caller, std::move(*said), [reactor, filled](Result<json::Value> answer) {
      if (answer) filled(*answer);
      reactor->Finish(answer ? grpc::Status::OK : status_of(answer.error()));
    });
    return reactor;
  }

  const Verbs verbs_;
};

GrpcExecutors::GrpcExecutors(std::vector<wire::Route> routes, Authenticate authenticate)
    : calls_(std::make_unique<Calls>(std::move(routes), std::move(authenticate))) {}
GrpcExecutors::~GrpcExecutors() = default;
grpc::Service* GrpcExecutors::service() { return calls_.get(); }

}  // namespace pawl::worlds
