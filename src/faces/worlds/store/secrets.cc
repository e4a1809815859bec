// Secrets rest sealed and are opened for an executor only. The seal is AES-256-GCM; its nonce is a
// hash of key, name and text, so that sealing needs no random source and never repeats a nonce for
// two texts.

#include <openssl/evp.h>

#include "base/utf8.h"
#include "faces/worlds/service.h"
#include "json/text.h"

namespace pawl::worlds {
namespace {

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
constexpr size_t kNonce = 12, kTag = 16;

unsigned char* raw(Bytes& b) { return reinterpret_cast<unsigned char*>(b.data()); }
const unsigned char* raw(BytesView b) { return reinterpret_cast<const unsigned char*>(b.data()); }

Result<void> check_key(BytesView key) {
  if (key.size() == 32) return {};
  return fail(Code::unavailable, "secret.resolver_missing",
              "stored secrets need a key of 32 bytes: set PAWL_WORLDS_SECRET_KEY, or bind the "
              "secret as env:NAME");
}

}  // namespace

Result<Bytes> seal_secret(BytesView key, BytesView name, BytesView plain) {
  TRY_OK(check_key(key));
  Bytes mixed(key);
  Writer w(mixed);
  w.str(name), w.str(plain);
  Bytes nonce = Bytes(view(sha256(mixed))).substr(0, kNonce);
  Cipher c(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  Bytes text(plain.size(), '\0'), tag(kTag, '\0');
  int n = 0;
  const bool ok =
      c && EVP_EncryptInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, raw(key), raw(nonce)) == 1 &&
      EVP_EncryptUpdate(c.get(), nullptr, &n, raw(name), static_cast<int>(name.size())) == 1 &&
      EVP_EncryptUpdate(c.get(), raw(text), &n, raw(plain), static_cast<int>(plain.size())) == 1 &&
      EVP_EncryptFinal_ex(c.get(), raw(text) + n, &n) == 1 &&
      EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_GET_TAG, kTag, raw(tag)) == 1;
  if (!ok) return fail(Code::internal, "secret.resolver_error", "the secret could not be sealed");
  return nonce + tag + text;
}

Result<Bytes> open_secret(BytesView key, BytesView name, BytesView sealed) {
  TRY_OK(check_key(key));
  auto bad = [&] {
    return fail(Code::corrupt, "secret.resolver_error",
                "secret '" + std::string(name) +
                    "' does not open: the server's secret key is not the one it was sealed with");
  };
  if (sealed.size() < kNonce + kTag) return bad();
  Bytes tag(sealed.substr(kNonce, kTag));
  const BytesView text = sealed.substr(kNonce + kTag);
  Cipher c(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  Bytes plain(text.size(), '\0');
  int n = 0;
  const bool ok =
      c &&
      EVP_DecryptInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, raw(key),
                         raw(sealed.substr(0, kNonce))) == 1 &&
      EVP_DecryptUpdate(c.get(), nullptr, &n, raw(name), static_cast<int>(name.size())) == 1 &&
      EVP_DecryptUpdate(c.get(), raw(plain), &n, raw(text), static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_SET_TAG, kTag, raw(tag)) == 1 &&
      EVP_DecryptFinal_ex(c.get(), raw(plain) + n, &n) == 1;
  if (!ok) return bad();
  return plain;
}

Result<Bytes> Service::reveal(const std::string& tenant, const SecretDef& secret,
                              uint64_t version) const {
  auto from_environment = [&](const std::string& variable) -> Result<Bytes> {
    auto found = options_.environment ? options_.environment(variable) : std::nullopt;
    if (!found)
      return fail(
          Code::not_found, "secret.resolve_error",
          "secret '" + secret.name + "' is bound to env:" + variable + ", which is not set");
    return *found;
  };
  Bytes value;
  if (secret.binding_id.starts_with("env:")) {
    TRY(value, from_environment(secret.binding_id.substr(4)));
  } else {
    TRY(Cell cell, kernel_.read(secret_key(tenant, secret.binding_id)));
    if (!cell.exists())
      return fail(Code::not_found, "secret.resolve_error",
                  "secret '" + secret.name + "' is bound to '" + secret.binding_id +
                      "', which has no value: POST it to /v1/secrets/bindings/" +
                      wire::percent_encode(secret.binding_id) + "/versions");
    TRY(SecretBinding stored, decode_secret(cell.value()));
    auto info = json::parse(stored.info.empty() ? BytesView("{}") : BytesView(stored.info));
    if (info && info->string_or("status") == "disabled")
      return fail(Code::conflict, "secret.resolve_error",
                  "secret '" + secret.name + "' is bound to '" + secret.binding_id +
                      "', which is disabled");
    if (info && info->string_or("source_kind") == "worker_env") {
      TRY(value, from_environment(std::string(info->string_or("env_var"))));
    } else {
      const size_t at = version == 0 ? stored.versions.size() : version;
      if (at == 0 || at > stored.versions.size())
        return fail(Code::not_found, "secret.resolve_error",
                    "secret '" + secret.name + "' has no version " + std::to_string(version));
      TRY(value,
          open_secret(options_.secret_key, secret.binding_id, stored.versions[at - 1].second));
    }
  }
  if (!secret.expected_digest.empty() && hash_text(sha256(value)) != secret.expected_digest)
    return fail(
        Code::conflict, "secret.resolve_error",
        "the value of secret '" + secret.name + "' has not the digest that the manifest expects");
  return value;
}

// {"$tag": "secret", "$value": {alias, version}} becomes the literal that it stands for.
Result<cbor::Value> Service::inject_secrets(const WorldId& world_id, const LoadedManifest& loaded,
                                            cbor::Value params) const {
  if (params.is_array()) {
    for (cbor::Value& item : params.array()) {
      TRY(item, inject_secrets(world_id, loaded, item));
    }
    return params;
  }
  if (!params.is_map()) return params;
  const cbor::Value* inner = params.find("$value");
  if (params.text_or("$tag") == "secret" && inner && inner->find("alias")) {
    const std::string alias(inner->text_or("alias"));
    const cbor::Value* version = inner->find("version");
    const uint64_t number = version ? version->as_uint64().value_or(0) : 0;
    auto def = loaded.secrets.find(alias + "@" + std::to_string(number));
    if (def == loaded.secrets.end()) def = loaded.secrets.find(alias);
    if (def == loaded.secrets.end())
      return fail(Code::not_found, "secret.resolve_error",
                  "the manifest has no secret '" + alias + "@" + std::to_string(number) + "'");
    TRY(Bytes value, reveal(world_id.tenant, def->second, 0));
    return is_utf8(value) ? cbor::Value(std::move(value))
                          : cbor::Value(cbor::Octets{std::move(value)});
  }
  for (auto& [key, item] : params.map()) {
    TRY(item, inject_secrets(world_id, loaded, item));
  }
  return params;
}

}  // namespace pawl::worlds
