#pragma once
// The verbs of the entities face, independent of the wire: the HTTP routes and the gRPC events both
// call them. Writes are submitted to the kernel and answer later. Reads answer at once from durable
// state, except inside a transaction.

#include <atomic>

#include "base/memory_budget.h"
#include "faces/entities/audit/audit.h"
#include "faces/entities/audit/history.h"
#include "faces/entities/flow/command.h"
#include "faces/entities/flow/workflow.h"
#include "faces/entities/members/members.h"
#include "faces/entities/search/search.h"
#include "faces/entities/store/counts.h"
#include "faces/entities/store/store.h"
#include "runtime/background.h"

namespace pawl::entities {

// Entities in one transaction of a collection.
inline constexpr size_t kDefaultWindow = 100;
inline constexpr size_t kMaxWindow = 1000;

// The caller of a request, the open transaction that it joins, and its idempotency key.
struct RequestContext {
  Caller caller;
  std::string token{};            // of the open transaction that the request joins
  std::string idempotency_key{};  // the header Idempotency-Key
  // Whether a read sees the open transaction. A read at a given time sees committed state only.
  bool reads_in_transaction(const std::optional<Time>& at) const { return !token.empty() && !at; }
};

// The error for a request that joins a transaction and names a transactionWindow: the joined
// transaction ends with its own request, not with a chunk.
Error window_in_joined_transaction();

// The version of an entity to read: the newest one, the one at a time, or the one that a
// transaction wrote.
struct AsOf {
  std::optional<Time> time{};
  std::string tx{};
};

struct SearchAnswer {
  Plan plan;
  std::string lines;  // one envelope a line
};

class Service {
 public:
  // `threads`: how many background tasks run at a time.
  Service(KernelAccess& kernel, Members& members, Counts& counts, Background& background,
          size_t threads, ChargeFor charge = {});
  ~Service();
  // An empty charge for the memory of a tenant.
  MemoryCharge charge(MemoryUse use, const std::string& tenant) const {
    return charge_for(charge_, use, tenant);
  }
  // Drops the background tasks that wait, tells long ones to end early and waits for them.
  void stop();

  using Done = std::move_only_function<void(Result<Bytes>)>;
  // `done` is called once: at once for a refusal, else when the write is durable, from any thread.
  void write(const RequestContext& context, Command command, Done done);
  // Writes the items in chunks, each in a transaction of its own; the answer is the array of their
  // answers. An error in the first chunk is the answer; an error in a later chunk is the last
  // element. When the request joins a transaction, all items are one chunk.
  struct ChunkOptions {
    size_t window = kDefaultWindow;
    bool lenient = false;   // as in Command
    bool warnings = false;  // as in Command; an error also tells whether it is retryable
  };
  void write_chunks(const RequestContext& context, std::vector<Item> items, ChunkOptions options,
                    Done done);
  // Runs one of the short verbs of the program.
  void act(const RequestContext& context, std::string verb, json::Value body, Done done);
  // The same, and waits for the answer. For start-up and background tasks only.
  Result<Bytes> act_and_wait(const RequestContext& context, std::string verb, json::Value body);

  // Fails with CONFLICT when the context has a token that is unknown or whose call has ended.
  Result<void> may_join(const RequestContext& context) const;

  // Reads of one entity. Inside a transaction they see what it has written.
  void get(const RequestContext& context, const std::string& id, const AsOf& as_of, Done done);
  // Answers with the array of the names.
  void transitions(const RequestContext& context, const std::string& id, const AsOf& as_of,
                   Done done);
  void history(const RequestContext& context, const std::string& id, const std::optional<Time>& at,
               std::move_only_function<void(Result<History>)> done);
  void counts(const RequestContext& context,
              std::move_only_function<void(Result<StateCounts>)> done);
  // Committed state only. Fails with ENTITY_NOT_FOUND also when the entity had no such version.
  Result<StoredEntity> find(std::string_view tenant, std::string_view id, const AsOf& as_of) const;
  // Null when there is no such model.
  Result<ModelPtr> model(std::string_view tenant, std::string_view name, int32_t version) const;
  Result<std::shared_ptr<const WorkflowSet>> flows(std::string_view tenant, std::string_view name,
                                                   int32_t version) const;
  Result<std::vector<Model>> models(std::string_view tenant) const;
  // The JSON of a cell, or null when there is no such cell.
  Result<json::Value> cell_json(BytesView key) const;

  // Compiles a condition for a search and checks it against the model, if the model exists.
  Result<std::shared_ptr<const condition::Condition>> condition(std::string_view tenant,
                                                                std::string_view name,
                                                                int32_t version,
                                                                const json::Value& text,
                                                                bool strict) const;
  // Runs a query inside the open transaction; answers with one envelope a line. `condition` is the
  // text of the query's condition, or null.
  void find_in_transaction(const RequestContext& context, const Query& query,
                           const json::Value* condition, Done done);
  // Runs the query on this thread.
  Result<SearchAnswer> run_search(const Query& query) const;

  // Search jobs run in the background over a snapshot and store the ids that they find.
  // start_search_job answers with the job's id as a JSON string.
  void start_search_job(const RequestContext& context, Query query, Done done);
  Result<json::Value> search_job(std::string_view tenant, std::string_view id) const;
  void cancel_search_job(const RequestContext& context, const std::string& id, Done done);
  struct Page {
    uint64_t total = 0;
    std::vector<std::string> envelopes{};
  };
  Result<Page> search_job_page(std::string_view tenant, const json::Value& job, uint64_t size,
                               uint64_t number, bool with_model) const;

  // Removes entities of a model. A large number is removed in several turns, so that other requests
  // run in between.
  struct Removal {
    std::optional<json::Value> condition{};  // empty: all entities
    bool verbose = false;                    // the answer lists the ids
  };
  void remove_all(const RequestContext& context, const std::string& name, int32_t version,
                  Removal removal, Done done);
  void set_indexes(const RequestContext& context, json::Value body, Done done);
  // Continues to fill the indexes that were not complete when the server stopped.
  Result<void> resume_filling_indexes();

  // Runs work for logins, machine clients and keys that takes too long for the thread of a request:
  // hashes of secrets are slow on purpose. One task runs at a time; the owner that used the least
  // time comes first. Fails with TOO_MANY_TASKS when too many tasks of the owner wait.
  Result<void> run_access(std::string_view owner, BackgroundPool::Task task);
  // Runs a search that a client waits for. `task` gets the query with a `proceed` that ends the
  // search after 30 seconds, when the server stops, and when `left` becomes true. `left` is shared
  // with the connection; null: the client stays.
  using ClientLeft = std::shared_ptr<const std::atomic<bool>>;
  using QueryTask = std::move_only_function<void(const Query&)>;
  Result<void> run_query(Query query, ClientLeft left, QueryTask task);

  KernelAccess& kernel() { return kernel_; }
  Members& members() { return members_; }
  const Counts& counts() const { return counts_; }

 private:
  struct Chunks;
  void next_chunk(std::shared_ptr<Chunks> chunks);
  // Refuse documents and models with more than limits::kDocumentFields fields. They are checked
  // here and not in the turn, so that a journal with larger ones can still be verified.
  Result<void> check_fields(const RequestContext& context, const Command& command) const;
  Result<void> check_sample(const RequestContext& context, const json::Value& body) const;
  Result<void> check_growth(std::string_view tenant, std::string_view model, int32_t version,
                            const json::Value& document) const;
  void submit(const RequestContext& context, Input input, Done done);
  // Inside a transaction, asks the verb first. The verb answers with nothing when the transaction
  // has no version of its own; then, and outside of transactions, `show` shows the committed one.
  using Show = std::function<Result<Bytes>(const StoredEntity& committed)>;
  void read_one(const RequestContext& context, std::string verb, const std::string& id,
                const AsOf& as_of, Show show, Done done);
  // The notes of the open transaction.
  using NotesCallback = std::move_only_function<void(Result<std::vector<BytesView>>)>;
  void own_notes(const RequestContext& context, std::string verb, json::Value body,
                 NotesCallback done);
  Result<Bytes> remove_many(const RequestContext& context, const Query& query, const Model& model,
                            bool verbose);
  void fill_indexes(const std::string& tenant, const std::string& name, int32_t version);
  // Runs a long task of a tenant that no client waits for.
  Result<void> run_job(std::string_view tenant, BackgroundPool::Task task);
  void run_search_job(const std::string& tenant, const std::string& id, const Query& query);

  const ChargeFor charge_;
  KernelAccess& kernel_;
  Members& members_;
  Counts& counts_;
  mutable std::mutex search_jobs_mutex_;
  // Jobs of this process: one that is RUNNING in its cell and not here was cut off by a restart.
  std::set<std::string, std::less<>> running_search_jobs_;
  std::atomic<bool> stopping_ = false;
  Background& background_;
  std::mutex pool_mutex_;
  std::unique_ptr<BackgroundPool> access_;  // null after stop()
  std::unique_ptr<BackgroundPool> jobs_;    // null after stop()
  std::unique_ptr<BackgroundPool> pool_;    // null after stop(); last: its tasks use the rest
};

}  // namespace pawl::entities
