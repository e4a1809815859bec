#pragma once
// Shards of one process that send each other effects, with a link and with journals that fail.

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/dice.h"
#include "kernel/delivery.h"
#include "kernel/verify.h"
#include "runtime/cluster/courier.h"
#include "runtime/shard.h"
#include "storage/memory/memory.h"

namespace pawl {

// "send SHARD" opens an effect to a shard, named by the body; there "take" counts it. Names decide
// what the target does: "no..." is refused, "shut..." is unavailable until a cell "door" exists,
// "big..." answers too much. The receipts are counted as well.
class Post final : public Program {
 public:
  std::string_view name() const override { return "post"; }
  Result<Bytes> run(Turn& turn, const Input& input) const override {
    if (input.verb.starts_with("send ")) {
      const auto shard = static_cast<uint32_t>(std::stoul(input.verb.substr(5)));
      turn.open(effect_to_shard(input.body, "post", shard, "take", input.body, turn.caller()));
      return Bytes();
    }
    if (input.verb == "withdraw") {
      turn.withdraw(input.body);
      return Bytes();
    }
    if (input.verb == kDelivered || input.verb == kRefused) {
      TRY_OK(count(turn, "settled", input.settles));
      if (input.verb == kDelivered) {
        turn.write(key({"post", "answer", input.settles}), input.body);
        return Bytes();
      }
      TRY(Error refusal, decode_refusal(input.body));
      turn.write(key({"post", "answer", input.settles}), refusal.reason);
      return Bytes();
    }
    if (input.verb == "ask-then-take") {
      turn.ask({input.body, To::member, "post", "t", "m", 0, ""});
      return Bytes();
    }
    return take(turn, input.settles.empty() ? input.body : input.settles);
  }

 private:
  static Result<Bytes> take(Turn& turn, const std::string& name) {
    if (name.starts_with("big")) return Bytes(100 * 1024, 'x');
    if (name.starts_with("shut")) {
      TRY(Cell door, turn.read(key({"post", "taken", "door"})));
      if (!door.exists()) return fail(Code::unavailable, "SHUT", "the door is shut");
    }
    TRY(Bytes number, count(turn, "taken", name));
    if (name.starts_with("no")) return fail(Code::invalid, "NO", "not this one");
    return number + " for " + turn.caller().user;
  }
  static Result<Bytes> count(Turn& turn, const std::string& what, const std::string& name) {
    const Key cell_key = key({"post", what, name});
    TRY(Cell cell, turn.read(cell_key));
    const int n = cell.exists() ? std::stoi(std::string(cell.value())) : 0;
    turn.write(cell_key, std::to_string(n + 1));
    return std::to_string(n + 1);
  }
};

// A journal whose entries outlive the shard. The append number `fails_at` fails, before or after
// its entries are stored, as in a crash: the shard cannot know which.
class KeptJournal final : public Journal {
 public:
  struct Kept {
    MemoryJournal entries;
    std::atomic<int> appends{0}, fails_at{0};
    std::atomic<bool> stores{false};
  };
  explicit KeptJournal(std::shared_ptr<Kept> kept) : kept_(std::move(kept)) {}
  Result<void> append(std::span<const BytesView> entries, Seq expected_last) override {
    const bool fails = ++kept_->appends == kept_->fails_at;
    if (!fails || kept_->stores) TRY_OK(kept_->entries.append(entries, expected_last));
    if (fails) return fail(Code::unavailable, "JOURNAL_WRITE", "the test said so");
    return {};
  }
  Result<void> read(Seq from, const Visit& visit) const override {
    return kept_->entries.read(from, visit);
  }
  Seq first() const override { return kept_->entries.first(); }
  Seq last() const override { return kept_->entries.last(); }
  Result<void> trim(Seq keep_from) override { return kept_->entries.trim(keep_from); }
  uint64_t bytes() const override { return kept_->entries.bytes(); }

 private:
  std::shared_ptr<Kept> kept_;
};

// Loses, doubles and delays what goes through it, deliveries and answers.
class LossyLink final : public Link {
 public:
  LossyLink(Link& under, uint64_t seed) : under_(under), dice_({seed, 3}) {}
  void send(uint32_t shard, Input delivery, Reply done) override {
    const uint64_t roll = calm_ ? 9 : roll_of(10);
    if (roll == 0) return;  // the delivery is lost
    auto shared = std::make_shared<Reply>(std::move(done));
    if (roll == 1) {  // the answer is lost
      return under_.send(shard, std::move(delivery), [](Result<Answer>) {});
    }
    if (roll == 2) {  // kept for later: it overtakes nothing, others overtake it
      std::lock_guard lock(mutex_);
      kept_.emplace_back(shard, delivery);
    }
    if (roll == 3) under_.send(shard, delivery, [](Result<Answer>) {});
    under_.send(shard, std::move(delivery),
                [shared](Result<Answer> a) { (*shared)(std::move(a)); });
    if (roll >= 8) send_kept();
  }
  // Everything that was kept arrives, long after it was settled.
  void send_kept() {
    std::vector<std::pair<uint32_t, Input>> late;
    {
      std::lock_guard lock(mutex_);
      late.swap(kept_);
    }
    for (auto& [shard, input] : late)
      under_.send(shard, std::move(input), [](Result<Answer>) {});
  }
  void calm() { calm_ = true; }

 private:
  uint64_t roll_of(uint64_t sides) {
    std::lock_guard lock(mutex_);
    return dice_.next() % sides;
  }
  Link& under_;
  std::mutex mutex_;
  Dice dice_;
  std::atomic<bool> calm_{false};
  std::vector<std::pair<uint32_t, Input>> kept_;
};

// One shard with its courier. It can crash and come back from its journal.
struct PostOffice {
  uint32_t number;
  LocalLink& local;
  Link& link;
  CourierOptions options;
  Post post;
  std::shared_ptr<KeptJournal::Kept> kept = std::make_shared<KeptJournal::Kept>();
  std::function<std::unique_ptr<Journal>()> journal = [this] {
    return std::make_unique<KeptJournal>(kept);
  };
  std::unique_ptr<Shard> shard;
  std::unique_ptr<Courier> courier;

  static CourierOptions quick(uint32_t number) {
    return {.shard = number,
            .patience = 50 * kMillisecond,
            .first_pause = 2 * kMillisecond,
            .longest_pause = 20 * kMillisecond,
            .quiet = 20 * kMillisecond};
  }
  PostOffice(uint32_t n, LocalLink& here, Link& out)
      : number(n), local(here), link(out), options(quick(n)) {}
  ~PostOffice() { close(); }

  void open() {
    shard = *Shard::open(journal(), std::make_unique<MemoryRows>(), {&post});
    courier = std::make_unique<Courier>(*shard, link, shard->scheduler(), options);
    shard->connect(To::shard, *courier);
    courier->start();
    CHECK(shard->start());
    local.attach(number, *shard);
  }
  void close() {
    if (!shard) return;
    local.detach(number);
    courier->stop();
    shard->stop(0);
    courier.reset();
    shard.reset();
  }
  void reopen_if_failed() {
    if (shard->healthy()) return;
    close();
    open();
  }
  Result<Answer> say(std::string verb, std::string body) {
    return submit({.program = "post",
                   .verb = std::move(verb),
                   .body = std::move(body),
                   .caller = {"t", "ann", "admin"}});
  }
  Result<Answer> submit(Input input) {
    auto promise = std::make_shared<std::promise<Result<Answer>>>();
    auto future = promise->get_future();
    shard->submit(std::move(input),
                  [promise](Result<Answer> a) { promise->set_value(std::move(a)); });
    if (future.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
      return fail(Code::unavailable, "SILENT", "");
    return future.get();
  }
  // Says it until it has happened; the shard may crash meanwhile. It may have happened although
  // the answer was an error.
  void insist(const std::string& verb, const std::string& body) {
    for (int i = 0; i < 1000; ++i) {
      if (say(verb, body)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      reopen_if_failed();
      if (is_open(body) || value("settled", body) != "") return;
    }
    FAIL() << verb << " " << body;
  }
  bool is_open(const std::string& id) { return shard->read(effect_key(id))->exists(); }
  std::string value(const std::string& what, const std::string& name) {
    return std::string(shard->read(key({"post", what, name}))->value());
  }
  size_t cells(std::string_view prefix) {
    size_t count = 0;
    CHECK(shard->snapshot().scan(prefix, [&](BytesView, const Cell&) { return ++count > 0; }));
    return count;
  }
  size_t marks() { return cells(std::string_view("~got\0", 5)); }
  std::string verify() {
    MemoryRows scratch;
    const Program* programs[] = {&post};
    auto verified = pawl::verify(shard->journal(), scratch, programs);
    if (!verified) return verified.error().message;
    return verified->difference;
  }
};

inline bool becomes_true(const std::function<bool()>& condition, int milliseconds = 20'000) {
  for (int i = 0; i < milliseconds; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace pawl
