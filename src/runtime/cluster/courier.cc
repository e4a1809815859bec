#include "runtime/cluster/courier.h"

#include "base/log.h"
#include "runtime/quarantine.h"

namespace pawl {

class Courier::Core : public std::enable_shared_from_this<Courier::Core> {
 public:
  Core(KernelAccess& source, Link& link, Background& background, CourierOptions options)
      : source_(source), link_(link), background_(background), options_(options) {}

  void start();
  void stop();
  void opened(const EffectPtr& effect);
  void closed(const Effect& effect);
  void flushed();
  void restored();
  CourierStats stats() const;

 private:
  enum class State { ready, sent, settling, parked };
  struct Open {
    EffectPtr effect;
    State state = State::ready;
    Time due = 0;           // ready: when to send; sent: when the answer is taken for lost
    uint32_t failures = 0;  // since the target last decided
    uint64_t attempt = 0;   // of the newest delivery
  };
  // What goes to one target.
  struct Lane {
    std::map<uint64_t, Open> open;                    // by number
    std::set<std::pair<Time, uint64_t>> ready, sent;  // due and number of those in these states
    size_t window = 0;                                // how many may be sent and not answered
    uint32_t failures = 0;                            // since the target was last reached
    Time paused_until = 0;
    uint64_t last = 0;           // the highest number so far
    Time tell = kNotToBeTold;    // when to tell the target that nothing is open
    uint32_t tell_failures = 0;  // of that
  };
  static constexpr Time kNotToBeTold = BackgroundLoop::kNever;
  static constexpr uint32_t kTellAttempts = 5;
  struct Sending {
    uint32_t shard;
    uint64_t attempt;
    Input input;
  };
  struct Receipt {
    uint32_t shard;
    uint64_t number;
    std::string effect;
    std::string tenant;
    DeliveryReceipt receipt;
  };

  Time step();
  // These need mutex_.
  bool sends() const { return started_ && restored_ && !over_; }
  void collect(uint32_t shard, Lane& lane, Time now, std::vector<Sending>& out);
  Time next_due(const Lane& lane) const;
  void set_state(Lane& lane, uint64_t number, Open& open, State state, Time due);
  void remove(Lane& lane, std::map<uint64_t, Open>::iterator at);
  Time pause(uint32_t failures) const;
  void failed(Lane& lane, uint64_t number, Open& open, const Error& why);
  void wake() {
    if (loop_) loop_->wake();
  }

  void send(Sending sending);
  void answered(uint32_t shard, uint64_t number, uint64_t attempt, Result<Answer> answer);
  void told(uint32_t shard, uint64_t below, Result<Answer> answer);
  void settle(Receipt receipt);
  void settled(uint32_t shard, uint64_t number, Result<Answer> answer);

  KernelAccess& source_;
  Link& link_;
  Background& background_;
  const CourierOptions options_;

  mutable std::mutex mutex_;
  bool started_ = false, restored_ = false;
  bool over_ = false;  // stopped, or the source takes no inputs any more
  std::map<uint32_t, Lane> lanes_;
  std::unordered_map<std::string, std::pair<uint32_t, uint64_t>> by_id_;  // lane and number
  std::vector<Receipt> receipts_;                                         // to be submitted
  uint64_t attempts_ = 0;
  CourierStats counts_;
  std::unique_ptr<BackgroundLoop> loop_;
};

void Courier::Core::start() {
  std::lock_guard lock(mutex_);
  if (started_) return;
  started_ = true;
  loop_ = background_.loop("courier", [this] { return step(); });
}

void Courier::Core::stop() {
  std::unique_ptr<BackgroundLoop> ended;  // destroyed without the lock, which its step takes
  std::lock_guard lock(mutex_);
  over_ = true;
  ended = std::move(loop_);
}

void Courier::Core::set_state(Lane& lane, uint64_t number, Open& open, State state, Time due) {
  lane.ready.erase({open.due, number});
  lane.sent.erase({open.due, number});
  open.state = state;
  open.due = due;
  if (state == State::ready) lane.ready.emplace(due, number);
  if (state == State::sent) lane.sent.emplace(due, number);
}

void Courier::Core::opened(const EffectPtr& effect) {
  const Effect::Address& to = *effect->address;
  std::lock_guard lock(mutex_);
  // An effect that is opened again with the same id replaces the one before.
  if (auto known = by_id_.find(effect->id); known != by_id_.end()) {
    Lane& before = lanes_[known->second.first];
    if (auto it = before.open.find(known->second.second); it != before.open.end())
      remove(before, it);
  }
  Lane& lane = lanes_[to.shard];
  if (lane.window == 0) lane.window = options_.window;
  Open& open = lane.open[to.number];
  open.effect = effect;
  set_state(lane, to.number, open, State::ready, background_.steady_now());
  lane.last = std::max(lane.last, to.number);
  lane.tell = kNotToBeTold;
  by_id_[effect->id] = {to.shard, to.number};
}

void Courier::Core::remove(Lane& lane, std::map<uint64_t, Open>::iterator at) {
  set_state(lane, at->first, at->second, State::settling, 0);
  by_id_.erase(at->second.effect->id);
  lane.open.erase(at);
  if (!lane.open.empty()) return;
  lane.tell = background_.steady_now() + options_.quiet;
  lane.tell_failures = 0;
}

void Courier::Core::closed(const Effect& effect) {
  std::lock_guard lock(mutex_);
  auto lane = lanes_.find(effect.address->shard);
  if (lane == lanes_.end()) return;
  auto it = lane->second.open.find(effect.address->number);
  if (it != lane->second.open.end()) remove(lane->second, it);
}

void Courier::Core::flushed() {
  std::lock_guard lock(mutex_);
  if (sends()) wake();
}

void Courier::Core::restored() {
  std::lock_guard lock(mutex_);
  restored_ = true;
  wake();
}

Time Courier::Core::pause(uint32_t failures) const {
  const uint32_t doublings = std::min(failures, 20u) - (failures > 0);
  return std::min(options_.longest_pause, options_.first_pause << doublings);
}

Time Courier::Core::step() {
  std::vector<Sending> sendings;
  std::vector<Receipt> receipts;
  Time next = BackgroundLoop::kNever;
  {
    std::lock_guard lock(mutex_);
    // Before every open effect is known, the lowest one is not.
    if (!sends()) return BackgroundLoop::kNever;
    receipts.swap(receipts_);
    const Time now = background_.steady_now();
    for (auto& [shard, lane] : lanes_) {
      collect(shard, lane, now, sendings);
      next = std::min(next, next_due(lane));
    }
  }
  if (!receipts.empty()) {
    BatchScope scope;  // one group
    for (Receipt& receipt : receipts)
      settle(std::move(receipt));
  }
  for (size_t i = 0; i < sendings.size();) {
    BatchScope scope;  // one group for each target
    for (const uint32_t shard = sendings[i].shard;
         i < sendings.size() && sendings[i].shard == shard; ++i)
      send(std::move(sendings[i]));
  }
  return next;
}

void Courier::Core::collect(uint32_t shard, Lane& lane, Time now, std::vector<Sending>& out) {
  if (lane.tell <= now && lane.paused_until <= now) {
    lane.tell = kNotToBeTold;
    out.push_back({shard, 0, forget_delivered(options_.shard, lane.last + 1)});
  }
  while (!lane.sent.empty() && lane.sent.begin()->first <= now) {
    const uint64_t number = lane.sent.begin()->second;
    failed(lane, number, lane.open.at(number),
           {Code::unavailable, "NO_ANSWER", "the target did not answer"});
  }
  while (!lane.ready.empty() && lane.ready.begin()->first <= now && lane.paused_until <= now &&
         lane.sent.size() < lane.window) {
    const uint64_t number = lane.ready.begin()->second;
    Open& open = lane.open.at(number);
    open.attempt = ++attempts_;
    counts_.repeated += open.failures > 0;
    set_state(lane, number, open, State::sent, now + options_.patience);
    out.push_back(
        {shard, open.attempt, delivery_of(*open.effect, options_.shard, lane.open.begin()->first)});
  }
}

Time Courier::Core::next_due(const Lane& lane) const {
  Time next = std::max(lane.tell, lane.paused_until);
  if (!lane.sent.empty()) next = std::min(next, lane.sent.begin()->first);
  // With a full window, an answer wakes the loop.
  if (lane.ready.empty() || lane.sent.size() >= lane.window) return next;
  return std::min(next, std::max(lane.ready.begin()->first, lane.paused_until));
}

void Courier::Core::failed(Lane& lane, uint64_t number, Open& open, const Error& why) {
  ++open.failures;
  counts_.last_failure = why.reason + ": " + why.message;
  lane.window = 1;
  const Time now = background_.steady_now();
  // Deliveries that were under way together fail together.
  if (lane.paused_until <= now) lane.paused_until = now + pause(++lane.failures);
  set_state(lane, number, open, State::ready, now + pause(open.failures));
}

void Courier::Core::send(Sending sending) {
  const uint32_t shard = sending.shard;
  const uint64_t number = sending.input.delivery->number, below = sending.input.delivery->below;
  link_.send(shard, std::move(sending.input),
             [core = weak_from_this(), shard, number, below,
              attempt = sending.attempt](Result<Answer> answer) {
               std::shared_ptr<Core> alive = core.lock();
               if (!alive) return;
               if (number == 0)
                 alive->told(shard, below, std::move(answer));
               else
                 alive->answered(shard, number, attempt, std::move(answer));
             });
}

void Courier::Core::told(uint32_t shard, uint64_t below, Result<Answer> answer) {
  std::lock_guard lock(mutex_);
  Lane& lane = lanes_[shard];
  if (over_ || !lane.open.empty() || lane.last + 1 != below) return;
  if (answer && answer->body == "0") return;
  // More marks are left, or the target was not reached. The next delivery tells it as well.
  if (!answer && ++lane.tell_failures > kTellAttempts) return;
  lane.tell = background_.steady_now() + (answer ? 0 : pause(lane.tell_failures));
  wake();
}

void Courier::Core::answered(uint32_t shard, uint64_t number, uint64_t attempt,
                             Result<Answer> answer) {
  std::lock_guard lock(mutex_);
  if (over_) return;
  Lane& lane = lanes_[shard];
  auto it = lane.open.find(number);
  if (it == lane.open.end() || it->second.state == State::settling) return;
  Open& open = it->second;
  Result<DeliveryReceipt> receipt = answer ? decode_delivery_receipt(answer->body)
                                           : Result<DeliveryReceipt>(fail(answer.error()));
  if (!receipt) {
    // A late failure of an earlier attempt says nothing about the newest one.
    if (open.state != State::sent || open.attempt != attempt) return;
    if (receipt.error().code == Code::corrupt || receipt.error().is(kDeliveryForgotten))
      log(Level::error, "an effect cannot be delivered to another shard",
          {{"effect", open.effect->id}, {"shard", shard}, {"why", receipt.error().message}});
    failed(lane, number, open, receipt.error());
    return wake();
  }
  lane.failures = 0;
  lane.paused_until = 0;
  lane.window = std::min(options_.window, lane.window * 2);
  set_state(lane, number, open, State::settling, 0);
  receipts_.push_back({shard, number, open.effect->id, open.effect->tenant, std::move(*receipt)});
  wake();
}

void Courier::Core::settle(Receipt receipt) {
  Input input;
  const bool refused = receipt.receipt.refusal.has_value();
  input.verb = refused ? kRefused : kDelivered;
  input.body =
      refused ? encode_refusal(*receipt.receipt.refusal) : std::move(receipt.receipt.answer);
  input.settles = std::move(receipt.effect);
  input.caller.tenant = std::move(receipt.tenant);
  input.caller.user = "~kernel";
  {
    std::lock_guard lock(mutex_);
    ++(refused ? counts_.refused : counts_.delivered);
  }
  source_.submit(std::move(input), [core = weak_from_this(), shard = receipt.shard,
                                    number = receipt.number](Result<Answer> answer) {
    if (std::shared_ptr<Core> alive = core.lock()) alive->settled(shard, number, std::move(answer));
  });
}

// A settled effect is removed by closed(), which comes before this answer.
void Courier::Core::settled(uint32_t shard, uint64_t number, Result<Answer> answer) {
  if (answer) return;
  const Error& why = answer.error();
  std::lock_guard lock(mutex_);
  if (why.is(kStopping) || why.is(kJournalFailed) || why.is(kShardMoved)) {
    over_ = true;
    return;
  }
  Lane& lane = lanes_[shard];
  auto it = lane.open.find(number);
  if (over_ || it == lane.open.end() || it->second.state != State::settling) return;
  if (why.is(kQuarantined)) return set_state(lane, number, it->second, State::parked, 0);
  // The program failed on the receipt. The target gives the same one again.
  ++it->second.failures;
  counts_.last_failure = why.reason + ": " + why.message;
  set_state(lane, number, it->second, State::ready,
            background_.steady_now() + pause(it->second.failures));
  wake();
}

CourierStats Courier::Core::stats() const {
  std::lock_guard lock(mutex_);
  CourierStats out = counts_;
  for (const auto& [shard, lane] : lanes_) {
    out.open += lane.open.size();
    out.in_flight += lane.sent.size();
    for (const auto& [number, open] : lane.open) {
      out.failing += open.failures > 0;
      out.parked += open.state == State::parked;
    }
  }
  return out;
}

Courier::Courier(KernelAccess& source, Link& link, Background& background, CourierOptions options)
    : core_(std::make_shared<Core>(source, link, background, options)) {}
Courier::~Courier() { stop(); }
void Courier::start() { core_->start(); }
void Courier::stop() { core_->stop(); }
void Courier::opened(const EffectPtr& effect) { core_->opened(effect); }
void Courier::closed(const Effect& effect) { core_->closed(effect); }
void Courier::flushed() { core_->flushed(); }
void Courier::restored() { core_->restored(); }
CourierStats Courier::stats() const { return core_->stats(); }

}  // namespace pawl
