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

// The kernel's current cells, as a turn sees them: committed, whether durable yet or not.
class CellReader {
 public:
  virtual ~CellReader() = default;
  virtual Result<Cell> current(BytesView key) const = 0;
  virtual Result<void> scan_current(BytesView prefix,
                                    const std::function<bool(BytesView key, const Cell&)>& visit,
                                    BytesView from) const = 0;
};

// Where each key stands in a list of things that have a `key`. A turn touches few keys: they are
// compared; many are hashed.
template <class Item>
class KeyIndex {
 public:
  static constexpr size_t kNone = ~size_t{0};
  explicit KeyIndex(const std::vector<Item>& items) : items_(items) {}
  size_t find(BytesView key) const {
    const size_t* at = const_cast<KeyIndex*>(this)->place_of(key);
    return at ? *at : kNone;
  }
  // The item at `place` stands for its key from now on.
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
  void clear() { few_.clear(), many_.clear(); }
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

  // The cell as this turn sees it: its own writes first. Absent cells read as version 0; a cell
  // written by this turn and by nobody before reads as version kOwnWrite.
  static constexpr Seq kOwnWrite = ~Seq{0};
  Result<Cell> read(BytesView key);
  // The decoded form: cached beside the cell, or made by `decode(BytesView) -> Result<T>`. Null
  // pointer when the cell does not exist.
  template <class T, class Decode>
  Result<std::shared_ptr<const T>> read_as(BytesView key, Decode&& decode);
  // Visits the cells whose key begins with `prefix` in key order, own writes included, until
  // `visit` returns false, from the first key not before `from`. Costs a scan: for operators'
  // verbs, not for steps.
  using Visit = std::function<bool(BytesView key, const Cell&)>;
  Result<void> scan(BytesView prefix, const Visit& visit, BytesView from = {});
  // The same, but the turn does not stand on what it saw: others may change it before the commit.
  // What it is to stand on all the same it says.
  Result<void> scan_unvalidated(BytesView prefix, const Visit& visit, BytesView from = {});
  void validate_at_commit(BytesView key, const Cell& cell);
  // What this turn itself has written under `prefix`, in key order; what it has erased does not
  // exist.
  void each_own_write(BytesView prefix,
                      const std::function<void(BytesView key, const Cell&)>& visit) const;

  void write(BytesView key, Bytes value, Decoded decoded = {});
  // The same for a key that is new by construction: nobody looks whether it is there.
  void write_new(BytesView key, Bytes value);
  void erase(BytesView key);

  // `open`: the effect leaves after this turn is durable, and survives a crash.
  // `ask`:  the effect leaves now and the turn stays open for its receipt; a crash forgets both.
  // Either way the receipt comes back to the same program as its next input.
  void open(Effect effect);
  void ask(Effect effect);
  // Calls an open effect back. Withdrawing what is not open does nothing.
  void withdraw(std::string_view effect_id);

  // Everything written, opened, withdrawn and noted after mark() is undone by rewind(): by this
  // input and by those that joined while it waited. What others did in the same turn stays.
  struct Mark {
    size_t ops, notes;
  };
  Mark mark() const { return {ops_.size(), notes_.size()}; }
  void rewind(Mark mark);

  // A fact for the audit trail. Kept in the frame, read by nobody in the kernel.
  void note(Bytes fact) {
    notes_.push_back(std::move(fact));
    note_strands_.push_back(strand_);
  }
  // What this turn has noted so far, in order.
  void each_note(const std::function<void(BytesView fact)>& visit) const;
  void amend_notes(const std::function<void(Bytes& fact)>& amend);

  // Commit what was written, but answer the caller with this error.
  void refuse(Error error) { refusal_ = std::move(error); }
  // The caller's answer is not this turn's: it waits for the turn that settles `effect_id`.
  void answer_later(std::string effect_id) { answer_with_ = std::move(effect_id); }

  // Of the input that began this turn.
  Time began_at() const { return began_at_; }
  // Time and dice of the input that is running now; dice advance with every draw.
  Time now() const { return stamp_.now; }
  Dice& dice() { return *dice_; }
  const Caller& caller() const { return caller_; }
  // Names this turn while it is open, and which of its inputs waits: a command with joins ==
  // token() becomes part of it.
  uint64_t token() const { return token_for(strand_); }
  // What the program wants to remember between an ask and its receipt; forgotten with the turn.
  // Each input that joins has one of its own.
  std::shared_ptr<void>& scratch() { return *scratch_; }
  // What the other inputs of this turn remember while they wait, in the order in which they came.
  void each_waiting(const std::function<void(const std::shared_ptr<void>& scratch)>& visit) const;

 private:
  friend class Kernel;
  struct Op {  // one write, with what it replaced inside this turn
    Key key;
    StoredPtr value;   // null: erase
    size_t before;     // place of this turn's previous write of the key, or kNone
    EffectPtr effect;  // when the cell is an effect: what opened or closed
    uint32_t strand;   // the input that wrote it; kUndone when it was undone
  };
  struct Read {
    Key key;
    Cell cell;
  };

  // Whether others have written the cell since this turn began. Not for programs: a turn that is
  // run again begins later.
  bool written_since_begin(const Cell& cell) const {
    return cell.version != kOwnWrite && cell.version > began_;
  }
  void remember(BytesView key, const Cell& cell);
  std::map<Key, Cell> own(BytesView prefix, BytesView from) const;  // erased ones do not exist
  void put(Key key, StoredPtr value, EffectPtr effect);
  Result<Cell> original(BytesView key);  // as it was before this turn; remembered as read
  void enter(const Input& input, std::shared_ptr<void>& scratch, uint32_t strand);
  void reset();  // as new, but for memory that the next turn can use

  // Strands are numbered from 0, the input that began the turn; each other one joined under
  // another.
  uint32_t new_strand(uint32_t under) {
    return parents_.push_back(under), static_cast<uint32_t>(parents_.size());
  }
  bool descends(uint32_t strand, uint32_t from) const;  // or is the same
  uint64_t token_for(uint32_t strand) const { return token_ + 2 * strand; }
  void leave(uint32_t strand) { scratches_[strand] = nullptr; }  // it is over
  // Undoes what the strand and those under it did after the mark. Places stay: other strands have
  // marks too.
  void undo(uint32_t strand, Mark mark);
  size_t standing(size_t at) const;  // the last op of a chain that was not undone
  std::vector<Bytes> take_notes();

  static constexpr size_t kNone = KeyIndex<Op>::kNone;
  static constexpr uint32_t kUndone = ~uint32_t{0};

  const CellReader& cells_;
  uint64_t token_ = 0;
  Seq began_ = 0;  // the last frame before this turn
  Time began_at_ = 0;
  uint32_t strand_ = 0;
  std::vector<uint32_t> parents_;  // of strand 1, 2, ...
  Stamp stamp_{};
  Caller caller_;
  std::optional<Dice> dice_;
  std::shared_ptr<void>* scratch_ = nullptr;
  std::vector<std::shared_ptr<void>*> scratches_;  // by strand; null for those that are over

  std::vector<Op> ops_;
  KeyIndex<Op> newest_{ops_};  // of each key written: its last op
  std::vector<Read> reads_;
  KeyIndex<Read> read_at_{reads_};
  std::vector<Bytes> notes_;
  std::vector<uint32_t> note_strands_;  // whose each is; kUndone as for ops
  std::vector<EffectPtr> asked_;        // since the program was last entered
  std::optional<Error> refusal_;
  std::string answer_with_;
};

template <class T, class Decode>
Result<std::shared_ptr<const T>> Turn::read_as(BytesView key, Decode&& decode) {
  TRY(Cell cell, read(key));
  return cell.as<T>(decode);
}

}  // namespace pawl
