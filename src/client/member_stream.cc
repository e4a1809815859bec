#include "client/member_stream.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <thread>

#include "base/result.h"
#include "client/channel.h"
#include "client/random.h"
#include "entities/cloud_events_service.grpc.pb.h"
#include "json/text.h"

namespace pawl::client {

namespace {

using io::cloudevents::v1::CloudEvent;
using Service = org::cyoda::cloud::api::grpc::CloudEventsService;

// Time limit of one request outside the stream, and of the server to end a stream that this side
// has closed.
constexpr int kAskMs = 30'000;
constexpr int kLeaveMs = 5'000;
constexpr std::string_view kJoin = "CalculationMemberJoinEvent",
                           kGreet = "CalculationMemberGreetEvent",
                           kAlive = "CalculationMemberKeepAliveEvent";

// The envelope of CloudEvents 1.0.
CloudEvent wrap(std::string_view type, std::string_view text) {
  CloudEvent out;
  out.set_id(fresh_key());
  out.set_source("pawl-member");
  out.set_spec_version("1.0");
  out.set_type(std::string(type));
  out.set_text_data(std::string(text));
  return out;
}

std::string text_of(const CloudEvent& e) {
  return e.has_binary_data() ? e.binary_data() : e.text_data();
}

MemberStream::Event unwrap(const CloudEvent& e) {
  MemberStream::Event out{e.type(), text_of(e), {}};
  if (auto token = e.attributes().find("cyodatxtoken"); token != e.attributes().end())
    out.tx_token = token->second.ce_string();
  return out;
}

// The rpc for each type of request.
enum class Rpc { manage, manage_many, search, search_many, model };
struct RequestRow {
  std::string_view type;
  Rpc rpc;
};
constexpr RequestRow kRequests[] = {
    {"EntityCreateRequest", Rpc::manage},
    {"EntityUpdateRequest", Rpc::manage},
    {"EntityPatchRequest", Rpc::manage},
    {"EntityTransitionRequest", Rpc::manage},
    {"EntityDeleteRequest", Rpc::manage},
    {"EntityCreateCollectionRequest", Rpc::manage_many},
    {"EntityUpdateCollectionRequest", Rpc::manage_many},
    {"EntityDeleteAllRequest", Rpc::manage_many},
    {"EntityGetRequest", Rpc::search},
    {"EntitySnapshotSearchRequest", Rpc::search},
    {"SnapshotGetStatusRequest", Rpc::search},
    {"SnapshotCancelRequest", Rpc::search},
    {"EntityGetAllRequest", Rpc::search_many},
    {"EntitySearchRequest", Rpc::search_many},
    {"SnapshotGetRequest", Rpc::search_many},
    {"EntityStatsGetRequest", Rpc::search_many},
    {"EntityStatsByStateGetRequest", Rpc::search_many},
    {"EntityChangesMetadataGetRequest", Rpc::search_many},
    {"EntityModelImportRequest", Rpc::model},
    {"EntityModelExportRequest", Rpc::model},
    {"EntityModelTransitionRequest", Rpc::model},
    {"EntityModelDeleteRequest", Rpc::model},
    {"EntityModelGetAllRequest", Rpc::model},
    {"EntityModelSetUniqueKeysRequest", Rpc::model},
};

// An answer with "success": false is an error.
Result<void> accepted(const std::string& text) {
  auto value = json::parse(text, {.max_bytes = 1u << 30});
  const json::Value* success = value ? value->find("success") : nullptr;
  if (!success || !success->is_bool() || success->boolean()) return {};
  const json::Value* error = value->find("error");
  Error out{Code::invalid, "refused", "the server refused"};
  if (error) {
    out.reason = error->string_or("code", out.reason);
    out.message = error->string_or("message", out.message);
  }
  return std::unexpected(std::move(out));
}

// All events of the answer as one JSON array. Reading goes on after a refusal, because the status
// of the call comes after its last event.
Result<std::string> gather(grpc::ClientReader<CloudEvent>& reader) {
  std::string all = "[";
  CloudEvent e;
  Result<void> good;
  while (reader.Read(&e)) {
    if (all.size() > 1) all += ',';
    all += text_of(e);
    if (good) good = accepted(text_of(e));
  }
  grpc::Status status = reader.Finish();
  if (!status.ok()) return std::unexpected(error_of(status));
  if (!good) return std::unexpected(good.error());
  return all += ']';
}

}  // namespace

Result<std::string> ask(const std::shared_ptr<grpc::Channel>& channel, const Token& token,
                        std::string_view type, std::string_view payload,
                        std::string_view tx_token) {
  const RequestRow* row = std::find_if(std::begin(kRequests), std::end(kRequests),
                                       [&](const RequestRow& r) { return r.type == type; });
  if (row == std::end(kRequests))
    return fail(Code::invalid, "unknown-request",
                fmt::format("{} is no request: see the table in docs/guide/members.md", type));
  auto stub = Service::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(kAskMs));
  if (auto named = identify(context, token); !named) return std::unexpected(named.error());
  if (!tx_token.empty()) context.AddMetadata("tx-token", std::string(tx_token));
  CloudEvent request = wrap(type, payload), reply;
  grpc::Status status;
  switch (row->rpc) {
    case Rpc::manage_many: return gather(*stub->entityManageCollection(&context, request));
    case Rpc::search_many: return gather(*stub->entitySearchCollection(&context, request));
    case Rpc::manage: status = stub->entityManage(&context, request, &reply); break;
    case Rpc::search: status = stub->entitySearch(&context, request, &reply); break;
    case Rpc::model: status = stub->entityModelManage(&context, request, &reply); break;
  }
  if (!status.ok()) return std::unexpected(error_of(status));
  std::string text = text_of(reply);
  auto good = accepted(text);
  if (!good) return std::unexpected(good.error());
  return text;
}

void MemberStream::send(Event event) {
  std::lock_guard lock(mutex_);
  out_.push_back(std::move(event));
  changed_.notify_all();
}

// The answer is queued before the call stops being outstanding, so leaving cannot overtake it.
void MemberStream::answer(Event event) {
  std::lock_guard lock(mutex_);
  out_.push_back(std::move(event));
  --outstanding_;
  changed_.notify_all();
}

void MemberStream::leave_when_idle() {
  std::lock_guard lock(mutex_);
  leaving_ = true;
  changed_.notify_all();
}

// Runs on the writer's thread. Messages that wait are sent before the stream ends.
bool MemberStream::next(std::stop_token stop, Event& out) {
  std::unique_lock lock(mutex_);
  bool came =
      changed_.wait(lock, stop, [&] { return !out_.empty() || (leaving_ && outstanding_ == 0); });
  if (!came || out_.empty()) return false;
  out = std::move(out_.front());
  out_.pop_front();
  return true;
}

// Runs on the reader's thread, so it must not block: a call is handed to `on_call` and answered
// later.
void MemberStream::take(Event event, const OnCall& on_call) {
  if (event.type == kGreet || event.type == kAlive) {
    auto body = json::parse(event.text);
    if (!body) return;
    std::lock_guard lock(mutex_);
    if (event.type == kGreet) {
      member_id_ = body->string_or("memberId");
      joined_ = true;
    } else if (body->string_or("id") == member_id_) {
      // The server's own keep-alive carries the member's id; an echo of ours carries a fresh one.
      out_.push_back({std::string(kAlive),
                      fmt::format(R"({{"id":"{}","memberId":"{}"}})", fresh_key(), member_id_),
                      {}});
    }
    changed_.notify_all();
    return;
  }
  // Other events need no answer.
  if (!event.type.ends_with("CalculationRequest")) return;
  {
    std::lock_guard lock(mutex_);
    ++outstanding_;
  }
  on_call(std::move(event), shared_from_this());
}

MemberStream::End MemberStream::run(const std::shared_ptr<grpc::Channel>& channel,
                                    const Token& token, bool fresh_token,
                                    const std::vector<std::string>& tags, const OnCall& on_call) {
  auto stub = Service::NewStub(channel);
  grpc::ClientContext context;
  if (auto named = identify(context, token, fresh_token); !named)
    return {named.error(), false, !named.error().retryable};
  json::Array names;
  for (const std::string& tag : tags)
    names.emplace_back(tag);
  send({std::string(kJoin),
        json::print(json::object({{"id", fresh_key()}, {"tags", std::move(names)}})),
        {}});
  auto stream = stub->startStreaming(&context);
  {
    // gRPC allows one writer and one reader at a time: this thread writes, the calling thread
    // reads. The stream ends when the reader sees its end.
    std::jthread writer([&](std::stop_token stop) {
      Event event;
      while (next(stop, event))
        if (!stream->Write(wrap(event.type, event.text))) return;
      if (stop.stop_requested()) return;
      stream->WritesDone();
      // When the server does not end the stream in time, the call is cancelled.
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any ended;
      ended.wait_for(lock, stop, std::chrono::milliseconds(kLeaveMs), [] { return false; });
      if (!stop.stop_requested()) context.TryCancel();
    });
    CloudEvent e;
    while (stream->Read(&e))
      take(unwrap(e), on_call);
  }
  Error why = error_of(stream->Finish());
  std::lock_guard lock(mutex_);
  const bool refused =
      why.code == Code::invalid || why.code == Code::unauthenticated || why.code == Code::denied;
  return {why, joined_, refused};
}

}  // namespace pawl::client
