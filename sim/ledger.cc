#include "sim/ledger.h"

namespace pawl::sim {

Key account(std::string_view name) { return key({"ledger", "account", name}); }
Key settled(std::string_view effect) { return key({"ledger", "settled", effect}); }

// The number in a cell; `absent` when the cell does not exist. An account without a cell holds
// kOpening.
static Result<int64_t> amount(Turn& turn, BytesView key, int64_t absent) {
  TRY(Cell cell, turn.read(key));
  return cell.exists() ? std::stoll(std::string(cell.value())) : absent;
}

// Moves between two accounts; the total never changes.
static Result<void> move(Turn& turn, std::string_view from, std::string_view to, int64_t sum) {
  if (from == to) return {};
  TRY(int64_t a, amount(turn, account(from), kOpening));
  TRY(int64_t b, amount(turn, account(to), kOpening));
  if (a < sum) return fail(Code::invalid, "POOR", "the account does not hold that much");
  turn.write(account(from), std::to_string(a - sum));
  turn.write(account(to), std::to_string(b + sum));
  turn.note("moved " + std::to_string(sum));
  return {};
}

namespace {
// The body of every command. A verb uses what it needs; `withdraw` has the id of an effect in
// `from`.
struct Order {  // body: from, to, sum
  std::string from, to;
  int64_t sum;
};
Order read_order(BytesView body) {
  Reader r(body);
  Order o;
  o.from = r.str();
  o.to = r.str();
  o.sum = r.sint();
  return o;
}
}  // namespace

// Counts the receipt. A receipt that is refused still settles its effect, so it counts; one that
// fails undoes the turn, and does not. The scratch holds the order of an `ask`, whose transfer
// happens only now.
static Result<Bytes> take_receipt(Turn& turn, const Input& input) {
  Key counter = settled(input.settles);
  TRY(int64_t n, amount(turn, counter, 0));
  turn.write(counter, std::to_string(n + 1));
  if (input.body == "refuse") {
    turn.refuse({Code::conflict, "REFUSED", "settled, and refused"});
    return Bytes();
  }
  if (input.body == "fail") return fail(Code::unavailable, "FAILED", "the receipt failed");
  if (turn.scratch()) {
    auto order = std::static_pointer_cast<Order>(turn.scratch());
    TRY_OK(move(turn, order->from, order->to, order->sum));
  }
  return Bytes("settled");
}

Result<Bytes> Ledger::run(Turn& turn, const Input& input) const {
  if (!input.settles.empty()) return take_receipt(turn, input);
  Order order = read_order(input.body);
  if (input.verb == "move") {
    TRY_OK(move(turn, order.from, order.to, order.sum));
    return Bytes("moved");
  }
  if (input.verb == "fail") {
    turn.write(account(order.from), "77");  // creates money unless the rewind undoes it
    return fail(Code::invalid, "ON_PURPOSE", "everything above is undone");
  }
  if (input.verb == "savepoint") {
    TRY_OK(move(turn, order.from, order.to, order.sum));
    auto mark = turn.mark();
    turn.write(account(order.from), "1000000");
    turn.open({"undone-" + turn.dice().uuid4(), To::clock, "ledger", "t", "", turn.now(), ""});
    turn.rewind(mark);
    return Bytes("moved");
  }
  if (input.verb == "ask") {
    turn.scratch() = std::make_shared<Order>(order);
    // Reading here makes a change by another turn before the receipt a conflict.
    TRY_OK(amount(turn, account(order.from), kOpening));
    turn.ask({"ask-" + turn.dice().uuid4(), To::member, "ledger", "t", "m", 0,
              std::to_string(turn.token())});
    return Bytes();
  }
  if (input.verb == "read") {
    TRY(int64_t n, amount(turn, account(order.from), kOpening));
    return std::to_string(n);
  }
  // Effects that leave after the commit. With "-later" the caller is answered when the effect is
  // settled.
  static constexpr std::pair<std::string_view, To> kinds[] = {
      {"timer", To::clock}, {"job", To::worker}, {"send", To::cell}};
  for (auto [verb, to] : kinds) {
    if (input.verb != verb && input.verb != std::string(verb) + "-later") continue;
    TRY_OK(move(turn, order.from, order.to, order.sum));
    std::string id = std::string(verb) + "-" + turn.dice().uuid4();
    turn.open({id, to, "ledger", "t", "deliver", turn.now() + order.sum * kSecond, "body"});
    if (input.verb != verb) turn.answer_later(id);
    return id;
  }
  if (input.verb == "withdraw") {
    turn.withdraw(order.from);
    return Bytes("withdrawn");
  }
  return fail(Code::invalid, "UNKNOWN_VERB", input.verb);
}

bool Ledger::keeps_history(BytesView key) const {
  return key.starts_with(prefix({"ledger", "account"}));
}

// One row for each cell, by its value, and one for each note: enough to see a row that replay
// forgets.
void Ledger::view(const Committed& frame, ViewRows& rows) const {
  for (const Change& c : frame.changes) {
    if (c.before.exists()) rows.erase(Bytes(c.before.value()).append("/").append(c.key));
    if (c.after.exists())
      rows.put(Bytes(c.after.value()).append("/").append(c.key), ordered64(frame.seq));
  }
  for (size_t i = 0; i < frame.notes.size(); ++i)
    rows.put("note/" + ordered64(frame.seq) + ordered64(i), frame.notes[i]);
}

}  // namespace pawl::sim
