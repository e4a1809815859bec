// Writes heads and chunks.

#include "server/http/writer.h"

#include <fmt/format.h>

#include <charconv>

#include "base/time.h"

namespace pawl::server {
namespace {

using wire::same_name;

void append_number(Bytes& out, uint64_t number, int base = 10) {
  char digits[20];
  auto [end, error] = std::to_chars(digits, digits + sizeof digits, number, base);
  out.append(digits, end);
}

bool is_ours(std::string_view name) {
  static constexpr std::string_view kOurs[] = {"Content-Length", "Transfer-Encoding", "Connection",
                                               "Date", "Server"};
  for (std::string_view ours : kOurs) {
    if (same_name(name, ours)) return true;
  }
  return false;
}

bool is_clean(std::string_view text) {
  for (unsigned char c : text) {
    if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

void append_status(Bytes& out, int status) {
  if (status == 200) {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  append_number(out, static_cast<uint64_t>(status));
  out += ' ';
  out += wire::reason_phrase(status);
  out += "\r\n";
}

}  // namespace

void append_head(Bytes& out, const wire::Response& response, const HeadOptions& options) {
  append_status(out, response.status);
  bool upgrade = response.status == 101;
  for (const auto& [name, value] : response.headers) {
    bool handshake = upgrade && same_name(name, "Connection");
    if ((is_ours(name) && !handshake) || name.empty() || !is_clean(name) || !is_clean(value))
      continue;
    out += name;
    out += ": ";
    out += value;
    out += "\r\n";
  }
  if (!upgrade) {
    // 204 and 304 never have a body, and a Content-Length confuses some clients.
    bool bodiless = response.status == 204 || response.status == 304;
    bool streamed = response.stream != nullptr;
    if (options.framing == Framing::chunked ||
        (options.framing == Framing::none && streamed && !options.http10)) {
      out += "Transfer-Encoding: chunked\r\n";
    } else if (options.framing != Framing::close && !bodiless && !streamed) {
      out += "Content-Length: ";
      append_number(out, response.body.size());
      out += "\r\n";
    }
    if (!options.keep_alive) {
      out += "Connection: close\r\n";
    } else if (options.http10) {
      out += "Connection: keep-alive\r\n";
    }
  }
  out += "Server: pawl\r\nDate: ";
  out += options.date;
  out += "\r\n\r\n";
}

void append_chunk(Bytes& out, BytesView piece) {
  if (piece.empty()) return;
  append_number(out, piece.size(), 16);
  out += "\r\n";
  out += piece;
  out += "\r\n";
}

std::string http_date(int64_t unix_seconds) {
  static constexpr std::string_view kDays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
  static constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  Civil c = civil(unix_seconds * kSecond);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[unix_seconds / 86400 % 7],
                     c.day, kMonths[c.month - 1], c.year, c.hour, c.minute, c.second);
}

}  // namespace pawl::server
