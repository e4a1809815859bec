#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "client/channel.h"
#include "client/transport.h"
#include "processes/workers.grpc.pb.h"

namespace pawl::client {

namespace {

// Time that one run may take to connect. kLookAgainMs is the longest single wait for the drain; the
// wait is then repeated.
constexpr int kConnectMs = 2'000;
constexpr int kLookAgainMs = 60'000;
constexpr size_t kResultsInOneMessage = 256;

using Stream = grpc::ClientReaderWriter<v1::FromWorker, v1::ToWorker>;

void fill(v1::Result* out, const JobResult& done) {
  out->set_job_id(done.job_id);
  if (done.outcome) return out->set_variables(*done.outcome);
  // An empty message would mean success.
  out->set_error_message(done.outcome.error().message.empty() ? "failed"
                                                              : done.outcome.error().message);
  out->set_retryable(done.outcome.error().retryable);
}

// A message holds new jobs, confirmations of results, or both.
void take(JobBuffer& buffer, const v1::ToWorker& message) {
  for (const v1::WorkerJob& j : message.jobs().jobs())
    buffer.put({.id = j.id(),
                .type = j.job_type(),
                .instance_id = j.instance_id(),
                .step_id = j.step_id(),
                .retries_left = j.retries_remaining(),
                .variables = j.variables()});
  for (const v1::Settled::One& one : message.settled().results()) {
    if (one.error().empty())
      buffer.confirm(one.job_id());
    else
      buffer.refuse(one.job_id(), one.error() + ": " + one.reason());
  }
}

// Results that are ready together go out in one message.
void send_results(JobBuffer& buffer, Stream& stream, std::stop_token stop) {
  while (true) {
    std::vector<JobResult> results = buffer.results(stop, kResultsInOneMessage);
    if (results.empty()) return;
    v1::FromWorker message;
    for (const JobResult& done : results)
      fill(message.mutable_results()->add_results(), done);
    if (!stream.Write(message)) return;  // the reader sees the end too and calls connection_lost()
  }
}

// How a stream ended, from its status. A server without this service is `unreachable`, so that the
// worker polls instead. `stood` says that the hello was written.
TransportEnd end_of(const grpc::Status& status, bool stood, bool drained) {
  Error why = error_of(status);
  if (why.code == Code::unsupported) return {Ended::unreachable, why};
  if (!why.retryable) return {Ended::refused, why};
  if (drained) return {Ended::drained, {}};
  return {stood ? Ended::broken : Ended::unreachable, why};
}

}  // namespace

struct StreamTransport::Parts {
  TransportOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Workers::Stub> stub;
  bool fresh_token = false;

  v1::FromWorker hello(const JobBuffer& buffer) const {
    v1::FromWorker out;
    v1::Hello* h = out.mutable_hello();
    h->set_worker_id(options.worker_id);
    for (const std::string& type : options.job_types)
      h->add_job_types(type);
    h->set_lease_seconds(options.lease_seconds);
    // Each result gives back the credit of its job by itself, so no further credit is sent.
    h->set_credit(buffer.draining() ? 0 : static_cast<int32_t>(buffer.room()));
    return out;
  }
};

StreamTransport::StreamTransport(const std::string& address, TransportOptions options)
    : parts_(new Parts{std::move(options), open_channel(address), {}}) {
  parts_->stub = v1::Workers::NewStub(parts_->channel);
}

StreamTransport::~StreamTransport() = default;

TransportEnd StreamTransport::run(JobBuffer& buffer) {
  if (!connected(parts_->channel, kConnectMs))
    return {Ended::unreachable, {Code::unavailable, "unreachable", "no gRPC connection", {}, true}};
  grpc::ClientContext context;
  auto named = identify(context, parts_->options.token, std::exchange(parts_->fresh_token, false));
  if (!named) return {named.error().retryable ? Ended::unreachable : Ended::refused, named.error()};
  auto stream = parts_->stub->Work(&context);
  bool stood = stream->Write(parts_->hello(buffer));
  buffer.set_returns_jobs(true);  // at the end of a stream, the server takes unsettled jobs back
  std::atomic<bool> drained{false};
  {
    // A stream may have one writer at a time: `closer` half-closes it after `writer` has ended.
    std::jthread writer([&](std::stop_token stop) { send_results(buffer, *stream, stop); });
    std::jthread closer([&](std::stop_token stop) {
      while (!stop.stop_requested() && !(buffer.draining() && buffer.idle()))
        buffer.wait_while_working(stop, kLookAgainMs);
      if (stop.stop_requested()) return;
      writer.request_stop();
      writer.join();
      drained = true;
      stream->WritesDone();
    });
    v1::ToWorker message;
    // Reading ends when the server ends the stream, also after a half-close by `closer`.
    while (stood && stream->Read(&message))
      take(buffer, message);
    closer.request_stop();
    closer.join();
    writer.request_stop();
  }
  buffer.set_returns_jobs(false);
  buffer.connection_lost();
  grpc::Status status = stream->Finish();
  // An expired token is replaced once; the next run uses a fresh one.
  parts_->fresh_token =
      status.error_code() == grpc::StatusCode::UNAUTHENTICATED && parts_->options.token.renewable();
  if (parts_->fresh_token)
    return {Ended::broken,
            {Code::unauthenticated, "unauthenticated", "the token is no longer good"}};
  return end_of(status, stood, drained);
}

}  // namespace pawl::client
