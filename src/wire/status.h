#pragma once
// How an error code is said on each wire: one table for HTTP and gRPC. A face whose contract asks
// for another status says so where it answers.

#include "base/result.h"

namespace pawl::wire {

struct CodeStatus {
  Code code;
  int http;
  int grpc;  // the number of grpc::StatusCode; this header does not include gRPC
};

const CodeStatus& code_status(Code code);
// The code that a client takes an HTTP status for. Statuses that stand in no row are `invalid`
// below 500 and `internal` from there.
Code code_of_http(int status);

}  // namespace pawl::wire
