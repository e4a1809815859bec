#pragma once
// A turn is the unit of change: inputs go in, a program runs, and either one frame is committed or
// nothing happened. A turn holds no locks. It remembers which version of each cell it read, and the
// commit fails `conflict` if any of them has moved.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dice.h"
#include "kernel/effect.h"
#include "kernel/input.h"

namespace pawl {

// The kernel's current cells, as a turn sees them: committed cells, durable or not yet.
class CellReader {
 public:
  virtual ~CellReader() = default;
  virtual Result<Cell> current(BytesView key) const = 0;
  virtual Result<void> scan_current(BytesView prefix,
                                    const std::function<bool(BytesView key, const Cell&)>& visit,
                                    BytesView from) const = 0;
};

// Maps keys to positions in a list of items that have a `key`. Most turns touch few keys, so the
// first kFew are compared one by one; later ones go into a hash table.
template <class Item>
class KeyIndex {
 public:
  static constexpr size_t kNone = ~size_t{0};
  explicit KeyIndex(const std::vector<Item>& items) : items_(items) {}
  size_t find(BytesView key) const {
    const size_t* at = const_cast<KeyIndex*>(this)->place_of(key);
    return at ? *at : kNone;
  }
  // Makes `place` the position of its item's key.
  void set(size_t place) {
    BytesView key = items_[place].key;
    if (size_t* at = place_of(key))
      *at = place;
    else if (few_.size() < kFew && many_.empty())
      few_.push_back(place);
    else
      many_.emplace(hash(key), place);
  }
  void erase(BytesView key) {
    std::erase_if(few_, [&](size_t place) { return items_[place].key == key; });
    auto [from, to] = many_.equal_range(hash(key));
    for (; from != to; ++from)
      if (items_[from->second].key == key) return void(many_.erase(from));
  }
  void clear() {
    few_.clear();
    many_.clear();
  }
  template <class F>
  void each(F&& visit) const {
    for (size_t place : few_)
      visit(place);
    for (const auto& [hash, place] : many_)
      visit(place);
  }
  size_t size() const { return few_.size() + many_.size(); }

 private:
  static constexpr size_t kFew = 12;
  static size_t hash(BytesView key) { return std::hash<BytesView>{}(key); }
  size_t* place_of(BytesView key) {
    for (size_t& place : few_)
      if (items_[place].key == key) return &place;
    if (many_.empty()) return nullptr;
    auto [from, to] = many_.equal_range(hash(key));
    for (; from != to; ++from)
      if (items_[from->second].key == key) return &from->second;
    return nullptr;
  }
  const std::vector<Item>& items_;
  std::vector<size_t> few_;
  std::unordered_multimap<size_t, size_t> many_;
};

class Turn {
 public:
  explicit Turn(const CellReader& cells) : cells_(cells) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Returns the cell as this turn sees it, its own writes included. An absent cell has version 0; a
  // cell that this turn wrote has version kOwnWrite.
  static constexpr Seq kOwnWrite = ~Seq{0};
  Result<Cell> read(BytesView key);
  // Returns the decoded form, cached beside the cell or made by `decode(BytesView) -> Result<T>`.
  // Null when the cell does not exist.
  template <class T, class Decode>
  Result<std::shared_ptr<const T>> read_as(BytesView key, Decode&& decode);
  // Visits the cells whose key begins with `prefix`, in key order, own writes included, starting at
  // the first key not less than `from`, until `visit` returns false. Reads rows: use it for
  // operators' verbs, not for steps.
  using Visit = std::function<bool(BytesView key, const Cell&)>;
  Result<void> scan(BytesView prefix, const Visit& visit, BytesView from = {});
  // The same, but the visited cells are not validated at commit: other turns may change them in the
  // meantime. validate_at_commit() adds single cells to the validation.
  Result<void> scan_unvalidated(BytesView prefix, const Visit& visit, BytesView from = {});
  void validate_at_commit(BytesView key, const Cell& cell);
  // Visits this turn's own writes under `prefix`, in key order. Erased cells are visited as absent.
  void each_own_write(BytesView prefix,
                      const std::function<void(BytesView key, const Cell&)>& visit) const;

  void write(BytesView key, Bytes value, Decoded decoded = {});
  // The same for a key that cannot exist yet, for example one with a fresh id: skips the read of
  // the previous version.
  void write_new(BytesView key, Bytes value);
  void erase(BytesView key);

  // `open`: the effect leaves after this turn is durable, and survives a crash.
  // `ask`:  the effect leaves now and the turn stays open for its receipt; a crash forgets both.
  // Either way the receipt comes back to the same program as its next input.
  void open(Effect effect);
  void ask(Effect effect);
  // Cancels an open effect. Does nothing when the effect is not open.
  void withdraw(std::string_view effect_id);

  // rewind() undoes everything that this input, and the inputs that joined it while it waited, have
  // written, opened, withdrawn and noted since mark(). Changes by other inputs of the turn stay.
  struct Mark {
    size_t ops, notes;
  };
  Mark mark() const { return {ops_.size(), notes_.size()}; }
  void rewind(Mark mark);

  // Adds a fact for the audit trail. The kernel keeps it in the frame and never reads it.
  void note(Bytes fact) {
    notes_.push_back(std::move(fact));
    note_strands_.push_back(strand_);
  }
  // Visits the notes of this turn so far, in order.
  void each_note(const std::function<void(BytesView fact)>& visit) const;
  void amend_notes(const std::function<void(Bytes& fact)>& amend);

  // Commits the turn's changes but answers the caller with this error.
  void refuse(Error error) { refusal_ = std::move(error); }
  // Defers the caller's answer to the turn that settles `effect_id`.
  void answer_later(std::string effect_id) { answer_with_ = std::move(effect_id); }

  // Timestamp of the input that began this turn.
  Time began_at() const { return began_at_; }
  // Timestamp and dice of the input that is running now. Dice advance with every draw.
  Time now() const { return stamp_.now; }
  Dice& dice() { return *dice_; }
  const Caller& caller() const { return caller_; }
  // Identifies the waiting input of this open turn. A command whose `joins` is this token runs
  // inside the turn.
  uint64_t token() const { return token_for(strand_); }
  // Program state between an ask() and its receipt, dropped with the turn. Each input that joins
  // has its own.
  std::shared_ptr<void>& scratch() { return *scratch_; }
  // Visits the scratch state of the turn's other waiting inputs, in the order they arrived.
  void each_waiting(const std::function<void(const std::shared_ptr<void>& scratch)>& visit) const;

 private:
  friend class Kernel;
  struct Op {  // one write
    Key key;
    StoredPtr value;   // null: erase
    size_t before;     // position of this turn's previous write of the key, or kNone
    EffectPtr effect;  // the effect that this write opens or closes; null for other cells
    uint32_t strand;   // the input that wrote it; kUndone after a rewind
  };
  struct Read {
    Key key;
    Cell cell;
  };

  // True when another turn has written the cell since this turn began. Programs must not use it: a
  // turn that `pawl verify` runs again begins at another seq.
  bool written_since_begin(const Cell& cell) const {
    return cell.version != kOwnWrite && cell.version > began_;
  }
  void remember(BytesView key, const Cell& cell);
  std::map<Key, Cell> own(BytesView prefix, BytesView from) const;  // erased cells as absent
  void put(Key key, StoredPtr value, EffectPtr effect);
  Result<Cell> original(BytesView key);  // as it was before this turn; validated at commit
  void enter(const Input& input, std::shared_ptr<void>& scratch, uint32_t strand);
  void reset();  // empties the turn but keeps its memory for the next one

  // A strand is one input of the turn. Strand 0 began the turn; every other strand joined it under
  // a strand that waits.
  uint32_t new_strand(uint32_t under) {
    parents_.push_back(under);
    return static_cast<uint32_t>(parents_.size());
  }
  bool descends(uint32_t strand, uint32_t from) const;  // true also when both are the same
  uint64_t token_for(uint32_t strand) const { return token_ + 2 * strand; }
  void leave(uint32_t strand) { scratches_[strand] = nullptr; }
  // Undoes what the strand and its descendants did after the mark. Positions in ops_ stay valid,
  // because other strands hold marks too.
  void undo(uint32_t strand, Mark mark);
  size_t last_not_undone(size_t at) const;  // follows Op::before
  std::vector<Bytes> take_notes();

  static constexpr size_t kNone = KeyIndex<Op>::kNone;
  static constexpr uint32_t kUndone = ~uint32_t{0};

  const CellReader& cells_;
  uint64_t token_ = 0;
  Seq began_ = 0;  // seq of the last frame before this turn
  Time began_at_ = 0;
  uint32_t strand_ = 0;
  std::vector<uint32_t> parents_;  // parents of strands 1, 2, ...
  Stamp stamp_{};
  Caller caller_;
  std::optional<Dice> dice_;
  std::shared_ptr<void>* scratch_ = nullptr;
  std::vector<std::shared_ptr<void>*> scratches_;  // by strand; null when it is answered

  std::vector<Op> ops_;
  KeyIndex<Op> newest_{ops_};  // the last op of each written key
  std::vector<Read> reads_;
  KeyIndex<Read> read_at_{reads_};
  std::vector<Bytes> notes_;
  std::vector<uint32_t> note_strands_;  // the strand of each note; kUndone as for ops
  std::vector<EffectPtr> asked_;        // since the program was last called
  std::optional<Error> refusal_;
  std::string answer_with_;
};

template <class T, class Decode>
Result<std::shared_ptr<const T>> Turn::read_as(BytesView key, Decode&& decode) {
  TRY(Cell cell, read(key));
  return cell.as<T>(decode);
}

}  // namespace pawl
