// Requests on their way to the simulated server and back.

#include <fmt/format.h>

#include "base/limits.h"
#include "sim/server_process.h"

namespace pawl::sim {

void World::hit_open_calls(Fault fault) {
  for (const auto& [id, call] : open_calls_)
    coverage_.hit(fault, call->sent.method, call->sent.path);
}

bool World::strikes_call(Fault fault, uint64_t one_in, const Sent& sent) {
  if (!strikes(fault, one_in)) return false;
  coverage_.hit(fault, sent.method, sent.path);
  return true;
}

void World::settle(const CallPtr& call, std::optional<wire::Response> response, Time delay) {
  if (!call->answered) return;
  open_calls_.erase(call->id);
  schedule_.after(delay, [this, answered = std::exchange(call->answered, nullptr), call,
                          response = std::move(response)] {
    ++answers_;
    if (response) ++coverage_.answers[path_of(call->sent.method, call->sent.path)];
    note(fmt::format("#{} {}", call->id,
                     response ? std::to_string(response->status) : std::string("no answer")));
    answered(response);
  });
}

void World::deliver(const CallPtr& call) {
  if (dead_ || !server_) return;  // also a copy that comes after the answer
  if (server_->stopped || !server_->handle) return;
  call->life = life_;
  if (call->id < newest_delivered_) {
    ++counts_[Fault::reordered_request];
    coverage_.hit(Fault::reordered_request, call->sent.method, call->sent.path);
  }
  newest_delivered_ = std::max(newest_delivered_, call->id);
  wire::Request request{.method = call->sent.method,
                        .path = call->sent.path,
                        .query = {},
                        .headers = call->sent.headers,
                        .body = call->sent.body,
                        .caller = {}};
  if (const size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  request.headers.emplace_back("Host", "localhost");
  mutate_request(options_.mutation, schedule_, request, last_authorization_);
  call->peers.push_back(std::make_unique<FalsePeer>());
  request.peer = call->peers.back().get();
  server_->handle(std::move(request), [this, call, life = life_](wire::Response response) {
    // An answer of a dead process reaches nobody.
    if (dead_ || life != life_ || server_->closed || !call->answered) return;
    const Time latency = static_cast<Time>(schedule_.roll(3 * kMillisecond));
    if (strikes_call(Fault::lost_answer, 80, call->sent))
      return settle(call, std::nullopt, call->sent.patience);
    if (!response.stream) return settle(call, std::move(response), latency);
    // The head is on its way; the body follows it.
    schedule_.after(latency, [this, call, life, response = std::move(response)] {
      if (dead_ || life != life_ || server_->closed || !call->answered || call->stream) return;
      read_stream(call, response);
    });
  });
}

// Bytes that a reader may leave unread: those of the real server, or few.
static constexpr size_t kSmallRoom = 2000;

void World::read_stream(const CallPtr& call, wire::Response response) {
  const auto open = std::exchange(response.stream, nullptr);
  // Shared by the functions of the reader, which outlive this call.
  auto answer = std::make_shared<wire::Response>(std::move(response));
  const bool slow = strikes_call(Fault::slow_reader, 10, call->sent);
  StreamReader reader;
  reader.room = threatens(Fault::full_buffer, 10) ? kSmallRoom : limits::kStreamBytes;
  reader.latency = [this, slow] {
    const uint64_t unit = slow ? 20 * kSecond : 3 * kMillisecond;
    return static_cast<Time>(schedule_.roll(unit));
  };
  reader.piece = [this, call, answer](std::string text) {
    if (options_.mutation == Mutation::lost_piece && schedule_.one_in(10)) return;
    note(fmt::format("#{} reads {}", call->id, text.substr(0, 300)));
    if (call->sent.piece) return call->sent.piece(std::move(text));
    answer->body += text;
  };
  reader.over = [this, call, answer](bool whole) {
    if (call->stream->overrun()) {
      ++counts_[Fault::full_buffer];
      coverage_.hit(Fault::full_buffer, call->sent.method, call->sent.path);
    }
    if (whole) return settle(call, std::move(*answer), 0);
    settle(call, std::nullopt, 0);
  };
  call->stream = std::make_shared<FalseStream>(schedule_, std::move(reader));
  open(call->stream);
}

void World::call(Sent sent, Answered answered) {
  auto call = std::make_shared<Call>();
  call->id = ++next_call_;
  call->sent = std::move(sent);
  call->answered = std::move(answered);
  note(fmt::format("#{} {} {} {}", call->id, call->sent.method, call->sent.path,
                   call->sent.body.substr(0, 200)));
  open_calls_.emplace(call->id, call);
  Time latency = static_cast<Time>(schedule_.roll(3 * kMillisecond));
  if (strikes_call(Fault::late_request, 60, call->sent))
    latency += static_cast<Time>(schedule_.roll(60 * kSecond));
  const Time patience = call->sent.patience;
  if (!strikes_call(Fault::lost_request, 80, call->sent))
    schedule_.after(latency, [this, call] { deliver(call); });
  if (strikes_call(Fault::doubled_request, 60, call->sent))
    schedule_.after(latency + static_cast<Time>(schedule_.roll(5 * kSecond)),
                    [this, call] { deliver(call); });
  const Time leaves =
      strikes_call(Fault::client_left, 80, call->sent)
          ? static_cast<Time>(schedule_.roll(static_cast<uint64_t>(std::max<Time>(1, patience))))
          : patience;
  schedule_.after(leaves, [this, call] {
    if (!call->answered) return;
    if (!dead_ && call->life == life_ && call->stream)
      call->stream->leave();
    else if (!dead_ && call->life == life_)
      for (auto& peer : call->peers)
        peer->leave();
    settle(call, std::nullopt, 0);
  });
}

}  // namespace pawl::sim
