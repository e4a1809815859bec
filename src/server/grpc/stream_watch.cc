#include "server/grpc/stream_watch.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include "runtime/monotonic.h"

namespace pawl::server {
namespace {

// Ends the call at once, whatever waits to be written. The status does not wait behind messages
// that the client does not read.
void cancel(grpc::ServerContextBase& context, grpc_status_code status, const char* why) {
  grpc_call_cancel_with_status(context.c_call(), status, why, nullptr);
}

}  // namespace

// One stream. It lives as long as the call.
class StreamWatch final : public grpc::experimental::Interceptor {
 public:
  StreamWatch(OpenStreams& streams, grpc::ServerContextBase& context)
      : streams_(streams), context_(context) {}
  ~StreamWatch() override {
    if (token_) streams_.authenticator_->streams().remove(token_);
    std::lock_guard lock(streams_.mutex_);
    streams_.watches_.erase(this);
  }
  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    using Hook = grpc::experimental::InterceptionHookPoints;
    if (batch->QueryInterceptionHookPoint(Hook::POST_RECV_INITIAL_METADATA)) begin(*batch);
    if (batch->QueryInterceptionHookPoint(Hook::PRE_SEND_MESSAGE))
      writing_since_ms_ = monotonic_ms();
    if (batch->QueryInterceptionHookPoint(Hook::POST_SEND_MESSAGE)) writing_since_ms_ = 0;
    batch->Proceed();
  }
  // Needs the lock of the streams.
  void end_if_stalled(int64_t now_ms, int64_t stalled_ms) {
    const int64_t since = writing_since_ms_;
    if (since == 0 || now_ms - since <= stalled_ms) return;
    writing_since_ms_ = 0;
    cancel(context_, GRPC_STATUS_RESOURCE_EXHAUSTED,
           "the stream was ended because its messages are not being read");
  }

 private:
  void begin(grpc::experimental::InterceptorBatchMethods& batch) {
    {
      std::lock_guard lock(streams_.mutex_);
      streams_.watches_.insert(this);
    }
    auto* metadata = batch.GetRecvInitialMetadata();
    if (!streams_.authenticator_ || !metadata || token_) return;
    auto found = metadata->find("authorization");
    if (found == metadata->end()) return;
    // A token that is refused is left to the service, which words the refusal.
    auto admitted = streams_.authenticator_->admit({found->second.data(), found->second.size()});
    if (!admitted || admitted->until == INT64_MAX) return;
    token_ = streams_.authenticator_->streams().add(
        admitted->client, admitted->until, [&context = context_] {
          cancel(context, GRPC_STATUS_UNAUTHENTICATED,
                 "the token of this stream is not valid any more");
        });
  }

  OpenStreams& streams_;
  grpc::ServerContextBase& context_;
  uint64_t token_ = 0;                        // in the list of the authenticator; 0: not there
  std::atomic<int64_t> writing_since_ms_{0};  // 0: no message is being written
};

namespace {

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(OpenStreams& streams) : streams_(streams) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    using Type = grpc::experimental::ServerRpcInfo::Type;
    const bool stream =
        info->type() == Type::BIDI_STREAMING || info->type() == Type::SERVER_STREAMING;
    return stream ? new StreamWatch(streams_, *info->server_context()) : nullptr;
  }

 private:
  OpenStreams& streams_;
};

}  // namespace

void OpenStreams::end_stalled(int64_t stalled_ms) {
  const int64_t now = monotonic_ms();
  std::lock_guard lock(mutex_);
  for (StreamWatch* watch : watches_)
    watch->end_if_stalled(now, stalled_ms);
}

size_t OpenStreams::size() const {
  std::lock_guard lock(mutex_);
  return watches_.size();
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> watch_streams(
    OpenStreams& streams) {
  return std::make_unique<Factory>(streams);
}

}  // namespace pawl::server
