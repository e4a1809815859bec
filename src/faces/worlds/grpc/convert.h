#pragma once
// Between the messages of Executors and the JSON of the routes.

#include <grpcpp/grpcpp.h>

#include <worlds/executors.pb.h>
#include "json/value.h"
#include "wire/message.h"

namespace pawl::worlds {

namespace v1 = pawl::v1;

// A request's path and body.
struct Said {
  std::string route;  // as the table of routes has it
  std::string world{};
  json::Object body{};
};
inline constexpr uint32_t kLeaseMs = 30'000;  // of who does not say
Said say(const v1::PollEffects& in);
Said say(const v1::EffectName& in);
Result<Said> say(const v1::EffectFrame& in);
Result<Said> say(const v1::EffectReceipt& in);

// The body of an answer below 400; else its error, with the code of the routes as reason.
Result<json::Value> heard(const wire::Response& response);
grpc::Status status_of(const Error& error);

void fill(v1::OpenWork* out, const json::Value& answer);

}  // namespace pawl::worlds
