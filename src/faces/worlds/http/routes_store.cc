// The content-addressed store and the secrets, over HTTP.

#include "base/utf8.h"
#include "faces/worlds/http/fields.h"
#include "faces/worlds/http/http_routes.h"
#include "faces/worlds/http/pages.h"
#include "json/text.h"

namespace pawl::worlds {

// A digest as "sha256:hex" or as the bare hex.
static Result<Bytes> digest_of(const std::string& text) {
  return parse_hash(text.starts_with("sha256:") ? text : "sha256:" + text);
}

void HttpRoutes::put_blob(Request request, Respond respond) {
  if (!request.params.empty()) {
    auto digest = digest_of(request.params[0]);
    if (!digest) return respond(refuse(digest.error()));
    if (*digest != view(sha256(request.body)))
      return respond(refuse({Code::invalid, "validation_failed",
                             "the bytes have hash " + hash_text(sha256(request.body)) + ", not " +
                                 hash_text(*digest)}));
  }
  service_.put_blob(request.caller, std::move(request.body), answer_json(std::move(respond), 201));
}

void HttpRoutes::get_blob(Request request, Respond respond) {
  auto digest = digest_of(request.params.at(0));
  auto blob =
      digest ? service_.blob(request.caller.tenant, *digest) : Result<Bytes>(fail(digest.error()));
  if (!blob) return respond(refuse(blob.error()));
  wire::Response out;
  out.headers = {{"Content-Type", "application/octet-stream"},
                 {"ETag", "\"" + hash_text(*digest) + "\""}};
  out.body = std::move(*blob);
  respond(std::move(out));
}

void HttpRoutes::collect(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  auto seconds = body->count(http::kCollect["grace_seconds"]);
  if (seconds && *seconds && **seconds >= 1'000'000'000)
    seconds = bad_request("'grace_seconds' is less than 1000000000");
  if (!seconds) return respond(refuse(seconds.error()));
  std::optional<Time> grace;
  if (*seconds) grace = static_cast<Time>(**seconds) * kSecond;
  service_.collect_garbage(request.caller, grace, answer_json(std::move(respond), 200));
}

static json::Value info_of(const SecretBinding& s) {
  auto info = s.info.empty() ? Result<json::Value>(json::Value()) : json::parse(s.info);
  return info && info->is_object() ? *std::move(info) : json::Value(json::Object());
}

json::Value HttpRoutes::version_json(const SecretBinding& s, size_t number) const {
  json::Object out;
  out.add("binding_id", s.binding);
  out.add("version", uint64_t{number});
  if (auto digest = service_.secret_digest(s, number)) out.add("digest", *digest);
  out.add("enc_alg", "aes-256-gcm");
  out.add("created_at_ns", static_cast<int64_t>(s.versions[number - 1].made));
  out.add("status", number == s.versions.size() ? "active" : "superseded");
  return json::Value(std::move(out));
}

// Shows that there are values and their versions, never the values.
static json::Value secret_json(const SecretBinding& s) {
  const json::Value info = info_of(s);
  json::Array versions;
  for (size_t i = 0; i < s.versions.size(); ++i)
    versions.push_back(json::object({{"version", uint64_t{i + 1}},
                                     {"created_at_ns", static_cast<int64_t>(s.versions[i].made)}}));
  json::Object out;
  out.add("binding_id", s.binding);
  out.add("source_kind", std::string(info.string_or("source_kind", "node_secret_store")));
  if (const json::Value* name = info.find("env_var")) out.add("env_var", *name);
  if (!s.versions.empty()) out.add("latest_version", uint64_t{s.versions.size()});
  out.add("created_at_ns",
          s.versions.empty() ? int64_t{0} : static_cast<int64_t>(s.versions.front().made));
  out.add("updated_at_ns",
          s.versions.empty() ? int64_t{0} : static_cast<int64_t>(s.versions.back().made));
  out.add("status", std::string(info.string_or("status", "active")));
  out.add("versions", json::Value(std::move(versions)));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::list_secrets(const Request& request) {
  TRY(std::vector<SecretBinding> secrets, service_.secrets(request.caller.tenant));
  json::Array out;
  for (const SecretBinding& secret : secrets)
    out.push_back(secret_json(secret));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::get_secret(const Request& request) {
  TRY(SecretBinding secret, service_.secret(request.caller.tenant, request.params.at(0)));
  return secret_json(secret);
}

Result<json::Value> HttpRoutes::list_secret_versions(const Request& request) {
  TRY(SecretBinding secret, service_.secret(request.caller.tenant, request.params.at(0)));
  json::Array out;
  for (size_t i = 1; i <= secret.versions.size(); ++i)
    out.push_back(version_json(secret, i));
  return json::Value(std::move(out));
}

Result<json::Value> HttpRoutes::get_secret_version(const Request& request) {
  TRY(SecretBinding secret, service_.secret(request.caller.tenant, request.params.at(0)));
  auto version = whole_number(request.params.at(1));
  if (!version || *version == 0 || *version > secret.versions.size())
    return fail(Code::not_found, "not_found",
                "secret binding '" + secret.binding + "' has no version " + request.params.at(1));
  return version_json(secret, *version);
}

// True for requests that add a version to a binding.
static bool adds_version(const wire::Request& request) {
  return request.path.ends_with("/versions");
}

// The stored form of a binding: JSON.
static Result<std::string> parse_info(const wire::MemberReader& body) {
  TRY(std::string source, body.choice(http::kSecret["source_kind"]));
  TRY(std::string variable, body.text(http::kSecret["env_var"]));
  TRY(std::string status, body.choice(http::kSecret["status"]));
  if (source == "worker_env" && variable.empty())
    return bad_request("a binding of the kind worker_env wants {\"env_var\": name}");
  json::Object info;
  info.add("source_kind", std::move(source));
  if (!variable.empty()) info.add("env_var", std::move(variable));
  info.add("status", std::move(status));
  return json::print(json::Value(std::move(info)));
}

static Result<std::optional<Bytes>> parse_plain(const wire::MemberReader& body) {
  std::optional<Bytes> plain;
  if (body.value().find(http::kSecret["plaintext"])) {
    TRY(plain, body.text(http::kSecret["plaintext"]));
  }
  if (body.value().find(http::kSecret["plaintext_b64"])) {
    TRY(std::string text, body.text(http::kSecret["plaintext_b64"]));
    TRY(plain, unbase64(text));
  }
  if (!plain) return plain;
  TRY(std::string expected, body.text(http::kSecret["expected_digest"]));
  if (expected.empty()) return plain;
  TRY(Bytes digest, digest_of(expected));
  if (digest != view(sha256(*plain)))
    return fail(Code::invalid, "validation_failed", "the value has not the digest " + expected);
  return plain;
}

static Result<NewSecret> parse_secret(const wire::Request& request) {
  TRY(wire::BodyReader body, body_of(request));
  NewSecret out;
  out.binding = request.params.empty()
                    ? std::string(body.value().string_or(http::kSecret["binding_id"]))
                    : request.params[0];
  if (out.binding.empty() || out.binding.size() > 256 || !is_utf8(out.binding))
    return bad_request("a secret binding has an id of at most 256 bytes of UTF-8");
  TRY(std::string info, parse_info(body));
  if (!adds_version(request)) out.info = std::move(info);
  TRY(out.plain, parse_plain(body));
  if (!out.plain && adds_version(request))
    return bad_request("a version wants {\"plaintext\": text} or {\"plaintext_b64\": base64}");
  return out;
}

void HttpRoutes::put_secret(Request request, Respond respond) {
  auto secret = parse_secret(request);
  if (!secret) return respond(refuse(secret.error()));
  service_.put_secret(
      request.caller, *secret,
      [this, version = adds_version(request),
       respond = std::move(respond)](Result<SecretBinding> stored) mutable {
        if (!stored) return respond(refuse(stored.error()));
        respond(wire::json_response(
            200, json::print(version ? version_json(*stored, stored->versions.size())
                                     : secret_json(*stored))));
      });
}

void HttpRoutes::delete_secret(Request request, Respond respond) {
  auto secret = service_.secret(request.caller.tenant, request.params.at(0));
  if (!secret) return respond(refuse(secret.error()));
  service_.delete_secret(
      request.caller, request.params.at(0),
      [page = secret_json(*secret), respond = std::move(respond)](Result<Answer> answer) mutable {
        respond(answer ? wire::json_response(200, json::print(page)) : refuse(answer.error()));
      });
}

}  // namespace pawl::worlds
