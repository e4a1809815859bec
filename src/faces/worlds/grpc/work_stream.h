#pragma once
// pawl.v1.Executors/Work: open work goes out within the executor's credit, frames and receipts come
// back, each is answered once it is durable.

#include <worlds/executors.grpc.pb.h>
#include "faces/worlds/grpc/convert.h"
#include "faces/worlds/grpc/executors.h"
#include "json/text.h"

namespace pawl::worlds {

// The routes, said in messages.
struct Verbs {
  std::vector<wire::Route> routes;
  Authenticate authenticate;
  using Heard = std::move_only_function<void(Result<json::Value>)>;
  void post(const Caller& caller, Said said, Heard done) const;
  Result<Caller> caller_of(const grpc::ServerContextBase& context) const;
};

inline uint64_t height_of(const json::Value& answer) {
  const json::Value* height = answer.find("height");
  return height ? height->as_uint64().value_or(0) : 0;
}

grpc::ServerBidiReactor<v1::FromExecutor, v1::ToExecutor>* open_stream(
    const Verbs& verbs, const grpc::ServerContextBase& context);

}  // namespace pawl::worlds
