#include "faces/entities/grpc/member_stream.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// A member that leaves more events than this unread is disconnected.
constexpr size_t kMaxUnsentEvents = 100'000;
// The same by size. One event may be as large as a document.
constexpr size_t kMaxUnsentBytes = 16 * 1024 * 1024;

// The side of the stream that Members holds. It outlives the reactor, which gRPC may delete at any
// time.
class Link final : public MemberStream {
 public:
  explicit Link(std::string_view seed) : dice_(dice_from(seed)) {}

  void send(MemberEvent event) override {
    std::lock_guard lock(mutex_);
    if (!reactor_ || finishing_) return;
    if (line_.size() >= kMaxUnsentEvents || unsent_bytes_ > kMaxUnsentBytes)
      return finish(
          grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "events are not being read"));
    CloudEvent& out = line_.emplace_back();
    fill_event(out, dice_.uuid4(), std::move(event.type), std::move(event.payload));
    for (auto& [name, value] : event.attributes)
      (*out.mutable_attributes())[name].set_ce_string(std::move(value));
    unsent_bytes_ += line_.back().text_data().size();
    if (line_.size() == 1) reactor_->StartWrite(&line_.front());
  }
  void end_unresponsive() override {
    end(grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "no keep-alive came in time"));
  }

  void end(grpc::Status status) {
    std::lock_guard lock(mutex_);
    finish(std::move(status));
  }
  void written(bool ok) {
    std::lock_guard lock(mutex_);
    unsent_bytes_ -= line_.front().text_data().size();
    line_.pop_front();
    if (!reactor_) return;
    // finish() has waited for this write, so Finish is called here, once.
    if (!ok) finishing_ = true;
    if (finishing_) return reactor_->Finish(status_);
    if (line_.empty()) return;
    // When more events follow, gRPC sends them together in one system call.
    grpc::WriteOptions how;
    if (line_.size() > 1) how.set_buffer_hint();
    reactor_->StartWrite(&line_.front(), how);
  }
  // Before the stream is shared, so without the lock.
  void attach(MemberReactor* reactor) { reactor_ = reactor; }
  void detach() {
    std::lock_guard lock(mutex_);
    reactor_ = nullptr;
  }

 private:
  // Finishes at once, or after the write that is under way.
  void finish(grpc::Status status) {
    if (finishing_ || !reactor_) return;
    finishing_ = true;
    status_ = std::move(status);
    if (line_.empty()) reactor_->Finish(status_);
  }
  std::mutex mutex_;
  MemberReactor* reactor_ = nullptr;
  // The front is being written when it is not empty; gRPC reads it until OnWriteDone.
  std::deque<CloudEvent> line_;
  size_t unsent_bytes_ = 0;  // payloads of line_
  bool finishing_ = false;
  grpc::Status status_;
  Dice dice_;
};

// Read the part of a successful answer that each kind has.
void read_document(const json::Value& answer, CallResult& v) {
  const json::Value* payload = answer.find("payload");
  const json::Value* data = payload ? payload->find("data") : nullptr;
  if (data && !data->is_null()) v.data = canonical(*data);
}
void read_match(const json::Value& answer, CallResult& v) {
  const json::Value* matches = answer.find("matches");
  v.matches = matches && matches->is_bool() && matches->boolean();
  if (!v.matches) v.message = answer.string_or("reason");
}
void read_schedule(const json::Value& answer, CallResult& v) {
  const json::Value* result = answer.find("result");
  v.data = canonical(json::object({{"resultKind", answer.string_or("resultKind")},
                                   {"result", result ? *result : json::Value()}}));
}
struct AnswerKind {
  std::string_view type;
  Call::Kind kind;
  void (*take)(const json::Value& answer, CallResult& v);
};
constexpr AnswerKind kAnswers[] = {
    {"EntityProcessorCalculationResponse", Call::processor, read_document},
    {"EntityCriteriaCalculationResponse", Call::criterion, read_match},
    {"EntityFunctionCalculationResponse", Call::schedule, read_schedule},
};

CallResult call_result_of(const json::Value& answer, const AnswerKind& kind) {
  CallResult v;
  if (const json::Value* warnings = answer.find("warnings"); warnings && warnings->is_array())
    for (const json::Value& w : warnings->array())
      if (w.is_string()) v.warnings.push_back(w.string());
  const json::Value* success = answer.find("success");
  if (!success || !success->is_bool() || !success->boolean()) {
    v.kind = CallResult::failed;
    const json::Value* error = answer.find("error");
    v.message = error && error->is_string() ? error->string()
                : error ? error->string_or("message", "the member reported a failure")
                        : "the member reported a failure";
    return v;
  }
  kind.take(answer, v);
  if (v.data.size() <= limits::kBodyBytes) return v;
  return {.kind = CallResult::failed,
          .message = fmt::format("the member's document has {} bytes; at most {} are allowed",
                                 v.data.size(), limits::kBodyBytes)};
}

// The reactor of one stream. gRPC calls its On... functions; it deletes itself in OnDone().
class Stream final : public MemberReactor {
 public:
  Stream(Face& face, wire::AdmittedCall admitted)
      : face_(face),
        caller_(std::move(admitted.caller)),
        seat_(std::move(admitted.seat)),
        link_(std::make_shared<Link>(
            // A seed for event ids that no other open stream has.
            fmt::format("{}.{}", face.service().kernel().now(), static_cast<const void*>(this)))) {
    link_->attach(this);
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return over();
    if (member_.empty()) {
      if (!join()) return;
    } else {
      TransportCost cost(wire::kGrpcMessageUs);
      take();
    }
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override { link_->written(ok); }
  void OnCancel() override { over(); }
  // detach() comes first: after it no thread touches this reactor through the link.
  void OnDone() override {
    link_->detach();
    leave();
    delete this;
  }

 private:
  // The member ended the stream or the connection broke.
  void over() {
    leave();
    link_->end(grpc::Status::OK);
  }
  void leave() {
    std::string member;
    {
      std::lock_guard lock(mutex_);
      member = std::exchange(joined_, {});
    }
    if (!member.empty()) face_.members().leave(member);
  }
  bool refuse(grpc::StatusCode code, const std::string& why) {
    link_->end(grpc::Status(code, why));
    return false;
  }

  // The first event. Returns false when the stream was refused.
  bool join() {
    auto body = payload_of(incoming_);
    if (incoming_.type() != "CalculationMemberJoinEvent" || !body)
      return refuse(grpc::StatusCode::INVALID_ARGUMENT,
                    "the first event must be a CalculationMemberJoinEvent");
    std::string_view legal = body->string_or("joinedLegalEntityId");
    if (!legal.empty() && legal != caller_.tenant)
      return refuse(grpc::StatusCode::PERMISSION_DENIED,
                    "joinedLegalEntityId is not the caller's tenant");
    std::vector<std::string> tags;
    if (const json::Value* list = body->find("tags"); list && list->is_array())
      for (const json::Value& t : list->array())
        if (t.is_string()) tags.push_back(t.string());
    member_ = face_.members().join(link_, caller_.tenant, std::move(tags));
    std::lock_guard lock(mutex_);
    joined_ = member_;
    return true;
  }

  void take() {
    auto body = payload_of(incoming_);
    // An event without readable JSON is ignored; the call that it may answer then times out.
    if (!body) return;
    const std::string& type = incoming_.type();
    for (const AnswerKind& kind : kAnswers)
      if (kind.type == type)
        return face_.members().answered(member_, std::string(body->string_or("requestId")),
                                        kind.kind, call_result_of(*body, kind));
    if (type == "CalculationMemberKeepAliveEvent") {
      face_.members().alive(member_);
      // The echo carries the id of the incoming event, by which a member recognises it.
      std::string id(body->string_or("id", incoming_.id()));
      link_->send(
          {"CalculationMemberKeepAliveEvent",
           json::print(json::object({{"id", id}, {"memberId", member_}, {"success", true}})),
           {}});
    } else if (type == "EventAckResponse") {
      face_.members().alive(member_);
    }
  }

  Face& face_;
  const Caller caller_;
  const std::shared_ptr<void> seat_;  // see wire::AdmittedCall
  std::shared_ptr<Link> link_;        // shared with the registry of members
  CloudEvent incoming_;
  std::string member_;
  std::mutex mutex_;
  std::string joined_;  // the member id until leave()
};

class Refusal final : public MemberReactor {
 public:
  explicit Refusal(grpc::Status status) { Finish(std::move(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

MemberReactor* start_member_stream(Face& face, wire::AdmittedCall admitted) {
  return new Stream(face, std::move(admitted));
}
MemberReactor* refuse_member_stream(grpc::Status status) { return new Refusal(std::move(status)); }

Result<json::Value> payload_of(const CloudEvent& event) {
  const std::string& text = event.has_text_data() ? event.text_data() : event.binary_data();
  if (text.empty())
    return fail(Code::invalid, "BAD_REQUEST", "the event has no JSON in text_data or binary_data");
  // The limit is that of a message. A document that is too large is refused later, with an answer.
  return json::parse(text, {.max_bytes = limits::kGrpcMessageBytes});
}

void fill_event(CloudEvent& out, std::string id, std::string type, std::string payload) {
  out.set_id(std::move(id));
  out.set_source("cyoda");
  out.set_spec_version("1.0");
  out.set_type(std::move(type));
  out.set_text_data(std::move(payload));
}

}  // namespace pawl::entities
