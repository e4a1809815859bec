#pragma once
// HttpRoutes is the HTTP side of worlds: it turns requests into arguments of the service's verbs,
// and what they return into JSON.

#include "faces/worlds/service/service.h"
#include "wire/body_reader.h"
#include "wire/route.h"

namespace pawl::worlds {

class HttpRoutes {
 public:
  explicit HttpRoutes(Service& service) : service_(service) {}
  std::vector<wire::Route> routes();
  static wire::Response refuse(const Error& error);

 private:
  using Request = wire::Request;
  using Respond = wire::Respond;
  using MemberReader = wire::MemberReader;
  using Handle = void (HttpRoutes::*)(Request, Respond);
  using Read = Result<json::Value> (HttpRoutes::*)(const Request&);
  wire::Handler bind(Handle handle);
  wire::Handler bind(Read read);
  std::vector<wire::Route> world_routes();
  std::vector<wire::Route> read_routes();
  std::vector<wire::Route> input_routes();
  std::vector<wire::Route> store_routes();
  Result<WorldSnapshot> snapshot_of(const Request& request) const;
  Result<WorldRef> world_of(const Request& request) const;

  // routes_worlds.cc
  Result<json::Value> health(const Request&);
  Result<json::Value> list_worlds(const Request&);
  Result<json::Value> get_world(const Request&);
  Result<json::Value> get_manifest(const Request&);
  Result<json::Value> list_defs(const Request&);
  Result<json::Value> get_def(const Request&);
  Result<json::Value> get_runtime(const Request&);
  void create_world(Request, Respond);
  void checkpoint(Request, Respond);
  void compact(Request, Respond);
  void fork_world(Request, Respond);
  Result<NewWorld> parse_world(const Request& request) const;
  Result<NewFork> parse_fork(const WorldSnapshot& source, const MemberReader& body) const;
  Result<uint64_t> snapshot_height(const WorldSnapshot& source, const MemberReader& which) const;

  // routes_inputs.cc
  void send_event(Request, Respond);
  void send_one(Request, Respond, const WorldRef& world, const MemberReader& body);
  void send_receipt(Request, Respond);
  void send_frame(Request, Respond);
  Result<SendEvent> parse_event(const WorldRef& world, const MemberReader& body) const;
  Result<SendEvents> parse_events(const WorldRef& world, const json::Array& list) const;
  Result<IntentReceipt> parse_receipt(const WorldRef& world, const PendingIntent& intent,
                                      const MemberReader& body) const;

  // routes_governance.cc
  void govern(Request, Respond);
  Result<json::Value> get_command(const Request&);
  Result<json::Value> list_proposals(const Request&);
  Result<Govern> parse_govern(const WorldRef& world, const Request& request,
                              const MemberReader& body) const;
  Result<std::vector<Event>> parse_seeds(const WorldRef& world, uint64_t proposal,
                                         const MemberReader& body) const;
  Result<Bytes> patch_text(const std::string& tenant, const json::Value& patch) const;

  // routes_state.cc
  Result<json::Value> get_state(const Request&);
  Result<json::Value> list_cells(const WorldSnapshot& world, const Request& request,
                                 const std::string& workflow);
  Result<json::Value> journal_head(const Request&);

  // routes_journal.cc
  void journal(Request, Respond);
  void journal_wait(Request, Respond);
  void journal_stream(Request, Respond);

  // routes_trace.cc
  Result<json::Value> trace(const Request&);
  Result<json::Value> trace_summary(const Request&);
  Result<json::Value> diagnose(const Request&);

  // routes_store.cc
  void put_blob(Request, Respond);
  void get_blob(Request, Respond);
  void collect(Request, Respond);
  Result<json::Value> list_secrets(const Request&);
  Result<json::Value> get_secret(const Request&);
  Result<json::Value> get_secret_version(const Request&);
  Result<json::Value> list_secret_versions(const Request&);
  json::Value version_json(const SecretBinding& secret, size_t number) const;
  void put_secret(Request, Respond);
  void delete_secret(Request, Respond);

  // routes_workspace.cc
  Result<json::Value> workspace_resolve(const Request&);
  Result<json::Value> workspace_entries(const Request&);
  Result<json::Value> workspace_entry(const Request&);
  Result<json::Value> workspace_annotations(const Request&);
  Result<json::Value> workspace_diff(const Request&);
  Result<Bytes> file_bytes(const Request&) const;
  void workspace_bytes(Request, Respond);
  void workspace_apply(Request, Respond);

  // routes_work.cc
  void poll(Request, Respond);
  void release(Request, Respond);

  Service& service_;
};

// Answers with the JSON that the program gave.
Reply answer_json(wire::Respond respond, int status);
// The same for something accepted, with the peer's members: the id under which it was taken (the
// caller's, or its offset) and the offset. `more`: further members, each after its comma.
Reply answer_accepted(wire::Respond respond, int status, std::string submission = {},
                      std::string more = {});
// Closes an open JSON object with the members of something accepted.
std::string accepted_json(std::string open_object, Seq seq, std::string_view submission,
                          std::string_view more);

}  // namespace pawl::worlds
