// Commands that work on a data folder while no server uses it: journal, verify, checkpoint, backup,
// restore.

#include <fmt/format.h>

#include <filesystem>

#include "assembly/programs.h"
#include "cli/command.h"
#include "cli/data_dir.h"
#include "cli/remote.h"
#include "json/text.h"
#include "kernel/frame.h"
#include "runtime/wall_clock.h"
#include "storage/file/file_journal.h"
#include "storage/memory/memory.h"

namespace pawl::cli {

namespace fs = std::filesystem;

static constexpr Flag kData{"data", v::path("DIR"), "the data folder (default ./data)"};

static constexpr Flag kShard{"shard", v::number("N"),
                             "the shard, from 0; needed when the folder has several"};

static std::string data_of(const Args& args) { return args.get("data", "./data"); }

// The one shard that a command works on.
static Result<uint32_t> shard_in(const Args& args) {
  TRY(uint32_t shards, check_data_folder(data_of(args)));
  if (shards > 1 && !args.has("shard"))
    return fail(Code::invalid, kBadUsage,
                fmt::format("{} has {} shards: name one with --shard, 0 to {}", data_of(args),
                            shards, shards - 1));
  const int64_t shard = args.number("shard", 0);
  if (shard < 0 || shard >= shards)
    return fail(Code::not_found, "NO_SHARD",
                fmt::format("{} has no shard {}: its shards are 0 to {}", data_of(args), shard,
                            shards - 1));
  return static_cast<uint32_t>(shard);
}
static Result<std::string> folder_of(const Args& args) {
  TRY(uint32_t shard, shard_in(args));
  TRY(uint32_t shards, check_data_folder(data_of(args)));
  return shard_folder(data_of(args), shards, shard);
}
static Result<std::unique_ptr<Journal>> journal_of(const Args& args) {
  TRY(uint32_t shard, shard_in(args));
  return open_data_journal(data_of(args), shard);
}

// The journals of all shards of a folder.
static Result<std::vector<std::unique_ptr<Journal>>> all_journals(const std::string& data) {
  TRY(uint32_t shards, check_data_folder(data));
  std::vector<std::unique_ptr<Journal>> out(shards);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    TRY(out[shard], open_data_journal(data, shard));
  }
  return out;
}

// Bytes as readable text: a zero byte, which separates the parts of a cell's key, becomes a slash;
// other bytes are escaped; long values are cut.
static std::string readable(BytesView bytes, size_t max = 400) {
  std::string out;
  for (unsigned char c : bytes.substr(0, max)) {
    if (c >= 0x20 && c < 0x7f)
      out.push_back(static_cast<char>(c));
    else if (c == 0)
      out.push_back('/');
    else
      out += fmt::format("\\x{:02x}", c);
  }
  return bytes.size() > max ? out + fmt::format("... ({} bytes)", bytes.size()) : out;
}

static Result<Seq> seq_of(const std::string& text) {
  if (auto seq = server::parse_whole_number(text)) return static_cast<Seq>(*seq);
  return fail(Code::invalid, kBadUsage, fmt::format("'{}' is not the number of a frame", text));
}

// `whole` adds the bodies of inputs and the values of cells, which may be large.
static json::Value frame_json(const Frame& frame, bool whole) {
  json::Array inputs, writes, notes;
  for (const Input& in : frame.inputs) {
    json::Object o;
    o.add("verb", in.verb);
    o.add("tenant", in.caller.tenant);
    o.add("user", in.caller.user);
    o.add("now", rfc3339(in.stamp.now));
    if (!in.settles.empty()) o.add("settles", in.settles);
    if (whole) o.add("body", readable(in.body));
    inputs.emplace_back(std::move(o));
  }
  for (const Frame::Write& w : frame.writes) {
    json::Object o;
    o.add("key", readable(w.key));
    o.add("before", json::Value(static_cast<uint64_t>(w.before)));
    o.add("bytes", json::Value(static_cast<uint64_t>(w.value ? w.value->bytes.size() : 0)));
    if (!w.value)
      o.add("erased", true);
    else if (whole)
      o.add("value", readable(w.value->bytes));
    writes.emplace_back(std::move(o));
  }
  for (const Bytes& n : frame.notes)
    notes.emplace_back(readable(n));
  return json::object({{"seq", json::Value(static_cast<uint64_t>(frame.seq))},
                       {"program", frame.program},
                       {"inputs", std::move(inputs)},
                       {"writes", std::move(writes)},
                       {"notes", std::move(notes)}});
}

// An entry of the journal is a sealed frame: the link to the frame before, then the body.
static Result<Frame> frame_of(Seq seq, BytesView entry) {
  TRY(Sealed sealed, unseal(entry));
  return decode_frame(seq, sealed.body);
}

// A frame with --json is one line too, so that `journal tail --json` prints one document a line.
static void print_line(const Args& args, const Frame& f) {
  show(args, frame_json(f, false), [&] {
    size_t bytes = 0;
    for (const auto& w : f.writes)
      bytes += w.value ? w.value->bytes.size() : 0;
    fmt::print("{:>10}  {}  {:<10} {:<22} {} cells, {} bytes\n", f.seq, rfc3339(f.now(), 3, true),
               f.program,
               f.inputs.empty()              ? ""
               : f.inputs[0].settles.empty() ? f.inputs[0].verb
                                             : "settles " + f.inputs[0].settles,
               f.writes.size(), bytes);
  });
}

static Result<int> journal_ls(const Args& args) {
  TRY(std::string folder, folder_of(args));
  TRY(auto journal, journal_of(args));
  json::Array losses;
  for (const std::string& mark : read_loss_marks(journal_folder(folder)))
    losses.emplace_back(mark);
  json::Value v = json::object({{"first", json::Value(static_cast<uint64_t>(journal->first()))},
                                {"last", json::Value(static_cast<uint64_t>(journal->last()))},
                                {"bytes", json::Value(journal->bytes())},
                                {"losses", losses}});
  show(args, v, [&] {
    for (const json::Value& mark : losses)
      fmt::print("not complete: {}\n", mark.string());
    if (journal->last() == 0)
      fmt::print("the journal is empty\n");
    else
      fmt::print("frames {} to {}, {} bytes on disk\n", journal->first(), journal->last(),
                 journal->bytes());
  });
  return kDone;
}

static Result<int> journal_show(const Args& args) {
  if (args.words.empty())
    return fail(Code::invalid, kBadUsage, "name a frame: pawl journal show SEQ");
  TRY(Seq seq, seq_of(args.words[0]));
  TRY(auto journal, journal_of(args));
  TRY(Bytes entry, journal->get(seq));
  TRY(Frame frame, frame_of(seq, entry));
  json::Value v = frame_json(frame, true);
  show(args, v, [&] { fmt::print("{}\n", json::print_pretty(v)); });
  return kDone;
}

static Result<int> journal_tail(const Args& args) {
  const Seq count = static_cast<Seq>(args.number("limit", 20));
  TRY(auto journal, journal_of(args));
  // Retention may have removed the first frames, so reading starts at first() at the earliest.
  Seq from = journal->last() > count ? journal->last() - count + 1 : 1;
  TRY_OK(journal->read(std::max(from, journal->first()),
                       [&](Seq seq, BytesView entry) -> Result<bool> {
                         TRY(Frame frame, frame_of(seq, entry));
                         print_line(args, frame);
                         return true;
                       }));
  return kDone;
}

// A line for the file LOSS, which stays with the journal.
static std::string loss_mark(std::string_view command, std::string_view kept) {
  return fmt::format("{} at {}: everything after {} was given up", command,
                     rfc3339(system_now(), 0), kept);
}

static Result<int> journal_accept_loss(const Args& args) {
  if (!args.has("yes"))
    return fail(Code::invalid, kBadUsage,
                "this gives up the frames that the journal has lost, acknowledged or not: confirm "
                "with --yes if no backup can help");
  TRY(std::string folder, folder_of(args));
  FileJournalOptions options;
  options.folder = journal_folder(folder);
  TRY(Seq last, accept_loss(options, loss_mark("journal accept-loss", "the last valid frame")));
  std::error_code ec;
  fs::remove_all(rows_folder(folder), ec);
  show(args, json::object({{"last", json::Value(static_cast<uint64_t>(last))}}), [&] {
    fmt::print(
        "the journal ends at frame {}; rows will be rebuilt, and {} keeps a mark of the loss\n",
        last, options.folder + "/" + kLossName);
  });
  return kDone;
}

static Result<int> journal_cut(const Args& args) {
  if (!args.has("at"))
    return fail(Code::invalid, kBadUsage, "name the last frame to keep with --at SEQ");
  const Seq at = static_cast<Seq>(args.number("at", 0));
  if (!args.has("yes"))
    return fail(Code::invalid, kBadUsage,
                fmt::format("this drops every frame after {} for good, acknowledged or not: "
                            "confirm with --yes if no backup can help",
                            at));
  TRY(std::string folder, folder_of(args));
  FileJournalOptions options;
  options.folder = journal_folder(folder);
  TRY_OK(cut_journal(options, at, loss_mark("journal cut", fmt::format("frame {}", at))));
  std::error_code ec;
  // The rows may hold the results of frames that are gone now. The next start rebuilds them.
  fs::remove_all(rows_folder(folder), ec);
  show(args, json::object({{"last", json::Value(static_cast<uint64_t>(at))}}),
       [&] { fmt::print("the journal ends at frame {} now; rows will be rebuilt\n", at); });
  return kDone;
}

// Asks the server that serves the data folder. serving.json has its admin address.
static Result<int> verify_online(const Args& args) {
  const std::string serving = data_of(args) + "/serving.json";
  auto file = read_json(serving);
  if (!file)
    return fail(Code::unavailable, "NOT_SERVED",
                fmt::format("no server is running on {}: run `pawl verify` without --online",
                            data_of(args)));
  TRY(auto client, client_to(args, std::string(file->string_or("admin"))));
  TRY(json::Value status, client->call("POST", "/scrub"));
  const json::Value* findings = status.find("findings");
  const bool whole = findings && findings->is_array() && findings->array().empty();
  show(args, status, [&] {
    if (whole) return fmt::print("every entry of the journal has its checksum\n");
    if (!findings || !findings->is_array()) return;
    for (const json::Value& finding : findings->array())
      fmt::print("{}\n", finding.string());
    fmt::print("Back up what can be read, stop the server, and restore a backup.\n");
  });
  return whole ? kDone : kFailed;
}

// Verification replays into memory and touches neither the rows of the folder nor its journal.
static Result<Verified> verify_shard(const std::string& data, uint32_t shard, uint32_t shards,
                                     const assembly::Programs& programs, ProgressLine& line) {
  TRY(auto journal, open_data_journal(data, shard));
  TRY(std::optional<Manifest> manifest, read_manifest(shard_folder(data, shards, shard)));
  if (manifest) TRY_OK(check_manifest(*journal, *manifest));
  MemoryRows scratch;
  return verify(*journal, scratch, programs.all(),
                [&](Seq done, Seq total) { line.update(done, total); });
}

// The sums of all shards, up to the first difference.
static Result<Verified> verify_shards(const std::string& data) {
  TRY(uint32_t shards, check_data_folder(data));
  TRY(assembly::ProgramSettings settings, assembly::program_settings());
  assembly::Programs programs(settings);
  ProgressLine line("verifying");
  Verified sum;
  for (uint32_t shard = 0; shard < shards && sum.difference.empty(); ++shard) {
    auto one = verify_shard(data, shard, shards, programs, line);
    if (!one && shards > 1) one.error().message += fmt::format(" (shard {})", shard);
    if (!one) return one;
    sum.frames += one->frames;
    sum.rerun += one->rerun;
    for (auto& [name, n] : one->by_program)
      sum.by_program[name] += n;
    sum.difference = one->difference;
    if (!sum.difference.empty() && shards > 1)
      sum.difference = fmt::format("shard {}: {}", shard, sum.difference);
  }
  return sum;
}

static Result<int> run_verify(const Args& args) {
  if (args.has("online")) return verify_online(args);
  auto verified = verify_shards(data_of(args));
  if (!verified) return fail(std::move(verified.error()));
  json::Object by;
  for (auto& [name, n] : verified->by_program)
    by.add(name, json::Value(static_cast<uint64_t>(n)));
  json::Value v = json::object(
      {{"frames", json::Value(static_cast<uint64_t>(verified->frames))},
       {"rerun", json::Value(static_cast<uint64_t>(verified->rerun))},
       {"byProgram", std::move(by)},
       {"difference",
        verified->difference.empty() ? json::Value() : json::Value(verified->difference)}});
  show(args, v, [&] {
    if (verified->difference.empty()) {
      fmt::print("{} frames: checksums and links hold, {} run again, no difference\n",
                 verified->frames, verified->rerun);
      if (verified->rerun < verified->frames)
        fmt::print(
            "the beginning of the journal was removed by retention, so frames were not run "
            "again\n");
    } else {
      fmt::print(
          "{}\n{} frames before it agree. A program now computes another result, or the journal "
          "was "
          "changed: keep the folder and compare it with a backup.\n",
          verified->difference, verified->rerun);
    }
  });
  return verified->difference.empty() ? kDone : kDiffers;
}

static Result<void> want_new(const std::string& folder) {
  std::error_code ec;
  if (folder.empty()) return fail(Code::invalid, kBadUsage, "name the new folder with --to DIR");
  if (fs::exists(folder, ec) && !fs::is_empty(folder, ec))
    return fail(Code::conflict, "EXISTS",
                fmt::format("{} exists and is not empty: name a new folder", folder));
  return {};
}

// Backup and restore are the same copy in opposite directions; `done` begins the line that is
// printed.
static Result<int> copy(const Args& args, const std::vector<std::unique_ptr<Journal>>& journals,
                        const std::string& to, std::string_view done) {
  ProgressLine line("copying");
  std::vector<const Journal*> from;
  for (const auto& journal : journals)
    from.push_back(journal.get());
  TRY(Copied copied, copy_journals(from, to, [&](Seq n, Seq total) { line.update(n, total); }));
  json::Value v = json::object(
      {{"folder", to}, {"last", json::Value(copied.last)}, {"bytes", json::Value(copied.bytes)}});
  show(args, v, [&] {
    fmt::print("{} {}: frames up to {}, {} bytes\n", done, to, copied.last, copied.bytes);
  });
  return kDone;
}

static Result<int> run_backup(const Args& args) {
  TRY_OK(want_new(args.get("to")));
  TRY(auto journals, all_journals(data_of(args)));
  return copy(args, journals, args.get("to"), "backed up to");
}

static Result<int> run_restore(const Args& args) {
  if (!args.has("from")) return fail(Code::invalid, kBadUsage, "name the backup with --from DIR");
  const std::string from = args.get("from");
  TRY_OK(want_new(data_of(args)));
  TRY(uint32_t shards, check_data_folder(from));
  TRY(auto journals, all_journals(from));
  for (uint32_t shard = 0; shard < shards; ++shard) {
    const std::string folder = shard_folder(from, shards, shard);
    TRY(std::optional<Manifest> manifest, read_manifest(folder));
    if (!manifest && !args.has("without-manifest"))
      return fail(
          Code::corrupt, "BACKUP_INCOMPLETE",
          fmt::format("{} has no MANIFEST, so the backup was not finished: use another one. "
                      "A backup of an older pawl never had one: restore it "
                      "with --without-manifest",
                      folder));
    if (manifest) TRY_OK(check_manifest(*journals[shard], *manifest));
  }
  return copy(args, journals, data_of(args), "restored into");
}

// The rows are brought up to the last frame first. The folder is named by that frame, so a second
// checkpoint of the same frame is the first one.
static Result<void> checkpoint_shard(const Args& args, const std::string& of,
                                     std::span<const Program* const> programs) {
  TRY(Stores opened, open_shard_data(of));
  ProgressLine line("replaying");
  TRY(Replayed replayed, replay(*opened.journal, *opened.rows, programs,
                                [&](Seq n, Seq total) { line.update(n, total); }));
  std::string folder = fmt::format("{}/checkpoints/{:020}", of, replayed.last);
  std::error_code ec;
  fs::create_directories(of + "/checkpoints", ec);
  if (!fs::exists(folder, ec)) TRY_OK(opened.rows->checkpoint(folder));
  show(args,
       json::object(
           {{"folder", folder}, {"seq", json::Value(static_cast<uint64_t>(replayed.last))}}),
       [&] { fmt::print("checkpoint of frame {} in {}\n", replayed.last, folder); });
  return {};
}

// One for each shard.
static Result<int> run_checkpoint(const Args& args) {
  TRY(uint32_t shards, prepare_data(data_of(args), 0));
  TRY(assembly::ProgramSettings settings, assembly::program_settings());
  assembly::Programs programs(settings);
  for (uint32_t shard = 0; shard < shards; ++shard)
    TRY_OK(checkpoint_shard(args, shard_folder(data_of(args), shards, shard), programs.all()));
  return kDone;
}

static constexpr Command kDataCommands[] = {
    {"journal ls",
     "",
     "print the first and last frame of the journal and its size",
     {kData, kShard},
     journal_ls},
    {"journal show",
     "SEQ",
     "print one frame with its inputs, writes and notes",
     {kData, kShard},
     journal_show},
    {"journal tail",
     "",
     "print the newest frames, one a line",
     {kData, kShard, {"limit", v::number("N"), "how many (default 20)"}},
     journal_tail},
    {"journal cut",
     "",
     "drop every frame after SEQ: the last resort for a damaged journal",
     {kData,
      kShard,
      {"at", v::number("SEQ"), "the last frame to keep"},
      {"yes", v::none(), "confirm that acknowledged changes are lost"}},
     journal_cut},
    {"journal accept-loss",
     "",
     "keep what is left of a journal that lost its end, and mark the loss",
     {kData, kShard, {"yes", v::none(), "confirm that acknowledged changes are lost"}},
     journal_accept_loss},
    {"verify",
     "",
     "check the journal and run every frame again; exit 6 when a result differs",
     {kData,
      {"online", v::none(), "ask the running server to check its journal; runs no frame again"},
      kToken},
     run_verify},
    {"checkpoint",
     "",
     "copy the rows, so that a later start needs no replay",
     {kData},
     run_checkpoint},
    {"backup",
     "",
     "copy the journal into a new folder that pawl can serve",
     {kData, {"to", v::path("DIR"), "the new folder"}},
     run_backup},
    {"restore",
     "",
     "make a data folder from a backup",
     {kData,
      {"from", v::path("DIR"), "the backup"},
      {"without-manifest", v::none(),
       "restore a backup that cannot be checked for missing frames"}},
     run_restore},
};

std::span<const Command> data_commands() { return kDataCommands; }

}  // namespace pawl::cli
