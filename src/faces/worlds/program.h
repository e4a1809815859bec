#pragma once
// The program "worlds": what each verb does in one turn. A turn is one input to one world, with
// everything that follows from it. Verbs answer with JSON, except `govern`, which answers with an
// encoded GovernanceCommand.

#include "faces/worlds/session.h"
#include "kernel/program.h"

namespace pawl::worlds {

// Bodies of inputs (verbs.cc has their fields). Each names its world first.
struct CreateWorld {
  std::string world;
  Bytes bundle;  // manifest and nodes, as encode_bundle() writes them
  wasm::Limits limits{};
  bool check_state = true;
  std::string engine{};  // version of the WASM engine; recorded, so that a rerun without one agrees
};
struct SendEvent {
  std::string world;
  Event event;
  uint64_t expected_epoch = 0;  // 0: any
};
struct SendEvents {  // all of them, in this order, or none
  std::string world;
  std::vector<Event> events;
};
inline constexpr size_t kBatchEvents = 1000;  // events of one batch, which is one turn
struct SendReceipt {
  std::string world;
  IntentReceipt receipt;
};
struct SendFrame {
  std::string world;
  StreamFrame frame;
};
struct Govern {
  std::string world, command;  // `command` is the id under which the outcome is kept
  std::string action;          // propose, shadow, approve, reject, apply
  uint64_t proposal = 0;
  Bytes patch{};  // JSON of a patch document or of a compiled patch
  std::optional<std::string> description{};
  std::string approver{};
  bool strict = true;
  std::vector<Event> seeds{};
  // The caller chose the id: within 24 hours a repetition gets the outcome of the first one. Not
  // part of the input's body.
  bool named = false;
};
struct ForkWorld {
  std::string world, source, snapshot_ref;
  uint64_t until = 0;                  // height
  RecordedJournal recorded{};          // from the snapshot's record on
  std::vector<IntentReceipt> stubs{};  // later receipts of the source, for intents that are open
  bool live = false;                   // true: effects go out
};
struct PutSecret {
  std::string binding;
  Bytes value;  // sealed by the service
  bool erase = false;
  std::string info{};  // JSON: kind, created by
};

Bytes encode(const CreateWorld& v);
Bytes encode(const SendEvent& v);
Bytes encode(const SendEvents& v);
Bytes encode(const SendReceipt& v);
Bytes encode(const SendFrame& v);
Bytes encode(const Govern& v);
Bytes encode(const ForkWorld& v);
Bytes encode(const PutSecret& v);
Result<CreateWorld> decode_create(BytesView in);
Result<SendEvent> decode_send(BytesView in);
Result<SendEvents> decode_send_all(BytesView in);
Result<SendReceipt> decode_receipt(BytesView in);
Result<SendFrame> decode_frame_body(BytesView in);
Result<Govern> decode_govern(BytesView in);
Result<ForkWorld> decode_fork(BytesView in);
Result<PutSecret> decode_put_secret(BytesView in);

struct SecretVersion {
  Time made = 0;
  Bytes sealed;  // empty: forgotten
};
// A secret binding with its versions, oldest first.
struct SecretBinding {
  std::string binding;
  std::string info{};
  std::vector<SecretVersion> versions{};
};
Bytes encode(const SecretBinding& v);
Result<SecretBinding> decode_secret(BytesView in);

class WorldsProgram final : public Program {
 public:
  explicit WorldsProgram(const Modules& modules) : runtime_{builtins_, modules} {}
  std::string_view name() const override { return kProgram; }
  Result<Bytes> run(Turn& turn, const Input& input) const override;
  void view(const Committed& frame, ViewRows& rows) const override;
  uint32_t view_version() const override { return 3; }
  // The cells of one workflow of a world are a family.
  BytesView family(BytesView key) const override { return cell_family(key); }
  bool worth_packing(BytesView key) const override { return is_read_again(key); }
  const Builtins& builtins() const { return builtins_; }
  const WorldRuntime& runtime() const { return runtime_; }

 private:
  using Verb = Result<Bytes> (WorldsProgram::*)(Turn&, const Input&) const;
  struct Row {
    std::string_view name;
    Verb verb;
  };
  static const Row kVerbs[];

  Result<Bytes> create(Turn& turn, const Input& input) const;
  Result<Bytes> event(Turn& turn, const Input& input) const;
  Result<Bytes> events(Turn& turn, const Input& input) const;
  Result<Bytes> receipt(Turn& turn, const Input& input) const;
  Result<Bytes> frame(Turn& turn, const Input& input) const;
  Result<Bytes> timer(Turn& turn, const Input& input) const;
  Result<Bytes> drain(Turn& turn, const Input& input) const;
  Result<Bytes> snapshot(Turn& turn, const Input& input) const;
  Result<Bytes> take_snapshot(Turn& turn, const WorldId& world_id,
                              std::optional<BytesView> from) const;
  Result<Bytes> compact(Turn& turn, const Input& input) const;
  Result<Bytes> unpoint(Turn& turn, const Input& input) const;
  Result<Bytes> govern(Turn& turn, const Input& input) const;
  Result<Bytes> fork(Turn& turn, const Input& input) const;
  Result<Bytes> put_blob(Turn& turn, const Input& input) const;
  Result<Bytes> put_secret(Turn& turn, const Input& input) const;
  Result<Bytes> collect(Turn& turn, const Input& input) const;
  Result<Bytes> workspace(Turn& turn, const Input& input) const;

  Builtins builtins_;
  WorldRuntime runtime_;
};

// Erases the blobs that nothing refers to and that are older than `grace`. Returns the counts.
struct GarbageCounts {
  size_t kept = 0, erased = 0, young = 0;
};
Result<GarbageCounts> collect_garbage(Turn& turn, const std::string& tenant,
                                      const Builtins& builtins, Time grace);

// The JSON of a proposal, which is the outcome of most governance actions.
json::Value proposal_json(const Proposal& proposal);

}  // namespace pawl::worlds
