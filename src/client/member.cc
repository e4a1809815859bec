#include "pawl/member.h"

#include <fmt/format.h>

#include <thread>

#include "client/channel.h"
#include "client/member_stream.h"
#include "client/random.h"
#include "client/stop_flag.h"
#include "json/text.h"

namespace pawl {

using client::MemberStream;

namespace {

// Pauses between two streams, and the time that one attempt to connect may take before stopping is
// checked again.
constexpr int kFirstPauseMs = 100, kMaxPauseMs = 5'000;
constexpr int kConnectMs = 500;

std::string text_of(const json::Value* value) {
  return value && !value->is_null() ? json::print(*value) : std::string();
}

// The three kinds of calls name their function in different members.
Member::Call call_of(const MemberStream::Event& event, const json::Value& body) {
  const json::Value* payload = body.find("payload");
  const json::Value* transition = body.find("transition");
  Member::Call call;
  call.name = body.string_or("processorName",
                             body.string_or("criteriaName", body.string_or("functionName")));
  call.request_id = body.string_or("requestId");
  call.entity_id = body.string_or("entityId");
  call.transaction_id = body.string_or("transactionId");
  call.transition = transition ? transition->string_or("name") : "";
  call.parameters = body.string_or("parameters");
  call.data = payload ? text_of(payload->find("data")) : "";
  call.meta = payload ? text_of(payload->find("meta")) : "";
  call.request = event.text;
  call.tx_token = event.tx_token;
  return call;
}

// Calls that wait for a thread, each with the stream on which it came.
class Calls {
 public:
  struct One {
    MemberStream::Event event;
    std::shared_ptr<MemberStream> from;  // kept alive until the call is answered
  };
  void put(One one) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(one));
    came_.notify_one();
  }
  std::optional<One> take() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return std::nullopt;
    One one = std::move(waiting_.front());
    waiting_.pop_front();
    return one;
  }
  void close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    came_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<One> waiting_;
  bool closed_ = false;
};

// The members of an answer that follow "success", or why the call fails.
using Said = Result<std::string>;

std::unexpected<Error> failed(std::string why) { return Member::fail(std::move(why)); }

template <class Handlers>
auto* handler_of(Handlers& handlers, const std::string& name) {
  auto it = handlers.find(name);
  return it == handlers.end() ? nullptr : &it->second;
}

}  // namespace

struct Member::Parts {
  MemberOptions options;
  std::shared_ptr<grpc::Channel> channel;  // gRPC wants channels shared
  std::map<std::string, Processor> processors;
  std::map<std::string, Criterion> criteria;
  std::map<std::string, Scheduler> schedulers;
  client::StopFlag stop;
  std::mutex mutex;
  std::shared_ptr<MemberStream> current;  // the open stream, for leave()
  bool stopping = false;

  void say(const std::string& line) const {
    if (options.log)
      options.log(line);
    else
      fmt::print(stderr, "pawl member: {}\n", line);
  }

  // Each of these runs a handler and returns the members that its result adds to the answer.
  Said process(const Call& call) const {
    const Processor* handler = handler_of(processors, call.name);
    if (!handler) return failed("this member has no processor " + call.name);
    Processed data = (*handler)(call);
    if (!data) return std::unexpected(data.error());
    // No payload in the answer means that the entity stays as it is.
    if (data->empty()) return std::string();
    if (auto parsed = json::parse(*data); !parsed)
      return failed("the processor's data is not JSON: " + parsed.error().message);
    return R"(,"payload":{"type":"JSON","data":)" + *data + "}";
  }

  Said match(const Call& call) const {
    const Criterion* handler = handler_of(criteria, call.name);
    if (!handler) return failed("this member has no criterion " + call.name);
    Matched matches = (*handler)(call);
    if (!matches) return std::unexpected(matches.error());
    return std::string(*matches ? R"(,"matches":true)" : R"(,"matches":false)");
  }

  Said plan(const Call& call) const {
    const Scheduler* handler = handler_of(schedulers, call.name);
    if (!handler) return failed("this member has no schedule " + call.name);
    Scheduled when = (*handler)(call);
    if (!when) return std::unexpected(when.error());
    json::Object result;
    for (auto [name, value] : {std::pair("fireAt", when->fire_at),
                               {"fireAfterMs", when->fire_after},
                               {"expireAt", when->expire_at},
                               {"expireAfterMs", when->expire_after}})
      if (value) result.add(name, *value);
    return R"(,"resultKind":"Schedule","result":)" + json::print(result);
  }

  // How each kind of call is answered. An event's type begins with the kind.
  struct Kind {
    std::string_view type;
    Said (Parts::*said)(const Call&) const;
  };
  static const Kind* kind_of(std::string_view event) {
    static constexpr Kind kinds[] = {
        {"EntityProcessorCalculation", &Parts::process},
        {"EntityCriteriaCalculation", &Parts::match},
        {"EntityFunctionCalculation", &Parts::plan},
    };
    for (const Kind& k : kinds)
      if (event.starts_with(k.type)) return &k;
    return nullptr;
  }

  Said said(const Call& call, const Kind* kind) const {
    if (!kind) return failed("this member does not know the kind of the call");
    try {
      return (this->*kind->said)(call);
    } catch (const std::exception& e) {
      return failed(e.what());
    }
  }

  // Every call is answered, also one that this member cannot serve: the server waits for the
  // answer.
  MemberStream::Event answer(const MemberStream::Event& event) const {
    const Kind* kind = kind_of(event.type);
    auto body = json::parse(event.text, {.max_bytes = 1u << 30});
    Call call = call_of(event, body ? *body : json::Value());
    Said words = said(call, kind);
    std::string text = "{\"id\":\"" + client::fresh_key() +
                       "\",\"requestId\":" + json::quote(call.request_id) +
                       ",\"entityId\":" + json::quote(call.entity_id);
    if (words) {
      text += ",\"success\":true" + *words + "}";
    } else {
      say(fmt::format("{} of entity {} failed: {}", call.name, call.entity_id,
                      words.error().message));
      text += ",\"success\":false,\"error\":{\"code\":\"FAILED\",\"message\":" +
              json::quote(words.error().message) + "}}";
    }
    // "…Request" becomes "…Response".
    return {event.type.substr(0, event.type.rfind("Request")) + "Response", std::move(text), {}};
  }

  // Opens one stream after the other until told to stop, or until the server refuses the member.
  Result<void> keep_joined(Calls& calls) {
    bool fresh_token = false;
    for (int pause = kFirstPauseMs;;) {
      auto stream = std::make_shared<MemberStream>();
      {
        std::lock_guard lock(mutex);
        if (stopping) return {};
        current = stream;
      }
      // gRPC keeps connecting in the background with its own pauses, so this loop does not pause as
      // well.
      if (!client::connected(channel, kConnectMs)) continue;
      auto end = stream->run(channel, options.token, fresh_token, options.tags,
                             [&](MemberStream::Event call, std::shared_ptr<MemberStream> from) {
                               calls.put({std::move(call), std::move(from)});
                             });
      {
        std::lock_guard lock(mutex);
        if (stopping) return {};
      }
      // An expired token is replaced once. A second refusal in a row, with the fresh token, is
      // final.
      const bool expired = end.why.code == Code::unauthenticated && options.token.renewable();
      fresh_token = expired && !fresh_token;
      if (end.refused && !fresh_token) return std::unexpected(std::move(end.why));
      say("the stream ended, joining again: " + end.why.message);
      pause = end.joined ? kFirstPauseMs : std::min(pause * 2, kMaxPauseMs);
      stop.wait(client::jittered(pause));
    }
  }

  // Runs on the watcher's thread. keep_joined() sees `stopping` before it opens the next stream.
  void leave() {
    std::lock_guard lock(mutex);
    stopping = true;
    if (current) current->leave_when_idle();
  }
};

Member::Member(MemberOptions options)
    : parts_(new Parts{.options = std::move(options),
                       .channel = {},
                       .processors = {},
                       .criteria = {},
                       .schedulers = {}}) {
  parts_->channel = client::open_channel(parts_->options.grpc);
  parts_->options.concurrency = std::max(1, parts_->options.concurrency);
}

Member::~Member() = default;

void Member::processor(std::string name, Processor processor) {
  parts_->processors.insert_or_assign(std::move(name), std::move(processor));
}
void Member::criterion(std::string name, Criterion criterion) {
  parts_->criteria.insert_or_assign(std::move(name), std::move(criterion));
}
void Member::schedule(std::string name, Scheduler scheduler) {
  parts_->schedulers.insert_or_assign(std::move(name), std::move(scheduler));
}
void Member::stop() { parts_->stop.raise(); }

Result<void> Member::run() {
  Parts& p = *parts_;
  Calls calls;
  std::vector<std::jthread> threads;
  for (int i = 0; i < p.options.concurrency; ++i)
    threads.emplace_back([&] {
      while (auto one = calls.take())
        one->from->answer(p.answer(one->event));
    });
  // A thread waits for the flag, since stop() may be called by a signal handler and only raises it.
  std::jthread watcher([&] {
    p.stop.wait(-1);
    p.leave();
  });
  Result<void> end = p.keep_joined(calls);
  // Lets the watcher end when the server has refused the member; jthreads are joined on return.
  p.stop.raise();
  calls.close();
  return end;
}

Result<std::string> Member::ask(std::string_view type, std::string_view payload,
                                std::string_view tx_token) {
  return client::ask(parts_->channel, parts_->options.token, type, payload, tx_token);
}

}  // namespace pawl
