#pragma once
// Shared by all route files: the arguments of a request, the forms of an answer, and the table of
// routes.

#include <charconv>

#include "faces/entities/face.h"
#include "faces/entities/http/problem.h"
#include "faces/entities/http/shapes.h"
#include "faces/entities/store/store.h"
#include "wire/body_reader.h"

namespace pawl::entities {

inline std::unexpected<Error> bad_request(std::string message) {
  return fail(Code::invalid, "BAD_REQUEST", std::move(message));
}

// One HTTP request and its answer. Shared by the callbacks of the request; exactly one of them
// answers.
class HttpExchange {
 public:
  HttpExchange(Face& face, wire::Request request, wire::Respond respond)
      : face(face), request(std::move(request)), respond_(std::move(respond)) {}
  Face& face;
  wire::Request request;

  Service& service() { return face.service(); }
  const std::string& tenant() const { return request.caller.tenant; }
  const std::string& param(size_t i) const { return request.params[i]; }
  RequestContext context() const {
    return {request.caller, std::string(request.header("X-Tx-Token")),
            std::string(request.header("Idempotency-Key"))};
  }

  // Fails when the request has a token that is unknown or whose call has ended. No route runs such
  // a request outside of its transaction.
  Result<void> may_join() {
    return request.has_header("X-Tx-Token") ? service().may_join(context()) : Result<void>();
  }

  // Becomes true when the client disconnects before its answer. Call it while the handler runs.
  Service::ClientLeft watch_client() {
    auto left = std::make_shared<std::atomic<bool>>(false);
    if (request.peer) request.peer->on_leave([left] { *left = true; });
    return left;
  }

  void answer(wire::Response response) { respond_(std::move(response)); }
  void refuse(const Error& error) {
    answer(problem(request, error, face.options().prefix, face.options().verbose_errors));
  }
  void json(std::string body) { answer(wire::json_response(200, std::move(body))); }
  void reply(Result<Bytes> body) {
    if (!body) return refuse(body.error());
    json(*std::move(body));
  }

  // The arguments of the request. Each fails with BAD_REQUEST when it is malformed.
  Result<std::string> uuid(size_t i) const;
  Result<int32_t> version(size_t i) const;
  Result<int64_t> number(const wire::Member& row) const;  // of the query, with the row's default
  Result<std::optional<Time>> time(const wire::Member& row) const;
  Result<AsOf> as_of() const;
  Result<json::Value> body() const;              // as any JSON value
  Result<wire::BodyReader> body_object() const;  // as a JSON object
  // The body as JSON or XML, as the path parameter with this index says.
  Result<json::Value> document(size_t format) const;
  // Fails unless the server issues tokens.
  Result<void> issues_tokens() const;
  // True for callers of the tenant that operates the server.
  bool is_operator() const;

 private:
  wire::Respond respond_;
};
using HttpExchangePtr = std::shared_ptr<HttpExchange>;  // shared by the callbacks of one request
// A callback that answers the request with the result.
inline Service::Done reply_to(HttpExchangePtr http) {
  return [http = std::move(http)](Result<Bytes> answer) { http->reply(std::move(answer)); };
}

// A sync handler returns the body of the answer; an async handler keeps the request and answers
// later.
using SyncHandler = std::function<Result<Bytes>(HttpExchange&)>;
using AsyncHandler = std::function<Result<void>(HttpExchangePtr)>;

class RouteTable {
 public:
  RouteTable(Face& face, std::vector<wire::Route>& out) : face_(face), out_(out) {}
  void add(std::string method, std::string pattern, SyncHandler handle, std::string doc,
           const wire::Operation& operation, bool open = false);
  // `open`: no authentication. `root`: the pattern is used without the prefix of the face.
  void add_async(std::string method, std::string pattern, AsyncHandler handle, std::string doc,
                 const wire::Operation& operation, bool open = false, bool root = false);
  // The route that was added last reads many rows or computes for long (see wire::Route).
  void slow() { out_.back().slow = true; }
  Face& face() { return face_; }

 private:
  Face& face_;
  std::vector<wire::Route>& out_;
};

// Makes one JSON array of lines of JSON.
Bytes array_of_lines(Bytes lines);
json::Array split_roles(std::string_view roles);
// The generation of a machine client's secret: it changes with the secret and does not reveal it.
std::string generation_of(const json::Value& client);
std::string random_uuid(const Keys& keys);

// An item whose document has sorted names.
Item item_of(Item::Op op, json::Value value);
Result<void> known_format(std::string_view format);

void add_model_routes(RouteTable& routes);
void add_entity_routes(RouteTable& routes);
void add_collection_routes(RouteTable& routes);
void add_workflow_routes(RouteTable& routes);
void add_search_routes(RouteTable& routes);
void add_audit_routes(RouteTable& routes);
void add_message_routes(RouteTable& routes);
void add_account_routes(RouteTable& routes);
void add_token_routes(RouteTable& routes);
void add_key_routes(RouteTable& routes);
void add_help_routes(RouteTable& routes);
void add_stats_routes(RouteTable& routes);

}  // namespace pawl::entities
