#include <fmt/format.h>

#include "faces/entities/http/operations.h"
#include "faces/entities/http/routes.h"
#include "json/text.h"

// The keys that admins manage: key pairs that sign the tokens of their tenant (those of the
// operator: of all tenants), and trusted keys of external issuers whose tokens are exchanged for
// tokens of this server.

namespace pawl::entities {

namespace {

// The limit for keys of each kind in a tenant.
constexpr size_t kMaxKeys = 100;
constexpr size_t kKidBytes = 256;
constexpr size_t kMaxIssuers = 100;
constexpr size_t kIssuerBytes = 512;

bool active(const json::Value& row) { return row.find("active") && row.find("active")->boolean(); }

// The parts of a key that an admin sees: never the private half.
json::Value shown_pair(const json::Value& row) {
  return json::object({{"kid", row.string_or("kid")},
                       {"active", active(row)},
                       {"createdAt", row.string_or("createdAt")}});
}

json::Value shown_trusted(const json::Value& row) {
  json::Object out;
  out.add("kid", row.string_or("kid"));
  out.add("audience", row.string_or("audience"));
  out.add("active", active(row));
  out.add("validFrom", row.string_or("validFrom"));
  if (row.find("validTo")) out.add("validTo", row.string_or("validTo"));
  return out;
}

Result<json::Array> rows_of(HttpExchange& http, const Key& prefix,
                            const std::function<bool(const json::Value&)>& wanted) {
  json::Array out;
  TRY_OK(http.service().kernel().snapshot().scan(prefix, [&](BytesView, const Cell& cell) {
    auto row = json::parse(cell.value());
    if (row && wanted(*row)) out.push_back(*std::move(row));
    return true;
  }));
  return out;
}

Result<Bytes> shown(const json::Array& rows, json::Value (*show)(const json::Value&)) {
  json::Array out;
  for (const json::Value& row : rows)
    out.push_back(show(row));
  return json::print(out);
}

// Key pairs.

// The operator's key pairs belong to no tenant and sign for all.
std::string owner_of(const HttpExchange& http) {
  return http.is_operator() ? std::string() : http.tenant();
}

Result<json::Value> own_pair(HttpExchange& http, const std::string& kid) {
  TRY(json::Value row, http.service().cell_json(key_pair_key(kid)));
  const Keys& keys = http.face.options().keys;
  if (row.is_null() && kid == keys.configured_kid)
    row = json::object({{"kid", kid}, {"tenantId", ""}, {"active", true}});
  if (!row.is_object() || row.string_or("tenantId") != owner_of(http))
    return fail(Code::not_found, "NOT_FOUND", "key pair not found");
  return row;
}

// The scan reads the pairs of all tenants, so it does not run on the thread of a request.
Result<json::Array> pairs_of(HttpExchange& http, std::string_view owner) {
  return rows_of(http, key_pairs_prefix(),
                 [owner](const json::Value& row) { return row.string_or("tenantId") == owner; });
}

Result<void> list_pairs(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  return http->service().run_access(http->tenant(), [http] {
    auto rows = pairs_of(*http, owner_of(*http));
    http->reply(rows ? shown(*rows, shown_pair) : fail(std::move(rows.error())));
  });
}

Result<Bytes> current_pair(HttpExchange& http) {
  TRY_OK(http.issues_tokens());
  json::Value row = http.face.options().keys.signing_pair(http.tenant());
  if (row.is_null())
    return fail(Code::not_found, "NOT_FOUND",
                "no active key pair; issue one or start the server with another --jwt-key");
  return json::print(shown_pair(row));
}

// The pair is stored before it is used, so that no token is signed by a key that a restart loses.
void store_pair(const HttpExchangePtr& http, json::Value row, wire::Response good) {
  http->service().act(http->context(), "pair.put", row,
                      [http, row, good = std::move(good)](Result<Bytes> stored) mutable {
                        if (!stored) return http->refuse(stored.error());
                        if (auto used = http->face.options().keys.use_pair(row); !used)
                          return http->refuse(used.error());
                        http->answer(std::move(good));
                      });
}

// Makes and stores a pair. Waits until it is stored, so that the next task counts it.
Result<wire::Response> make_and_store_pair(HttpExchange& http) {
  std::string owner = owner_of(http);
  TRY(json::Array rows, pairs_of(http, owner));
  if (rows.size() >= kMaxKeys)
    return fail(Code::conflict, "KEY_CAP_REACHED",
                fmt::format("there are {} key pairs already; delete one first", rows.size()));
  const Keys& keys = http.face.options().keys;
  TRY(json::Value row, keys.make_pair());
  row.object().set("tenantId", owner);
  row.object().set("createdAt", rfc3339(http.service().kernel().now()));
  row.object().set("active", true);
  TRY_OK(http.service().act_and_wait(http.context(), "pair.put", row));
  TRY_OK(keys.use_pair(row));
  return wire::json_response(201, json::print(shown_pair(row)));
}

Result<void> issue_pair(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  // Making a key pair takes a fraction of a second of computing time.
  return http->service().run_access(http->tenant(), [http] {
    auto made = make_and_store_pair(*http);
    if (!made) return http->refuse(made.error());
    http->answer(*std::move(made));
  });
}

Result<void> switch_pair(const HttpExchangePtr& http, bool on) {
  TRY_OK(http->issues_tokens());
  TRY(json::Value row, own_pair(*http, http->param(0)));
  row.object().set("active", on);
  store_pair(http, std::move(row), {.status = 200});
  return {};
}

Result<void> delete_pair(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  const std::string& kid = http->param(0);
  TRY(json::Value row, own_pair(*http, kid));
  if (kid == http->face.options().keys.configured_kid)
    return fail(
        Code::conflict, "CONFLICT",
        "the server was started with this key; invalidate it, or start the server with another");
  http->service().act(http->context(), "pair.delete", json::object({{"kid", kid}}),
                      [http, kid](Result<Bytes> deleted) {
                        if (!deleted) return http->refuse(deleted.error());
                        http->face.options().keys.drop_pair(kid);
                        http->answer({.status = 204});
                      });
  return {};
}

// Trusted keys.

Result<json::Value> own_trusted(HttpExchange& http, const std::string& kid) {
  TRY(json::Value row, http.service().cell_json(trusted_key_key(http.tenant(), kid)));
  if (!row.is_object())
    return fail(Code::not_found, "TRUSTED_KEY_NOT_FOUND",
                fmt::format("there is no trusted key '{}'", kid));
  return row;
}

bool is_kid(std::string_view kid) {
  auto fine = [](char c) {
    return isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  return !kid.empty() && kid.size() <= kKidBytes && std::all_of(kid.begin(), kid.end(), fine);
}

Result<std::string> time_member(const wire::MemberReader& body, const wire::Member& row) {
  TRY(std::string text, body.text(row));
  if (body.has(row) && !parse_rfc3339(text))
    return bad_request(fmt::format("invalid {}: expected an RFC 3339 time", row.name));
  return text;
}

Result<void> check_issuers(const json::Value& issuers) {
  if (!issuers.is_array() || issuers.array().size() > kMaxIssuers)
    return bad_request(
        fmt::format("'issuers' must be an array of at most {} strings", kMaxIssuers));
  for (const json::Value& issuer : issuers.array())
    if (!issuer.is_string() || issuer.string().size() > kIssuerBytes)
      return bad_request(fmt::format("an issuer is a string of at most {} bytes", kIssuerBytes));
  return {};
}

Result<json::Value> read_trusted(HttpExchange& http) {
  TRY(wire::BodyReader body, http.body_object());
  const json::Value& given = body.value();
  std::string kid(
      given.string_or(http::kTrustKey["keyId"], given.string_or(http::kTrustKey["kid"])));
  if (!is_kid(kid))
    return bad_request("invalid keyId: letters, digits, '.', '_' and '-', at most 256 of them");
  const json::Value* jwk = body.find(http::kTrustKey["jwk"]);
  if (!jwk || !http.face.options().keys.check_jwk(*jwk))
    return bad_request("invalid jwk: an RSA public key of at least 2048 bits with kty, n and e");
  TRY(std::string from, time_member(body, http::kTrustKey["validFrom"]));
  TRY(std::string to, time_member(body, http::kTrustKey["validTo"]));
  // Only the key itself is kept: a document may have members of any size beside it.
  json::Value kept = json::object(
      {{"kty", jwk->string_or("kty")}, {"n", jwk->string_or("n")}, {"e", jwk->string_or("e")}});
  std::string_view audience = given.string_or(http::kTrustKey["audience"]);
  if (audience.size() > kIssuerBytes)
    return bad_request(fmt::format("'audience' has at most {} bytes", kIssuerBytes));
  json::Value row = json::object(
      {{"kid", kid}, {"jwk", std::move(kept)}, {"audience", audience}, {"active", true}});
  row.object().add("validFrom", from.empty() ? rfc3339(http.service().kernel().now()) : from);
  if (!to.empty()) row.object().add("validTo", to);
  if (const json::Value* issuers = body.find(http::kTrustKey["issuers"])) {
    TRY_OK(check_issuers(*issuers));
    row.object().add("issuers", *issuers);
  }
  return row;
}

void store_trusted(const HttpExchangePtr& http, json::Value row, wire::Response good) {
  http->service().act(http->context(), "key.put", std::move(row),
                      [http, good = std::move(good)](Result<Bytes> stored) mutable {
                        if (!stored) return http->refuse(stored.error());
                        http->answer(std::move(good));
                      });
}

Result<Bytes> list_trusted(HttpExchange& http) {
  TRY_OK(http.issues_tokens());
  TRY(json::Array rows,
      rows_of(http, trusted_keys_prefix(http.tenant()), [](const json::Value&) { return true; }));
  return shown(rows, shown_trusted);
}

Result<void> trust_key(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY(json::Value row, read_trusted(*http));
  TRY(json::Array known,
      rows_of(*http, trusted_keys_prefix(http->tenant()), [&](const json::Value& other) {
        return other.string_or("kid") != row.string_or("kid");
      }));
  if (known.size() >= kMaxKeys)
    return fail(Code::conflict, "TRUSTED_KEY_CAP_REACHED",
                fmt::format("there are {} trusted keys already; delete one first", known.size()));
  wire::Response good = wire::json_response(201, json::print(shown_trusted(row)));
  store_trusted(http, std::move(row), std::move(good));
  return {};
}

Result<void> switch_trusted(const HttpExchangePtr& http, bool on) {
  TRY_OK(http->issues_tokens());
  TRY(json::Value row, own_trusted(*http, http->param(0)));
  row.object().set("active", on);
  store_trusted(http, std::move(row), {.status = 200});
  return {};
}

Result<void> distrust_key(const HttpExchangePtr& http) {
  TRY_OK(http->issues_tokens());
  TRY_OK(own_trusted(*http, http->param(0)));
  http->service().act(
      http->context(), "key.delete", json::object({{"kid", http->param(0)}}),
      [http](Result<Bytes> a) { a ? http->answer({.status = 204}) : http->refuse(a.error()); });
  return {};
}

}  // namespace

void add_key_routes(RouteTable& routes) {
  auto switched = [](Result<void> (*change)(const HttpExchangePtr&, bool), bool on) {
    return [change, on](const HttpExchangePtr& http) { return change(http, on); };
  };
  routes.add_async("GET", "/oauth/keys/keypair", list_pairs, "The key pairs of the tenant.",
                   http::kListPairs);
  routes.add_async("POST", "/oauth/keys/keypair", issue_pair,
                   "Creates a key pair, which signs the tenant's tokens from now on.",
                   http::kIssuePair);
  routes.add("GET", "/oauth/keys/keypair/current", current_pair,
             "The key pair that signs the tenant's tokens.", http::kCurrentPair);
  routes.add_async("POST", "/oauth/keys/keypair/{id}/invalidate", switched(switch_pair, false),
                   "Deactivates a key pair: it neither signs nor verifies until it is reactivated.",
                   http::kInvalidatePair);
  routes.add_async("POST", "/oauth/keys/keypair/{id}/reactivate", switched(switch_pair, true),
                   "Reactivates a key pair.", http::kReactivatePair);
  routes.add_async("DELETE", "/oauth/keys/keypair/{id}", delete_pair,
                   "Deletes a key pair; the tokens that it signed become invalid.",
                   http::kDeletePair);
  routes.add("GET", "/oauth/keys/trusted", list_trusted,
             "The trusted external keys whose tokens may be exchanged.", http::kListTrusted);
  routes.add_async("POST", "/oauth/keys/trusted", trust_key, "Adds a trusted key.", http::kTrust);
  routes.add_async("POST", "/oauth/keys/trusted/{id}/invalidate", switched(switch_trusted, false),
                   "Deactivates a trusted key until it is reactivated.", http::kInvalidateTrusted);
  routes.add_async("POST", "/oauth/keys/trusted/{id}/reactivate", switched(switch_trusted, true),
                   "Reactivates a trusted key.", http::kReactivateTrusted);
  routes.add_async("DELETE", "/oauth/keys/trusted/{id}", distrust_key, "Removes a trusted key.",
                   http::kDeleteTrusted);
}

}  // namespace pawl::entities
