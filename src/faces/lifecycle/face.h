#pragma once
// The HTTP routes of the lifecycle face: the operator API at /workflows, and types, instances and
// rules as data at /pawl/v1/lifecycle. The server checks who may call them.

#include "faces/lifecycle/read/catch_up.h"
#include "faces/lifecycle/read/phase_counts.h"
#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/read/watch_hub.h"
#include "faces/lifecycle/run/command.h"
#include "faces/lifecycle/run/drift.h"
#include "wire/route.h"

namespace pawl::lifecycle {

struct FaceOptions {
  bool websocket = true;
  std::vector<std::string> allowed_origins{};  // of WebSocket watches; empty: every origin
};

class Face {
 public:
  Face(KernelAccess& kernel, Background& background, FaceOptions options = {});
  ~Face() { hub_->detach(); }
  std::vector<wire::Route> routes();
  std::vector<wire::Dialect> dialects() const;

 private:
  using Handle = void (Face::*)(wire::Request&, wire::Respond&);
  struct Row {
    std::string_view method, pattern;
    Handle handle;
    std::string_view doc;
    const wire::Operation* operation;
  };
  static const Row kRows[28];
  static const Handle kScans[9];  // handlers that read more than one instance

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
  // The page that the query of a list asks for, or the refusal to send.
  struct Page {
    WorkflowTypePtr type;
    InstanceList list;
  };
  std::variant<Page, wire::Response> page_of(const wire::Request& request);
  void move(wire::Request& request, wire::Respond& respond, source by);
  // Logs a warning, once, when the instance is in a phase that its type does not declare.
  void check_drift(const WorkflowType& type, const FoundInstance& found);
  // Submits a command and answers the request; `done` makes the answer when it succeeds.
  using Done = std::function<wire::Response(const Outcome&, Seq)>;
  void submit(std::string_view operation, std::string verb, const Command& command,
              wire::Request& request, wire::Respond& respond, Done done);

  KernelAccess& kernel_;
  FaceOptions options_;
  Reads reads_;
  PhaseCounts phase_counts_;
  DriftWarnings drifts_;
  std::shared_ptr<WatchHub> hub_;  // shared with the streams, which may outlive a handler
  CatchUp catch_up_;               // last: it stops before what its tasks read
};

}  // namespace pawl::lifecycle
