#include "faces/worlds/service/service.h"

#include <algorithm>

#include "faces/worlds/store/world_journal.h"

namespace pawl::worlds {
namespace {

// Records that one page looks at, whatever it is asked for.
constexpr uint64_t kMaxRecordsRead = 10'000;

std::unexpected<Error> no_world(const std::string& id) {
  return fail(Code::not_found, "not_found",
              "world '" + id + "' does not exist; list them with GET /v1/worlds");
}

std::unexpected<Error> no_definitions(const std::string& id) {
  return fail(Code::corrupt, "store.error", "world '" + id + "' has lost its definitions");
}

}  // namespace

// Modules that wait for the compiler. Further uploads are refused with `exhausted`.
static constexpr size_t kWaitingModules = 64;

Service::Service(KernelAccess& kernel, WorkQueue& work, const WorldsProgram& program,
                 Background& background, FaceOptions options)
    : kernel_(kernel),
      work_(work),
      program_(program),
      options_(std::move(options)),
      followers_(kernel, background),
      compiler_(background.pool("compiler", 1, kWaitingModules)),
      late_(std::make_shared<LateCompiler>(
          kernel, program.runtime().modules,
          [this](BackgroundPool::Task task) { return run_in_compiler(std::move(task)); })) {
  program_.runtime().modules.compile_beside(late_);
}

bool Service::run_in_compiler(BackgroundPool::Task task) {
  std::lock_guard lock(compiler_mutex_);
  return compiler_ && compiler_->add(std::move(task));
}

void Service::stop() {
  program_.runtime().modules.compile_beside(nullptr);
  late_->stop();
  followers_.stop();
  std::unique_ptr<BackgroundPool> ended;
  {
    std::lock_guard lock(compiler_mutex_);
    ended = std::move(compiler_);
  }
}

// A module is held this many times: its bytes, the copy of the compiler, the code that it makes and
// the input.
static constexpr size_t kModuleCopies = 4;

void Service::compile_then(const std::string& tenant, size_t bytes, Reply done,
                           std::move_only_function<void(Reply)> next) {
  MemoryCharge charge = charge_for(options_.charge, MemoryUse::modules, tenant);
  if (!charge.resize(bytes * kModuleCopies))
    return done(fail(Error{Code::exhausted,
                           "busy",
                           "modules that wait for the compiler use up the server's memory for them "
                           "(--memory-budget), or the tenant's share of it: retry later",
                           {},
                           true}));
  // Shared: a pool that refuses the task drops it, and then the refusal answers here.
  auto answer = std::make_shared<Reply>(std::move(done));
  auto task = [answer, charge = std::move(charge), next = std::move(next)]() mutable {
    next(std::move(*answer));
  };
  if (run_in_compiler(std::move(task))) return;
  (*answer)(fail(Error{
      Code::exhausted, "busy", "too many modules wait for the compiler: retry later", {}, true}));
}

std::string_view error_name(const Error& error) {
  static constexpr struct {
    Code code;
    std::string_view name;
  } kNames[] = {
      {Code::invalid, "invalid_request"},
      {Code::unauthenticated, "unauthenticated"},
      {Code::denied, "forbidden"},
      {Code::not_found, "not_found"},
      {Code::conflict, "conflict"},
      {Code::precondition, "conflict"},
      {Code::too_large, "invalid_request"},
      {Code::unprocessable, "validation_failed"},
      {Code::unsupported, "not_implemented"},
      {Code::exhausted, "busy"},
      {Code::unavailable, "unavailable"},
      {Code::corrupt, "internal_error"},
      {Code::internal, "internal_error"},
  };
  // Reasons of this face are the peer's words, in lower case; those of the kernel are not.
  if (!error.reason.empty() &&
      error.reason.find_first_not_of("abcdefghijklmnopqrstuvwxyz_.") == std::string::npos)
    return error.reason;
  for (const auto& row : kNames)
    if (row.code == error.code) return row.name;
  return "internal_error";
}

// `settles` is the id of the effect that this input is the receipt of; `once` an idempotency key.
// Both may be empty.
void Service::submit(const Caller& caller, std::string verb, Bytes body, Reply done,
                     std::string settles, std::string once) {
  Input input;
  input.program = kProgram;
  input.verb = std::move(verb);
  input.body = std::move(body);
  input.caller = caller;
  input.settles = std::move(settles);
  input.once = std::move(once);
  // Blobs run no module, and are large: LateCompiler would keep a copy.
  if (input.verb == "put_blob") return kernel_.submit(std::move(input), std::move(done));
  late_->submit(std::move(input), std::move(done));
}

// Made of the time and a number that this process gives out once.
std::string Service::new_id(std::string_view what) {
  return uuid5(kUrlSpace, std::string(what) + "/" + std::to_string(kernel_.now()) + "/" +
                              std::to_string(made_++));
}

Result<std::shared_ptr<const LoadedManifest>> Service::loaded(const WorldId& world_id) const {
  return read_as<LoadedManifest>(kernel_, air_key(world_id), [&](BytesView in) {
    return decode_bundle(in, program_.builtins());
  });
}

Result<WorldRef> Service::world_ref(const WorldId& world_id) const {
  WorldRef out{world_id, {}, {}};
  TRY(out.world, read_as<World>(kernel_, world_key(world_id), decode_world));
  if (!out.world) return no_world(world_id.world);
  TRY(out.loaded, loaded(world_id));
  if (!out.loaded) return no_definitions(world_id.world);
  return out;
}

// Everything comes from the snapshot. The cell cache lends the parsed manifest while it holds the
// version that the snapshot holds; a manifest that was applied since is not the snapshot's.
Result<WorldSnapshot> Service::open_snapshot(const WorldId& world_id) const {
  WorldSnapshot s{kernel_.snapshot(), world_id, {}, {}, {}};
  TRY(Cell world, s.snapshot.read(world_key(world_id)));
  if (!world.exists()) return no_world(world_id.world);
  TRY(s.world, decode_world(world.value()));
  TRY(Cell head, s.snapshot.read(head_key(world_id)));
  TRY(s.head, decode_head(head.value()));
  TRY(Cell air, s.snapshot.read(air_key(world_id)));
  if (!air.exists()) return no_definitions(world_id.world);
  TRY(Cell newest, kernel_.read(air_key(world_id)));
  auto decode = [&](BytesView in) { return decode_bundle(in, program_.builtins()); };
  const Cell& same = newest.version == air.version ? newest : air;
  TRY(s.loaded, same.as<LoadedManifest>(decode));
  return s;
}

Result<std::vector<std::pair<World, WorldHead>>> Service::list_worlds(const std::string& tenant,
                                                                      const std::string& after,
                                                                      uint64_t limit) const {
  const ReadSnapshot snapshot = kernel_.snapshot();
  std::vector<std::pair<World, WorldHead>> out;
  Result<void> bad;
  auto add = [&](const Cell& cell) -> Result<void> {
    TRY(World world, decode_world(cell.value()));
    // The scan begins at `after` itself.
    if (world.id <= after) return {};
    TRY(Cell head_cell, snapshot.read(head_key({tenant, world.id})));
    TRY(WorldHead head, decode_head(head_cell.value()));
    out.emplace_back(std::move(world), std::move(head));
    return {};
  };
  TRY_OK(snapshot.scan(
      worlds_prefix(tenant),
      [&](BytesView, const Cell& cell) {
        if (out.size() >= limit) return false;
        bad = add(cell);
        return bad.has_value();
      },
      after.empty() ? Key() : world_key({tenant, after})));
  TRY_OK(bad);
  return out;
}

// Without `from` the page begins at the head and is empty: a caller learns where to follow from.
Result<RecordPage> Service::records(const RecordQuery& query) const {
  TRY(WorldSnapshot s, open_snapshot(query.world_id));
  RecordPage out;
  out.head = s.head.height;
  out.retained_from = s.world.retained_from;
  out.gap = query.from && *query.from < out.retained_from;
  out.from = std::max(query.from.value_or(out.head), out.retained_from);
  out.next = out.from;
  uint64_t read = 0;
  size_t bytes = 0;
  auto wanted = [&](BytesView payload) {
    if (query.kinds.empty()) return true;
    auto record = cbor::decode(payload);
    return record && std::find(query.kinds.begin(), query.kinds.end(), record_kind(*record)) !=
                         query.kinds.end();
  };
  TRY_OK(scan_records(s.snapshot, s.world_id, out.from, [&](uint64_t seq, BytesView payload) {
    if (wanted(payload)) {
      out.entries.emplace_back(seq, payload);
      bytes += payload.size();
    }
    // Counts skipped records too, so that a caller who filters by kind still makes progress.
    out.next = seq + 1;
    return out.entries.size() < query.limit && bytes < kShownBytes && ++read < kMaxRecordsRead;
  }));
  return out;
}

}  // namespace pawl::worlds
