#pragma once
// Converts between JSON values and protobuf messages.

#include <grpcpp/grpcpp.h>

#include <processes/workflow.pb.h>
#include "faces/processes/service.h"

namespace pawl::processes {

// False when it contains an infinite number or NaN, which JSON cannot hold.
bool is_json(const google::protobuf::Struct& in);
bool is_json(const workflow::v1::WorkflowDefinition& in);
json::Object from_struct(const google::protobuf::Struct& in);
void to_struct(const json::Object& in, google::protobuf::Struct* out);
void to_timestamp(Time t, google::protobuf::Timestamp* out);

grpc::Status status_of(const Error& error);

// The document of a definition message. A protobuf map has no order, so branches are sorted by
// their expressions.
json::Value to_document(const workflow::v1::WorkflowDefinition& in);
void fill(workflow::v1::WorkflowDefinition* out, const Definition& definition);
// Fills the message from the instance's JSON.
Result<void> fill(workflow::v1::WorkflowInstance* out, std::string_view json);
void fill(workflow::v1::StepExecution* out, std::string_view instance_id, const ExecutionRow& row);
void fill(workflow::v1::Job* out, const PolledJob& job);

}  // namespace pawl::processes
