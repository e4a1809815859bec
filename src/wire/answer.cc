#include "wire/answer.h"

#include <charconv>

#include "wire/text.h"

namespace pawl::wire {
namespace {

constexpr size_t kHeadBytes = 64 * 1024;
constexpr int kInterim = 16;  // answers before the answer; a peer that sends more sends no other

// A whole number and nothing else.
std::optional<size_t> whole(std::string_view text, int base) {
  size_t n = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), n, base);
  if (text.empty() || bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

}  // namespace

std::string_view AnswerHead::header(std::string_view name) const {
  const std::string* found = find_header(headers, name);
  return found ? std::string_view(*found) : std::string_view();
}

Result<void> AnswerReader::fill(size_t size) {
  while (buffer_.size() < size) {
    TRY(bool more, more_(buffer_));
    came_ = came_ || !buffer_.empty();
    if (!more)
      return fail(refuse_(came_ ? "the answer was cut off"
                                : "the connection was closed without an answer"));
  }
  return {};
}

// Up to the next end of line, without it; `room` is what lines may still take.
Result<std::string> AnswerReader::line(size_t& room) {
  size_t end, from = 0;
  while ((end = buffer_.find("\r\n", from)) == Bytes::npos) {
    if (buffer_.size() > room) return fail(refuse_("a head or a chunk's line that is too long"));
    from = buffer_.empty() ? 0 : buffer_.size() - 1;
    TRY_OK(fill(buffer_.size() + 1));
  }
  if (end > room) return fail(refuse_("a head or a chunk's line that is too long"));
  room -= end;
  std::string out = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return out;
}

Result<AnswerHead> AnswerReader::one_head() {
  AnswerHead out;
  size_t room = kHeadBytes;
  TRY(std::string first, line(room));
  auto status = first.size() >= 12 && first.starts_with("HTTP/1.")
                    ? whole(std::string_view(first).substr(9, 3), 10)
                    : std::nullopt;
  if (!status || *status < 100) return fail(refuse_("what answered does not speak HTTP/1.1"));
  out.status = static_cast<int>(*status);
  while (true) {
    TRY(std::string next, line(room));
    if (next.empty()) break;
    size_t colon = next.find(':');
    if (colon == std::string::npos) return fail(refuse_("a header without a colon"));
    out.headers.emplace_back(next.substr(0, colon),
                             trimmed(std::string_view(next).substr(colon + 1)));
  }
  out.closes = lists_token(out.header("Connection"), "close") ||
               (first[7] == '0' && !lists_token(out.header("Connection"), "keep-alive"));
  return out;
}

Result<AnswerHead> AnswerReader::head() {
  for (int i = 0; i <= kInterim; ++i) {
    TRY(AnswerHead out, one_head());
    if (out.status >= 200 || out.status == 101) return out;
  }
  return fail(refuse_("one interim answer after the other, and no answer"));
}

Result<void> AnswerReader::chunks(const Piece& piece) {
  while (true) {
    size_t room = kHeadBytes;
    TRY(std::string text, line(room));
    // StaleRead a semicolon stands what nobody uses.
    auto size = whole(trimmed(std::string_view(text).substr(0, text.find(';'))), 16);
    if (!size) return fail(refuse_("a chunk without a size"));
    if (*size > max_) return fail(refuse_("the answer is too large"));
    if (*size == 0) break;
    TRY_OK(fill(*size + 2));
    if (buffer_.compare(*size, 2, "\r\n") != 0)
      return fail(refuse_("a chunk that does not end where it says"));
    const bool go = piece(BytesView(buffer_).substr(0, *size));
    buffer_.erase(0, *size + 2);
    if (!go) return {};
  }
  // Headers may follow; nobody reads them.
  for (size_t room = kHeadBytes;;) {
    TRY(std::string trailer, line(room));
    if (trailer.empty()) return {};
  }
}

Result<void> AnswerReader::until_the_end(AnswerHead& head, const Piece& piece) {
  if (end_ == End::said) return fail(refuse_("the answer does not say how long it is"));
  head.closes = true;
  while (true) {
    if (!buffer_.empty() && !piece(std::exchange(buffer_, {}))) return {};
    TRY(bool more, more_(buffer_));
    if (!more && buffer_.empty()) return {};
  }
}

Result<void> AnswerReader::pieces(AnswerHead& head, const Piece& piece) {
  if (lists_token(head.header("Transfer-Encoding"), "chunked")) return chunks(piece);
  if (head.header("Content-Length").empty()) return until_the_end(head, piece);
  auto length = whole(head.header("Content-Length"), 10);
  if (!length) return fail(refuse_("a length that is no number"));
  if (*length > max_) return fail(refuse_("the answer is too large"));
  TRY_OK(fill(*length));
  if (*length) piece(BytesView(buffer_).substr(0, *length));
  buffer_.erase(0, *length);
  return {};
}

Result<Bytes> AnswerReader::body(AnswerHead& head, std::string_view method) {
  Bytes out;
  if (method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304) return out;
  bool fits = true;
  TRY_OK(pieces(head, [&](BytesView piece) {
    fits = piece.size() <= max_ - out.size();
    if (fits) out.append(piece);
    return fits;
  }));
  if (!fits) return fail(refuse_("the answer is too large"));
  return out;
}

}  // namespace pawl::wire
