#pragma once
// A compute member and its stream: that of the entities face, or a bare one that only sends and
// counts, for comparison.

#include <memory>
#include <string>

namespace grpc {
class Service;
}

namespace pawl::bench {

// Answers every calculation request with success, until it is destroyed.
class EchoMember {
 public:
  EchoMember(const std::string& address, const std::string& tag);
  ~EchoMember();

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

// A service whose stream keeps `window` requests in flight and does nothing else.
class BareStream {
 public:
  BareStream(size_t window, std::string payload);
  ~BareStream();
  grpc::Service* service();
  uint64_t round_trips() const;

 private:
  struct Bare;
  std::unique_ptr<Bare> bare_;
};

}  // namespace pawl::bench
