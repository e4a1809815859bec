#include <fmt/format.h>

#include "faces/entities/http/routes.h"
#include "json/text.h"

// Keys that admins look after: pairs that sign the tokens of their tenant (the operator's: of all
// tenants), and keys of others whose tokens may be exchanged for ours.

namespace pawl::entities {

namespace {

// Keys of each kind in a tenant: nobody rotates through more.
constexpr size_t kKeys = 100;
constexpr size_t kKidBytes = 256;

bool active(const json::Value& row) { return row.find("active") && row.find("active")->boolean(); }

// What an admin sees of a key: never the private half.
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

Result<json::Array> rows_of(Http& http, const Key& prefix,
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

// The operator's are for everybody.
std::string owner_of(const Http& http) {
  return http.is_operator() ? std::string() : http.tenant();
}

Result<json::Value> own_pair(Http& http, const std::string& kid) {
  TRY(json::Value row, http.service().cell_json(key_pair_key(kid)));
  const Keys& keys = http.face.options().keys;
  if (row.is_null() && kid == keys.configured_kid)
    row = json::object({{"kid", kid}, {"tenantId", ""}, {"active", true}});
  if (!row.is_object() || row.string_or("tenantId") != owner_of(http))
    return fail(Code::not_found, "NOT_FOUND", "key pair not found");
  return row;
}

Result<Bytes> list_pairs(Http& http) {
  TRY_OK(http.jwt_admin());
  TRY(json::Array rows,
      rows_of(http, key_pairs_prefix(), [owner = owner_of(http)](const json::Value& row) {
        return row.string_or("tenantId") == owner;
      }));
  return shown(rows, shown_pair);
}

Result<Bytes> current_pair(Http& http) {
  TRY_OK(http.jwt_admin());
  json::Value row = http.face.options().keys.signing_pair(http.tenant());
  if (row.is_null())
    return fail(Code::not_found, "NOT_FOUND",
                "no active key pair; issue one or start the server with another --jwt-key");
  return json::print(shown_pair(row));
}

// Stored first, used then: a token never outlives its key.
void store_pair(const HttpPtr& http, json::Value row, wire::Response good) {
  http->service().act(http->who(), "pair.put", row,
                      [http, row, good = std::move(good)](Result<Bytes> stored) mutable {
                        if (!stored) return http->refuse(stored.error());
                        if (auto used = http->face.options().keys.use_pair(row); !used)
                          return http->refuse(used.error());
                        http->answer(std::move(good));
                      });
}

Result<void> issue_pair(const HttpPtr& http) {
  TRY_OK(http->jwt_admin());
  std::string owner = owner_of(*http);
  TRY(json::Array rows, rows_of(*http, key_pairs_prefix(), [&](const json::Value& row) {
        return row.string_or("tenantId") == owner;
      }));
  if (rows.size() >= kKeys)
    return fail(Code::conflict, "KEY_CAP_REACHED",
                fmt::format("there are {} key pairs already; delete one first", rows.size()));
  // Making one takes a fraction of a second of arithmetic.
  bool taken = http->service().background().add([http, owner] {
    auto row = http->face.options().keys.make_pair();
    if (!row) return http->refuse(row.error());
    row->object().set("tenantId", owner);
    row->object().set("createdAt", rfc3339(http->service().kernel().now()));
    row->object().set("active", true);
    wire::Response good = wire::json_response(201, json::print(shown_pair(*row)));
    store_pair(http, *std::move(row), std::move(good));
  });
  if (!taken)
    return fail(Code::exhausted, "TOO_MANY_SEARCHES", "too much work waits already: retry later");
  return {};
}

Result<void> switch_pair(const HttpPtr& http, bool on) {
  TRY_OK(http->jwt_admin());
  TRY(json::Value row, own_pair(*http, http->param(0)));
  row.object().set("active", on);
  store_pair(http, std::move(row), {.status = 200});
  return {};
}

Result<void> delete_pair(const HttpPtr& http) {
  TRY_OK(http->jwt_admin());
  const std::string& kid = http->param(0);
  TRY(json::Value row, own_pair(*http, kid));
  if (kid == http->face.options().keys.configured_kid)
    return fail(
        Code::conflict, "CONFLICT",
        "the server was started with this key; invalidate it, or start the server with another");
  http->service().act(http->who(), "pair.delete", json::object({{"kid", kid}}),
                      [http, kid](Result<Bytes> deleted) {
                        if (!deleted) return http->refuse(deleted.error());
                        http->face.options().keys.drop_pair(kid);
                        http->answer({.status = 204});
                      });
  return {};
}

// Trusted keys.

Result<json::Value> own_trusted(Http& http, const std::string& kid) {
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

Result<std::string> time_member(const json::Value& body, std::string_view name) {
  const json::Value* value = body.find(name);
  if (!value || value->is_null()) return std::string();
  if (!value->is_string() || !parse_rfc3339(value->string()))
    return bad_request(fmt::format("invalid {}: expected an RFC 3339 time", name));
  return value->string();
}

Result<json::Value> read_trusted(Http& http) {
  TRY(json::Value body, http.body());
  std::string kid(body.string_or("keyId", body.string_or("kid")));
  if (!is_kid(kid))
    return bad_request("invalid keyId: letters, digits, '.', '_' and '-', at most 256 of them");
  const json::Value* jwk = body.find("jwk");
  if (!jwk || !http.face.options().keys.check_jwk(*jwk))
    return bad_request("invalid jwk: an RSA public key of at least 2048 bits with kty, n and e");
  TRY(std::string from, time_member(body, "validFrom"));
  TRY(std::string to, time_member(body, "validTo"));
  json::Value row = json::object(
      {{"kid", kid}, {"jwk", *jwk}, {"audience", body.string_or("audience")}, {"active", true}});
  row.object().add("validFrom", from.empty() ? rfc3339(http.service().kernel().now()) : from);
  if (!to.empty()) row.object().add("validTo", to);
  if (const json::Value* issuers = body.find("issuers"); issuers && !issuers->is_null()) {
    if (!issuers->is_array()) return bad_request("'issuers' must be an array of strings");
    row.object().add("issuers", *issuers);
  }
  return row;
}

void store_trusted(const HttpPtr& http, json::Value row, wire::Response good) {
  http->service().act(http->who(), "key.put", std::move(row),
                      [http, good = std::move(good)](Result<Bytes> stored) mutable {
                        stored ? http->answer(std::move(good)) : http->refuse(stored.error());
                      });
}

Result<Bytes> list_trusted(Http& http) {
  TRY_OK(http.jwt_admin());
  TRY(json::Array rows,
      rows_of(http, trusted_keys_prefix(http.tenant()), [](const json::Value&) { return true; }));
  return shown(rows, shown_trusted);
}

Result<void> trust_key(const HttpPtr& http) {
  TRY_OK(http->jwt_admin());
  TRY(json::Value row, read_trusted(*http));
  TRY(json::Array known,
      rows_of(*http, trusted_keys_prefix(http->tenant()), [&](const json::Value& other) {
        return other.string_or("kid") != row.string_or("kid");
      }));
  if (known.size() >= kKeys)
    return fail(Code::conflict, "TRUSTED_KEY_CAP_REACHED",
                fmt::format("there are {} trusted keys already; delete one first", known.size()));
  wire::Response good = wire::json_response(201, json::print(shown_trusted(row)));
  store_trusted(http, std::move(row), std::move(good));
  return {};
}

Result<void> switch_trusted(const HttpPtr& http, bool on) {
  TRY_OK(http->jwt_admin());
  TRY(json::Value row, own_trusted(*http, http->param(0)));
  row.object().set("active", on);
  store_trusted(http, std::move(row), {.status = 200});
  return {};
}

Result<void> distrust_key(const HttpPtr& http) {
  TRY_OK(http->jwt_admin());
  TRY_OK(own_trusted(*http, http->param(0)));
  http->service().act(
      http->who(), "key.delete", json::object({{"kid", http->param(0)}}),
      [http](Result<Bytes> a) { a ? http->answer({.status = 204}) : http->refuse(a.error()); });
  return {};
}

}  // namespace

void add_key_routes(Rows& rows) {
  auto switched = [](Result<void> (*change)(const HttpPtr&, bool), bool on) {
    return [change, on](const HttpPtr& http) { return change(http, on); };
  };
  rows.now("GET", "/oauth/keys/keypair", list_pairs, "The key pairs that the tenant issued.");
  rows.later("POST", "/oauth/keys/keypair", issue_pair,
             "Issues a key pair; it signs the tenant's tokens from now on.");
  rows.now("GET", "/oauth/keys/keypair/current", current_pair,
           "The key pair that signs the tenant's tokens.");
  rows.later("POST", "/oauth/keys/keypair/{id}/invalidate", switched(switch_pair, false),
             "Neither signs nor verifies until it is reactivated.");
  rows.later("POST", "/oauth/keys/keypair/{id}/reactivate", switched(switch_pair, true),
             "Signs and verifies again.");
  rows.later("DELETE", "/oauth/keys/keypair/{id}", delete_pair,
             "Deletes a key pair and with it all tokens that it signed.");
  rows.now("GET", "/oauth/keys/trusted", list_trusted,
           "Keys of others whose tokens may be exchanged.");
  rows.later("POST", "/oauth/keys/trusted", trust_key, "Trusts a key.");
  rows.later("POST", "/oauth/keys/trusted/{id}/invalidate", switched(switch_trusted, false),
             "Trusts a key no more until it is reactivated.");
  rows.later("POST", "/oauth/keys/trusted/{id}/reactivate", switched(switch_trusted, true),
             "Trusts a key again.");
  rows.later("DELETE", "/oauth/keys/trusted/{id}", distrust_key, "Trusts a key no more.");
}

}  // namespace pawl::entities
