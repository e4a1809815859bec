#pragma once
// A client starts and steers workflow instances of a server over HTTP. JSON goes in and out as
// text, so any JSON library fits.
//
//   pawl::Client client("127.0.0.1:8080");
//   client.deploy(definition_text);
//   auto order = client.start({.definition = "order", .variables = R"({"amount": 40})"});
//   auto done = client.wait(order->id);

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/result.h"

namespace pawl {

// The caller's identity for a server under --auth jwt: no token, a fixed token, or a function that
// is called whenever a token is needed. The token also names the tenant.
class Token {
 public:
  // `fresh` is true after the server did not accept the last token. Called from several threads.
  using Source = std::function<Result<std::string>(bool fresh)>;
  Token() = default;
  Token(std::string fixed) : fixed_(std::move(fixed)) {}
  Token(const char* fixed) : fixed_(fixed) {}
  Token(Source source) : source_(std::move(source)) {}
  Result<std::string> get(bool fresh = false) const {
    return source_ ? source_(fresh) : Result<std::string>(fixed_);
  }
  bool renewable() const { return source_ != nullptr; }

 private:
  std::string fixed_;
  Source source_;
};

// The token of a machine client. It is fetched from `server`, kept, and renewed before it expires.
Token credentials(std::string server, std::string client_id, std::string secret);

struct ClientOptions {
  Token token{};
  int timeout_ms = 60'000;  // of one attempt
  // Total time of a call. Until then, a request that fails with a retryable error is repeated with
  // growing, jittered pauses. A request that changes something carries an Idempotency-Key, so that
  // it takes effect once even when it is repeated.
  int patience_ms = 60'000;
};

// Thread-safe.
class Client {
 public:
  // `server` is "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example:8443". For
  // https, the certificate authorities of the system are trusted, or those in the file that the
  // environment variable SSL_CERT_FILE names.
  explicit Client(std::string server = "127.0.0.1:8080", ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The state of an instance when the server answered.
  struct Instance {
    std::string id, definition, status;
    int version = 0;
    std::vector<std::string> steps;  // the active steps
    std::string variables;           // a JSON object
    std::string failure;             // why it is FAILED
    bool finished() const {
      return status == "COMPLETED" || status == "FAILED" || status == "CANCELLED";
    }
  };
  struct Start {
    std::string definition;
    std::string variables = "{}";
    std::string business_key{};
    int version = 0;  // 0: the latest
    // Your own name for this start. A second start with the same name, even from another process,
    // returns the instance of the first. When empty, a name is made for this call.
    std::string idempotency_key{};
  };

  // Uploads a definition and returns the JSON of the answer. Equal content keeps its version.
  Result<std::string> deploy(std::string_view definition);
  Result<Instance> start(const Start& start);
  Result<Instance> get(std::string_view id);
  // Returns the instance when it is finished. Fails with the reason "timed-out" when that takes
  // longer than `timeout_ms`.
  Result<Instance> wait(std::string_view id, int timeout_ms = 30'000);
  // Completes a WAIT step. The variables are merged into those of the instance.
  Result<void> signal(std::string_view id, std::string_view step,
                      std::string_view variables = "{}");
  Result<void> complete_task(std::string_view id, std::string_view step,
                             std::string_view variables = "{}");
  Result<Instance> cancel(std::string_view id, std::string_view reason = {});
  Result<std::string> history(std::string_view id);  // JSON: {"items": [...]}

  // Sends any request of the server's API and returns the body of the answer.
  Result<std::string> call(std::string_view method, std::string_view path,
                           std::string_view body = {});
  // The same with an Idempotency-Key, for a request that changes something. When `key` is empty,
  // one is made.
  Result<std::string> call_once(std::string_view method, std::string_view path,
                                std::string_view body, std::string key = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
