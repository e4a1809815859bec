#include "bucket/signature.h"

#include <fmt/format.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "base/hash.h"

namespace pawl::bucket {
namespace {

Bytes hmac(BytesView key, BytesView text) {
  Bytes out(32, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       reinterpret_cast<unsigned char*>(out.data()), &size);
  return out;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return out;
}

// Sorted by their encoded names, as the signature wants them.
std::string query_of(const Plain& request) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : request.query)
    encoded.emplace_back(percent_encode(name, false), percent_encode(value, false));
  std::ranges::sort(encoded);
  std::string out;
  for (const auto& [name, value] : encoded)
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  return out;
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (unsigned char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || (c == '/' && keep_slash);
    if (plain)
      out.push_back(static_cast<char>(c));
    else
      out += fmt::format("%{:02X}", c);
  }
  return out;
}

std::string target_of(const Plain& request) {
  const std::string query = query_of(request);
  return percent_encode(request.path, true) + (query.empty() ? "" : "?" + query);
}

wire::Headers sign(const Plain& request, const Keys& keys, int64_t seconds) {
  const auto at = static_cast<time_t>(seconds);
  tm utc{};
  gmtime_r(&at, &utc);
  const std::string day =
      fmt::format("{:04}{:02}{:02}", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday);
  const std::string date =
      fmt::format("{}T{:02}{:02}{:02}Z", day, utc.tm_hour, utc.tm_min, utc.tm_sec);
  const std::string body_hash = hex(view(sha256(request.body)));
  wire::Headers headers = request.headers;
  headers.emplace_back("Host", request.host);
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", date);

  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : headers)
    sorted[lower(name)] = value;
  std::string lines, names;
  for (const auto& [name, value] : sorted) {
    lines += fmt::format("{}:{}\n", name, value);
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, percent_encode(request.path, true),
                  query_of(request), lines, names, body_hash);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, keys.region);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", date, scope, hex(view(sha256(canonical))));
  const Bytes key =
      hmac(hmac(hmac(hmac("AWS4" + keys.secret, day), keys.region), "s3"), "aws4_request");
  headers.emplace_back(
      "Authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", keys.id,
                  scope, names, hex(hmac(key, to_sign))));
  return headers;
}

}  // namespace pawl::bucket
