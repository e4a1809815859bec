#include "faces/worlds/grpc/work_stream.h"

#include <deque>
#include <map>

#include "net/work_stream.h"

namespace pawl::worlds {
namespace {

// Credit that an executor may hold. More would only fill its memory.
constexpr int64_t kMaxCredit = 10'000;
// Work items in one message.
constexpr int64_t kMaxPolled = 100;
// How long one poll waits before the stream starts the next one. Work that arrives after the stream
// has ended is released at once.
constexpr int64_t kWaitMs = 2000;

// World and intent. Executors may write an intent with or without "sha256:", so the key has one
// form of it. Text that is no intent names no work, and is kept as it is.
using EffectKey = std::pair<std::string, std::string>;
EffectKey key_of(const std::string& world, const std::string& intent) {
  auto digest = parse_intent(intent);
  return {world, digest ? hash_text(*digest) : intent};
}

// An ExecutorStream keeps the leases of one executor's stream and turns open work, frames and
// receipts into messages.
class ExecutorStream final : public net::WorkStream<v1::FromExecutor, v1::ToExecutor> {
 public:
  ExecutorStream(const ExecutorVerbs& verbs, wire::AdmittedCall admitted)
      : WorkStream(kMaxCredit),
        verbs_(verbs),
        caller_(std::move(admitted.caller)),
        seat_(std::move(admitted.seat)) {}

 private:
  grpc::Status take(const v1::FromExecutor& message) override {
    TransportCost cost(wire::kGrpcMessageUs);
    Result<void> done = handle(message);
    return done ? grpc::Status::OK : status_of(done.error());
  }

  Result<void> handle(const v1::FromExecutor& m) {
    using Kind = v1::FromExecutor;
    if (hello_.effects().empty() && m.message_case() != Kind::kHello)
      return fail(Code::invalid, "invalid_request",
                  "the first message must be a hello that names effects");
    switch (m.message_case()) {
      case Kind::kHello: return greet(m.hello());
      case Kind::kCredit: give_credit(m.credit()); break;
      case Kind::kFrame: forward_frame(m.frame()); break;
      case Kind::kReceipt: forward_receipt(m.receipt()); break;
      case Kind::kRelease: give_back(m.release()); break;
      default: break;
    }
    return {};
  }

  Result<void> greet(const v1::ExecutorHello& hello) {
    if (!hello_.effects().empty())
      return fail(Code::invalid, "invalid_request", "a stream begins with one hello");
    if (hello.effects().empty())
      return fail(Code::invalid, "invalid_request",
                  "hello wants the names of the effects that this executor does");
    hello_ = hello;
    give_credit(hello_.credit());
    return {};
  }

  void give_credit(uint64_t more) {
    grant(static_cast<int64_t>(std::min<uint64_t>(more, kMaxCredit)));
  }

  void give_back(const v1::EffectName& name) {
    {
      Lock lock(mutex());
      if (leased_.erase(key_of(name.world_id(), name.intent_hash()))) add_credit_locked(1);
    }
    release(name);
    ask_for_work();
  }

  uint64_t start_poll(int64_t limit) override {
    {
      Lock lock(mutex());
      poll_started_ = verbs_.now();
    }
    v1::PollEffects poll;
    poll.set_limit(static_cast<uint32_t>(std::min(limit, kMaxPolled)));
    poll.set_worker(hello_.worker());
    *poll.mutable_effects() = hello_.effects();
    poll.set_lease_ms(hello_.lease_ms());
    poll.set_wait_ms(static_cast<uint32_t>(kWaitMs));
    verbs_.poll(caller_, poll, [keep = shared_from_this(), this](Result<v1::OpenWork> answer) {
      push(std::move(answer));
    });
    return 0;  // the poll cannot be cancelled: it ends after kWaitMs
  }

  void push(Result<v1::OpenWork> answer) {
    v1::OpenWork work;
    if (answer) work.Swap(&*answer);
    {
      Lock lock(mutex());
      // The stream ended while the poll waited.
      if (!finish_poll_locked()) {
        lock.unlock();
        release(work);
        lock.lock();
        return end_if_idle(lock);
      }
      add_leases_locked(work);
      if (work.work_size()) {
        out_.emplace_back().mutable_work()->Swap(&work);
        unwritten_bytes_ += out_.back().ByteSizeLong();
        write_next_locked();
      } else if (!answer || verbs_.now() - poll_started_ < kWaitMs * kMillisecond / 2) {
        return;  // no work long before the wait is over: the server is stopping
      }
    }
    ask_for_work();
  }

  void add_leases_locked(const v1::OpenWork& work) {
    // Counted from the start of the poll, so that a lease is never taken to last longer than it
    // does.
    const int64_t lease_ms = hello_.lease_ms() ? hello_.lease_ms() : kDefaultLeaseMs;
    const Time until = poll_started_ + lease_ms * kMillisecond;
    // Work that comes again, because its lease had ended, has taken its credit before.
    for (const v1::OpenEffect& e : work.work())
      if (leased_.insert_or_assign(key_of(e.world_id(), e.intent_hash()), until).second)
        add_credit_locked(-1);
  }

  void forward_frame(const v1::EffectFrame& frame) {
    v1::EffectDone done = begin_forward(frame.world_id(), frame.intent_hash());
    done.set_is_frame(true);
    done.set_seq(frame.seq());
    verbs_.send_frame(caller_, frame, answer_to(std::move(done)));
  }
  void forward_receipt(const v1::EffectReceipt& receipt) {
    v1::EffectDone done = begin_forward(receipt.world_id(), receipt.intent_hash());
    verbs_.settle(caller_, receipt, answer_to(std::move(done)));
  }
  v1::EffectDone begin_forward(const std::string& world, const std::string& intent) {
    v1::EffectDone done;
    done.set_world_id(world);
    done.set_intent_hash(intent);
    Lock lock(mutex());
    begin_result_locked();
    return done;
  }
  ExecutorVerbs::Done<InputOutcome> answer_to(v1::EffectDone done) {
    return [keep = shared_from_this(), this, done = std::move(done)](
               Result<InputOutcome> outcome) mutable { confirm(std::move(done), outcome); };
  }

  void confirm(v1::EffectDone done, const Result<InputOutcome>& outcome) {
    {
      Lock lock(mutex());
      finish_result_locked();
      if (outcome) {
        done.set_status(outcome->status);
        done.set_height(outcome->height);
        if (!done.is_frame() && leased_.erase(key_of(done.world_id(), done.intent_hash())))
          add_credit_locked(1);
      } else {
        done.set_error(outcome.error().reason);
        done.set_message(outcome.error().message);
      }
      if (ended_locked()) return;
      out_.emplace_back().mutable_done()->Swap(&done);
      unwritten_bytes_ += out_.back().ByteSizeLong();
      write_next_locked();
    }
    ask_for_work();
  }

  size_t unwritten_bytes_locked() const override { return unwritten_bytes_; }
  bool next_message_locked(v1::ToExecutor& out) override {
    if (out_.empty()) return false;
    unwritten_bytes_ -= out_.front().ByteSizeLong();
    out = std::move(out_.front());
    out_.pop_front();
    return true;
  }

  void release_work() override {
    std::map<EffectKey, Time> leased;
    {
      Lock lock(mutex());
      leased.swap(leased_);
    }
    // Work whose lease has ended may be leased to another executor by now.
    const Time now = verbs_.now();
    for (const auto& [key, until] : leased)
      if (until > now) release(key.first, key.second);
  }

  void release(const v1::OpenWork& work) {
    for (const v1::OpenEffect& e : work.work())
      release(e.world_id(), e.intent_hash());
  }
  void release(const std::string& world, const std::string& intent) {
    v1::EffectName name;
    name.set_world_id(world);
    name.set_intent_hash(intent);
    release(name);
  }
  // Work that cannot be released is offered again when its lease ends.
  void release(const v1::EffectName& name) { (void)verbs_.release(caller_, name).has_value(); }

  const ExecutorVerbs& verbs_;
  const Caller caller_;
  const std::shared_ptr<void> seat_;  // see wire::AdmittedCall
  v1::ExecutorHello hello_;

  // Guarded by mutex().
  size_t unwritten_bytes_ = 0;  // of out_
  std::deque<v1::ToExecutor> out_;
  std::map<EffectKey, Time> leased_;  // end of each lease
  Time poll_started_ = 0;
};

}  // namespace

grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* open_stream(
    const ExecutorVerbs& verbs, const grpc::ServerContextBase& context) {
  auto admitted = verbs.admit_stream(context);
  auto stream =
      std::make_shared<ExecutorStream>(verbs, admitted ? *admitted : wire::AdmittedCall{});
  if (admitted)
    stream->begin();
  else
    stream->refuse(status_of(admitted.error()));
  return stream.get();
}

}  // namespace pawl::worlds
