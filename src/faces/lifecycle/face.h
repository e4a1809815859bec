#pragma once
// The lifecycle face on the wire: the operator API at /workflows, and types, instances and rules as
// data at /pawl/v1/lifecycle. Roles: `viewer` reads, `operator` also writes, administrators do
// both.

#include "faces/lifecycle/read/catch_up.h"
#include "faces/lifecycle/read/hub.h"
#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/read/tally.h"
#include "faces/lifecycle/run/command.h"
#include "faces/lifecycle/run/drift.h"
#include "wire/route.h"

namespace pawl::lifecycle {

struct FaceOptions {
  bool websocket = true;
  std::vector<std::string> allowed_origins{};  // of watch sockets; empty: all
};

class Face {
 public:
  Face(KernelAccess& kernel, Background& background, FaceOptions options = {});
  ~Face() { hub_->detach(); }
  std::vector<wire::Route> routes();
  std::vector<wire::Dialect> dialects() const;

 private:
  using Handle = void (Face::*)(wire::Request&, wire::Respond&);
  struct Row;
  static const std::vector<Row>& rows();

  // Operator API.
  void index(wire::Request& request, wire::Respond& respond);
  void list(wire::Request& request, wire::Respond& respond);
  void get(wire::Request& request, wire::Respond& respond);
  void history(wire::Request& request, wire::Respond& respond);
  void children(wire::Request& request, wire::Respond& respond);
  void patch(wire::Request& request, wire::Respond& respond);
  void transition(wire::Request& request, wire::Respond& respond);
  void head(wire::Request& request, wire::Respond& respond);
  // Types, instances and rules as data.
  void put_type(wire::Request& request, wire::Respond& respond);
  void get_type(wire::Request& request, wire::Respond& respond);
  void list_types(wire::Request& request, wire::Respond& respond);
  void list_instances(wire::Request& request, wire::Respond& respond);
  void create(wire::Request& request, wire::Respond& respond);
  void replace(wire::Request& request, wire::Respond& respond);
  void remove(wire::Request& request, wire::Respond& respond);
  void transition_as(wire::Request& request, wire::Respond& respond);
  void complete(wire::Request& request, wire::Respond& respond);
  void fail_instance(wire::Request& request, wire::Respond& respond);
  void children_of(wire::Request& request, wire::Respond& respond);
  void ancestors(wire::Request& request, wire::Respond& respond);
  void lookup(wire::Request& request, wire::Respond& respond);
  void put_rule(wire::Request& request, wire::Respond& respond);
  void get_rule(wire::Request& request, wire::Respond& respond);
  void list_rules(wire::Request& request, wire::Respond& respond);
  void remove_rule(wire::Request& request, wire::Respond& respond);
  void run_rule(wire::Request& request, wire::Respond& respond);
  void action(wire::Request& request, wire::Respond& respond);
  void substitute(wire::Request& request, wire::Respond& respond);

  wire::Response watch(const wire::Request& request);
  // What the query of a list asks for, or the refusal to send.
  struct Page {
    TypePtr type;
    Listed listed;
  };
  std::variant<Page, wire::Response> page_of(const wire::Request& request);
  void move(wire::Request& request, wire::Respond& respond, source by);
  void check_drift(const Type& type, const Found& found);  // warns in the log, once
  // Submits and answers; `done` words the success.
  using Done = std::function<wire::Response(const Outcome&, Seq)>;
  void submit(std::string_view operation, std::string verb, const Command& command,
              wire::Request& request, wire::Respond& respond, Done done);

  KernelAccess& kernel_;
  FaceOptions options_;
  Reads reads_;
  Tally tally_;
  Drifts drifts_;
  std::shared_ptr<Hub> hub_;  // shared with the streams, which may outlive a handler
  CatchUp catch_up_;          // last: it stops before what its tasks read
};

}  // namespace pawl::lifecycle
