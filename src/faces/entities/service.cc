#include "faces/entities/service.h"

#include <fmt/format.h>

#include "faces/entities/flow/machine.h"
#include "faces/entities/program.h"
#include "faces/entities/store/store.h"
#include "faces/entities/verbs/verbs.h"
#include "json/text.h"

namespace pawl::entities {

// Background tasks that may wait.
static constexpr size_t kMaxWaitingTasks = 1000;
// Search jobs, removals and index fills that run at the same time. They have no deadline, so they
// have threads of their own: searches that a client waits for never wait for them.
static constexpr size_t kJobThreads = 3;
// Time that a search may take while its client waits.
static constexpr Time kSearchTime = 30 * kSecond;

Service::Service(KernelAccess& kernel, Members& members, Counts& counts, Background& background,
                 size_t threads, ChargeFor charge)
    : charge_(std::move(charge)),
      kernel_(kernel),
      members_(members),
      counts_(counts),
      background_(background),
      access_(background.pool("access", 1, kMaxWaitingTasks)),
      jobs_(background.pool("entity jobs", kJobThreads, kMaxWaitingTasks)),
      pool_(background.pool("entities", threads, kMaxWaitingTasks)) {}

Service::~Service() { stop(); }

void Service::stop() {
  stopping_ = true;
  std::unique_ptr<BackgroundPool> pool, jobs, access;
  {
    std::lock_guard lock(pool_mutex_);
    pool = std::move(pool_);
    jobs = std::move(jobs_);
    access = std::move(access_);
  }
  // Waits for the running tasks. A task may add another one, so pool_mutex_ is released before.
  pool.reset();
  jobs.reset();
  access.reset();
}

static Result<void> add_task(BackgroundPool* pool, std::string_view owner, std::string reason,
                             BackgroundPool::Task task) {
  if (pool && pool->add(owner, std::move(task))) return {};
  return fail(Code::exhausted, std::move(reason),
              "too many background tasks are waiting; retry later");
}

Result<void> Service::run_access(std::string_view owner, BackgroundPool::Task task) {
  std::lock_guard lock(pool_mutex_);
  return add_task(access_.get(), owner, "TOO_MANY_TASKS", std::move(task));
}

Result<void> Service::run_job(std::string_view tenant, BackgroundPool::Task task) {
  std::lock_guard lock(pool_mutex_);
  return add_task(jobs_.get(), tenant, "TOO_MANY_SEARCHES", std::move(task));
}

Result<void> Service::run_query(Query query, ClientLeft left, QueryTask task) {
  const std::string tenant = query.tenant;
  BackgroundPool::Task run = [this, query = std::move(query), left = std::move(left),
                              task = std::move(task)]() mutable {
    const Time deadline = background_.steady_now() + kSearchTime;
    query.proceed = [this, left, deadline]() -> Result<void> {
      if (stopping_ || (left && *left))
        return fail(Code::unavailable, "SEARCH_ABANDONED",
                    "the server stops, or the client has left");
      if (background_.steady_now() < deadline) return {};
      return fail(Code::unprocessable, kSearchTooLong,
                  fmt::format("the search took more than {} seconds: use an index, fewer "
                              "conditions, or a search job",
                              kSearchTime / kSecond));
    };
    MemoryCharge results = charge(MemoryUse::searches, query.tenant);
    query.hold = [&results](size_t bytes) -> Result<void> {
      if (results.resize(results.bytes() + bytes)) return {};
      return fail(Code::exhausted, "SEARCH_MEMORY",
                  "the results of searches use up the server's memory for them "
                  "(--memory-budget), or the tenant's share of it; ask for fewer at a time, "
                  "sort fewer, or retry later");
    };
    task(query);
  };
  std::lock_guard lock(pool_mutex_);
  return add_task(pool_.get(), tenant, "TOO_MANY_SEARCHES", std::move(run));
}

void Service::submit(const RequestContext& context, Input input, Done done) {
  input.program = kProgram;
  input.caller = context.caller;
  input.once = context.idempotency_key;
  kernel_.submit(std::move(input), [done = std::move(done)](Result<Answer> answer) mutable {
    if (!answer) return done(fail(std::move(answer.error())));
    done(std::move(answer->body));
  });
}

static std::unexpected<Error> token_over() {
  Error error{Code::conflict,
              "CONFLICT",
              "the transaction token is unknown or its transaction is over; do not use it after "
              "the call has been answered",
              {},
              true};
  return fail(std::move(error));
}

Error window_in_joined_transaction() {
  return {Code::invalid, "BAD_REQUEST",
          "transactionWindow has no meaning for a request that joins an open transaction: leave it "
          "out; the collection is written as a whole"};
}

Result<void> Service::may_join(const RequestContext& context) const {
  if (context.token.empty() || members_.find_token(context.token, context.caller.tenant)) return {};
  return token_over();
}

static std::unexpected<Error> too_many_fields(std::string_view what) {
  return fail(Code::invalid, "BAD_REQUEST",
              fmt::format("{} may have {} fields: split it, or keep the rest as text", what,
                          limits::kDocumentFields));
}

Result<void> Service::check_growth(std::string_view tenant, std::string_view model, int32_t version,
                                   const json::Value& document) const {
  TRY(ModelPtr known, this->model(tenant, model, version));
  if (!known || known->fields < limits::kDocumentFields) return {};
  if (known->locked && known->level == ChangeLevel::none) return {};
  if (fits(known->shape, document)) return {};
  return too_many_fields(fmt::format("model {} version {}", model, version));
}

Result<void> Service::check_fields(const RequestContext& context, const Command& command) const {
  // A text with that many fields has at least six bytes for each.
  constexpr size_t kSmallText = 6 * limits::kDocumentFields;
  for (const Item& item : command.items) {
    if (item.op == Item::fire || item.op == Item::due) continue;
    size_t count = item.data.size() < kSmallText ? 0 : json::count_members(item.value);
    std::string model = item.model;
    int32_t version = item.version;
    if (item.op != Item::create) {
      TRY(Cell cell, kernel_.read(entity_key(context.caller.tenant, item.id)));
      EntityView stored;
      if (!cell.exists() || !view_entity(cell.value(), stored)) continue;
      model = stored.model;
      version = stored.version;
      // A patch adds to the fields that are there.
      if (item.op == Item::patch && stored.data.size() + item.data.size() >= kSmallText)
        count = json::count_members(item.value) + condition::count_members(stored.data);
    }
    if (count > limits::kDocumentFields) return too_many_fields("a document");
    TRY_OK(check_growth(context.caller.tenant, model, version, item.value));
  }
  return {};
}

Result<void> Service::check_sample(const RequestContext& context, const json::Value& body) const {
  const json::Value* sample = body.find("sample");
  if (!sample) return {};
  if (json::count_members(*sample) > limits::kDocumentFields) return too_many_fields("a sample");
  return check_growth(context.caller.tenant, model_name(body), model_version(body), *sample);
}

void Service::write(const RequestContext& context, Command command, Done done) {
  if (auto good = check_fields(context, command); !good) return done(fail(std::move(good.error())));
  Input input;
  input.verb = "write";
  if (!context.token.empty()) {
    auto joined = members_.find_token(context.token, context.caller.tenant);
    if (!joined) return done(token_over());
    input.joins = joined->turn;
    command.tx = joined->tx;
  }
  input.body = encode(command);
  // The program takes this instead of decoding the body, which only the journal needs.
  input.decoded = std::make_shared<const Command>(std::move(command));
  submit(context, std::move(input), std::move(done));
}

// Only verbs about entities join a transaction. Models, workflows, messages and search jobs are
// never part of one.
static bool joins_transaction(std::string_view verb) {
  static constexpr std::string_view kJoining[] = {"get",    "find",        "transitions",
                                                  "trail",  "moves",       "groups",
                                                  "remove", "remove.some", "remove.all"};
  return std::find(std::begin(kJoining), std::end(kJoining), verb) != std::end(kJoining);
}

// A verb outside the list runs in a transaction of its own, but the token must be valid all the
// same.
void Service::act(const RequestContext& context, std::string verb, json::Value body, Done done) {
  if (verb == "model.import")
    if (auto good = check_sample(context, body); !good) return done(fail(std::move(good.error())));
  Input input;
  input.verb = std::move(verb);
  if (!context.token.empty()) {
    auto joined = members_.find_token(context.token, context.caller.tenant);
    if (!joined) return done(token_over());
    if (joins_transaction(input.verb)) {
      input.joins = joined->turn;
      body.object().set("tx", joined->tx);
    }
  }
  input.body = json::print(body);
  input.decoded = std::make_shared<const json::Value>(std::move(body));
  submit(context, std::move(input), std::move(done));
}

// Blocks this thread. The promise lives on the stack, so it must not return before the answer.
Result<Bytes> Service::act_and_wait(const RequestContext& context, std::string verb,
                                    json::Value body) {
  struct Waiting {
    ReadySignal ready;
    Result<Bytes> answer = Bytes();
  };
  // Shared with the reply, which may come after the wait has been given up.
  auto waiting = std::make_shared<Waiting>();
  act(context, std::move(verb), std::move(body), [waiting](Result<Bytes> answer) {
    waiting->answer = std::move(answer);
    waiting->ready.set();
  });
  if (!background_.await(waiting->ready))
    return fail(Code::unavailable, kStopping, "the server is stopping: retry");
  return std::move(waiting->answer);
}

// A collection that is being written. Shared by the callbacks of its chunks, of which one runs at a
// time.
struct Service::Chunks {
  RequestContext context;
  std::vector<Item> items;
  size_t window;
  size_t at = 0;     // index of the next item
  size_t index = 0;  // of the chunk
  bool lenient;
  bool warnings;
  std::string out = "[";
  Done done;
};

void Service::write_chunks(const RequestContext& context, std::vector<Item> items,
                           ChunkOptions options, Done done) {
  size_t window = context.token.empty() ? options.window : std::max<size_t>(1, items.size());
  auto chunks =
      std::make_shared<Chunks>(Chunks{context, std::move(items), window, 0, 0, options.lenient,
                                      options.warnings, "[", std::move(done)});
  next_chunk(std::move(chunks));
}

// Writes the next chunk and calls itself from its answer.
void Service::next_chunk(std::shared_ptr<Chunks> c) {
  Command command;
  command.lenient = c->lenient;
  command.warnings = c->warnings;
  size_t end = std::min(c->items.size(), c->at + c->window);
  for (; c->at < end; ++c->at)
    command.items.push_back(std::move(c->items[c->at]));
  RequestContext context = c->context;
  if (!context.idempotency_key.empty() && c->index)
    // Each chunk is an input of its own and needs a key of its own.
    context.idempotency_key += fmt::format("#{}", c->index);
  write(context, std::move(command), [this, c](Result<Bytes> answer) mutable {
    if (!answer && c->index == 0) return c->done(fail(std::move(answer.error())));
    if (c->index) c->out += ',';
    if (!answer) {
      const Error& e = answer.error();
      json::Value error = json::object({{"code", e.reason},
                                        {"message", e.message},
                                        {"chunkIndex", static_cast<uint64_t>(c->index)}});
      if (c->warnings) error.object().add("retryable", e.retryable);
      c->out +=
          json::print(json::object({{"entityIds", json::Array()}, {"error", std::move(error)}}));
    } else {
      c->out += *answer;
    }
    ++c->index;
    if (answer && c->at < c->items.size()) return next_chunk(std::move(c));
    c->out += ']';
    c->done(std::move(c->out));
  });
}

void Service::read_one(const RequestContext& context, std::string verb, const std::string& id,
                       const AsOf& as_of, Show show, Done done) {
  auto committed = [this, tenant = context.caller.tenant, id, as_of,
                    show = std::move(show)]() -> Result<Bytes> {
    TRY(StoredEntity found, find(tenant, id, as_of));
    return show(found);
  };
  if (!context.reads_in_transaction(as_of.time)) return done(committed());
  json::Value body = json::object({{"id", id}});
  if (!as_of.tx.empty()) body.object().add("of", as_of.tx);
  act(context, std::move(verb), std::move(body),
      [committed, done = std::move(done)](Result<Bytes> own) mutable {
        done(own && own->empty() ? committed() : std::move(own));
      });
}

void Service::get(const RequestContext& context, const std::string& id, const AsOf& as_of,
                  Done done) {
  auto show = [](const StoredEntity& found) -> Result<Bytes> {
    Bytes out;
    out.reserve(found.view.data.size() + 400);
    append_envelope(out, found.view, true);
    return out;
  };
  read_one(context, "get", id, as_of, show, std::move(done));
}

void Service::transitions(const RequestContext& context, const std::string& id, const AsOf& as_of,
                          Done done) {
  auto show = [this, tenant = context.caller.tenant](const StoredEntity& found) -> Result<Bytes> {
    TRY(auto flows, this->flows(tenant, found.view.model, found.view.version));
    return transition_names(flows.get(), found.view);
  };
  read_one(context, "transitions", id, as_of, show, std::move(done));
}

void Service::own_notes(const RequestContext& context, std::string verb, json::Value body,
                        NotesCallback done) {
  act(context, std::move(verb), std::move(body),
      [done = std::move(done)](Result<Bytes> answer) mutable {
        if (!answer) return done(fail(std::move(answer.error())));
        done(unpack_notes(*answer));
      });
}

// The snapshot is taken before the notes of the transaction are read: if the transaction commits in
// between, its notes do not appear twice.
void Service::history(const RequestContext& context, const std::string& id,
                      const std::optional<Time>& at,
                      std::move_only_function<void(Result<History>)> done) {
  History history(kernel_.snapshot(), context.caller.tenant, id);
  if (!context.reads_in_transaction(at)) return done(std::move(history));
  own_notes(context, "trail", json::object({{"id", id}}),
            [history = std::move(history),
             done = std::move(done)](Result<std::vector<BytesView>> notes) mutable {
              if (!notes) return done(fail(std::move(notes.error())));
              for (BytesView note : *notes) {
                auto trail = decode_trail(note);
                if (!trail) return done(fail(std::move(trail.error())));
                history.add_own(*std::move(trail));
              }
              done(std::move(history));
            });
}

void Service::counts(const RequestContext& context,
                     std::move_only_function<void(Result<StateCounts>)> done) {
  // Taken before the notes, as in history().
  StateCounts counts = counts_.of(context.caller.tenant);
  if (!context.reads_in_transaction(std::nullopt)) return done(std::move(counts));
  own_notes(context, "moves", json::object({}),
            [counts = std::move(counts),
             done = std::move(done)](Result<std::vector<BytesView>> notes) mutable {
              if (!notes) return done(fail(std::move(notes.error())));
              for (BytesView note : *notes) {
                auto move = decode_state_change(note);
                if (!move) return done(fail(std::move(move.error())));
                counts.add(*move);
              }
              done(std::move(counts));
            });
}

Result<StoredEntity> Service::find(std::string_view tenant, std::string_view id,
                                   const AsOf& as_of) const {
  StoredEntity found;
  Key key = entity_key(tenant, id);
  if (as_of.time) {
    ReadSnapshot snapshot = kernel_.snapshot();
    TRY(Seq seq, snapshot.seq_at(*as_of.time));
    TRY(found.cell, snapshot.read_at(key, seq));
  } else if (!as_of.tx.empty()) {
    // Newest first: of two versions by one transaction the last one counts.
    TRY_OK(kernel_.snapshot().history(key, [&](BytesView, const Cell& cell) {
      EntityView e;
      if (!view_entity(cell.value(), e) || e.tx != as_of.tx) return true;
      found.cell = cell;
      return false;
    }));
  } else {
    TRY(found.cell, kernel_.read(key));
  }
  if (!found.cell.exists()) return fail(entity_not_found(id));
  if (!view_entity(found.cell.value(), found.view)) return fail(unreadable_entity(id));
  return found;
}

Result<ModelPtr> Service::model(std::string_view tenant, std::string_view name,
                                int32_t version) const {
  return read_as<Model>(kernel_, model_key(tenant, name, version), decode_model);
}

Result<std::shared_ptr<const WorkflowSet>> Service::flows(std::string_view tenant,
                                                          std::string_view name,
                                                          int32_t version) const {
  return read_as<WorkflowSet>(kernel_, flows_key(tenant, name, version), decode_workflows);
}

Result<std::vector<Model>> Service::models(std::string_view tenant) const {
  std::vector<Model> out;
  Result<void> good;
  TRY_OK(kernel_.snapshot().scan(models_prefix(tenant), [&](BytesView, const Cell& cell) {
    auto model = decode_model(cell.value());
    if (!model) {
      good = fail(std::move(model.error()));
      return false;
    }
    out.push_back(*std::move(model));
    return true;
  }));
  TRY_OK(good);
  return out;
}

Result<json::Value> Service::cell_json(BytesView key) const {
  TRY(Cell cell, kernel_.read(key));
  if (!cell.exists()) return json::Value();
  return json::parse(cell.value(),
                     {.max_depth = 2 * limits::kJsonDepth, .max_bytes = limits::kCellBytes});
}

Result<std::shared_ptr<const condition::Condition>> Service::condition(std::string_view tenant,
                                                                       std::string_view name,
                                                                       int32_t version,
                                                                       const json::Value& text,
                                                                       bool strict) const {
  TRY(condition::Condition compiled, condition::Condition::compile_for_search(text));
  TRY_OK(compiled.check_size());
  TRY(ModelPtr known, model(tenant, name, version));
  if (known) TRY_OK(check_condition(compiled, *known, strict));
  TRY_OK(compiled.check_operands());
  return std::make_shared<const condition::Condition>(std::move(compiled));
}

// The condition travels as text, because the input is recorded and read again by `pawl verify`.
void Service::find_in_transaction(const RequestContext& context, const Query& query,
                                  const json::Value* condition, Done done) {
  json::Value body = json::object({{"name", query.model},
                                   {"version", query.version},
                                   {"skip", static_cast<uint64_t>(query.skip)},
                                   {"limit", static_cast<uint64_t>(query.limit)}});
  if (condition) body.object().add("condition", *condition);
  if (query.with_model) body.object().add("withModel", true);
  if (!query.sort_text.empty()) {
    json::Array sort;
    for (const std::string& key : query.sort_text)
      sort.emplace_back(key);
    body.object().add("sort", std::move(sort));
  }
  act(context, "find", std::move(body), std::move(done));
}

// The whole answer in memory: the query's limit bounds it.
Result<SearchAnswer> Service::run_search(const Query& query) const {
  SearchAnswer answer;
  TRY(ModelPtr known, model(query.tenant, query.model, query.version));
  TRY(answer.plan, search(kernel_.snapshot(), query, known.get(), [&](const EntityView& e) {
        append_envelope(answer.lines, e, false);
        answer.lines += '\n';
        return answer.lines.size() <= limits::kWholeResultBytes;
      }));
  if (answer.lines.size() > limits::kWholeResultBytes) return result_too_large();
  return answer;
}

}  // namespace pawl::entities
