#pragma once
// Maps error codes to HTTP and gRPC statuses: one table for both. A face whose contract asks for
// another status overrides the row where it answers.

#include "base/result.h"

namespace pawl::wire {

struct CodeStatus {
  Code code;
  int http;
  int grpc;  // the number of grpc::StatusCode; this header does not include gRPC
};

const CodeStatus& code_status(Code code);
// Returns the code that an HTTP status is read as. 410 (gone) is read as 404, and 502 and 504 as
// 503. Any other status without a row is `invalid` below 500 and `internal` from 500 on.
Code code_of_http(int status);

}  // namespace pawl::wire
