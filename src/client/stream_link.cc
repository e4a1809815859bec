#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "client/channel.h"
#include "client/link.h"
#include "processes/workers.grpc.pb.h"

namespace pawl::client {

namespace {

constexpr int kConnectMs = 2'000;
constexpr int kLookAgainMs = 60'000;
constexpr size_t kResultsInOneMessage = 256;

using Stream = grpc::ClientReaderWriter<v1::FromWorker, v1::ToWorker>;

void fill(v1::Result* out, const Done& done) {
  out->set_job_id(done.job_id);
  if (done.outcome) return out->set_variables(*done.outcome);
  // An empty message would mean success.
  out->set_error_message(done.outcome.error().message.empty() ? "failed"
                                                              : done.outcome.error().message);
  out->set_retryable(done.outcome.error().retryable);
}

void take(Desk& desk, const v1::ToWorker& message) {
  for (const v1::WorkerJob& j : message.jobs().jobs())
    desk.put({.id = j.id(),
              .type = j.job_type(),
              .instance_id = j.instance_id(),
              .step_id = j.step_id(),
              .retries_left = j.retries_remaining(),
              .variables = j.variables()});
  for (const v1::Settled::One& one : message.settled().results()) {
    if (one.error().empty())
      desk.confirm(one.job_id());
    else
      desk.refuse(one.job_id(), one.error() + ": " + one.reason());
  }
}

void send_results(Desk& desk, Stream& stream, std::stop_token stop) {
  while (true) {
    std::vector<Done> results = desk.results(stop, kResultsInOneMessage);
    if (results.empty()) return;
    v1::FromWorker message;
    for (const Done& done : results)
      fill(message.mutable_results()->add_results(), done);
    if (!stream.Write(message)) return;  // the reader sees the end too, and what was sent is lost()
  }
}

// The status of a stream that ended, as a worker acts on it.
LinkEnd end_of(const grpc::Status& status, bool stood, bool drained) {
  Refusal why{
      .status = 0, .code = std::to_string(status.error_code()), .message = status.error_message()};
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED: return {Ended::unreachable, why};
    case grpc::StatusCode::INVALID_ARGUMENT: why.status = 400; return {Ended::refused, why};
    case grpc::StatusCode::UNAUTHENTICATED: why.status = 401; return {Ended::refused, why};
    case grpc::StatusCode::PERMISSION_DENIED: why.status = 403; return {Ended::refused, why};
    default: break;
  }
  if (drained) return {Ended::drained, {}};
  return {stood ? Ended::broken : Ended::unreachable, why};
}

}  // namespace

struct StreamLink::Parts {
  LinkOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Workers::Stub> stub;
  bool fresh_token = false;

  v1::FromWorker hello(const Desk& desk) const {
    v1::FromWorker out;
    v1::Hello* h = out.mutable_hello();
    h->set_worker_id(options.worker_id);
    for (const std::string& type : options.job_types)
      h->add_job_types(type);
    h->set_lease_seconds(options.lease_seconds);
    h->set_credit(desk.draining() ? 0 : static_cast<int32_t>(desk.room()));
    return out;
  }
};

StreamLink::StreamLink(const std::string& address, LinkOptions options)
    : parts_(new Parts{std::move(options), open_channel(address), {}}) {
  parts_->stub = v1::Workers::NewStub(parts_->channel);
}

StreamLink::~StreamLink() = default;

LinkEnd StreamLink::run(Desk& desk) {
  if (!connected(parts_->channel, kConnectMs))
    return {Ended::unreachable,
            {.status = 0, .code = "unreachable", .message = "no gRPC connection"}};
  grpc::ClientContext context;
  auto named = identify(context, parts_->options.token, std::exchange(parts_->fresh_token, false));
  if (!named)
    return {named.error().unavailable() ? Ended::unreachable : Ended::refused, named.error()};
  auto stream = parts_->stub->Work(&context);
  bool stood = stream->Write(parts_->hello(desk));
  desk.link_gives_back(true);  // what is not settled goes back when the stream ends
  std::atomic<bool> drained{false};
  {
    // Writers one after the other: first whatever results come, at last the half-close.
    std::jthread writer([&](std::stop_token stop) { send_results(desk, *stream, stop); });
    std::jthread closer([&](std::stop_token stop) {
      while (!stop.stop_requested() && !(desk.draining() && desk.idle()))
        desk.wait_while_working(stop, kLookAgainMs);
      if (stop.stop_requested()) return;
      writer.request_stop();
      writer.join();
      drained = true;
      stream->WritesDone();
    });
    v1::ToWorker message;
    while (stood && stream->Read(&message))
      take(desk, message);
    closer.request_stop();
    closer.join();
    writer.request_stop();
  }
  desk.link_gives_back(false);
  desk.lost();
  grpc::Status status = stream->Finish();
  // Once more with a token that is sure to be good.
  parts_->fresh_token =
      status.error_code() == grpc::StatusCode::UNAUTHENTICATED && parts_->options.token.renewable();
  if (parts_->fresh_token)
    return {Ended::broken,
            {.status = 401, .code = "unauthenticated", .message = "the token is no longer good"}};
  return end_of(status, stood, drained);
}

}  // namespace pawl::client
