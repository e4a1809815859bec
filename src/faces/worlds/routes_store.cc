// The content-addressed store and the secrets, over HTTP.

#include "base/utf8.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {

// A digest as "sha256:hex" or as the bare hex.
static Result<Bytes> digest_of(const std::string& text) { return parse_hash(text.starts_with("sha256:") ? text : "sha256:" + text); }

void Service::put_blob(Request request, Respond respond) {
  if (!request.params.empty()) {
    auto digest = digest_of(request.params[0]);
    if (!digest) return respond(refuse(digest.error()));
    if (*digest != view(sha256(request.body)))
      return respond(refuse({Code::invalid, "validation_failed", "the bytes have hash " + hash_text(sha256(request.body)) + ", not " + hash_text(*digest)}));
  }
  Bytes body = std::move(request.body);
  submit(request, "put_blob", std::move(body), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 201, std::move(answer)); });
}

void Service::get_blob(Request request, Respond respond) {
  auto digest = digest_of(request.params.at(0));
  if (!digest) return respond(refuse(digest.error()));
  auto cell = door_.read(blob_key(request.caller.tenant, *digest));
  if (!cell) return respond(refuse(cell.error()));
  if (!cell->exists()) return respond(refuse({Code::not_found, "not_found", "blob " + hash_text(*digest) + " is not in the store"}));
  auto blob = decode_blob(*digest, cell->value());
  if (!blob) return respond(refuse(blob.error()));
  wire::Response out;
  out.headers = {{"Content-Type", "application/octet-stream"}, {"ETag", "\"" + hash_text(*digest) + "\""}};
  out.body = std::move(blob->bytes);
  respond(std::move(out));
}

void Service::collect(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  auto seconds = number_field(*body, "grace_seconds");
  if (seconds && *seconds && **seconds >= 1'000'000'000) seconds = fail(Code::invalid, "invalid_request", "'grace_seconds' is less than 1000000000");
  if (!seconds) return respond(refuse(seconds.error()));
  Bytes bytes;
  if (*seconds) Writer(bytes).sint(static_cast<int64_t>(**seconds) * kSecond);
  submit(request, "collect", std::move(bytes), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 200, std::move(answer)); });
}

// Never a value: only that there is one, and its versions.
static json::Value secret_json(const Secret& s) {
  json::Array versions;
  for (size_t i = 0; i < s.versions.size(); ++i)
    versions.push_back(json::object({{"version", uint64_t{i + 1}}, {"created_at_ns", static_cast<int64_t>(s.versions[i].first)}}));
  return json::object({{"binding_id", s.binding}, {"source_kind", "node_secret_store"}, {"latest_version", uint64_t{s.versions.size()}}, {"versions", json::Value(std::move(versions))}});
}

Result<json::Value> Service::list_secrets(const Request& request) {
  json::Array out;
  TRY_OK(door_.look().scan(secrets_prefix(request.caller.tenant), [&](BytesView, const Cell& cell) {
    if (auto secret = decode_secret(cell.value())) out.push_back(secret_json(*secret));
    return out.size() < 1000;
  }));
  return json::object({{"bindings", json::Value(std::move(out))}});
}

Result<json::Value> Service::get_secret(const Request& request) {
  TRY(Cell cell, door_.look().read(secret_key(request.caller.tenant, request.params.at(0))));
  if (!cell.exists()) return fail(Code::not_found, "not_found", "secret binding '" + request.params.at(0) + "' does not exist");
  TRY(Secret secret, decode_secret(cell.value()));
  return secret_json(secret);
}

Result<json::Value> Service::get_secret_version(const Request& request) {
  TRY(Cell cell, door_.look().read(secret_key(request.caller.tenant, request.params.at(0))));
  if (!cell.exists()) return fail(Code::not_found, "not_found", "secret binding '" + request.params.at(0) + "' does not exist");
  TRY(Secret secret, decode_secret(cell.value()));
  auto version = whole_number(request.params.at(1));
  if (!version || *version == 0 || *version > secret.versions.size()) return fail(Code::not_found, "not_found", "secret binding '" + secret.binding + "' has no version " + request.params.at(1));
  return json::object({{"binding_id", secret.binding}, {"version", *version}, {"created_at_ns", static_cast<int64_t>(secret.versions[*version - 1].first)}});
}

void Service::put_secret(Request request, Respond respond) {
  auto body = body_of(request);
  if (!body) return respond(refuse(body.error()));
  PutSecret out;
  out.binding = request.params.empty() ? std::string(body->string_or("binding_id")) : request.params[0];
  if (out.binding.empty() || out.binding.size() > 256 || !is_utf8(out.binding))
    return respond(refuse({Code::invalid, "invalid_request", "a secret binding has an id of at most 256 bytes of UTF-8"}));
  std::optional<Bytes> plain;
  for (std::string_view name : {"plaintext", "plaintext_b64"}) {
    if (!body->find(name)) continue;
    auto text = text_field(*body, name);
    auto bytes = text && name == "plaintext_b64" ? unbase64(*text) : std::move(text);
    if (!bytes) return respond(refuse(bytes.error()));
    plain = std::move(*bytes);
  }
  if (!plain && request.path.ends_with("/versions")) return respond(refuse({Code::invalid, "invalid_request", "a version wants {\"plaintext\": text} or {\"plaintext_b64\": base64}"}));
  if (plain) {
    auto sealed = seal_secret(options_.secret_key, out.binding, *plain);
    if (!sealed) return respond(refuse(sealed.error()));
    out.value = std::move(*sealed);
  }
  submit(request, "put_secret", encode(out), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 201, std::move(answer)); });
}

void Service::delete_secret(Request request, Respond respond) {
  PutSecret out{request.params.at(0), {}, true, {}};
  submit(request, "put_secret", encode(out), [this, respond = std::move(respond)](Result<Answer> answer) mutable { answer_json(std::move(respond), 200, std::move(answer)); });
}

}  // namespace pawl::worlds
