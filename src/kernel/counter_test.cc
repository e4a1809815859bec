// The verbs of Counter, the program that the kernel's tests run.

#include "kernel/test_kernel.h"

namespace pawl {

static Key cell_of(std::string_view user) { return key({"counter", user}); }

// The counter of one user: where it is, and its value before the turn.
struct Count {
  Key key;
  Cell cell;
  int64_t value;
};
using CountVerb = Result<Bytes> (*)(Turn& turn, const Input& input, const Count& count);

static Effect worker_effect(const std::string& id) {
  return {id, To::worker, "counter", "t", "q", 0, "work"};
}
static Effect member_effect(const std::string& id, const Turn& turn) {
  return {id, To::member, "counter", "t", "m", 0, std::to_string(turn.token())};
}

static Result<Bytes> add(Turn& turn, const Input& input, const Count& count) {
  std::string sum = std::to_string(count.value + std::stoll(input.body));
  turn.write(count.key, sum);
  turn.note("added " + input.body);
  return sum;
}

static Result<Bytes> get(Turn&, const Input&, const Count& count) {
  return Bytes(count.cell.value());
}

static Result<Bytes> erase(Turn& turn, const Input&, const Count& count) {
  turn.erase(count.key);
  return Bytes();
}

static Result<Bytes> write_and_fail(Turn& turn, const Input&, const Count& count) {
  turn.write(count.key, "999");
  return fail(Code::invalid, "NO", "no");
}

static Result<Bytes> open(Turn& turn, const Input& input, const Count&) {
  turn.open(worker_effect(input.body));
  return Bytes("opened");
}

static Result<Bytes> open_later(Turn& turn, const Input& input, const Count&) {
  turn.open(worker_effect(input.body));
  turn.answer_later(input.body);
  return Bytes();
}

static Result<Bytes> withdraw(Turn& turn, const Input& input, const Count&) {
  turn.withdraw(input.body);
  return Bytes();
}

static Result<Bytes> ask(Turn& turn, const Input& input, const Count& count) {
  turn.scratch() = std::make_shared<int64_t>(count.value);
  turn.ask(member_effect(input.body, turn));
  return Bytes();
}

static Result<Bytes> ask_by_rule(Turn& turn, const Input& input, const Count&) {
  TRY(Cell rule, turn.read(cell_of("rule")));
  turn.scratch() =
      std::make_shared<int64_t>(rule.exists() ? std::stoll(std::string(rule.value())) : 0);
  turn.ask(member_effect(input.body, turn));
  return Bytes();
}

static Result<Bytes> rewind(Turn& turn, const Input&, const Count& count) {
  turn.write(count.key, "1");
  auto mark = turn.mark();
  turn.write(count.key, "2");
  turn.open({"gone", To::worker, "counter", "t", "q", 0, ""});
  turn.note("gone");
  turn.rewind(mark);
  TRY(Cell now, turn.read(count.key));
  return Bytes(now.value());
}

static Result<Bytes> rewind_many(Turn& turn, const Input&, const Count&) {
  auto name = [&](int i) { return key({"counter", "many" + std::to_string(i)}); };
  for (int i = 0; i < 20; ++i)
    turn.write(name(i), "1");
  auto mark = turn.mark();
  for (int i = 0; i < 30; ++i)
    turn.write(name(i), "2");
  for (int i = 0; i < 10; ++i)
    turn.erase(name(i));
  turn.rewind(mark);
  turn.write(name(25), "3");
  std::string out;
  for (int i = 0; i < 30; ++i) {
    TRY(Cell one, turn.read(name(i)));
    out += one.exists() ? std::string(one.value()) : "-";
  }
  return out;
}

static Result<Bytes> write_new(Turn& turn, const Input&, const Count&) {
  auto mark = turn.mark();
  turn.write_new(cell_of("gone"), "1");
  turn.rewind(mark);
  turn.write_new(cell_of("kept"), "1");
  turn.write_new(cell_of("kept"), "2");
  TRY(Cell gone, turn.read(cell_of("gone")));
  TRY(Cell kept, turn.read(cell_of("kept")));
  return Bytes(gone.exists() ? "there" : kept.value());
}

static Result<Bytes> scan(Turn& turn, const Input&, const Count&) {
  std::string out;
  TRY_OK(turn.scan(prefix({"counter"}), [&](BytesView k, const Cell& c) {
    out += parts_of(k)[1] + "=" + std::string(c.value()) + " ";
    return true;
  }));
  return out;
}

static Result<Bytes> write_too_much(Turn& turn, const Input&, const Count& count) {
  turn.write(count.key, Bytes(17 << 20, 'x'));
  return Bytes();
}

static Result<Bytes> settle(Turn& turn, const Input& input, const Count& count) {
  if (input.body.starts_with("then ")) {
    const std::string next = input.body.substr(5);
    turn.open(worker_effect(next));
    turn.answer_later(next);
    return Bytes();
  }
  if (input.verb == "deliver" || input.body == "late-refused") {
    turn.refuse({Code::conflict, "REFUSED", "settled and refused"});
    return Bytes();
  }
  if (input.body == "fail") return fail(Code::unavailable, "RECEIPT_FAILED", "the receipt says no");
  int64_t n = count.value;
  if (turn.scratch()) n = *std::static_pointer_cast<int64_t>(turn.scratch());
  turn.write(count.key, std::to_string(n + 100));
  return "settled:" + std::to_string(n + 100);
}

Result<Bytes> Counter::run(Turn& turn, const Input& input) const {
  static constexpr std::pair<std::string_view, CountVerb> kVerbs[] = {
      {"add", add},
      {"get", get},
      {"erase", erase},
      {"fail", write_and_fail},
      {"open", open},
      {"open-later", open_later},
      {"withdraw", withdraw},
      {"ask", ask},
      {"ask-by-rule", ask_by_rule},
      {"rewind", rewind},
      {"rewind-many", rewind_many},
      {"new", write_new},
      {"scan", scan},
      {"large", write_too_much},
  };
  Key own = cell_of(input.caller.user);
  TRY(Cell cell, turn.read(own));
  const int64_t value = cell.exists() ? std::stoll(std::string(cell.value())) : 0;
  const Count count{own, cell, value};
  if (!input.settles.empty()) return settle(turn, input, count);
  for (const auto& [name, verb] : kVerbs)
    if (name == input.verb) return verb(turn, input, count);
  return fail(Code::invalid, "UNKNOWN_VERB", input.verb);
}

}  // namespace pawl
