#pragma once
// Between the messages of Executors and the arguments of the service's verbs.

#include <grpcpp/grpcpp.h>

#include <worlds/executors.pb.h>
#include "faces/worlds/service/service.h"

namespace pawl::worlds {

namespace v1 = pawl::v1;

inline constexpr uint32_t kDefaultLeaseMs = 30'000;
WorkRequest work_request(const v1::PollEffects& in);
Result<StreamFrame> stream_frame(const v1::EffectFrame& in);
// A receipt without its intent and payload, and the payload as it was given.
struct GivenReceipt {
  IntentReceipt receipt;
  GivenValue payload;
};
Result<GivenReceipt> given_receipt(const v1::EffectReceipt& in);

v1::OpenWork open_work_message(const std::vector<OpenWork>& work);
// The reason goes into the error details.
grpc::Status status_of(const Error& error);

}  // namespace pawl::worlds
