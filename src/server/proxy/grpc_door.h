#pragma once
// The gRPC door of a node in a cluster. Every call arrives here, as bytes, and goes on unchanged to
// the services of this node, or to the node that owns the caller's shard. The services behind the
// door authenticate the caller by its own token, here and there: the door only chooses the way.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace grpc {
class CallbackGenericService;
class Channel;
}  // namespace grpc

namespace pawl::server {

// Where a call goes: to the address of another node's door, or, without one, to this node.
struct GrpcTarget {
  std::string address{};
};

struct GrpcDoorOptions {
  // Chooses by the metadata `authorization`. An error refuses the call.
  std::function<Result<GrpcTarget>(std::string_view authorization)> where;
  std::string ca_file{};  // PEM of the nodes' authority; empty: no TLS between nodes
};

class GrpcDoor {
 public:
  explicit GrpcDoor(GrpcDoorOptions options);
  ~GrpcDoor();
  // The channel to the services of this node. Set it before the first call.
  void set_inside(std::shared_ptr<grpc::Channel> inside);
  grpc::CallbackGenericService& service();

 private:
  class Service;
  std::unique_ptr<Service> service_;
};

}  // namespace pawl::server
