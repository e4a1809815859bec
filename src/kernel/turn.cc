#include "kernel/turn.h"

#include <map>

namespace pawl {

size_t KeyIndex::find(BytesView key) const {
  for (const auto& [k, place] : few_)
    if (k == key) return place;
  if (many_.empty()) return kNone;
  auto it = many_.find(key);
  return it == many_.end() ? kNone : it->second;
}

void KeyIndex::set(BytesView key, size_t place) {
  for (auto& [k, old] : few_)
    if (k == key) {
      old = place;
      return;
    }
  if (few_.size() < kFew && many_.empty()) {
    few_.emplace_back(key, place);
    return;
  }
  if (auto it = many_.find(key); it != many_.end()) it->second = place;
  else many_.emplace(key, place);
}

void KeyIndex::erase(BytesView key) {
  std::erase_if(few_, [&](const auto& pair) { return pair.first == key; });
  if (auto it = many_.find(key); it != many_.end()) many_.erase(it);
}

void Turn::enter(const Input& input, std::shared_ptr<void>& scratch) {
  stamp_ = input.stamp;
  caller_ = input.caller;
  dice_.emplace(stamp_.dice);
  scratch_ = &scratch;
  asked_.clear();
  refusal_.reset();
  answer_with_.clear();
}

Result<Cell> Turn::original(BytesView key) {
  if (size_t at = read_at_.find(key); at != KeyIndex::kNone) return reads_[at].cell;
  TRY(Cell cell, cells_.current(key));
  remember(key, cell);
  return cell;
}

void Turn::remember(BytesView key, const Cell& cell) {
  reads_.push_back({Key(key), cell});
  read_at_.set(reads_.back().key, reads_.size() - 1);
}

Result<Cell> Turn::read(BytesView key) {
  if (size_t at = newest_.find(key); at != KeyIndex::kNone) {
    const Op& op = ops_[at];
    if (!op.value) return Cell{};
    return Cell{kOwn, op.value};
  }
  return original(key);
}

Result<void> Turn::scan(BytesView prefix, const std::function<bool(BytesView, const Cell&)>& visit, BytesView from) {
  std::map<Key, Cell> own;
  newest_.each([&](BytesView key, size_t at) {
    if (!key.starts_with(prefix) || key < from) return;
    const Op& op = ops_[at];
    own[Key(key)] = op.value ? Cell{kOwn, op.value} : Cell{};
  });
  auto next = own.begin();
  bool go = true;
  auto own_until = [&](const BytesView* limit) {
    while (go && next != own.end() && (!limit || next->first < *limit)) {
      if (next->second.exists()) go = visit(next->first, next->second);
      ++next;
    }
  };
  TRY_OK(cells_.scan_current(prefix, [&](BytesView key, const Cell& cell) {
    own_until(&key);
    if (!go) return false;
    if (next != own.end() && next->first == key) {
      if (next->second.exists()) go = visit(next->first, next->second);
      ++next;
      return go;
    }
    if (read_at_.find(key) == KeyIndex::kNone) remember(key, cell);
    return go = visit(key, cell);
  }, from));
  own_until(nullptr);
  return {};
}

void Turn::put(Key key, StoredPtr value, std::optional<Effect> effect) {
  size_t before = newest_.find(key);
  ops_.push_back({std::move(key), std::move(value), before, std::move(effect)});
  // The index keeps the first of equal keys, which is the last to go at a rewind.
  newest_.set(ops_.back().key, ops_.size() - 1);
}

void Turn::write(BytesView key, Bytes value, Decoded decoded) {
  put(Key(key), std::make_shared<const Stored>(std::move(value), std::move(decoded)), std::nullopt);
}

void Turn::erase(BytesView key) { put(Key(key), nullptr, std::nullopt); }

void Turn::open(Effect effect) {
  Key key = effect_key(effect.id);
  auto bytes = std::make_shared<const Stored>(encode(effect));
  put(std::move(key), std::move(bytes), std::move(effect));
}

void Turn::ask(Effect effect) { asked_.push_back(std::move(effect)); }

void Turn::withdraw(std::string_view effect_id) {
  Key key = effect_key(effect_id);
  auto cell = read(key);
  if (!cell || !cell->exists()) return;
  auto effect = decode_effect(cell->value());
  CHECK(effect);
  put(std::move(key), nullptr, std::move(*effect));
}

void Turn::rewind(Mark mark) {
  while (ops_.size() > mark.ops) {
    const Op& op = ops_.back();
    if (op.before == KeyIndex::kNone) newest_.erase(op.key);
    else newest_.set(op.key, op.before);
    ops_.pop_back();
  }
  notes_.resize(std::min(notes_.size(), mark.notes));
}

}  // namespace pawl
