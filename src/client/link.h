#pragma once
// A link carries jobs from the server to a desk and results back, until it breaks or the desk is
// drained.

#include <memory>

#include "client/desk.h"

namespace pawl::client {

enum class Ended {
  unreachable,  // it never stood: another way may work
  broken,       // it stood for a while
  drained,      // the desk drains and nothing is on it
  refused,      // the server does not want this worker: trying again is of no use
};

struct LinkEnd {
  Ended how = Ended::drained;
  Refusal why{};
};

struct LinkOptions {
  std::string worker_id;
  std::vector<std::string> job_types;
  int lease_seconds = 30;
  Token token{};
};

// Jobs are pushed over pawl.v1.Workers/Work.
class StreamLink {
 public:
  StreamLink(const std::string& address, LinkOptions options);
  ~StreamLink();
  LinkEnd run(Desk& desk);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Jobs are asked for over HTTP. Ends as broken after `turn_ms`, so that a better link may be tried.
class PollLink {
 public:
  PollLink(Client& client, LinkOptions options) : client_(client), options_(std::move(options)) {}
  LinkEnd run(Desk& desk, int turn_ms);

 private:
  Reply<void> poll(Desk& desk, size_t max, int wait_ms);
  Reply<void> send(Desk& desk, const std::vector<Done>& results);
  Client& client_;
  LinkOptions options_;
};

}  // namespace pawl::client
