#pragma once
// pawl.v1.Executors/Work: open work goes out within the executor's credit, frames and receipts come
// back. Each frame and receipt is answered once it is durable.

#include <worlds/executors.grpc.pb.h>
#include "faces/worlds/grpc/convert.h"
#include "faces/worlds/grpc/executors.h"

namespace pawl::worlds {

// The service's verbs for executors, in messages. Errors carry the names that the wire has for
// them.
class ExecutorVerbs {
 public:
  ExecutorVerbs(GrpcExecutors::ServiceOf service, wire::Admit admit)
      : service_(std::move(service)), admit_(std::move(admit)) {}
  template <class T>
  using Done = std::move_only_function<void(Result<T>)>;

  Time now() const { return service_({}).kernel().now(); }
  // The caller of a method, if it may call it now.
  Result<Caller> caller_of(const grpc::ServerContextBase& context, std::string_view method) const;
  Result<wire::AdmittedCall> admit_stream(const grpc::ServerContextBase& context) const {
    return admit_(wire::stream_of(context, "/pawl.v1.Executors/Work"));
  }
  // Each calls `done` exactly once, maybe before it returns and from any thread.
  void poll(const Caller& caller, const v1::PollEffects& in, Done<v1::OpenWork> done) const;
  void send_frame(const Caller& caller, const v1::EffectFrame& in, Done<InputOutcome> done) const;
  void settle(const Caller& caller, const v1::EffectReceipt& in, Done<InputOutcome> done) const;
  Result<void> release(const Caller& caller, const v1::EffectName& in) const;

 private:
  const GrpcExecutors::ServiceOf service_;
  wire::Admit admit_;
};

// The stream owns itself until gRPC is done with it. `verbs` must outlive it.
grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* open_stream(
    const ExecutorVerbs& verbs, const grpc::ServerContextBase& context);

}  // namespace pawl::worlds
