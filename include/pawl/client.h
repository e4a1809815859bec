#pragma once
// A client starts and steers workflow instances of a server over HTTP. JSON goes in and out as
// text, so any JSON library fits.
//
//   pawl::Client client("127.0.0.1:8080");
//   client.deploy(definition_text);
//   auto order = client.start({.definition = "order", .variables = R"({"amount": 40})"});
//   auto done = client.wait(order->id);

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pawl {

// Why a request did not do what was asked.
struct Refusal {
  int status = 0;       // the HTTP status; 0 when no answer came
  std::string code;     // the server's word for it: "not-found", "conflict"
  std::string message;  // for people
  // Nothing is wrong with the request: the same one may succeed later.
  bool unavailable() const {
    return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
  }
};

template <class T>
using Reply = std::expected<T, Refusal>;

// Who we are, for a server under --auth jwt: nothing, a fixed token, or one that is asked for
// whenever it is needed.
class Token {
 public:
  // `fresh` after the server did not accept the last one. Threads call it.
  using Source = std::function<Reply<std::string>(bool fresh)>;
  Token() = default;
  Token(std::string fixed) : fixed_(std::move(fixed)) {}
  Token(const char* fixed) : fixed_(fixed) {}
  Token(Source source) : source_(std::move(source)) {}
  Reply<std::string> get(bool fresh = false) const {
    return source_ ? source_(fresh) : Reply<std::string>(fixed_);
  }
  bool renewable() const { return source_ != nullptr; }

 private:
  std::string fixed_;
  Source source_;
};

// The token of a machine client: fetched, kept, renewed before it expires.
Token credentials(std::string server, std::string client_id, std::string secret);

struct ClientOptions {
  Token token{};
  int timeout_ms = 60'000;  // for one answer
  // While no answer comes, a request is repeated with growing, jittered pauses for so long. A
  // request that changes something carries an Idempotency-Key: repeated, it still takes effect
  // once.
  int patience_ms = 60'000;
};

// Threads may share one.
class Client {
 public:
  // "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example:8443". Of TLS, the system's
  // certificate authorities are believed; the variable SSL_CERT_FILE names others.
  explicit Client(std::string server = "127.0.0.1:8080", ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // An instance as it stood when the server answered.
  struct Instance {
    std::string id, definition, status;
    int version = 0;
    std::vector<std::string> steps;  // where it is
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
    // A name of your own for this start: a second one with the same name, even from another
    // process, answers with the first one's instance. Empty: made up for this call.
    std::string idempotency_key{};
  };

  // Uploads a definition; the answer's JSON. Equal content keeps its version.
  Reply<std::string> deploy(std::string_view definition);
  Reply<Instance> start(const Start& start);
  Reply<Instance> get(std::string_view id);
  // The instance once it is finished; a Refusal with status 408 when that takes longer.
  Reply<Instance> wait(std::string_view id, int timeout_ms = 30'000);
  // Lets a WAIT step go on; the variables are merged into the instance's.
  Reply<void> signal(std::string_view id, std::string_view step, std::string_view variables = "{}");
  Reply<void> complete_task(std::string_view id, std::string_view step,
                            std::string_view variables = "{}");
  Reply<Instance> cancel(std::string_view id, std::string_view reason = {});
  Reply<std::string> history(std::string_view id);  // JSON: {"items": [...]}

  // Any request of the server's API; the answer's body.
  Reply<std::string> call(std::string_view method, std::string_view path,
                          std::string_view body = {});
  // The same with an Idempotency-Key, for a request that changes something. Empty: made up.
  Reply<std::string> call_once(std::string_view method, std::string_view path,
                               std::string_view body, std::string key = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pawl
