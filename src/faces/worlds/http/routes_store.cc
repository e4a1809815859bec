// The content-addressed store and the secrets, over HTTP.

#include "base/utf8.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {

// A digest as "sha256:hex" or as the bare hex.
static Result<Bytes> digest_of(const std::string& text) {
  return parse_hash(text.starts_with("sha256:") ? text : "sha256:" + text);
}

void Service::put_blob(Request request, Respond respond) {
  if (!request.params.empty()) {
    auto digest = digest_of(request.params[0]);
    if (!digest) return respond(refuse(digest.error()));
    if (*digest != view(sha256(request.body)))
      return respond(refuse({Code::invalid, "validation_failed",
                             "the bytes have hash " + hash_text(sha256(request.body)) + ", not " +
                                 hash_text(*digest)}));
  }
  Bytes body = std::move(request.body);
  submit(request, "put_blob", std::move(body),
         [this, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_json(std::move(respond), 201, std::move(answer));
         });
}

Result<Bytes> Service::stored_blob(const std::string& tenant, BytesView digest) const {
  TRY(Cell cell, kernel_.read(blob_key(tenant, digest)));
  if (!cell.exists())
    return fail(
        Code::not_found, "not_found",
        "blob " + hash_text(digest) + " is not in the store: PUT it to /v1/cas/blobs first");
  TRY(Blob blob, decode_blob(digest, cell.value()));
  return std::move(blob.bytes);
}

void Service::get_blob(Request request, Respond respond) {
  auto digest = digest_of(request.params.at(0));
  auto blob =
      digest ? stored_blob(request.caller.tenant, *digest) : Result<Bytes>(fail(digest.error()));
  if (!blob) return respond(refuse(blob.error()));
  wire::Response out;
  out.headers = {{"Content-Type", "application/octet-stream"},
                 {"ETag", "\"" + hash_text(*digest) + "\""}};
  out.body = std::move(*blob);
  respond(std::move(out));
}

void Service::collect(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  auto seconds = number_field(*body, "grace_seconds");
  if (seconds && *seconds && **seconds >= 1'000'000'000)
    seconds = fail(Code::invalid, "invalid_request", "'grace_seconds' is less than 1000000000");
  if (!seconds) return respond(refuse(seconds.error()));
  Bytes bytes;
  if (*seconds) Writer(bytes).sint(static_cast<int64_t>(**seconds) * kSecond);
  submit(request, "collect", std::move(bytes),
         [this, respond = std::move(respond)](Result<Answer> answer) mutable {
           answer_json(std::move(respond), 200, std::move(answer));
         });
}

static json::Value info_of(const SecretBinding& s) {
  auto info = s.info.empty() ? Result<json::Value>(json::Value()) : json::parse(s.info);
  return info && info->is_object() ? *std::move(info) : json::Value(json::Object());
}

json::Value Service::version_json(const SecretBinding& s, size_t number) const {
  json::Object out;
  out.add("binding_id", s.binding);
  out.add("version", uint64_t{number});
  const auto& [at, sealed] = s.versions[number - 1];
  if (auto plain = open_secret(options_.secret_key, s.binding, sealed))
    out.add("digest", hash_text(sha256(*plain)));
  out.add("enc_alg", "aes-256-gcm");
  out.add("created_at_ns", static_cast<int64_t>(at));
  out.add("status", number == s.versions.size() ? "active" : "superseded");
  return json::Value(std::move(out));
}

// Never a value: only that there is one, and its versions.
json::Value Service::secret_json(const SecretBinding& s) const {
  const json::Value info = info_of(s);
  json::Array versions;
  for (size_t i = 0; i < s.versions.size(); ++i)
    versions.push_back(
        json::object({{"version", uint64_t{i + 1}},
                      {"created_at_ns", static_cast<int64_t>(s.versions[i].first)}}));
  json::Object out;
  out.add("binding_id", s.binding);
  out.add("source_kind", std::string(info.string_or("source_kind", "node_secret_store")));
  if (const json::Value* name = info.find("env_var")) out.add("env_var", *name);
  if (!s.versions.empty()) out.add("latest_version", uint64_t{s.versions.size()});
  out.add("created_at_ns",
          s.versions.empty() ? int64_t{0} : static_cast<int64_t>(s.versions.front().first));
  out.add("updated_at_ns",
          s.versions.empty() ? int64_t{0} : static_cast<int64_t>(s.versions.back().first));
  out.add("status", std::string(info.string_or("status", "active")));
  out.add("versions", json::Value(std::move(versions)));
  return json::Value(std::move(out));
}

Result<json::Value> Service::list_secrets(const Request& request) {
  json::Array out;
  TRY_OK(kernel_.snapshot().scan(secrets_prefix(request.caller.tenant),
                                 [&](BytesView, const Cell& cell) {
                                   if (auto secret = decode_secret(cell.value()))
                                     out.push_back(secret_json(*secret));
                                   return out.size() < 1000;
                                 }));
  return json::Value(std::move(out));
}

Result<SecretBinding> Service::secret_of(const Request& request) const {
  TRY(Cell cell, kernel_.snapshot().read(secret_key(request.caller.tenant, request.params.at(0))));
  if (!cell.exists())
    return fail(Code::not_found, "not_found",
                "secret binding '" + request.params.at(0) + "' does not exist");
  return decode_secret(cell.value());
}

Result<json::Value> Service::get_secret(const Request& request) {
  TRY(SecretBinding secret, secret_of(request));
  return secret_json(secret);
}

Result<json::Value> Service::list_secret_versions(const Request& request) {
  TRY(SecretBinding secret, secret_of(request));
  json::Array out;
  for (size_t i = 1; i <= secret.versions.size(); ++i)
    out.push_back(version_json(secret, i));
  return json::Value(std::move(out));
}

Result<json::Value> Service::get_secret_version(const Request& request) {
  TRY(SecretBinding secret, secret_of(request));
  auto version = whole_number(request.params.at(1));
  if (!version || *version == 0 || *version > secret.versions.size())
    return fail(Code::not_found, "not_found",
                "secret binding '" + secret.binding + "' has no version " + request.params.at(1));
  return version_json(secret, *version);
}

Result<PutSecret> Service::parse_secret(const Request& request) const {
  TRY(json::Value body, body_of(request));
  PutSecret out;
  out.binding =
      request.params.empty() ? std::string(body.string_or("binding_id")) : request.params[0];
  if (out.binding.empty() || out.binding.size() > 256 || !is_utf8(out.binding))
    return fail(Code::invalid, "invalid_request",
                "a secret binding has an id of at most 256 bytes of UTF-8");
  json::Object info;
  TRY(std::string source, choice_field(body, "source_kind", {"node_secret_store", "worker_env"}));
  TRY(std::string variable, text_field(body, "env_var"));
  TRY(std::string status, choice_field(body, "status", {"active", "disabled"}));
  if (source == "worker_env" && variable.empty())
    return fail(Code::invalid, "invalid_request",
                "a binding of the kind worker_env wants {\"env_var\": name}");
  info.add("source_kind", std::move(source));
  if (!variable.empty()) info.add("env_var", std::move(variable));
  info.add("status", std::move(status));
  const bool version = request.path.ends_with("/versions");
  if (!version) out.info = json::print(json::Value(std::move(info)));
  std::optional<Bytes> plain;
  for (std::string_view name : {"plaintext", "plaintext_b64"}) {
    if (!body.find(name)) continue;
    auto text = text_field(body, name);
    auto bytes = text && name == "plaintext_b64" ? unbase64(*text) : std::move(text);
    if (!bytes) return fail(std::move(bytes.error()));
    plain = std::move(*bytes);
  }
  if (!plain && version)
    return fail(Code::invalid, "invalid_request",
                "a version wants {\"plaintext\": text} or {\"plaintext_b64\": base64}");
  if (!plain) return out;
  TRY(std::string expected, text_field(body, "expected_digest"));
  if (!expected.empty()) {
    TRY(Bytes digest, digest_of(expected));
    if (digest != view(sha256(*plain)))
      return fail(Code::invalid, "validation_failed", "the value has not the digest " + expected);
  }
  TRY(out.value, seal_secret(options_.secret_key, out.binding, *plain));
  return out;
}

void Service::put_secret(Request request, Respond respond) {
  auto out = parse_secret(request);
  if (!out) return respond(refuse(out.error()));
  const bool version = request.path.ends_with("/versions");
  request.params = {out->binding};
  submit(request, "put_secret", encode(*out),
         [this, version, request, respond = std::move(respond)](Result<Answer> answer) mutable {
           auto secret = answer ? secret_of(request) : Result<SecretBinding>(fail(answer.error()));
           if (!secret) return respond(refuse(secret.error()));
           respond(wire::json_response(
               200, json::print(version ? version_json(*secret, secret->versions.size())
                                        : secret_json(*secret))));
         });
}

void Service::delete_secret(Request request, Respond respond) {
  auto secret = secret_of(request);
  if (!secret) return respond(refuse(secret.error()));
  submit(
      request, "put_secret", encode(PutSecret{request.params.at(0), {}, true, {}}),
      [page = secret_json(*secret), respond = std::move(respond)](Result<Answer> answer) mutable {
        respond(answer ? wire::json_response(200, json::print(page)) : refuse(answer.error()));
      });
}

}  // namespace pawl::worlds
