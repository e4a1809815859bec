#include "faces/worlds/executors.h"

#include <algorithm>

#include "base/utf8.h"
#include "net/http_client.h"

namespace pawl::worlds {
namespace {

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The host (and port) of an http or https url; empty for other urls and for urls with a user name.
std::string host_of(std::string_view url) {
  const size_t at = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  if (at == 0) return {};
  std::string host(url.substr(at, url.find_first_of("/?#", at) - at));
  if (host.find('@') != std::string::npos || host.find('\\') != std::string::npos) return {};
  return lower(std::move(host));
}

std::string without_port(const std::string& host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) return host;
  return host.substr(0, colon);
}

bool is_literal(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost") || name.starts_with("[") ||
         (!name.empty() && name.find_first_not_of("0123456789.xabcdef") == std::string_view::npos &&
          name.back() <= '9');
}

}  // namespace

// The params name no HTTP method.
static constexpr Reason kBadMethod{"http.method"};

// The request was refused before it was sent.
static bool is_refused(const Error& error) {
  return error.code == Code::invalid || error.code == Code::denied ||
         error.code == Code::not_found || error.code == Code::too_large;
}

// The status of a request that got no answer. Workflows read it as they read that of an answer.
static int fault_status(const Error& error) {
  if (error.is(net::kTimedOut) || error.code == Code::exhausted) return 598;
  if (error.is(kBadMethod) || error.is(net::kBadMethod)) return 405;
  if (error.is(net::kBadCertificate)) return 599;
  return is_refused(error) ? 400 : 599;
}

// Refuses a method or header that could start a second request or set the length of the body.
static Result<void> check_request(const HttpCall& call) {
  auto bad = [](std::string why) { return fail(Code::invalid, "http.invalid", std::move(why)); };
  if (call.method.empty() || call.method.size() > 16 ||
      call.method.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") != std::string::npos)
    return fail(
        Code::invalid, kBadMethod,
        "method '" + call.method.substr(0, 40) + "' is no HTTP method: GET, POST and the like");
  for (const auto& [name, value] : call.headers) {
    const bool token = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return c > ' ' && c < 127 && c != ':';
    });
    if (!token || value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      return bad("header '" + name.substr(0, 80) + "' is not one line of name and value");
    for (std::string_view own : {"host", "content-length", "transfer-encoding", "connection"})
      if (wire::same_name(name, own)) return bad("header '" + name + "' is the server's to set");
  }
  return {};
}

UrlPermission permission_for(std::string_view url, const std::vector<std::string>& allow) {
  const std::string host = host_of(url);
  if (host.empty()) return {};
  const std::string name = without_port(host);
  for (const std::string& listed : allow) {
    const std::string row = lower(listed);
    if (row == host || row == name) return {true, is_literal(name)};
    if (row.starts_with("*.") && name.size() > row.size() - 1 &&
        name.ends_with(std::string_view(row).substr(1)) && !is_literal(name))
      return {true, false};
  }
  return {};
}

Result<HttpCall> Executors::plan(const Effect& effect, const PendingIntent& intent) const {
  auto name = parse_effect_id(effect.id);
  CHECK(name.has_value());
  TRY(auto loaded, service_.loaded(name->world_id));
  if (!loaded) return fail(Code::not_found, "not_found", "the world is gone");
  TRY(cbor::Value params, cbor::decode(intent.params));
  TRY(params, service_.inject_secrets(name->world_id, *loaded, params));
  HttpCall call;
  call.method = params.text_or("method");
  call.url = params.text_or("url");
  const UrlPermission may = permission_for(call.url, service_.options().http_allow);
  if (!may.yes)
    return fail(
        Code::denied, "http.denied",
        "'" + call.url +
            "' is not in the server's list of allowed hosts: add its host to worlds.http_allow");
  call.allow_private = may.at_private;
  if (const cbor::Value* headers = params.find("headers"); headers && headers->is_map())
    for (const auto& [key, value] : headers->map())
      if (key.is_text() && value.is_text()) call.headers.emplace_back(key.text(), value.text());
  TRY_OK(check_request(call));
  if (const cbor::Value* ref = params.find("body_ref"); ref && ref->is_text()) {
    TRY(Bytes digest, parse_hash(ref->text()));
    TRY(Cell cell, service_.kernel().read(blob_key(name->world_id.tenant, digest)));
    if (!cell.exists())
      return fail(Code::not_found, "store.error",
                  "body_ref " + ref->text() + " is not in the store");
    TRY(Blob blob, decode_blob(digest, cell.value()));
    call.body = std::move(blob.bytes);
  }
  return call;
}

Executors::Executors(Service& service, Background& background, HttpClient* client)
    : service_(service), background_(background), client_(client) {
  retries_ = background_.loop("receipts", [this] { return settle_due(); });
}

void Executors::opened(const EffectPtr& effect) {
  auto intent = decode_pending(effect->body);
  if (!intent || intent->identity.effect != kHttpEffect) return;
  const Time started = service_.kernel().now();
  auto call = plan(*effect, *intent);
  if (call && !client_)
    call = fail(Code::unavailable, "http.unavailable", "this server has no HTTP client");
  if (!call) return finish(*effect, intent->intent, started, fail(std::move(call.error())));
  client_->send(std::move(*call),
                [this, effect, digest = intent->intent, started](Result<HttpReply> reply) {
                  finish(*effect, digest, started, std::move(reply));
                });
}

// Names are in lower case, so that modules can look them up. Values of a repeated header are joined
// with commas, as HTTP does.
static cbor::Value headers_value(const wire::Headers& headers) {
  std::map<std::string, std::string> joined;
  for (const auto& [key, value] : headers) {
    auto [at, first] = joined.try_emplace(lower(as_utf8(key)), as_utf8(value));
    if (!first) at->second += ", " + as_utf8(value);
  }
  cbor::Map out;
  for (auto& [name, value] : joined)
    out.emplace_back(name, value);
  return cbor::Value(std::move(out));
}

struct HttpTimes {
  Time started, ended;
};

// A value of sys/HttpRequestReceipt@1.
static Bytes receipt_payload(int status, const wire::Headers& headers, cbor::Value body_ref,
                             const HttpTimes& times) {
  return cbor::canonical(
      cbor::Map{{"status", int64_t{status}},
                {"headers", headers_value(headers)},
                {"body_ref", std::move(body_ref)},
                {"timings", cbor::Map{{"start_ns", static_cast<uint64_t>(times.started)},
                                      {"end_ns", static_cast<uint64_t>(times.ended)}}}});
}

// The error is in two headers: the receipt's schema has no other place for it.
static void set_fault(IntentReceipt& receipt, const Error& error, const HttpTimes& times) {
  const int status = fault_status(error);
  receipt.status = status == 598 ? "timeout" : "error";
  receipt.payload = receipt_payload(
      status, {{"pawl-error", error.reason}, {"pawl-error-message", error.message}}, {}, times);
}

void Executors::finish(const Effect& effect, const Bytes& intent, Time started,
                       Result<HttpReply> reply) {
  auto name = parse_effect_id(effect.id);
  CHECK(name.has_value());
  if (!reply && reply.error().is(HttpClient::kQueueFull)) return postpone(effect.id);
  IntentReceipt receipt{intent, "ok", {}, {}, no_signature()};
  const HttpTimes times{started, service_.kernel().now()};
  if (!reply) {
    set_fault(receipt, reply.error(), times);
    return settle({effect.id, name->world_id, std::move(receipt)});
  }
  const cbor::Value body =
      reply->body.empty() ? cbor::Value() : cbor::Value(hash_text(sha256(reply->body)));
  receipt.payload = receipt_payload(reply->status, reply->headers, body, times);
  if (reply->body.empty()) return settle({effect.id, name->world_id, std::move(receipt)});
  Input input;
  input.program = kProgram;
  input.verb = "put_blob";
  input.body = std::move(reply->body);
  input.caller.tenant = name->world_id.tenant;
  input.caller.user = "~executor";
  service_.kernel().submit(std::move(input),
                           [this, id = effect.id, world_id = name->world_id, times,
                            receipt = std::move(receipt)](Result<Answer> put) mutable {
                             if (!put) set_fault(receipt, put.error(), times);
                             settle({id, world_id, std::move(receipt)});
                           });
}

void Executors::settle(Settling settling) {
  Input input;
  input.program = kProgram;
  input.verb = "receipt";
  input.body = encode(SendReceipt{settling.world_id.world, settling.receipt});
  input.caller.tenant = settling.world_id.tenant;
  input.caller.user = "~executor";
  input.settles = settling.effect_id;
  service_.kernel().submit(std::move(input), [this, settling = std::move(settling)](
                                                 Result<Answer> answer) mutable {
    // After any other refusal the effect is settled already, or the server
    // ends.
    if (!answer && (answer.error().code == Code::exhausted || answer.error().is(kModuleCompiling)))
      settle_later(std::move(settling));
  });
}

// Each try waits twice as long as the one before: a world works off its deliveries meanwhile.
void Executors::settle_later(Settling settling) {
  constexpr Time kFirstDelay = 20 * kMillisecond;
  constexpr int kMaxDoublings = 10;  // 20 seconds
  const Time delay = kFirstDelay << std::min(settling.tries, kMaxDoublings);
  ++settling.tries;
  {
    std::lock_guard lock(mutex_);
    waiting_.emplace(background_.steady_now() + delay, std::move(settling));
  }
  retries_->wake();
}

void Executors::postpone(const std::string& effect_id) {
  {
    std::lock_guard lock(mutex_);
    postponed_.push_back(effect_id);
  }
  retries_->wake();
}

void Executors::send_postponed() {
  constexpr size_t kMaxAtOnce = 256;
  std::vector<std::string> ids;
  {
    std::lock_guard lock(mutex_);
    for (; ids.size() < kMaxAtOnce && !postponed_.empty(); postponed_.pop_front())
      ids.push_back(std::move(postponed_.front()));
  }
  for (const std::string& id : ids) {
    auto cell = service_.kernel().read(effect_key(id));
    if (!cell || !cell->exists()) continue;  // it was settled or withdrawn
    auto effect = decode_effect(cell->value());
    if (effect) opened(std::make_shared<const Effect>(std::move(*effect)));
  }
}

Time Executors::settle_due() {
  constexpr Time kClientDelay = 100 * kMillisecond;
  Time next = BackgroundLoop::kNever;
  if (background_.steady_now() >= postponed_due_) {
    send_postponed();
    postponed_due_ = background_.steady_now() + kClientDelay;
  }
  for (;;) {
    std::unique_lock lock(mutex_);
    if (!postponed_.empty()) next = postponed_due_;
    if (waiting_.empty()) return next;
    auto first = waiting_.begin();
    if (first->first > background_.steady_now()) return std::min(next, first->first);
    Settling settling = std::move(first->second);
    waiting_.erase(first);
    lock.unlock();
    settle(std::move(settling));
  }
}

}  // namespace pawl::worlds
