#include "kernel/turn.h"

#include <map>

#include "kernel/overlay_scan.h"

namespace pawl {

void Turn::enter(const Input& input, std::shared_ptr<void>& scratch, uint32_t strand) {
  strand_ = strand;
  stamp_ = input.stamp;
  caller_ = input.caller;
  dice_.emplace(stamp_.dice);
  scratch_ = &scratch;
  if (scratches_.size() <= strand) scratches_.resize(strand + 1);
  scratches_[strand] = &scratch;
  asked_.clear();
  refusal_.reset();
  answer_with_.clear();
}

void Turn::reset() {
  newest_.clear();
  read_at_.clear();
  ops_.clear();
  reads_.clear();
  notes_.clear();
  note_strands_.clear();
  parents_.clear();
  scratches_.clear();
  strand_ = 0;
  asked_.clear();
  refusal_.reset();
  answer_with_.clear();
}

Result<Cell> Turn::original(BytesView key) {
  if (size_t at = read_at_.find(key); at != kNone) return reads_[at].cell;
  TRY(Cell cell, cells_.current(key));
  remember(key, cell);
  return cell;
}

void Turn::remember(BytesView key, const Cell& cell) {
  reads_.push_back({Key(key), cell});
  read_at_.set(reads_.size() - 1);
}

Result<Cell> Turn::read(BytesView key) {
  if (size_t at = newest_.find(key); at != kNone) {
    const Op& op = ops_[at];
    if (!op.value) return Cell{};
    return Cell{kOwnWrite, op.value};
  }
  return original(key);
}

Result<void> Turn::scan(BytesView prefix, const Visit& visit, BytesView from) {
  return scan_unvalidated(
      prefix,
      [&](BytesView key, const Cell& cell) {
        validate_at_commit(key, cell);
        return visit(key, cell);
      },
      from);
}

void Turn::validate_at_commit(BytesView key, const Cell& cell) {
  if (cell.version != kOwnWrite && read_at_.find(key) == kNone) remember(key, cell);
}

std::map<Key, Cell> Turn::own(BytesView prefix, BytesView from) const {
  std::map<Key, Cell> out;
  newest_.each([&](size_t at) {
    const Op& op = ops_[at];
    BytesView key = op.key;
    if (!key.starts_with(prefix) || key < from) return;
    out[Key(key)] = op.value ? Cell{kOwnWrite, op.value} : Cell{};
  });
  return out;
}

void Turn::each_own_write(BytesView prefix,
                          const std::function<void(BytesView, const Cell&)>& visit) const {
  for (const auto& [key, cell] : own(prefix, {}))
    visit(key, cell);
}

Result<void> Turn::scan_unvalidated(BytesView prefix, const Visit& visit, BytesView from) {
  return scan_with_overlay(own(prefix, from), visit, [&](const VisitCell& stored) {
    return cells_.scan_current(prefix, stored, from);
  });
}

void Turn::each_note(const std::function<void(BytesView)>& visit) const {
  for (size_t i = 0; i < notes_.size(); ++i)
    if (note_strands_[i] != kUndone) visit(notes_[i]);
}

void Turn::amend_notes(const std::function<void(Bytes&)>& amend) {
  for (size_t i = 0; i < notes_.size(); ++i)
    if (note_strands_[i] != kUndone) amend(notes_[i]);
}

void Turn::each_waiting(const std::function<void(const std::shared_ptr<void>&)>& visit) const {
  for (size_t i = 0; i < scratches_.size(); ++i)
    if (i != strand_ && scratches_[i] && *scratches_[i]) visit(*scratches_[i]);
}

void Turn::put(Key key, StoredPtr value, EffectPtr effect) {
  size_t before = newest_.find(key);
  ops_.push_back({std::move(key), std::move(value), before, std::move(effect), strand_});
  newest_.set(ops_.size() - 1);
}

void Turn::write(BytesView key, Bytes value, Decoded decoded) {
  put(Key(key), std::make_shared<const Stored>(std::move(value), std::move(decoded)), nullptr);
}

void Turn::write_new(BytesView key, Bytes value) {
  if (newest_.find(key) == kNone && read_at_.find(key) == kNone) remember(key, {});
  write(key, std::move(value));
}

void Turn::erase(BytesView key) { put(Key(key), nullptr, nullptr); }

void Turn::open(Effect effect) {
  CHECK((effect.to == To::shard) == (effect.address != nullptr));
  auto shared = std::make_shared<const Effect>(std::move(effect));
  put(effect_key(shared->id), std::make_shared<const Stored>(encode(*shared), shared), shared);
}

void Turn::ask(Effect effect) {
  CHECK(effect.to != To::shard);  // what another shard does survives a crash; an ask does not
  asked_.push_back(std::make_shared<const Effect>(std::move(effect)));
}

void Turn::withdraw(std::string_view effect_id) {
  Key key = effect_key(effect_id);
  auto cell = read(key);
  if (!cell || !cell->exists()) return;
  auto effect = cell->as<Effect>(decode_effect);
  CHECK(effect);
  put(std::move(key), nullptr, std::move(*effect));
}

bool Turn::descends(uint32_t strand, uint32_t from) const {
  while (strand > from)
    strand = parents_[strand - 1];
  return strand == from;
}

size_t Turn::last_not_undone(size_t at) const {
  while (at != kNone && ops_[at].strand == kUndone)
    at = ops_[at].before;
  return at;
}

void Turn::rewind(Mark mark) {
  if (strand_ != 0) return undo(strand_, mark);
  while (ops_.size() > mark.ops) {
    const Op& op = ops_.back();
    if (op.strand != kUndone) {
      if (size_t before = last_not_undone(op.before); before == kNone)
        newest_.erase(op.key);
      else
        newest_.set(before);
    }
    ops_.pop_back();
  }
  notes_.resize(std::min(notes_.size(), mark.notes));
  note_strands_.resize(notes_.size());
}

void Turn::undo(uint32_t strand, Mark mark) {
  for (size_t i = ops_.size(); i-- > mark.ops;) {
    Op& op = ops_[i];
    if (op.strand == kUndone || !descends(op.strand, strand)) continue;
    op.strand = kUndone;
    op.value.reset();
    op.effect.reset();
    if (newest_.find(op.key) != i) continue;  // another strand wrote it since: that write stays
    if (size_t before = last_not_undone(op.before); before == kNone)
      newest_.erase(op.key);
    else
      newest_.set(before);
  }
  for (size_t i = mark.notes; i < notes_.size(); ++i)
    if (note_strands_[i] != kUndone && descends(note_strands_[i], strand))
      note_strands_[i] = kUndone;
}

std::vector<Bytes> Turn::take_notes() {
  std::vector<Bytes> out = std::move(notes_);
  size_t kept = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (note_strands_[i] == kUndone) continue;
    if (kept != i) out[kept] = std::move(out[i]);
    ++kept;
  }
  out.resize(kept);
  return out;
}

}  // namespace pawl
