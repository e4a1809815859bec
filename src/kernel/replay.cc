#include "kernel/replay.h"

#include <fmt/format.h>

#include <deque>

#include "base/hash.h"
#include "kernel/access.h"
#include "kernel/commit.h"
#include "kernel/frame.h"
#include "kernel/kernel.h"
#include "kernel/rows_layout.h"

namespace pawl {

static constexpr std::string_view kViewsRow = "mviews";
// One batch is applied while the next is read. Nothing overlaps with reading the first batch, so
// the first one is smaller.
static constexpr size_t kBatchBytes = 8 << 20, kFirstBatchBytes = 2 << 20;

void add_cell_rows(RowBatch& rows, const Frame& frame) {
  const Bytes head = layout::cell_head(frame.seq);
  for (const Frame::Write& write : frame.writes) {
    RowBatch::Parts row(layout::kCell, write.key);
    if (!write.value)
      rows.erase(row);
    else if (write.before)
      rows.put(row, {head, write.value->bytes});
    else
      rows.put_new(row, {head, write.value->bytes});
  }
}

void add_view_rows(RowBatch& rows, const Frame& frame, std::span<const Change> changes,
                   const Program* program) {
  if (!program) return;
  for (const Change& change : changes) {
    if (!program->keeps_history(change.key)) continue;
    rows.put(layout::history_row(change.key, frame.seq),
             {BytesView(change.after.exists() ? "\1" : "\0", 1), change.after.value()});
  }
  static const Caller nobody;
  ViewRows view(rows, program->name());
  program->view({frame.seq, frame.now(),
                 frame.inputs.empty() ? nobody : frame.inputs.front().caller, changes, frame.notes},
                view);
}

static Bytes views_of(std::span<const Program* const> programs) {
  std::map<std::string_view, uint32_t> sorted;
  for (const Program* p : programs)
    sorted[p->name()] = p->view_version();
  Bytes out = "1";
  for (auto& [name, version] : sorted)
    out += fmt::format(" {}:{}", name, version);
  return out;
}

namespace {

// The newest version of each cell that a batch writes.
class Cells {
 public:
  const Cell* find(uint64_t hash, BytesView key) const {
    const Named* found = index_.find(hash, key);
    return found ? &found->cell : nullptr;
  }
  // `fresh`: no row holds an earlier version of the cell.
  void put(BytesView key, Cell cell, bool fresh) {
    uint64_t hash = quick_hash(key);
    bytes_ += cell.value().size();
    if (Named* found = index_.find(hash, key)) {
      bytes_ -= found->cell.value().size();
      found->cell = std::move(cell);
      return;
    }
    bytes_ += key.size();
    cells_.push_back({hash, Key(key), std::move(cell), fresh});
    index_.insert(&cells_.back());
  }
  void add_rows(RowBatch& rows) const {
    for (const Named& named : cells_) {
      RowBatch::Parts row(layout::kCell, named.name);
      if (named.cell.exists())
        rows.put(row, {layout::cell_head(named.cell.version), named.cell.value()});
      else if (!named.fresh)
        rows.erase(row);
    }
  }
  size_t bytes() const { return bytes_; }
  void clear() {
    index_.clear();
    cells_.clear();
    bytes_ = 0;
  }

 private:
  struct Named {
    uint64_t hash;
    Key name;
    Cell cell;
    bool fresh;
    BytesView key() const { return name; }
  };
  size_t bytes_ = 0;
  std::deque<Named> cells_;
  HashIndex<Named> index_;
};

// The rows together with the batches that are not applied to them yet.
class Tail {
 public:
  Tail(Rows& rows, std::span<const Program* const> programs, const Beside& beside)
      : rows_(rows), beside_(beside) {
    for (const Program* p : programs)
      programs_[std::string(p->name())] = p;
    // Reserved memory that is never touched costs nothing; growing a batch costs more than the
    // rows.
    for (RowBatch* batch : {&batch_, &applying_})
      batch->reserve(kBatchBytes + kBatchBytes / 4);
  }

  Result<void> add(const Frame& frame, const Digest& link) {
    const Program* program = nullptr;
    if (auto it = programs_.find(frame.program); it != programs_.end()) program = it->second;
    size_t n = frame.writes.size();
    // Members, to reuse their memory: replay handles about a frame a microsecond.
    std::vector<Cell>&before = before_, &after = after_;
    std::vector<Change>& changes = changes_;
    changes.clear();
    before.assign(n, {});
    after.assign(n, {});
    for (size_t i = 0; i < n; ++i) {
      const Frame::Write& write = frame.writes[i];
      if (write.value) after[i] = Cell{frame.seq, write.value};
      if (write.key[0] == '~') continue;
      if (write.before) {
        TRY(before[i], read(write.key));
        if (before[i].version != write.before)
          return fail(Code::corrupt, "REPLAY_DIVERGED",
                      fmt::format("frame {} replaces version {} of a cell that stands at {}: rows "
                                  "do not belong to this journal; "
                                  "delete the rows folder and start again",
                                  frame.seq, write.before, before[i].version));
      }
      changes.push_back({write.key, before[i], after[i]});
    }
    add_view_rows(batch_, frame, changes, program);
    if (last_ && now_ != frame.now()) put_time();
    now_ = frame.now();
    for (size_t i = 0; i < n; ++i)
      pending_.put(frame.writes[i].key, std::move(after[i]), frame.writes[i].before == 0);
    last_ = frame.seq;
    link_ = link;
    return batch_.bytes() + pending_.bytes() >= limit_ ? flush() : Result<void>{};
  }

  // Waits for the previous batch, then starts applying this one in the background.
  Result<void> flush() {
    TRY_OK(wait());
    if (last_ == 0) return {};
    limit_ = kBatchBytes;
    put_time();
    batch_.put(layout::kLink, layout::link_value(last_, link_));
    std::swap(applying_, batch_);
    std::rotate(cells_.begin(), cells_.end() - 1, cells_.end());
    pending_.clear();
    Task work = [this, last = std::exchange(last_, 0)] {
      applying_cells_.add_rows(applying_);
      return rows_.load(sorter_.in_order(applying_), last);
    };
    if (beside_) {
      waiting_ = beside_(std::move(work));
      return {};
    }
    TRY_OK(work());
    return wait();
  }

  Result<void> wait() {
    Result<void> done;
    if (waiting_) done = std::exchange(waiting_, {})();
    applying_.clear();
    return done;
  }

  ~Tail() {
    if (waiting_) (void)waiting_().has_value();
  }

 private:
  void put_time() { batch_.put(layout::time_row(now_), ordered64(last_)); }
  Result<Cell> read(const Key& key) {
    const uint64_t hash = quick_hash(key);
    for (const Cells& cells : cells_)
      if (const Cell* cell = cells.find(hash, key)) return *cell;
    TRY(auto row, rows_.get(layout::cell_row(key)));
    return row ? layout::parse_cell(*row) : Cell{};
  }
  Rows& rows_;
  std::vector<Cell> before_, after_;
  std::vector<Change> changes_;
  std::unordered_map<std::string, const Program*> programs_;
  const Beside& beside_;
  // Cells of the current batch, of the batch being applied, and of a few earlier ones, which then
  // need not be read back from the rows.
  std::array<Cells, 4> cells_;
  Cells &pending_ = cells_[0], &applying_cells_ = cells_[1];
  Sorter sorter_;
  RowBatch batch_, applying_;
  Task waiting_;
  size_t limit_ = kFirstBatchBytes;
  Seq last_ = 0;
  Digest link_{};  // of frame last_
  Time now_ = 0;
};

// Rows that applied another frame with this number belong to another journal, or the journal was
// replaced: a silent reset would hide it.
Result<bool> check_rows_link(const std::optional<Bytes>& row, const Digest& own, Seq seq) {
  std::optional<Digest> applied = row ? layout::parse_link(*row, seq) : std::nullopt;
  if (!applied || *applied == own) return true;
  return fail(Code::corrupt, "ROWS_DIFFER",
              fmt::format("the rows have applied another frame {} than the journal holds: they "
                          "belong to another journal. Find out which of the two is right. If the "
                          "journal is, delete the rows folder and start again",
                          seq));
}

// Of the newest frame. When the journal has trimmed it, the rows know the time.
Result<Time> time_of_last(const Journal& journal, const Rows& rows, Seq last) {
  if (last == 0) return 0;
  if (last < journal.first()) return layout::newest_time(*rows.snapshot());
  TRY(Bytes entry, journal.get(last));
  TRY(Sealed sealed, unseal(entry));
  TRY(Frame newest, decode_frame(last, sealed.body));
  return newest.now();
}

// Checks that the rows can be brought up to date with this journal. Returns true when they were
// deleted first, because the version of a view has changed.
Result<bool> prepare_rows(const Journal& journal, Rows& rows,
                          std::span<const Program* const> programs, Seq last) {
  const Bytes views = views_of(programs);
  TRY(auto known, rows.get(kViewsRow));
  const bool stale = rows.applied() > 0 && (!known || *known != views);
  // Rows hold only what the journal had made durable before.
  if (rows.applied() > last)
    return fail(Code::corrupt, "JOURNAL_LOST",
                fmt::format("the rows hold the frames up to {} and the journal ends at {}: it has "
                            "lost acknowledged frames. {}",
                            rows.applied(), last, kLossRemedy));
  if (stale && journal.first() > 1)
    return fail(Code::unsupported, "VIEWS_CHANGED",
                fmt::format("the rows were derived by another version of the program ({}, now {}), "
                            "and the journal begins at frame {}, so that they cannot be derived "
                            "again: use the version that wrote them",
                            known ? *known : "unknown", views, journal.first()));
  if (stale) TRY_OK(rows.reset());
  if (rows.applied() + 1 < journal.first() && last > 0)
    return fail(Code::corrupt, "ROWS_TOO_OLD",
                fmt::format("rows stand at frame {} and the journal begins at {}: restore the rows "
                            "from a checkpoint with `pawl restore`",
                            rows.applied(), journal.first()));
  if (stale || !known) {
    RowBatch batch;
    batch.put(kViewsRow, views);
    TRY_OK(rows.apply(batch, rows.applied()));
  }
  return stale;
}

}  // namespace

Result<Replayed> replay(const Journal& journal, Rows& rows,
                        std::span<const Program* const> programs, const Progress& progress,
                        const Beside& beside) {
  Replayed out;
  out.last = journal.last();
  TRY(out.rebuilt, prepare_rows(journal, rows, programs, out.last));
  const Seq from = rows.applied() + 1;
  // Starts one entry earlier if there is one, to check the link that the first replayed frame
  // holds.
  Seq start = from > journal.first() ? from - 1 : from;
  TRY(std::optional<Bytes> applied_link, rows.get(layout::kLink));
  std::optional<Digest> link;
  if (start == 1)
    link = Digest{};
  else if (start == from && applied_link)  // the entry before is trimmed
    link = layout::parse_link(*applied_link, from - 1);
  Tail tail(rows, programs, beside);
  Frame frame;
  TRY_OK(journal.read(start, [&](Seq seq, BytesView entry) -> Result<bool> {
    TRY(Sealed sealed, unseal(entry));
    if (link && sealed.before != *link)
      return fail(Code::corrupt, "CHAIN_BROKEN",
                  fmt::format("frame {} does not follow frame {}: the journal was changed; restore "
                              "it with `pawl restore`",
                              seq, seq - 1));
    link = sealed.own;
    if (seq < from) return check_rows_link(applied_link, sealed.own, seq);
    TRY_OK(decode_outcome(seq, sealed.body, frame));
    TRY_OK(tail.add(frame, *link));
    if (++out.frames % 65536 == 0 && progress) progress(seq, out.last);
    return true;
  }));
  TRY_OK(tail.flush());
  TRY_OK(tail.wait());
  if (!link && out.last > 0)
    return fail(Code::corrupt, "LINK_UNKNOWN",
                fmt::format("neither the journal nor the rows know the link of frame {}: restore "
                            "a newer checkpoint",
                            out.last));
  if (link) out.link = *link;
  TRY(out.last_time, time_of_last(journal, rows, out.last));
  return out;
}

}  // namespace pawl
