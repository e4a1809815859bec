#pragma once
// The verbs of the face, whatever wire they come by: HTTP routes and gRPC calls are two thin coats
// over this. Writes go through the door and answer later; reads answer at once from durable state.

#include "faces/entities/audit/audit.h"
#include "faces/entities/audit/history.h"
#include "faces/entities/background.h"
#include "faces/entities/flow/command.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/members/members.h"
#include "faces/entities/search/search.h"
#include "faces/entities/store/counts.h"
#include "faces/entities/store/store.h"

namespace pawl::entities {

// Entities in one transaction of a collection.
inline constexpr size_t kWindow = 100;
inline constexpr size_t kMaxWindow = 1000;

struct Who {
  Caller caller;
  std::string token{};  // of the transaction that the request wants to join
  std::string once{};   // Idempotency-Key
  // Whether a read is of the open transaction. What was at a time is committed: none has changed
  // it.
  bool reads_inside(const std::optional<Time>& at) const { return !token.empty() && !at; }
};

// For requests that name a window although they join a transaction, which ends by no chunk of
// theirs.
Error window_inside();

struct When {
  std::optional<Time> time{};
  std::string tx{};
};

struct SearchAnswer {
  Plan plan;
  std::string lines;  // one envelope a line
};

class Service {
 public:
  Service(KernelAccess& kernel, Members& members, Counts& counts, Background& background);

  using Done = std::move_only_function<void(Result<Bytes>)>;
  void write(const Who& who, Command command, Done done);
  // Items in chunks, one transaction each; the answer is the array of their answers. An error in
  // the first chunk is the answer; in a later one it is the last element. Inside a transaction they
  // are one chunk, which stands or falls as a whole.
  struct ChunkOptions {
    size_t window = kWindow;
    bool lenient = false;   // as in Command
    bool warnings = false;  // as in Command; an error then also says whether it may be retried
  };
  void write_chunks(const Who& who, std::vector<Item> items, ChunkOptions options, Done done);
  // One of the short verbs.
  void act(const Who& who, std::string verb, json::Value body, Done done);

  // Fails CONFLICT for a token that is unknown or over.
  Result<void> may_join(const Who& who) const;

  // A read inside a transaction sees that transaction; it therefore answers later too.
  void get(const Who& who, const std::string& id, const When& when, Done done);
  void transitions(const Who& who, const std::string& id, const When& when,
                   Done done);  // their names
  void history(const Who& who, const std::string& id, const std::optional<Time>& at,
               std::move_only_function<void(Result<History>)> done);
  void counts(const Who& who, std::move_only_function<void(Result<StateCounts>)> done);
  Result<Found> find(std::string_view tenant, std::string_view id, const When& when) const;
  Result<ModelPtr> model(std::string_view tenant, std::string_view name,
                         int32_t version) const;  // null: none
  Result<std::shared_ptr<const Flows>> flows(std::string_view tenant, std::string_view name,
                                             int32_t version) const;
  Result<std::vector<Model>> models(std::string_view tenant) const;
  Result<json::Value> cell_json(BytesView key) const;  // null value when there is no cell

  // Compiles and checks a condition for search. Unknown models skip the checks.
  Result<std::shared_ptr<const condition::Condition>> condition(std::string_view tenant,
                                                                std::string_view name,
                                                                int32_t version,
                                                                const json::Value& text,
                                                                bool strict) const;
  // A query as an open transaction sees it, one envelope a line. `condition` is the text of the
  // query's; null: none.
  void find_inside(const Who& who, const Query& query, const json::Value* condition, Done done);
  // Runs on this thread; `lines` are appended as envelopes.
  Result<SearchAnswer> run_search(const Query& query) const;

  // Search jobs: the snapshot is made in the background.
  void start_job(const Who& who, Query query, Done done);  // the id as a JSON string
  Result<json::Value> job(std::string_view tenant, std::string_view id) const;
  void cancel_job(const Who& who, const std::string& id, Done done);
  struct Page {
    uint64_t total = 0;
    std::vector<std::string> envelopes{};
  };
  Result<Page> job_page(std::string_view tenant, const json::Value& job, uint64_t size,
                        uint64_t number, bool with_model) const;

  // Many are removed in turns of their own, so that others are served in between.
  struct Removal {
    std::optional<json::Value> condition{};  // which of them; all without
    bool verbose = false;                    // the answer lists the ids
  };
  void remove_all(const Who& who, const std::string& name, int32_t version, Removal removal,
                  Done done);
  void set_indexes(const Who& who, json::Value body, Done done);
  // Goes on with indexes that were being filled when the server stopped.
  Result<void> resume_filling();

  KernelAccess& kernel() { return kernel_; }
  Members& members() { return members_; }
  const Counts& counts() const { return counts_; }
  Background& background() { return background_; }

 private:
  struct Chunks;
  void next_chunk(std::shared_ptr<Chunks> chunks);
  void submit(const Who& who, Input input, Done done);
  // By the verb, which answers with nothing when it is not the transaction's own version that is
  // asked for; else as shown.
  using Show = std::function<Result<Bytes>(const Found& committed)>;
  void read_one(const Who& who, std::string verb, const std::string& id, const When& when,
                Show show, Done done);
  using Noted = std::move_only_function<void(Result<std::vector<BytesView>>)>;
  void noted(const Who& who, std::string verb, json::Value body,
             Noted done);  // what the transaction has noted
  Result<Bytes> remove_many(const Who& who, const Query& query, const Model& model, bool verbose);
  void fill(const std::string& tenant, const std::string& name, int32_t version);
  void run_job(const std::string& tenant, const std::string& id, const Query& query);
  Result<Bytes> act_and_wait(const Who& who, std::string verb, json::Value body);

  KernelAccess& kernel_;
  Members& members_;
  Counts& counts_;
  Background& background_;
  mutable std::mutex jobs_mutex_;
  std::set<std::string, std::less<>> running_jobs_;
};

}  // namespace pawl::entities
