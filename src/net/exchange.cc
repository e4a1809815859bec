#include "net/exchange.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>

#include "net/private_address.h"
#include "wire/text.h"

namespace pawl::net {

namespace {

using Clock = std::chrono::steady_clock;

// Bounds on an answer's head, which arrives before any limit on the body applies. Interim answers
// are those with a status below 200.
constexpr size_t kMaxHeadBytes = 64 * 1024;
constexpr int kMaxInterimAnswers = 16;

// An option that libcurl refuses is a mistake in this file, or a libcurl that is not built with
// OpenSSL.
template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

// A name of a method or header, as RFC 9110 defines it.
bool is_token(std::string_view text) {
  static constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && kMarks.find(c) == kMarks.npos) return false;
  return !text.empty();
}

std::optional<size_t> whole_number(std::string_view text) {
  size_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

}  // namespace

Exchange::Exchange(const HttpClientOptions& options, const HttpRequest& request,
                   const HttpClient::OnPiece* on_piece)
    : options_(options), request_(request), on_piece_(on_piece) {}

Exchange::~Exchange() { curl_slist_free_all(headers_); }

Result<void> Exchange::add_header(const std::string& name, const std::string& value) {
  static constexpr std::string_view kForbidden("\r\n\0", 3);
  if (!is_token(name)) return fail(Code::invalid, kBadHeader, "'" + name + "' is no header name");
  if (value.find_first_of(kForbidden) != std::string::npos)
    return fail(Code::invalid, kBadHeader, "a header may not hold a line break");
  // libcurl wants a header without a value to end in a semicolon: "Name:" alone takes the header
  // away, see suppress_header().
  std::string line =
      value.find_first_not_of(" \t") == std::string::npos ? name + ";" : name + ": " + value;
  headers_ = curl_slist_append(headers_, line.c_str());
  return {};
}

// libcurl adds some headers by itself; a name without a value takes them away.
void Exchange::suppress_header(const char* name) {
  if (wire::find_header(request_.headers, name)) return;
  headers_ = curl_slist_append(headers_, (std::string(name) + ":").c_str());
}

// Besides checking, this builds the list of headers that prepare() hands to libcurl. A header of
// the request wins over one of the options with the same name.
Result<void> Exchange::check() {
  const bool on_base = request_.url.starts_with('/');
  TRY(url_, parse_url(on_base ? options_.base_url + request_.url : request_.url));
  origin_ = url_.origin();
  if (!is_token(request_.method))
    return fail(Code::invalid, kBadMethod, "'" + request_.method + "' is no HTTP method");
  for (const auto& [name, value] : request_.headers) {
    TRY_OK(add_header(name, value));
  }
  for (const auto& [name, value] : options_.headers) {
    if (wire::find_header(request_.headers, name)) continue;
    TRY_OK(add_header(name, value));
  }
  const bool typed = wire::find_header(request_.headers, "Content-Type") ||
                     wire::find_header(options_.headers, "Content-Type");
  if (!typed && !request_.body.empty() && !options_.media_type.empty()) {
    TRY_OK(add_header("Content-Type", options_.media_type));
  } else if (!typed) {
    suppress_header("Content-Type");
  }
  // Only headers that were asked for are sent. Without "Expect", libcurl also does not wait for
  // "100 Continue" before it sends a large body.
  suppress_header("Accept");
  suppress_header("Expect");
  return {};
}

void Exchange::prepare(CURL* easy) {
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(easy, CURLOPT_PROXY, "");  // not even one that the environment names
  // libcurl must not install signal handlers: several threads run sessions.
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_QUICK_EXIT, 1L);  // an abandoned call does not wait for the name server
  set(easy, CURLOPT_ERRORBUFFER, curl_message_);
  // The target is given apart from the origin, so that libcurl sends path and query unchanged and
  // does not remove "..".
  set(easy, CURLOPT_URL, origin_.c_str());
  set(easy, CURLOPT_REQUEST_TARGET, url_.target.c_str());
  set(easy, CURLOPT_HTTPHEADER, headers_);
  set(easy, CURLOPT_HEADERFUNCTION, &Exchange::on_head);
  set(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(easy, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(easy, CURLOPT_PREREQFUNCTION, &Exchange::before_sending);
  set(easy, CURLOPT_PREREQDATA, static_cast<void*>(this));
  set(easy, CURLOPT_OPENSOCKETFUNCTION, &Exchange::open_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  prepare_method(easy);
  if (url_.tls) prepare_tls(easy);
}

void Exchange::prepare_method(CURL* easy) {
  if (request_.method == "HEAD") {
    set(easy, CURLOPT_NOBODY, 1L);
  } else if (request_.method == "GET" && request_.body.empty()) {
    set(easy, CURLOPT_HTTPGET, 1L);
  } else {
    // Every other method: POST gives the request a body with a length, and CUSTOMREQUEST replaces
    // the word POST.
    set(easy, CURLOPT_POST, 1L);
    set(easy, CURLOPT_POSTFIELDS, request_.body.data());
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
    set(easy, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
}

void Exchange::prepare_tls(CURL* easy) {
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  // A null file tells libcurl to load no authorities; configure_tls() then loads those of the
  // system.
  const char* no_file = nullptr;
  set(easy, CURLOPT_CAINFO, options_.ca_file.empty() ? no_file : options_.ca_file.c_str());
  set(easy, CURLOPT_CAPATH, no_file);
  set(easy, CURLOPT_SSL_CTX_FUNCTION, &Exchange::configure_tls);
  set(easy, CURLOPT_SSL_CTX_DATA, static_cast<void*>(this));
}

// OpenSSL itself finds the system's authorities, since libcurl ignores SSL_CERT_FILE. OpenSSL also
// checks the name in the certificate, since libcurl accepts an address in the common name.
CURLcode Exchange::configure_tls(CURL*, void* context, void* self) {
  auto* tls = static_cast<SSL_CTX*>(context);
  const Exchange& exchange = *static_cast<Exchange*>(self);
  if (exchange.options_.ca_file.empty()) SSL_CTX_set_default_verify_paths(tls);
  X509_VERIFY_PARAM* expected = SSL_CTX_get0_param(tls);
  const char* host = exchange.url_.host.c_str();
  // The first call fails when the host is a name and not an address.
  if (!X509_VERIFY_PARAM_set1_ip_asc(expected, host))
    X509_VERIFY_PARAM_set1_host(expected, host, 0);
  return CURLE_OK;
}

// The address is checked here, where the connection is made: a name that is looked up earlier may
// stand for another address by now.
curl_socket_t Exchange::open_socket(void* self, curlsocktype, curl_sockaddr* address) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  if (exchange.options_.public_addresses_only && is_private(&address->addr)) {
    exchange.refused_private_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// When a kept connection ends without an answer, libcurl sends the request again. The server may
// have carried out the first one, so that is allowed only for requests that change nothing.
int Exchange::before_sending(void* self, char*, char*, int, int) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  const bool repeatable = exchange.request_.method == "GET" || exchange.request_.method == "HEAD";
  if (exchange.times_sent_++ == 0 || repeatable) return CURL_PREREQFUNC_OK;
  exchange.refuse("the connection was closed without an answer");
  return CURL_PREREQFUNC_ABORT;
}

// libcurl calls this once for each complete line of the head, with its line break.
size_t Exchange::on_head(char* data, size_t, size_t size, void* self) {
  std::string_view line(data, size);
  while (line.ends_with('\n') || line.ends_with('\r'))
    line.remove_suffix(1);
  Exchange& exchange = *static_cast<Exchange*>(self);
  exchange.last_byte_at_ = Clock::now();
  exchange.head_bytes_ += line.size();
  return exchange.take_head_line(line) ? size : 0;
}

size_t Exchange::on_body(char* data, size_t, size_t size, void* self) {
  Exchange& exchange = *static_cast<Exchange*>(self);
  exchange.last_byte_at_ = Clock::now();
  return exchange.take_body({data, size}) ? size : 0;
}

bool Exchange::refuse(std::string why) {
  refusal_ = std::move(why);
  return false;
}

bool Exchange::take_head_line(std::string_view line) {
  if (head_bytes_ > kMaxHeadBytes) return refuse("the head of the answer is too long");
  if (head_complete_) return true;  // a trailer after the last chunk
  if (line.empty()) return end_head();
  return answer_.status == 0 ? take_status_line(line) : take_header(line);
}

// "HTTP/1.1 200 OK": the status is the three characters at offset 9.
bool Exchange::take_status_line(std::string_view line) {
  std::optional<size_t> status;
  if (line.starts_with("HTTP/1.") && line.size() >= 12) status = whole_number(line.substr(9, 3));
  if (!status || *status < 100) return refuse("what answered does not speak HTTP/1.1");
  answer_.status = static_cast<int>(*status);
  return true;
}

bool Exchange::take_header(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return refuse("a header without a colon");
  std::string name(line.substr(0, colon));
  std::string value(wire::trimmed(line.substr(colon + 1)));
  if (wire::same_name(name, "Content-Length")) {
    auto length = whole_number(value);
    if (!length) return refuse("a length that is no number");
    if (*length > options_.max_answer_bytes && request_.method != "HEAD")
      return refuse("the answer is too large");
    has_length_ = true;
  }
  // A chunked body says itself where it ends.
  if (wire::same_name(name, "Transfer-Encoding") && wire::lists_token(value, "chunked"))
    has_length_ = true;
  answer_.headers.emplace_back(std::move(name), std::move(value));
  return true;
}

// An interim answer is forgotten, and the head of the next answer is read.
bool Exchange::end_head() {
  const bool interim = answer_.status < 200;
  head_complete_ = !interim;
  head_bytes_ = 0;
  if (!interim) return true;
  answer_ = {};
  has_length_ = false;
  if (++interim_answers_ > kMaxInterimAnswers)
    return refuse("one interim answer after the other, and no answer");
  return true;
}

// The limit is checked for each piece, because a chunked answer announces no length.
bool Exchange::take_body(BytesView piece) {
  if (streams_body()) {
    has_enough_ = !(*on_piece_)(piece);
    return !has_enough_;
  }
  if (piece.size() > options_.max_answer_bytes - answer_.body.size())
    return refuse("the answer is too large");
  answer_.body.append(piece);
  return true;
}

// A body that ends with its connection may have been cut off: without a length nobody can tell.
Result<void> Exchange::check_length() const {
  const int status = answer_.status;
  const bool bodiless = request_.method == "HEAD" || status == 204 || status == 304;
  if (has_length_ || bodiless || options_.allow_unknown_length) return {};
  return fail(Code::unavailable, kBadAnswer, "the answer does not say how long it is");
}

Result<HttpAnswer> Exchange::finish(CURL* easy, CURLcode code) {
  if (code == CURLE_OK) {
    TRY_OK(check_length());
  }
  // When on_piece asked for the end, libcurl reports a write error; the answer is complete all the
  // same.
  if (code == CURLE_OK || has_enough_) return std::move(answer_);
  return fail(error_of(easy, code));
}

// A reason of this side comes first: libcurl only reports that a callback ended the transfer.
Error Exchange::error_of(CURL* easy, CURLcode code) const {
  if (!refusal_.empty()) return {Code::unavailable, std::string(kBadAnswer.name), refusal_};
  const std::string said = curl_message_[0] ? curl_message_ : curl_easy_strerror(code);
  auto error = [&](Code kind, Reason reason, std::string why) {
    return Error{kind, std::string(reason.name), std::move(why)};
  };
  switch (code) {
    case CURLE_URL_MALFORMAT: return error(Code::invalid, kBadUrl, said);
    case CURLE_OPERATION_TIMEDOUT:
      return error(Code::unavailable, kTimedOut, "no connection in time");
    case CURLE_COULDNT_RESOLVE_HOST: return error(Code::unavailable, kUnreachable, said);
    case CURLE_COULDNT_CONNECT: {
      if (refused_private_)
        return error(Code::unavailable, kUnreachable,
                     "the address is loopback or private, which is not allowed for it");
      long number = 0;
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
      return error(Code::unavailable, kUnreachable,
                   number ? strerror(static_cast<int>(number)) : said);
    }
    case CURLE_SSL_CACERT_BADFILE:
      return error(Code::invalid, kBadCaFile,
                   fmt::format("ca_file '{}' holds no certificate in PEM form", options_.ca_file));
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      return error(Code::denied, kBadCertificate, "the TLS handshake failed: " + said);
    case CURLE_GOT_NOTHING:
      return error(Code::unavailable, kBadAnswer, "the connection was closed without an answer");
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
      return error(Code::unavailable, kBadAnswer, "the answer was cut off: " + said);
    default: return error(Code::unavailable, kBadAnswer, said);
  }
}

CurlSession::CurlSession() : easy_(curl_easy_init()), multi_(curl_multi_init()) {
  CHECK(easy_ && multi_);
  // One kept connection a session. A multi handle is used for one transfer because, unlike
  // curl_easy_perform, it can be woken.
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, 1L);
}

CurlSession::~CurlSession() {
  curl_multi_cleanup(multi_);
  curl_easy_cleanup(easy_);
}

Result<HttpAnswer> CurlSession::run(Exchange& exchange, const HttpCall& call,
                                    std::chrono::milliseconds max_silence) {
  // Forgets the options of the exchange before, and keeps its connection.
  curl_easy_reset(easy_);
  exchange.prepare(easy_);
  CHECK(curl_multi_add_handle(multi_, easy_) == CURLM_OK);
  Result<CURLcode> code = wait(exchange, call, max_silence);
  curl_multi_remove_handle(multi_, easy_);
  if (!code) return fail(std::move(code.error()));
  return exchange.finish(easy_, *code);
}

Result<CURLcode> CurlSession::wait(const Exchange& exchange, const HttpCall& call,
                                   std::chrono::milliseconds max_silence) {
  std::stop_callback wake(call.stop, [this] { curl_multi_wakeup(multi_); });
  while (true) {
    int running = 0;
    CHECK(curl_multi_perform(multi_, &running) == CURLM_OK);
    int queued = 0;
    if (CURLMsg* message = curl_multi_info_read(multi_, &queued)) return message->data.result;
    if (call.stop.stop_requested())
      return fail(Code::unavailable, kStopped, "the caller stopped waiting");
    const Clock::time_point until =
        exchange.streaming() ? exchange.last_byte_at() + max_silence : call.deadline;
    const Clock::time_point now = Clock::now();
    if (now >= until)
      return fail(Code::unavailable, kTimedOut,
                  "no answer in time; the request may still be carried out");
    // A far deadline would overflow the int of curl_multi_poll, so the loop waits at most a minute
    // at a time.
    static constexpr auto kMaxWait = std::chrono::milliseconds(60'000);
    auto left = until - now < kMaxWait ? std::chrono::ceil<std::chrono::milliseconds>(until - now)
                                       : kMaxWait;
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(left.count()), nullptr);
  }
}

}  // namespace pawl::net
