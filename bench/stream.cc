#include "bench/stream.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "entities/cloud_events_service.grpc.pb.h"

namespace pawl::bench {

namespace {

using Event = io::cloudevents::v1::CloudEvent;
using Api = org::cyoda::cloud::api::grpc::CloudEventsService;

// The text of a string member that holds no escapes.
std::string_view text_member(const std::string& json, std::string_view name) {
  size_t at = json.find(name);
  if (at == std::string::npos) return {};
  at += name.size();
  return std::string_view(json).substr(at, json.find('"', at) - at);
}

Event event(std::string type, std::string payload) {
  Event out;
  out.set_id("bench");
  out.set_source("bench");
  out.set_spec_version("1.0");
  out.set_type(std::move(type));
  out.set_text_data(std::move(payload));
  return out;
}

}  // namespace

// A hand-written answer and no JSON parser: the member must cost as little as possible.
struct EchoMember::Running {
  std::unique_ptr<Api::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<Event, Event>> stream;
  std::thread thread;

  void loop() {
    Event in;
    while (stream->Read(&in)) {
      if (in.type() != "EntityProcessorCalculationRequest") continue;
      std::string_view request = text_member(in.text_data(), "\"requestId\":\""),
                       entity = text_member(in.text_data(), "\"entityId\":\"");
      std::string body = "{\"id\":\"x\",\"requestId\":\"";
      body.append(request)
          .append("\",\"entityId\":\"")
          .append(entity)
          .append("\",\"success\":true}");
      if (!stream->Write(event("EntityProcessorCalculationResponse", std::move(body)))) return;
    }
  }
};

EchoMember::EchoMember(const std::string& address, const std::string& tag)
    : running_(std::make_unique<Running>()) {
  running_->stub = Api::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  running_->stream = running_->stub->startStreaming(&running_->context);
  CHECK(running_->stream->Write(
      event("CalculationMemberJoinEvent", "{\"id\":\"x\",\"tags\":[\"" + tag + "\"]}")));
  // The greeting means that the member is joined and will get calls.
  Event greeted;
  CHECK(running_->stream->Read(&greeted));
  running_->thread = std::thread([this] { running_->loop(); });
}

EchoMember::~EchoMember() {
  running_->context.TryCancel();
  running_->thread.join();
}

// The least that a server with such a stream does: one message out for each that comes in.
struct BareStream::Bare final : Api::CallbackService {
  using Reactor = grpc::ServerBidiReactor<Event, Event>;

  class Stream final : public Reactor {
   public:
    explicit Stream(Bare& bare) : bare_(bare) { StartRead(&in_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      std::unique_lock lock(mutex_);
      // The first message is the greeting; each later one frees a place in the window.
      size_t fresh = std::exchange(greeted_, true) ? 1 : bare_.window + 1;
      bare_.count += fresh == 1;
      waiting_ += fresh;
      if (!writing_) write();
      lock.unlock();
      StartRead(&in_);
    }
    void OnWriteDone(bool ok) override {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (ok && waiting_) write();
    }
    void OnDone() override { delete this; }

   private:
    void write() {
      writing_ = true;
      --waiting_;
      StartWrite(&bare_.out);
    }
    Bare& bare_;
    Event in_;
    std::mutex mutex_;
    bool greeted_ = false, writing_ = false;
    size_t waiting_ = 0;
  };

  Bare(size_t w, std::string payload)
      : window(w), out(event("EntityProcessorCalculationRequest", std::move(payload))) {}
  Reactor* startStreaming(grpc::CallbackServerContext*) override { return new Stream(*this); }

  size_t window;
  const Event out;
  std::atomic<uint64_t> count{0};
};

BareStream::BareStream(size_t window, std::string payload)
    : bare_(std::make_unique<Bare>(window, std::move(payload))) {}
BareStream::~BareStream() = default;
grpc::Service* BareStream::service() { return bare_.get(); }
uint64_t BareStream::round_trips() const { return bare_->count.load(); }

}  // namespace pawl::bench
