#pragma once
// An Exchange is one request and the answer to it: it tells libcurl what to send and collects what
// libcurl receives. A CurlSession runs one Exchange at a time over its own kept connection.

#include <curl/curl.h>

#include <optional>

#include "net/http_client.h"

namespace pawl::net {

class Exchange {
 public:
  // `on_piece` is null for an answer that is read whole. All references must outlive the exchange.
  Exchange(const HttpClientOptions& options, const HttpRequest& request,
           const HttpClient::OnPiece* on_piece);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Refuses a malformed request before anything is sent.
  Result<void> check();
  void prepare(CURL* easy);
  // The answer, after libcurl has ended with `code`.
  Result<HttpAnswer> finish(CURL* easy, CURLcode code);

  // True once the body of a streamed answer has begun. Then `max_silence` replaces the deadline.
  bool streaming() const { return head_complete_ && streams_body(); }
  std::chrono::steady_clock::time_point last_byte_at() const { return last_byte_at_; }

 private:
  // Callbacks of libcurl. `self` is the exchange. The functions that return size_t return `size` to
  // go on, and anything else to end the transfer.
  static size_t on_head(char* data, size_t, size_t size, void* self);
  static size_t on_body(char* data, size_t, size_t size, void* self);
  static int before_sending(void* self, char*, char*, int, int);
  static curl_socket_t open_socket(void* self, curlsocktype, curl_sockaddr* address);
  static CURLcode configure_tls(CURL*, void* context, void* self);

  // The body of any other status is collected, because it explains the refusal.
  bool streams_body() const { return on_piece_ && answer_.status == 200; }
  void prepare_method(CURL* easy);
  void prepare_tls(CURL* easy);
  Result<void> add_header(const std::string& name, const std::string& value);
  void suppress_header(const char* name);
  bool take_head_line(std::string_view line);
  bool take_status_line(std::string_view line);
  bool take_header(std::string_view line);
  bool end_head();
  bool take_body(BytesView piece);
  bool refuse(std::string why);
  Result<void> check_length() const;
  Error error_of(CURL* easy, CURLcode code) const;

  const HttpClientOptions& options_;
  const HttpRequest& request_;
  const HttpClient::OnPiece* on_piece_;
  Url url_;
  std::string origin_;
  curl_slist* headers_ = nullptr;
  char curl_message_[CURL_ERROR_SIZE] = {};

  HttpAnswer answer_;
  size_t head_bytes_ = 0;
  int interim_answers_ = 0;
  bool head_complete_ = false;
  bool has_length_ = false;
  std::string refusal_;           // why this side ended the exchange, or empty
  bool has_enough_ = false;       // on_piece returned false
  bool refused_private_ = false;  // an address was refused as private
  int times_sent_ = 0;
  std::chrono::steady_clock::time_point last_byte_at_{};
};

class CurlSession {
 public:
  CurlSession();
  ~CurlSession();
  CurlSession(const CurlSession&) = delete;
  CurlSession& operator=(const CurlSession&) = delete;

  // Blocks until the exchange has ended, the deadline has passed, the stop token was used, or a
  // streamed body was silent for `max_silence`. Not thread-safe: a session belongs to one call at a
  // time.
  Result<HttpAnswer> run(Exchange& exchange, const HttpCall& call,
                         std::chrono::milliseconds max_silence);

 private:
  Result<CURLcode> wait(const Exchange& exchange, const HttpCall& call,
                        std::chrono::milliseconds max_silence);

  CURL* easy_;
  CURLM* multi_;
};

}  // namespace pawl::net
