#include "faces/worlds/grpc/work_stream.h"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>

namespace pawl::worlds {
namespace {

// Credit that an executor may hold. More would only fill its memory.
constexpr uint64_t kMaxCredit = 10'000;
constexpr uint64_t kMaxPolled = 100;
// One poll waits this long, then the next one is made. Work that comes for a stream that has ended
// is given back at once.
constexpr std::chrono::milliseconds kWait{2000};

using Clock = std::chrono::steady_clock;
using Name = std::pair<std::string, std::string>;  // world, intent

class Stream final : public grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>,
                     public std::enable_shared_from_this<Stream> {
 public:
  Stream(const ExecutorVerbs& verbs, Caller caller) : verbs_(verbs), caller_(std::move(caller)) {}

  void begin(std::shared_ptr<Stream> self) {
    self_ = std::move(self);
    StartRead(&in_);
  }
  void refuse(std::shared_ptr<Stream> self, const Error& error) {
    self_ = std::move(self);
    over_ = true;
    Finish(status_of(error));
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      std::unique_lock lock(mutex_);
      half_closed_ = true;
      return end_if_idle(lock);
    }
    const v1::FromExecutor message = std::move(in_);
    in_.Clear();
    auto taken = take(message);
    if (!taken) return stop(status_of(taken.error()));
    std::lock_guard lock(mutex_);
    if (!over_) StartRead(&in_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return stop(grpc::Status::CANCELLED);
    std::unique_lock lock(mutex_);
    writing_ = false;
    write_next();
    end_if_idle(lock);
  }
  void OnCancel() override { stop(grpc::Status::CANCELLED); }
  void OnDone() override { self_.reset(); }

 private:
  Result<void> take(const v1::FromExecutor& m) {
    using Kind = v1::FromExecutor;
    if (hello_.effects().empty() && m.message_case() != Kind::kHello)
      return fail(Code::invalid, "invalid_request",
                  "the first message must be a hello that names effects");
    switch (m.message_case()) {
      case Kind::kHello:
        if (!hello_.effects().empty())
          return fail(Code::invalid, "invalid_request", "a stream begins with one hello");
        if (m.hello().effects().empty())
          return fail(Code::invalid, "invalid_request",
                      "hello wants the names of the effects that this executor does");
        hello_ = m.hello();
        give_credit(hello_.credit());
        break;
      case Kind::kCredit: give_credit(m.credit()); break;
      case Kind::kFrame: forward_frame(m.frame()); break;
      case Kind::kReceipt: forward_receipt(m.receipt()); break;
      case Kind::kRelease: give_back(m.release()); break;
      default: break;
    }
    return {};
  }

  void give_credit(uint64_t more) {
    {
      std::lock_guard lock(mutex_);
      credit_ = std::min(credit_ + more, kMaxCredit);
    }
    ask();
  }

  void give_back(const v1::EffectName& name) {
    {
      std::lock_guard lock(mutex_);
      if (leased_.erase({name.world_id(), name.intent_hash()}))
        credit_ = std::min(credit_ + 1, kMaxCredit);
    }
    release(name);
    ask();
  }

  // One poll at a time, for as much as there is credit.
  void ask() {
    v1::PollEffects poll;
    {
      std::lock_guard lock(mutex_);
      if (over_ || polling_ || half_closed_ || credit_ == 0) return;
      polling_ = true;
      asked_ = Clock::now();
      poll.set_limit(static_cast<uint32_t>(std::min(credit_, kMaxPolled)));
    }
    poll.set_worker(hello_.worker());
    *poll.mutable_effects() = hello_.effects();
    poll.set_lease_ms(hello_.lease_ms());
    poll.set_wait_ms(static_cast<uint32_t>(kWait.count()));
    verbs_.poll(caller_, poll, [self = shared_from_this()](Result<v1::OpenWork> answer) {
      self->polled(std::move(answer));
    });
  }

  void polled(Result<v1::OpenWork> answer) {
    v1::OpenWork work;
    if (answer) work.Swap(&*answer);
    {
      std::unique_lock lock(mutex_);
      polling_ = false;
      if (over_ || half_closed_) {
        lock.unlock();
        release(work);
        lock.lock();
        return end_if_idle(lock);
      }
      // Counted from before the poll, so that a lease is never taken to last longer than it does.
      const auto until = asked_ + std::chrono::milliseconds(hello_.lease_ms() ? hello_.lease_ms()
                                                                              : kDefaultLeaseMs);
      // Work that comes again, because its lease had ended, has taken its credit before.
      for (const v1::OpenEffect& e : work.work())
        if (leased_.insert_or_assign({e.world_id(), e.intent_hash()}, until).second && credit_ > 0)
          --credit_;
      if (work.work_size()) {
        out_.emplace_back().mutable_work()->Swap(&work);
        write_next();
      } else if (!answer || Clock::now() - asked_ < kWait / 2) {
        return;  // no work long before the wait is over: the server is stopping
      }
    }
    ask();
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
    std::lock_guard lock(mutex_);
    ++forwarded_;
    return done;
  }
  ExecutorVerbs::Done<InputOutcome> answer_to(v1::EffectDone done) {
    return [self = shared_from_this(), done = std::move(done)](
               Result<InputOutcome> outcome) mutable { self->answered(std::move(done), outcome); };
  }

  void answered(v1::EffectDone done, const Result<InputOutcome>& outcome) {
    {
      std::unique_lock lock(mutex_);
      --forwarded_;
      if (outcome) {
        done.set_status(outcome->status);
        done.set_height(outcome->height);
        if (!done.is_frame() && leased_.erase({done.world_id(), done.intent_hash()}))
          credit_ = std::min(credit_ + 1, kMaxCredit);
      } else {
        done.set_error(outcome.error().reason);
        done.set_message(outcome.error().message);
      }
      if (over_) return;
      out_.emplace_back().mutable_done()->Swap(&done);
      write_next();
    }
    ask();
  }

  // With the lock held.
  void write_next() {
    if (writing_ || over_ || out_.empty()) return;
    writing_ = true;
    current_ = std::move(out_.front());
    out_.pop_front();
    StartWrite(&current_);
  }

  void end_if_idle(std::unique_lock<std::mutex>& lock) {
    if (!half_closed_ || over_ || writing_ || forwarded_ || !out_.empty()) return;
    lock.unlock();
    stop(grpc::Status::OK);
  }

  void stop(const grpc::Status& status) {
    std::map<Name, Clock::time_point> leased;
    {
      std::lock_guard lock(mutex_);
      if (over_) return;
      over_ = true;
      leased.swap(leased_);
    }
    // Work whose lease has ended may be leased to another executor by now.
    for (const auto& [name, until] : leased)
      if (until > Clock::now()) release(name.first, name.second);
    Finish(status);
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
  // What cannot be given back is offered again when its lease ends.
  void release(const v1::EffectName& name) { (void)verbs_.release(caller_, name).has_value(); }

  const ExecutorVerbs& verbs_;
  const Caller caller_;
  v1::ExecutorHello hello_;
  v1::FromExecutor in_;
  std::shared_ptr<Stream> self_;  // until grpc is done with it

  std::mutex mutex_;
  v1::ToExecutor current_;
  std::deque<v1::ToExecutor> out_;
  std::map<Name, Clock::time_point> leased_;  // until when
  uint64_t credit_ = 0;
  size_t forwarded_ = 0;
  Clock::time_point asked_;
  bool polling_ = false, writing_ = false, half_closed_ = false, over_ = false;
};

}  // namespace

grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* open_stream(
    const ExecutorVerbs& verbs, const grpc::ServerContextBase& context) {
  auto caller = verbs.caller_of(context);
  auto stream = std::make_shared<Stream>(verbs, caller ? *caller : Caller{});
  if (caller)
    stream->begin(stream);
  else
    stream->refuse(stream, caller.error());
  return stream.get();
}

}  // namespace pawl::worlds
