// Fuzz targets for bytes from the network and from the disk: HTTP, WebSocket, tokens, frames,
// segments.

#include <fmt/format.h>

#include "fuzz.h"
#include "json/text.h"
#include "kernel/frame.h"
#include "kernel/once.h"
#include "server/auth/jwt.h"
#include "server/http/parser.h"
#include "server/http/websocket.h"
#include "storage/file/segment.h"

namespace pawl::fuzz {

namespace {

// Feeds the bytes in pieces of this size and returns what the parser made of them. The result must
// not depend on the size of the pieces.
std::string http_transcript(BytesView bytes, size_t piece) {
  server::HttpParser parser({.head_bytes = 2048, .body_bytes = 8192});
  std::string out;
  while (!bytes.empty()) {
    BytesView part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (!part.empty()) {
      auto state = parser.feed(part);
      if (state == server::HttpParser::State::failed)
        return out +
               fmt::format("failed {} {}", parser.fault().status, parser.fault().error.reason);
      if (state == server::HttpParser::State::more) continue;
      wire::Request request = parser.take();
      out += request.method + " " + request.path + "?" + request.query;
      for (const auto& [name, value] : request.headers)
        out += "\n" + name + ": " + value;
      for (const char* name : {"a", "b"})
        out += request.query_param(name).value_or("-");
      out += "\n[" + request.body + "]\n";
    }
  }
  return out;
}

void http(BytesView bytes) {
  std::string whole = http_transcript(bytes, ~size_t{0});
  CHECK(http_transcript(bytes, 1) == whole);
  CHECK(http_transcript(bytes, 7) == whole);
}

// The same for the frames of a WebSocket.
std::string socket_transcript(BytesView bytes, size_t piece) {
  server::FrameReader reader;
  std::string out;
  while (!bytes.empty()) {
    BytesView part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    while (auto event = reader.next(part)) {
      out += fmt::format("{} {} {} [{}]\n", static_cast<int>(event->kind), event->code,
                         event->reason, event->payload);
      using Kind = server::FrameReader::Event::Kind;
      if (event->kind == Kind::closed || event->kind == Kind::failed) return out;
    }
  }
  return out;
}

void websocket(BytesView bytes) {
  std::string whole = socket_transcript(bytes, ~size_t{0});
  CHECK(socket_transcript(bytes, 1) == whole);
  CHECK(socket_transcript(bytes, 5) == whole);
}

// Tokens come from outside and are parsed before their signature is checked.
void token(BytesView bytes) {
  auto parsed = server::parse_token(bytes);
  if (!parsed) return;
  (void)server::check_times(parsed->claims, kSecond).has_value();
  (void)server::read_claims(parsed->claims, {.issuer = "i", .audience = "a"}, kSecond).has_value();
}

void frame(BytesView bytes) {
  if (auto sealed = unseal(bytes)) (void)decode_frame(1, sealed->body).has_value();
  // decode_outcome() reads the same bytes as decode_frame() and skips the inputs; both must agree.
  auto decoded = decode_frame(7, bytes);
  static Frame outcome;  // reused from input to input, as a replay does
  auto got = decode_outcome(7, bytes, outcome);
  if (decoded) {
    Bytes once = encode_body(*decoded);
    auto again = decode_frame(7, once);
    CHECK(again && encode_body(*again) == once);
    CHECK(got);
    CHECK(outcome.writes.size() == decoded->writes.size() && outcome.notes == decoded->notes &&
          outcome.now() == decoded->now() &&
          outcome.stale_reads.size() == decoded->stale_reads.size());
    for (size_t i = 0; i < outcome.writes.size(); ++i) {
      const Frame::Write &a = outcome.writes[i], &b = decoded->writes[i];
      CHECK(a.key == b.key && a.before == b.before && !a.value == !b.value &&
            (!a.value || a.value->bytes == b.value->bytes));
    }
  }
  if (auto effect = decode_effect(bytes)) CHECK(decode_effect(encode(*effect)));
  (void)decode_once(bytes).has_value();
}

std::vector<std::string> frame_seeds() {
  Frame f;
  f.seq = 7;
  f.program = "p";
  Input input{.program = "p", .verb = "put", .body = "body", .caller = {"tenant", "user", "roles"}};
  input.stamp.now = kSecond;
  f.inputs = {input};
  f.notes = {"note", std::string(300, 'n')};
  Effect effect;
  effect.id = "e1";
  effect.tenant = "tenant";
  return {encode_body(f), encode_entry(f), encode(effect)};
}

// A segment file whose content is the input.
class MemorySegment final : public SegmentReader {
 public:
  explicit MemorySegment(BytesView bytes) : bytes_(bytes) {}
  Result<Bytes> at(uint64_t offset, size_t size) override {
    return Bytes(offset < bytes_.size() ? bytes_.substr(offset, size) : BytesView());
  }
  const std::string& path() const override { return path_; }

 private:
  BytesView bytes_;
  std::string path_ = "memory";
};

// A segment without its header: groups, until one is invalid.
void segment(BytesView bytes) {
  constexpr uint32_t kSalt = 77;
  (void)decode_segment_header(bytes);
  (void)decode_segment_index(bytes);
  MemorySegment memory(bytes);
  GroupCursor cursor(memory, kSalt, 0);
  Seq next = 1;
  while (true) {
    auto found = cursor.next(next);
    if (!found || *found != GroupCursor::Found::group) break;
    Seq seen = next;
    auto visited = cursor.visit_entries([&](Seq seq, BytesView) -> Result<bool> {
      CHECK(seq == seen++);
      return true;
    });
    if (!visited || *visited != GroupCursor::Visited::all) break;
    CHECK(cursor.header().last() >= next);
    next = cursor.header().last() + 1;
  }
  (void)find_later_group(memory, kSalt, cursor.offset(), next).has_value();
  (void)end_of_nonzero(memory, 0).has_value();
}

std::vector<std::string> segment_seeds() {
  Bytes one, two;
  std::string a = "first entry", b(100, 'b');
  BytesView both[] = {a, b}, single[] = {b};
  encode_group(both, 1, 77, one);
  encode_group(single, 3, 77, two);
  return {one, one + two, encode(SegmentHeader{1, 0, 77, 1}),
          encode(SegmentIndex{1, 3, one.size() + two.size(), {{1, 0}, {3, one.size()}}})};
}

}  // namespace

std::vector<Target> wire_targets() {
  return {
      {"http", http,
       [] {
         return std::vector<std::string>{
             "GET /a%20b?a=1&b=%26 HTTP/1.1\r\nHost: t\r\n\r\n",
             "POST /p?q=1#f HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\n\r\nabcdeGET http://h "
             "HTTP/1.0\r\n\r\n",
             "POST /c HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nExpect: "
             "100-continue\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: v\r\n\r\n",
             "GET /w HTTP/1.1\r\nHost: t\r\nConnection: Upgrade, close\r\nUpgrade: "
             "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
             "AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"};
       }},
      {"websocket", websocket,
       [] {
         return std::vector<std::string>{
             std::string("\x81\x85\0\0\0\0hello", 11),
             std::string("\x01\x82\x01\x02\x03\x04`d\x89\x80\0\0\0\0\x80\x81\0\0\0\0!", 21),
             std::string("\x88\x82\0\0\0\0\x03\xe8", 8),
             std::string("\x82\xfe\0\x03\0\0\0\0abc", 11)};
       }},
      {"token", token,
       [] {
         return std::vector<std::string>{
             "eyJhbGciOiJSUzI1NiIsImtpZCI6ImsifQ.eyJzdWIiOiJzIiwiZXhwIjo5OTk5OTk5OTk5LCJpYXQiOjF9."
             "AAAA",
             base64url(R"({"alg":"RS256","kid":"k","typ":"JWT"})") + "." +
                 base64url(
                     R"({"sub":"s","iss":"i","aud":["a"],"exp":1e10,"iat":0,"nbf":1,"caas_org_id":"t","user_roles":["A"]})") +
                 ".AA"};
       }},
      {"frame", frame, frame_seeds},
      {"segment", segment, segment_seeds},
  };
}

}  // namespace pawl::fuzz
