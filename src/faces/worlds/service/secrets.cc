// Secrets as executors see them: from the environment, or opened from the store. Params carry
// references to secrets; plain values never reach a turn, a frame or a record.

#include "faces/worlds/store/secrets.h"
#include "base/utf8.h"
#include "faces/worlds/service/service.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::worlds {
namespace {

constexpr std::string_view kEnvironment = "env:";
constexpr size_t kMaxListedSecrets = 1000;

std::unexpected<Error> unresolved(Code code, std::string why) {
  return fail(code, "secret.resolve_error", std::move(why));
}

Result<Bytes> variable(const FaceOptions& options, const std::string& tenant,
                       const SecretDef& secret, const std::string& name) {
  auto found = options.environment ? options.environment(tenant, name) : std::nullopt;
  if (!found)
    return unresolved(Code::not_found,
                      "secret '" + secret.name + "' is bound to env:" + name +
                          ", which is not set, or which the operator has not allowed for this "
                          "tenant with --worlds-env-allow");
  return *found;
}

}  // namespace

// Version 0 is the newest. A binding may also say in its `info` that a variable of the environment
// holds the value (source_kind worker_env), or that it is disabled.
Result<Bytes> Service::stored_value(const std::string& tenant, const SecretDef& secret,
                                    uint64_t version) const {
  const std::string bound = "secret '" + secret.name + "' is bound to '" + secret.binding_id + "'";
  TRY(Cell cell, kernel_.read(secret_key(tenant, secret.binding_id)));
  if (!cell.exists())
    return unresolved(Code::not_found,
                      bound + ", which has no value: POST it to /v1/secrets/bindings/" +
                          wire::percent_encode(secret.binding_id) + "/versions");
  TRY(SecretBinding stored, decode_secret(cell.value()));
  auto info = json::parse(stored.info.empty() ? BytesView("{}") : BytesView(stored.info));
  if (info && info->string_or("status") == "disabled")
    return unresolved(Code::conflict, bound + ", which is disabled");
  if (info && info->string_or("source_kind") == "worker_env")
    return variable(options_, tenant, secret, std::string(info->string_or("env_var")));
  const size_t at = version == 0 ? stored.versions.size() : version;
  if (at == 0 || at > stored.versions.size())
    return unresolved(Code::not_found,
                      "secret '" + secret.name + "' has no version " + std::to_string(version));
  return open_secret(options_.secret_key, secret.binding_id, stored.versions[at - 1].sealed);
}

Result<SecretBinding> Service::secret(const std::string& tenant, const std::string& binding) const {
  TRY(Cell cell, kernel_.snapshot().read(secret_key(tenant, binding)));
  if (!cell.exists())
    return fail(Code::not_found, "not_found", "secret binding '" + binding + "' does not exist");
  return decode_secret(cell.value());
}

Result<std::vector<SecretBinding>> Service::secrets(const std::string& tenant) const {
  std::vector<SecretBinding> out;
  TRY_OK(kernel_.snapshot().scan(secrets_prefix(tenant), [&](BytesView, const Cell& cell) {
    if (auto secret = decode_secret(cell.value())) out.push_back(std::move(*secret));
    return out.size() < kMaxListedSecrets;
  }));
  return out;
}

Result<std::string> Service::secret_digest(const SecretBinding& secret, size_t version) const {
  TRY(Bytes plain,
      open_secret(options_.secret_key, secret.binding, secret.versions.at(version - 1).sealed));
  return hash_text(sha256(plain));
}

void Service::put_secret(const Caller& caller, const NewSecret& secret, Done<SecretBinding> done) {
  PutSecret put{secret.binding, {}, false, secret.info};
  if (secret.plain) {
    // Sealed before it is submitted: the journal only sees the sealed bytes.
    auto sealed = seal_secret(options_.secret_key, secret.binding, *secret.plain);
    if (!sealed) return done(fail(std::move(sealed.error())));
    put.value = std::move(*sealed);
  }
  submit(caller, "put_secret", encode(put),
         [this, tenant = caller.tenant, binding = secret.binding,
          done = std::move(done)](Result<Answer> answer) mutable {
           if (!answer) return done(fail(std::move(answer.error())));
           done(this->secret(tenant, binding));
         });
}

void Service::delete_secret(const Caller& caller, const std::string& binding, Reply done) {
  // `erase` is set.
  submit(caller, "put_secret", encode(PutSecret{binding, {}, true, {}}), std::move(done));
}

Result<Bytes> Service::reveal(const std::string& tenant, const SecretDef& secret,
                              uint64_t version) const {
  const bool is_variable = secret.binding_id.starts_with(kEnvironment);
  TRY(Bytes value, is_variable ? variable(options_, tenant, secret,
                                          secret.binding_id.substr(kEnvironment.size()))
                               : stored_value(tenant, secret, version));
  if (!secret.expected_digest.empty() && hash_text(sha256(value)) != secret.expected_digest)
    return fail(
        Code::conflict, "secret.resolve_error",
        "the value of secret '" + secret.name + "' has not the digest that the manifest expects");
  return value;
}

// {"$tag": "secret", "$value": {alias, version}} is replaced by the secret's value.
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
    // The version belongs to the definition's name (llm/key@1). It does not choose a stored
    // version: the newest is taken.
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
