#include "kernel/verify.h"

#include <fmt/format.h>

#include "kernel/commit.h"
#include "kernel/kernel.h"

namespace pawl {

static std::string readable(BytesView bytes) {
  std::string out;
  for (unsigned char c : bytes.substr(0, 200)) {
    if (c >= 0x20 && c < 0x7f)
      out.push_back(static_cast<char>(c));
    else
      out += fmt::format("\\x{:02x}", c);
  }
  return bytes.size() > 200 ? out + "..." : out;
}

// Names the first part in which two frames differ.
static std::string differ(const Frame& was, const Frame& now) {
  size_t n = std::min(was.writes.size(), now.writes.size());
  for (size_t i = 0; i < n; ++i) {
    const auto &a = was.writes[i], &b = now.writes[i];
    if (a.key != b.key)
      return fmt::format("write {}: recorded key '{}', now '{}'", i, readable(a.key),
                         readable(b.key));
    if (a.before != b.before)
      return fmt::format("cell '{}': recorded as replacing version {}, now {}", readable(a.key),
                         a.before, b.before);
    BytesView x = a.value ? BytesView(a.value->bytes) : BytesView(),
              y = b.value ? BytesView(b.value->bytes) : BytesView();
    if (!a.value != !b.value || x != y) {
      size_t at =
          std::mismatch(x.begin(), x.begin() + static_cast<ptrdiff_t>(std::min(x.size(), y.size())),
                        y.begin())
              .first -
          x.begin();
      return fmt::format("cell '{}', byte {}: recorded {}, now {}", readable(a.key), at,
                         a.value ? "'" + readable(x.substr(at)) + "'" : "erased",
                         b.value ? "'" + readable(y.substr(at)) + "'" : "erased");
    }
  }
  if (was.writes.size() != now.writes.size())
    return fmt::format("recorded {} changed cells, now {}", was.writes.size(), now.writes.size());
  for (size_t i = 0; i < std::min(was.notes.size(), now.notes.size()); ++i)
    if (was.notes[i] != now.notes[i])
      return fmt::format("note {}: recorded '{}', now '{}'", i, readable(was.notes[i]),
                         readable(now.notes[i]));
  if (was.notes.size() != now.notes.size())
    return fmt::format("recorded {} notes, now {}", was.notes.size(), now.notes.size());
  return fmt::format("recorded {} cells that it stood on although they had changed, now {}",
                     was.stale_reads.size(), now.stale_reads.size());
}

// Loads the stale reads that a turn accepted. Each cell is in the frame that its version names.
static Result<std::map<Key, Cell, std::less<>>> stood_on(const Journal& journal,
                                                         const Frame& frame) {
  std::map<Key, Cell, std::less<>> out;
  for (const Frame::StaleRead& stale_reads : frame.stale_reads) {
    Cell& cell = out[stale_reads.key];
    if (stale_reads.version == 0) continue;
    TRY(Bytes entry, journal.get(stale_reads.version));
    TRY(Sealed sealed, unseal(entry));
    Frame old;
    TRY_OK(decode_outcome(stale_reads.version, sealed.body, old));
    for (Frame::Write& write : old.writes)
      if (write.key == stale_reads.key && write.value)
        cell = Cell{stale_reads.version, std::move(write.value)};
  }
  return out;
}

static std::string rerun(Kernel& kernel, const Frame& frame, BytesView body, Group& group) {
  for (const Input& input : frame.inputs)
    kernel.run(input, [](Result<Answer>) {});
  group = kernel.take();
  if (group.frames.size() != 1) {
    std::string why;
    for (auto& answered : group.answers)
      if (!answered.answer) why = answered.answer.error().message;
    if (why.empty() && kernel.open_turns())
      why = "the program waits for a receipt that was not recorded";
    return fmt::format("recorded one frame, now {}{}{}", group.frames.size(),
                       why.empty() ? "" : ": ", why);
  }
  if (body_of(group.entries[0]) != body) return differ(frame, group.frames[0]);
  return {};
}

namespace {

// The cells of the frames so far. As in a live shard, rows are applied in larger batches: reads by
// key use the cache, and a scan applies the rows first. Views are left out, because no turn reads
// them.
class Scratch {
 public:
  explicit Scratch(Rows& rows) : rows_(rows) {}
  CellCache& cache() { return cache_; }

  Result<void> take(const Group& group) {
    last_ = group.last();
    group.each_cell(
        [&](BytesView key, const Cell& cell, Seq seq) { cache_.publish(key, cell, seq, last_); });
    for (const Frame& frame : group.frames)
      add_cell_rows(tail_, frame);
    return tail_.bytes() >= kTailBytes ? apply() : failed_;
  }
  Result<void> apply() {
    if (tail_.empty()) return failed_;
    cache_.begin();
    if (auto done = rows_.apply_changes(sorter_.in_order(tail_), last_); !done)
      failed_ = std::move(done);
    cache_.end(rows_.applied());
    tail_.clear();
    return failed_;
  }
  ReadSnapshot snapshot() {
    (void)apply();  // a failure shows at the next frame
    return ReadSnapshot(rows_.snapshot());
  }

 private:
  static constexpr size_t kTailBytes = 1 << 20;
  Rows& rows_;
  CellCache cache_{rows_, 64 << 20};
  RowBatch tail_;
  Sorter sorter_;
  Seq last_ = 0;
  Result<void> failed_{};
};

}  // namespace

Result<Verified> verify(const Journal& journal, Rows& rows,
                        std::span<const Program* const> programs, const Progress& progress) {
  Verified out;
  if (journal.last() == 0) return out;
  // Without the journal's beginning no frame can be run again; links and bytes are still checked.
  bool from_start = journal.first() == 1;
  Scratch scratch(rows);
  Kernel kernel(
      scratch.cache(), [&] { return scratch.snapshot(); }, {programs.begin(), programs.end()}, 0);
  Digest none{};
  std::optional<Digest> link;
  if (from_start) link = none;
  TRY_OK(journal.read(journal.first(), [&](Seq seq, BytesView entry) -> Result<bool> {
    TRY(Sealed sealed, unseal(entry));
    auto different = [&](std::string why) {
      out.difference = fmt::format("frame {}: {}", seq, why);
      out.different_at = seq;
      return false;
    };
    if (link && sealed.before != *link)
      return different("its link does not follow the frame before");
    link = sealed.own;
    TRY(Frame frame, decode_frame(seq, sealed.body));
    ++out.frames;
    ++out.by_program[frame.program];
    Group group;
    if (from_start) {
      TRY(auto cells, stood_on(journal, frame));
      kernel.pin(std::move(cells));
    }
    std::string why = from_start ? rerun(kernel, frame, sealed.body, group) : std::string();
    // A frame with the same bytes encodes canonically. A frame that differs is first checked for
    // that.
    if ((!from_start || !why.empty()) && encode_body(frame) != sealed.body)
      return different("its bytes are not what encoding it gives");
    if (!why.empty())
      return different(fmt::format("program {}, verb {}: {}", frame.program,
                                   frame.inputs.empty() ? "?" : frame.inputs[0].verb, why));
    if (from_start) {
      ++out.rerun;
      TRY_OK(scratch.take(group));
    }
    if (out.frames % 4096 == 0 && progress) progress(seq, journal.last());
    return true;
  }));
  TRY_OK(scratch.apply());
  return out;
}

}  // namespace pawl
