#include "faces/entities/members/members.h"

#include <fmt/format.h>

#include "base/dice.h"
#include "base/hash.h"
#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr std::chrono::milliseconds kTimeout{30'000};
// No clock counts to the end of what a workflow may ask for.
constexpr std::chrono::milliseconds kMax = std::chrono::hours(24 * 365 * 100);

std::vector<std::string> split_tags(std::string_view tags) {
  std::vector<std::string> out;
  while (!tags.empty()) {
    size_t comma = tags.find(',');
    std::string_view tag = tags.substr(0, comma);
    tags = comma == tags.npos ? std::string_view() : tags.substr(comma + 1);
    while (!tag.empty() && tag.front() == ' ')
      tag.remove_prefix(1);
    while (!tag.empty() && tag.back() == ' ')
      tag.remove_suffix(1);
    if (!tag.empty()) out.emplace_back(tag);
  }
  return out;
}

// The event that carries a call, by its kind.
constexpr const char* kRequests[] = {"EntityProcessorCalculationRequest",
                                     "EntityCriteriaCalculationRequest",
                                     "EntityFunctionCalculationRequest"};

std::string keepalive_payload(const std::string& member) {
  return fmt::format(R"({{"id":"{0}","memberId":"{0}","success":true}})", member);
}

}  // namespace

Members::Members(KernelAccess& kernel, MemberOptions options)
    : kernel_(kernel), options_(options), began_(kernel.now()) {}
Members::~Members() { stop(); }

void Members::start() {
  thread_ = std::thread([this] { loop(); });
}

void Members::stop() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string Members::new_id() {
  Digest d = sha256(fmt::format("{}.{}.{}", began_, ++counter_, kernel_.now()));
  std::array<uint64_t, 2> seed{};
  std::memcpy(seed.data(), d.data(), sizeof seed);
  return Dice(seed).uuid4();
}

std::string Members::join(std::shared_ptr<MemberStream> stream, std::string tenant,
                          std::vector<std::string> tags) {
  Out out;
  std::string id;
  {
    std::lock_guard lock(mutex_);
    id = new_id();
    Member& member = members_[id];
    member.stream = std::move(stream);
    member.tenant = std::move(tenant);
    member.tags.insert(tags.begin(), tags.end());
    member.proved = Clock::now();
    member.next_ping = member.proved + options_.keepalive_interval;
    out.events.emplace_back(
        member.stream, Outgoing{"CalculationMemberGreetEvent",
                                json::print(json::object({{"id", id},
                                                          {"memberId", id},
                                                          {"joinedLegalEntityId", member.tenant},
                                                          {"success", true}})),
                                {}});
    for (auto call = calls_.begin(); call != calls_.end();) {
      auto next = std::next(call);
      if (call->second.member.empty() && !call->second.resting) place(call, out);
      call = next;
    }
  }
  wake_.notify_all();
  say(std::move(out));
  return id;
}

void Members::leave(const std::string& id) {
  Out out;
  {
    std::lock_guard lock(mutex_);
    auto member = members_.find(id);
    if (member == members_.end()) return;
    std::set<std::string> requests = std::move(member->second.requests);
    members_.erase(member);
    for (const std::string& request : requests)
      if (auto call = calls_.find(request); call != calls_.end())
        conclude(call, {.kind = Verdict::disconnected, .message = "member disconnected"}, out);
  }
  say(std::move(out));
}

void Members::alive(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (auto member = members_.find(id); member != members_.end())
    member->second.proved = Clock::now();
}

void Members::answered(const std::string& id, const std::string& request, Call::Kind kind,
                       Verdict verdict) {
  Out out;
  {
    std::lock_guard lock(mutex_);
    auto call = calls_.find(request);
    if (call == calls_.end() || call->second.member != id || call->second.call.kind != kind) return;
    conclude(call, std::move(verdict), out);
  }
  say(std::move(out));
}

std::optional<Members::Joined> Members::find_token(std::string_view token,
                                                   std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  auto request = tokens_.find(token);
  if (request == tokens_.end()) return std::nullopt;
  auto call = calls_.find(request->second);
  if (call == calls_.end() || call->second.tenant != tenant) return std::nullopt;
  return Joined{call->second.call.turn, call->second.call.tx};
}

void Members::opened(const EffectPtr& effect) {
  auto call = decode_call(effect->body);
  if (!call)
    return settle(effect->id, effect->tenant,
                  {.kind = Verdict::failed, .message = call.error().message});
  bool recovered = call->opened < began_ && call->turn == 0;
  if (recovered && !call->durable)
    return settle(effect->id, effect->tenant, {.kind = Verdict::dropped});
  if (call->begins) return settle(effect->id, effect->tenant, {.again = recovered});
  Out out;
  {
    std::lock_guard lock(mutex_);
    Pending pending;
    pending.tenant = effect->tenant;
    pending.tags = split_tags(call->tags);
    pending.patient = recovered || call->again;
    pending.call = std::move(*call);
    if (!pending.call.token.empty()) tokens_[pending.call.token] = effect->id;
    auto [at, fresh] = calls_.insert_or_assign(effect->id, std::move(pending));
    const Call& c = at->second.call;
    auto rest = c.attempt > 1 ? rest_after(c.retry_policy, c.attempt - 1) : std::nullopt;
    at->second.resting = rest.has_value();
    rest ? set_deadline(at, Clock::now() + *rest) : place(at, out);
  }
  say(std::move(out));
}

void Members::closed(const Effect& effect) {
  std::lock_guard lock(mutex_);
  auto call = calls_.find(effect.id);
  if (call == calls_.end()) return;
  detach(call);
  tokens_.erase(call->second.call.token);
  calls_.erase(call);
}

void Members::set_deadline(Calls::iterator call, Clock::time_point at) {
  deadlines_.erase({call->second.deadline, call->first});
  call->second.deadline = at;
  if (at == Clock::time_point::max()) return;
  deadlines_.emplace(at, call->first);
  if (at < wakes_) wake_.notify_all();
}

void Members::detach(Calls::iterator call) {
  set_deadline(call, Clock::time_point::max());
  if (auto member = members_.find(call->second.member); member != members_.end())
    member->second.requests.erase(call->first);
  call->second.member.clear();
}

// Of those that have every tag the one with the least to do.
Members::Member* Members::choose(const Pending& call, std::string& id) {
  Member* best = nullptr;
  size_t nth = 0, count = members_.size();
  size_t from = count ? turn_++ % count : 0;
  for (auto& [name, member] : members_) {
    bool earlier = nth++ < from;
    if (member.tenant != call.tenant) continue;
    if (!std::all_of(call.tags.begin(), call.tags.end(),
                     [&](const std::string& tag) { return member.tags.contains(tag); }))
      continue;
    if (best && (member.requests.size() > best->requests.size() ||
                 (member.requests.size() == best->requests.size() && earlier)))
      continue;
    best = &member;
    id = name;
  }
  return best;
}

void Members::place(Calls::iterator call, Out& out) {
  Pending& p = call->second;
  std::string id;
  Member* member = choose(p, id);
  if (!member) {
    if (p.patient) return;
    if (options_.dispatch_wait.count() <= 0)
      return conclude(call, {.kind = Verdict::no_member}, out);
    if (p.deadline == Clock::time_point::max())
      set_deadline(call, Clock::now() + options_.dispatch_wait);
    return;
  }
  p.member = id;
  member->requests.insert(call->first);
  set_deadline(call,
               Clock::now() + (p.call.timeout_ms > 0
                                   ? std::min(std::chrono::milliseconds(p.call.timeout_ms), kMax)
                                   : kTimeout));
  Outgoing event{kRequests[p.call.kind], p.call.payload, {}};
  bool service = p.call.roles.find("ROLE_M2M") != std::string::npos;
  event.attributes = {{"authtype", service ? "service_account" : "user"},
                      {"authid", p.call.user},
                      {"authclaims", p.call.roles}};
  if (!p.call.token.empty()) event.attributes.emplace_back("cyodatxtoken", p.call.token);
  out.events.emplace_back(member->stream, std::move(event));
}

void Members::conclude(Calls::iterator call, Verdict verdict, Out& out) {
  Pending& p = call->second;
  detach(call);
  // A call inside a transaction is repeated by its machine, which first undoes what callbacks
  // wrote.
  bool ours = p.call.token.empty();
  if (auto rest = rest_after(p.call.retry_policy, p.attempt); rest && ours && !verdict.ok()) {
    p.resting = true;
    set_deadline(call, Clock::now() + *rest);
    return;
  }
  out.settled.push_back({call->first, p.tenant, std::move(verdict)});
  tokens_.erase(p.call.token);
  calls_.erase(call);
}

void Members::say(Out out) {
  for (auto& [stream, event] : out.events)
    stream->send(std::move(event));
  for (auto& stream : out.ended)
    stream->end_silent();
  for (Out::Settled& s : out.settled)
    settle(s.request, s.tenant, s.verdict);
}

void Members::settle(const std::string& request, const std::string& tenant,
                     const Verdict& verdict) {
  Input input;
  input.program = kProgram;
  input.verb = "verdict";
  input.body = encode(verdict);
  input.caller.tenant = tenant;
  input.caller.user = "system";
  input.settles = request;
  bool last = verdict.kind == Verdict::lost;
  kernel_.submit(std::move(input), [this, request, tenant, last](Result<Answer> answer) {
    // The second transaction lost its race: settle the dispatch all the same.
    if (!answer && answer.error().code == Code::conflict && !last)
      settle(request, tenant, {.kind = Verdict::lost});
  });
}

std::vector<Members::Seen> Members::list(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  std::vector<Seen> out;
  for (const auto& [id, m] : members_)
    if (m.tenant == tenant)
      out.push_back({id, m.tenant, {m.tags.begin(), m.tags.end()}, m.requests.size()});
  return out;
}

void Members::loop() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    Out out;
    auto now = Clock::now();
    auto next = now + std::chrono::seconds(60);
    while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
      auto call = calls_.find(deadlines_.begin()->second);
      if (call == calls_.end()) {
        deadlines_.erase(deadlines_.begin());
        continue;
      }
      Pending& p = call->second;
      if (p.resting) {
        p.resting = false;
        ++p.attempt;
        set_deadline(call, Clock::time_point::max());
        place(call, out);
      } else if (p.member.empty()) {
        conclude(call, {.kind = Verdict::no_member}, out);
      } else {
        conclude(call, {.kind = Verdict::timed_out, .message = "timed out"}, out);
      }
    }
    for (auto& [id, member] : members_) {
      if (now - member.proved >= options_.keepalive_timeout) {
        out.ended.push_back(member.stream);
        member.proved = now;
      }
      if (now >= member.next_ping) {
        out.events.emplace_back(
            member.stream, Outgoing{"CalculationMemberKeepAliveEvent", keepalive_payload(id), {}});
        member.next_ping = now + options_.keepalive_interval;
      }
      next = std::min({next, member.next_ping, member.proved + options_.keepalive_timeout});
    }
    if (!deadlines_.empty()) next = std::min(next, deadlines_.begin()->first);
    if (!out.events.empty() || !out.ended.empty() || !out.settled.empty()) {
      lock.unlock();
      say(std::move(out));
      lock.lock();
      continue;
    }
    wakes_ = next;
    wake_.wait_until(lock, next);
  }
}

}  // namespace pawl::entities
