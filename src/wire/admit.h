#pragma once
// The check at the door of a gRPC call: who calls, and whether that caller may call it now. The
// server passes it to the faces, so that no face decides this for itself.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/caller.h"
#include "base/result.h"

namespace pawl::wire {

struct Call {
  std::string_view authorization;  // the metadata of that name; empty when absent
  // The name of the operation in the server's table: the full name of the method,
  // "/pawl.v1.Workers/Work".
  std::string_view operation;
  std::string_view authority;           // the host that the client addresses; empty when absent
  std::function<std::string()> peer{};  // the address of the client, as gRPC writes it
  bool stream = false;                  // the call may stay open
};

// The call of a grpc::CallbackServerContext. `operation` must live as long as the answer.
template <class Context>
Call call_of(const Context& context, std::string_view operation) {
  auto it = context.client_metadata().find("authorization");
  const auto authority = context.ExperimentalGetAuthority();
  return {.authorization = it == context.client_metadata().end()
                               ? std::string_view()
                               : std::string_view(it->second.data(), it->second.size()),
          .operation = operation,
          .authority = {authority.data(), authority.size()},
          .peer = [&context] { return context.peer(); }};
}
template <class Context>
Call stream_of(const Context& context, std::string_view operation) {
  Call call = call_of(context, operation);
  call.stream = true;
  return call;
}

// Processor time that gRPC itself spends on a unary call, and on a message of a stream, which
// nothing of ours can pace (docs/measurements/fairness.md). For TransportCost.
inline constexpr int64_t kGrpcCallUs = 100;
inline constexpr int64_t kGrpcMessageUs = 20;

struct AdmittedCall {
  Caller caller;
  // Of a stream: its place among the streams of the tenant. The stream keeps it until it ends.
  std::shared_ptr<void> seat{};
};

// Returns the caller, or Code::unauthenticated, Code::denied or Code::exhausted.
using Admit = std::function<Result<AdmittedCall>(const Call& call)>;

}  // namespace pawl::wire
