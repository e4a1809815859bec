#include "faces/entities/members/members.h"

#include <fmt/format.h>

#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr std::chrono::milliseconds kDefaultTimeout{30'000};
// Longer waits are cut to this, so that adding one to the time cannot overflow.
constexpr std::chrono::milliseconds kMaxWait = std::chrono::hours(24 * 365 * 100);

Time after(Time now, std::chrono::milliseconds wait) {
  return now + std::min(wait, kMaxWait).count() * kMillisecond;
}

// "a, b" -> a and b. Empty tags are dropped; no tags at all match every member of the tenant.
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

// The type of the event that carries a call, by the kind of the call.
constexpr const char* kRequests[] = {"EntityProcessorCalculationRequest",
                                     "EntityCriteriaCalculationRequest",
                                     "EntityFunctionCalculationRequest"};

std::string keepalive_payload(const std::string& member) {
  return fmt::format(R"({{"id":"{0}","memberId":"{0}","success":true}})", member);
}

MemberEvent greeting(const std::string& id, const std::string& tenant) {
  return {"CalculationMemberGreetEvent",
          json::print(json::object(
              {{"id", id}, {"memberId", id}, {"joinedLegalEntityId", tenant}, {"success", true}})),
          {}};
}

// The attributes tell the member who the caller is, and the token how to join the transaction.
MemberEvent request_event(const Call& call) {
  const bool service = call.roles.find("ROLE_M2M") != std::string::npos;
  MemberEvent event{kRequests[call.kind], call.payload, {}};
  event.attributes = {{"authtype", service ? "service_account" : "user"},
                      {"authid", call.user},
                      {"authclaims", call.roles}};
  if (!call.token.empty()) event.attributes.emplace_back("cyodatxtoken", call.token);
  return event;
}

}  // namespace

Members::Members(KernelAccess& kernel, Background& background, MemberOptions options)
    : kernel_(kernel), background_(background), options_(options), began_(kernel.now()) {}
Members::~Members() { stop(); }

void Members::start() {
  std::lock_guard lock(mutex_);  // the first step may run before loop_ is assigned
  loop_ = background_.loop("entity members", [this] { return step(); });
}

void Members::stop() {
  std::unique_ptr<BackgroundLoop> loop;
  {
    std::lock_guard lock(mutex_);
    loop = std::move(loop_);
  }
  // A running step may need mutex_, so the loop is destroyed without it.
  loop.reset();
}

void Members::wake_loop() {
  if (loop_) loop_->wake();
}

// Unique in this process; `began_` makes ids of two runs differ.
std::string Members::new_id() {
  return dice_from(fmt::format("{}.{}.{}", began_, ++id_counter_, kernel_.now())).uuid4();
}

std::string Members::join(std::shared_ptr<MemberStream> stream, std::string tenant,
                          std::vector<std::string> tags) {
  Actions actions;
  std::string id;
  {
    std::lock_guard lock(mutex_);
    id = new_id();
    Member& member = members_[id];
    member.stream = std::move(stream);
    member.tenant = std::move(tenant);
    member.tags.insert(tags.begin(), tags.end());
    member.last_alive = background_.steady_now();
    member.next_keepalive = after(member.last_alive, options_.keepalive_interval);
    actions.events.emplace_back(member.stream, greeting(id, member.tenant));
    // Calls that wait for a member may go to this one. assign() may erase the call.
    for (auto call = calls_.begin(); call != calls_.end();) {
      auto next = std::next(call);
      if (call->second.member.empty() && !call->second.waits_for_retry) assign(call, actions);
      call = next;
    }
    wake_loop();
  }
  carry_out(std::move(actions));
  return id;
}

void Members::leave(const std::string& id) {
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    auto member = members_.find(id);
    if (member == members_.end()) return;
    std::set<std::string> requests = std::move(member->second.requests);
    members_.erase(member);
    for (const std::string& request : requests)
      if (auto call = calls_.find(request); call != calls_.end())
        finish_call(call, {.kind = CallResult::disconnected, .message = "member disconnected"},
                    actions);
  }
  carry_out(std::move(actions));
}

void Members::alive(const std::string& id) {
  std::lock_guard lock(mutex_);
  if (auto member = members_.find(id); member != members_.end())
    member->second.last_alive = background_.steady_now();
}

void Members::answered(const std::string& id, const std::string& request, Call::Kind kind,
                       CallResult result) {
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    auto call = calls_.find(request);
    if (call == calls_.end() || call->second.member != id || call->second.call.kind != kind) return;
    finish_call(call, std::move(result), actions);
  }
  carry_out(std::move(actions));
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
                  {.kind = CallResult::failed, .message = call.error().message});
  // A call inside an open turn cannot be from before a restart: open turns do not survive one.
  const bool recovered = call->opened_at < began_ && call->turn == 0;
  // The client's request ended with the old process, so no client waits for this call.
  if (recovered && !call->durable)
    return settle(effect->id, effect->tenant, {.kind = CallResult::dropped});
  // Never sent: its result only starts the second transaction (see Call).
  if (call->starts_transaction)
    return settle(effect->id, effect->tenant, {.redelivered = recovered});
  Actions actions;
  {
    std::lock_guard lock(mutex_);
    PendingCall pending;
    pending.tenant = effect->tenant;
    pending.tags = split_tags(call->tags);
    pending.waits_forever = recovered || call->redelivered;
    pending.call = std::move(*call);
    if (!pending.call.token.empty()) tokens_[pending.call.token] = effect->id;
    auto [at, inserted] = calls_.insert_or_assign(effect->id, std::move(pending));
    const Call& c = at->second.call;
    // The machine repeats a call inside a transaction; the pause before the repetition is made
    // here.
    auto delay = c.attempt > 1 ? retry_delay(c.retry_policy, c.attempt - 1) : std::nullopt;
    at->second.waits_for_retry = delay.has_value();
    if (delay)
      set_deadline(at, after(background_.steady_now(), *delay));
    else
      assign(at, actions);
  }
  carry_out(std::move(actions));
}

void Members::closed(const Effect& effect) {
  std::lock_guard lock(mutex_);
  auto call = calls_.find(effect.id);
  if (call == calls_.end()) return;
  detach(call);
  tokens_.erase(call->second.call.token);
  calls_.erase(call);
}

void Members::set_deadline(Calls::iterator call, Time at) {
  deadlines_.erase({call->second.deadline, call->first});
  call->second.deadline = at;
  if (at == BackgroundLoop::kNever) return;
  deadlines_.emplace(at, call->first);
  if (at < wakes_at_) wake_loop();
}

void Members::detach(Calls::iterator call) {
  set_deadline(call, BackgroundLoop::kNever);
  if (auto member = members_.find(call->second.member); member != members_.end())
    member->second.requests.erase(call->first);
  call->second.member.clear();
}

// The member with the fewest open calls among those that have every tag.
Members::Member* Members::choose_member(const PendingCall& call, std::string& id) {
  Member* best = nullptr;
  size_t nth = 0;
  const size_t count = members_.size();
  const size_t first = count ? next_choice_++ % count : 0;
  for (auto& [name, member] : members_) {
    // Among equally busy members the first one from position `first` on is taken.
    const bool earlier = nth++ < first;
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

// Sends the call to a member, or lets it wait, or ends it with no_member.
void Members::assign(Calls::iterator call, Actions& actions) {
  PendingCall& p = call->second;
  std::string id;
  Member* member = choose_member(p, id);
  if (!member) {
    if (p.waits_forever) return;
    if (options_.dispatch_wait.count() <= 0)
      return finish_call(call, {.kind = CallResult::no_member}, actions);
    if (p.deadline == BackgroundLoop::kNever)
      set_deadline(call, after(background_.steady_now(), options_.dispatch_wait));
    return;
  }
  p.member = id;
  member->requests.insert(call->first);
  const auto timeout =
      p.call.timeout_ms > 0 ? std::chrono::milliseconds(p.call.timeout_ms) : kDefaultTimeout;
  set_deadline(call, after(background_.steady_now(), timeout));
  actions.events.emplace_back(member->stream, request_event(p.call));
}

// Ends the attempt: the call is repeated by its retry policy, or its result goes to the kernel.
void Members::finish_call(Calls::iterator call, CallResult result, Actions& actions) {
  PendingCall& p = call->second;
  detach(call);
  // A call inside a transaction has a token. Its machine repeats it, after undoing what callbacks
  // of the failed attempt wrote.
  const bool repeats_here = p.call.token.empty();
  if (auto delay = retry_delay(p.call.retry_policy, p.attempt);
      delay && repeats_here && !result.ok()) {
    p.waits_for_retry = true;
    set_deadline(call, after(background_.steady_now(), *delay));
    return;
  }
  actions.settled.push_back({call->first, p.tenant, std::move(result)});
  tokens_.erase(p.call.token);
  calls_.erase(call);
}

// Outside the lock: streams and the kernel take locks of their own and may call back.
void Members::carry_out(Actions actions) {
  for (auto& [stream, event] : actions.events)
    stream->send(std::move(event));
  for (auto& stream : actions.ended)
    stream->end_unresponsive();
  for (Actions::Settled& s : actions.settled)
    settle(s.request, s.tenant, s.result);
}

void Members::settle(const std::string& request, const std::string& tenant,
                     const CallResult& result) {
  Input input;
  input.program = kProgram;
  input.verb = "verdict";  // the name in journals: it cannot change
  input.body = encode(result);
  input.caller.tenant = tenant;
  input.caller.user = "system";
  input.settles = request;
  const bool last = result.kind == CallResult::lost;
  // Members must outlive the kernel's open inputs: the callback refers to it.
  kernel_.submit(std::move(input), [this, request, tenant, last](Result<Answer> answer) {
    // The second transaction conflicted with another write. Its dispatch is settled all the same.
    if (!answer && answer.error().code == Code::conflict && !last)
      settle(request, tenant, {.kind = CallResult::lost});
  });
}

std::vector<Members::MemberSummary> Members::list(std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  std::vector<MemberSummary> out;
  for (const auto& [id, m] : members_)
    if (m.tenant == tenant)
      out.push_back({id, m.tenant, {m.tags.begin(), m.tags.end()}, m.requests.size()});
  return out;
}

Time Members::step() {
  Actions actions;
  Time next;
  {
    std::lock_guard lock(mutex_);
    const Time now = background_.steady_now();
    expire_deadlines(now, actions);
    send_keepalives(now, actions);
    next = next_due();
    wakes_at_ = next;
  }
  carry_out(std::move(actions));
  return next;
}

void Members::expire_deadlines(Time now, Actions& actions) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    auto call = calls_.find(deadlines_.begin()->second);
    if (call == calls_.end()) {
      deadlines_.erase(deadlines_.begin());
      continue;
    }
    PendingCall& p = call->second;
    if (p.waits_for_retry) {
      p.waits_for_retry = false;
      ++p.attempt;
      set_deadline(call, BackgroundLoop::kNever);
      assign(call, actions);
    } else if (p.member.empty()) {
      finish_call(call, {.kind = CallResult::no_member}, actions);
    } else {
      finish_call(call, {.kind = CallResult::timed_out, .message = "timed out"}, actions);
    }
  }
}

void Members::send_keepalives(Time now, Actions& actions) {
  for (auto& [id, member] : members_) {
    if (now >= after(member.last_alive, options_.keepalive_timeout)) {
      actions.ended.push_back(member.stream);
      // The stream ends soon and calls leave(). Until then it is not ended twice.
      member.last_alive = now;
    }
    if (now >= member.next_keepalive) {
      actions.events.emplace_back(
          member.stream, MemberEvent{"CalculationMemberKeepAliveEvent", keepalive_payload(id), {}});
      member.next_keepalive = after(now, options_.keepalive_interval);
    }
  }
}

Time Members::next_due() const {
  Time next = deadlines_.empty() ? BackgroundLoop::kNever : deadlines_.begin()->first;
  for (const auto& [id, member] : members_)
    next = std::min(
        {next, member.next_keepalive, after(member.last_alive, options_.keepalive_timeout)});
  return next;
}

}  // namespace pawl::entities
