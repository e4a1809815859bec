#pragma once
// A transport carries jobs from the server into a JobBuffer and results back, until its connection
// breaks or the buffer is drained. There are two: a gRPC stream, and polling over HTTP.

#include <memory>

#include "client/job_buffer.h"

namespace pawl::client {

enum class Ended {
  unreachable,  // no connection was made; the other transport may work
  broken,       // the connection was made and broke later
  drained,      // the buffer is draining and idle
  refused,      // the server refuses this worker; another attempt does not help
};

struct TransportEnd {
  Ended how = Ended::drained;
  Error why{};
};

struct TransportOptions {
  std::string worker_id;
  std::vector<std::string> job_types;
  int lease_seconds = 30;
  Token token{};
};

// The server pushes jobs over pawl.v1.Workers/Work.
class StreamTransport {
 public:
  StreamTransport(const std::string& address, TransportOptions options);
  ~StreamTransport();
  TransportEnd run(JobBuffer& buffer);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The worker asks for jobs over HTTP.
class PollTransport {
 public:
  PollTransport(Client& client, TransportOptions options)
      : client_(client), options_(std::move(options)) {}
  // Ends as `broken` after `max_ms`, so that the stream may be tried again.
  TransportEnd run(JobBuffer& buffer, int max_ms);

 private:
  Result<void> poll(JobBuffer& buffer, size_t max, int wait_ms);
  Result<void> send(JobBuffer& buffer, const std::vector<JobResult>& results);
  Client& client_;
  TransportOptions options_;
};

}  // namespace pawl::client
