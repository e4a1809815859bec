// Look-ups in a request, status phrases and percent-encoding. Header names are compared in ASCII,
// because HTTP allows no other letters in them.

#include "wire/message.h"
#include "wire/text.h"

namespace pawl::wire {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// 413 has its older name, that of RFC 2616.
struct Phrase {
  int status;
  std::string_view text;
};
constexpr Phrase kPhrases[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Request Entity Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Entity"},
    {423, "Locked"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

// Calls `visit(name, value)`, both decoded, for each pair of a query or form until it returns
// false.
template <class Visit>
void each_param(std::string_view query, const Visit& visit) {
  while (!query.empty()) {
    size_t end = query.find('&');
    std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view{} : query.substr(end + 1);
    // "a=1&&b=2" has an empty pair, which names nothing. A pair without '=' has an empty value.
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1);
    if (!visit(percent_decode(pair.substr(0, equals), true), percent_decode(value, true))) return;
  }
}

// The server adds Content-Length itself.
Response typed(int status, std::string_view type, std::string body) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", type);
  response.body = std::move(body);
  return response;
}

}  // namespace

// Equal bytes are compared first: most names have the usual case.
bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return &value;
  }
  return nullptr;
}

bool lists_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
    if (same_name(trimmed(item), token)) return true;
  }
  return false;
}

std::string_view Request::header(std::string_view name) const {
  const std::string* found = find_header(headers, name);
  return found ? std::string_view(*found) : std::string_view{};
}

bool Request::has_header(std::string_view name) const {
  return find_header(headers, name) != nullptr;
}

static std::optional<std::string> first_param(std::string_view text, std::string_view name) {
  std::optional<std::string> found;
  each_param(text, [&](const std::string& key, std::string value) {
    if (key != name) return true;
    found = std::move(value);
    return false;
  });
  return found;
}

std::optional<std::string> Request::query_param(std::string_view name) const {
  return first_param(query, name);
}

std::optional<std::string> Request::form_param(std::string_view name) const {
  return first_param(body, name);
}

std::vector<std::string> Request::query_params(std::string_view name) const {
  std::vector<std::string> found;
  each_param(query, [&](const std::string& key, std::string value) {
    if (key == name) found.push_back(std::move(value));
    return true;
  });
  return found;
}

Response json_response(int status, std::string body) {
  return typed(status, "application/json", std::move(body));
}

Response text_response(int status, std::string text) {
  return typed(status, "text/plain; charset=utf-8", std::move(text));
}

std::string_view reason_phrase(int status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return "Unknown";
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out.push_back(' ');
      continue;
    }
    // An escape needs two hex digits after the '%'; `low` stays negative when either is missing.
    int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
    if (low < 0) {
      out.push_back(text[i]);
      continue;
    }
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

HostPort host_and_port(std::string_view authority, std::string_view usual_port) {
  size_t colon = authority.rfind(':');
  // Colons within brackets belong to an IPv6 address.
  if (colon != std::string_view::npos && authority.find(']', colon) != std::string_view::npos)
    colon = std::string_view::npos;
  HostPort out{
      std::string(authority.substr(0, colon)),
      std::string(colon == std::string_view::npos ? usual_port : authority.substr(colon + 1))};
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  return out;
}

std::string percent_encode(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  static constexpr std::string_view kPlain = "-._~";
  std::string out;
  out.reserve(text.size());
  // "." and ".." alone would be taken for steps in a path.
  bool step = text == "." || text == "..";
  for (char c : text) {
    bool plain = !step && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || kPlain.find(c) != std::string_view::npos);
    if (plain) {
      out.push_back(c);
      continue;
    }
    auto byte = static_cast<unsigned char>(c);
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
  return out;
}

}  // namespace pawl::wire
