#pragma once
// What the route files share: arguments out of a request, answers into a response, and rows that
// say only what is their own.

#include <charconv>

#include "faces/entities/face.h"
#include "faces/entities/http/problem.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

inline std::unexpected<Error> bad_request(std::string message) {
  return fail(Code::invalid, "BAD_REQUEST", std::move(message));
}

// One request being handled. Shared by the callbacks that may answer it; exactly one does.
class Http {
 public:
  Http(Face& face, wire::Request request, wire::Respond respond)
      : face(face), request(std::move(request)), respond_(std::move(respond)) {}
  Face& face;
  wire::Request request;

  Service& service() { return face.service(); }
  const std::string& tenant() const { return request.caller.tenant; }
  const std::string& param(size_t i) const { return request.params[i]; }
  Who who() const {
    return {request.caller, std::string(request.header("X-Tx-Token")),
            std::string(request.header("Idempotency-Key"))};
  }

  // Fails when it carries a token that is unknown or over: whatever it asks, it is not outside of a
  // transaction.
  Result<void> may_join() {
    return request.has_header("X-Tx-Token") ? service().may_join(who()) : Result<void>();
  }

  void answer(wire::Response response) { respond_(std::move(response)); }
  void refuse(const Error& error) {
    answer(problem(request, error, face.options().prefix, face.options().verbose_errors));
  }
  void json(std::string body) { answer(wire::json_response(200, std::move(body))); }
  void reply(Result<Bytes> body) { body ? json(*std::move(body)) : refuse(body.error()); }

  // Arguments: BAD_REQUEST when they are not what they should be.
  Result<std::string> uuid(size_t i) const;
  Result<int32_t> version(size_t i) const;
  Result<int64_t> number(std::string_view name, int64_t default_value) const;
  Result<std::optional<Time>> time(std::string_view name) const;
  Result<When> when() const;
  Result<json::Value> body() const;                   // JSON
  Result<json::Value> document(size_t format) const;  // JSON or XML, as the path says
  Result<void> role(std::string_view name) const;     // FORBIDDEN without it
  Result<void> jwt_admin() const;  // tokens are in use and the caller is an admin
  // Of the tenant of the bootstrap client, which looks after the server itself.
  bool is_operator() const;

 private:
  wire::Respond respond_;
};
using HttpPtr = std::shared_ptr<Http>;  // shared by the callbacks of one request

// A handler that answers at once gives its body; one that answers later keeps the request.
using Now = std::function<Result<Bytes>(Http&)>;
using Later = std::function<Result<void>(HttpPtr)>;

class Rows {
 public:
  Rows(Face& face, std::vector<wire::Route>& out) : face_(face), out_(out) {}
  void now(std::string method, std::string pattern, Now handle, std::string doc, bool open = false);
  // `root`: the pattern stands for itself, without the prefix of the face.
  void later(std::string method, std::string pattern, Later handle, std::string doc,
             bool open = false, bool root = false);
  Face& face() { return face_; }

 private:
  Face& face_;
  std::vector<wire::Route>& out_;
};

// Lines of JSON, none of which has a line break in it, as one array.
Bytes array_of_lines(Bytes lines);
json::Array split_roles(std::string_view roles);
std::string random_uuid(const Keys& keys);

Item item_of(Item::Op op, json::Value value);  // with the document sorted and printed
Result<void> known_format(std::string_view format);

void add_model_routes(Rows& rows);
void add_entity_routes(Rows& rows);
void add_collection_routes(Rows& rows);
void add_workflow_routes(Rows& rows);
void add_search_routes(Rows& rows);
void add_audit_routes(Rows& rows);
void add_message_routes(Rows& rows);
void add_account_routes(Rows& rows);
void add_token_routes(Rows& rows);
void add_key_routes(Rows& rows);
void add_help_routes(Rows& rows);
void add_stats_routes(Rows& rows);

}  // namespace pawl::entities
