#pragma once
// An operation describes a route for the OpenAPI document: its parameters, its body and its
// answers. The shapes are those from which the handler reads.

#include "wire/member.h"

namespace pawl::wire {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kOctets = "application/octet-stream";
inline constexpr std::string_view kPlainText = "text/plain";
inline constexpr std::string_view kEventStream = "text/event-stream";

struct Body {
  Type type{};
  std::string_view media[2]{};  // the media types that are accepted
  bool required = true;
  bool present = false;

  constexpr Body() = default;
  constexpr Body(Type type) : Body(type, kJson) {}
  constexpr Body(const AnyShape& shape) : Body(Type(shape)) {}
  constexpr Body(Type type, std::string_view first, std::string_view second = {})
      : type(type), media{first, second}, present(true) {}
};
constexpr Body optional_body(Type type) {
  Body out(type);
  out.required = false;
  return out;
}

// An answer that is not an error.
struct Reply {
  int status = 0;
  std::string_view doc{};
  Type type{};
  std::string_view media = kJson;  // empty: an answer without a body
  const AnyShape* headers = nullptr;

  constexpr Reply() = default;
  constexpr Reply(int status, std::string_view doc) : status(status), doc(doc), media() {}
  constexpr Reply(int status, std::string_view doc, Type type, std::string_view media = kJson,
                  const AnyShape* headers = nullptr)
      : status(status), doc(doc), type(type), media(media), headers(headers) {}
};

struct Operation {
  std::string_view id;
  const AnyShape* path = nullptr;  // rows of the pattern's parameters; those without a row are text
  const AnyShape* query = nullptr;
  const AnyShape* headers = nullptr;
  Body body{};
  Reply replies[6]{};
  // Statuses of errors besides those that every operation may have: 400, 429, 500 and 503; 401 and
  // 403 unless it is open; 404 with parameters in the path; 413 with a body.
  int errors[6]{};
  bool basic = false;  // needs the id and secret of a client (HTTP Basic), not a token
};

// How the errors below a prefix look.
struct ErrorForm {
  const AnyShape* shape = nullptr;
  std::string_view media = kJson;
  bool plain_404 = false;  // a 404 may also be text
  std::string_view tag{};  // the tag of the operations below the prefix
};

inline constexpr RequestShape kIdempotencyHeader{
    "",
    {row::text("Idempotency-Key",
               "Makes the request run once: within 24 hours a repeat gets the recorded answer, "
               "and another body under the same key gets 422.")
         .example(R"("order-4711")")}};

}  // namespace pawl::wire
