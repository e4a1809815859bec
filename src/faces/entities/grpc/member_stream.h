#pragma once
// The gRPC stream of one compute member: it joins, gets calls, answers them and sends keepalives.

#include <grpcpp/grpcpp.h>

#include "entities/cloudevents.pb.h"
#include "faces/entities/face.h"
#include "wire/admit.h"

namespace pawl::entities {

using CloudEvent = io::cloudevents::v1::CloudEvent;
using MemberReactor = grpc::ServerBidiReactor<CloudEvent, CloudEvent>;

// The reactor deletes itself when the stream ends.
MemberReactor* start_member_stream(Face& face, wire::AdmittedCall admitted);
// A stream that ends at once with this status.
MemberReactor* refuse_member_stream(grpc::Status status);

// The JSON in an event's text or bytes. Empty and protobuf payloads are refused.
Result<json::Value> payload_of(const CloudEvent& event);
void fill_event(CloudEvent& out, std::string id, std::string type, std::string payload);

}  // namespace pawl::entities
