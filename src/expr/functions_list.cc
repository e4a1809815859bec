// Functions on lists and maps, with and without a closure.

#include <cmath>
#include <unordered_map>

#include "expr/functions.h"

namespace pawl::expr {

Result<Value> fn_contains(Call& c) {
  TRY(bool found, is_in(c.args[1], c.args[0], c.run.arena, c.at));
  return value_of(found);
}

namespace {

// The items that a closure is called for: the elements of a list, the bytes of a text, or the
// members of a map. A map can only be counted: a closure that uses `#` of it fails.
struct Items {
  Value value;
  size_t size = 0;
};
Result<Items> items_of(Call& c) {
  const Value& v = c.args[0];
  if (v.kind == Kind::string) return Items{v, v.text.size()};
  if (v.kind == Kind::list || v.kind == Kind::map) return Items{v, size(v)};
  return c.bad("wants a list, got " + std::string(kind_name(v.kind)));
}
// Item `i` as a closure sees it.
Value item(const Items& items, size_t i) {
  if (items.value.kind == Kind::string)
    return value_of(int64_t{static_cast<unsigned char>(items.value.text[i])});
  return items.value.kind == Kind::list ? element(items.value, i) : Value{.kind = Kind::member};
}
// Item `i` as a value that the function uses itself; an error for a map.
Result<Value> readable_item(Call& c, const Items& items, size_t i) {
  if (items.value.kind == Kind::map)
    return c.bad("cannot take an element of a map; write keys(m) or values(m)");
  return item(items, i);
}

// Counts the elements for which the closure is true, up to `enough`.
Result<size_t> count_matching(Call& c, size_t enough) {
  TRY(Items list, items_of(c));
  size_t n = 0;
  for (size_t i = 0; i < list.size && n < enough; ++i) {
    TRY(bool yes, c.test(item(list, i)));
    n += yes;
  }
  return n;
}

// The first or last element for which the closure is true, or its index; nil when there is none.
Result<Value> find_matching(Call& c, bool from_end, bool index) {
  TRY(Items list, items_of(c));
  for (size_t step = 0; step < list.size; ++step) {
    size_t i = from_end ? list.size - 1 - step : step;
    TRY(bool yes, c.test(item(list, i)));
    if (yes) return index ? value_of(static_cast<int64_t>(i)) : readable_item(c, list, i);
  }
  return Value{};
}

// Reads the optional argument 'asc' or 'desc'.
Result<bool> descending(Call& c, size_t i) {
  if (c.args.size() <= i) return false;
  TRY(std::string_view order, c.text(i));
  if (order != "asc" && order != "desc") return c.bad("the order must be 'asc' or 'desc'");
  return order == "desc";
}

// Returns the indexes of `keys` in sorted order. The keys must be all numbers or all strings.
Result<std::vector<size_t>> sorted_order(Call& c, const List& keys, bool down) {
  for (const Value& k : keys) {
    if (keys.size() == 1) break;  // one key of any kind is sorted
    bool fits = keys[0].is_number() ? k.is_number()
                                    : keys[0].kind == Kind::string && k.kind == Kind::string;
    if (!fits) return c.bad("wants only numbers or only strings");
  }
  std::vector<size_t> order(keys.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  Arena& arena = c.run.arena;
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const Value &a = keys[down ? y : x], &b = keys[down ? x : y];
    arena.read(Arena::kElementBytes + std::min(a.text.size(), b.text.size()));
    return a.is_number() ? compare_numbers(a, b) < 0 : a.text < b.text;
  });
  return order;
}

}  // namespace

Result<Value> fn_all(Call& c) {
  TRY(Items list, items_of(c));
  for (size_t i = 0; i < list.size; ++i) {
    TRY(bool yes, c.test(item(list, i)));
    if (!yes) return value_of(false);
  }
  return value_of(true);
}
Result<Value> fn_none(Call& c) {
  TRY(size_t n, count_matching(c, 1));
  return value_of(n == 0);
}
Result<Value> fn_any(Call& c) {
  TRY(size_t n, count_matching(c, 1));
  return value_of(n > 0);
}
Result<Value> fn_one(Call& c) {
  TRY(size_t n, count_matching(c, 2));
  return value_of(n == 1);
}

Result<Value> fn_count(Call& c) {
  if (c.closure != kNone) {
    TRY(size_t n, count_matching(c, SIZE_MAX));
    return value_of(static_cast<int64_t>(n));
  }
  TRY(Items list, items_of(c));
  c.run.arena.read(list.size * Arena::kElementBytes);
  int64_t n = 0;
  for (size_t i = 0; i < list.size; ++i) {
    TRY(Value v, readable_item(c, list, i));
    if (v.kind != Kind::boolean) return c.bad("without a closure wants a list of booleans");
    n += v.is_true();
  }
  return value_of(n);
}

Result<Value> fn_filter(Call& c) {
  TRY(Items list, items_of(c));
  List out;
  for (size_t i = 0; i < list.size; ++i) {
    TRY(bool yes, c.test(item(list, i)));
    if (!yes) continue;
    TRY(Value v, readable_item(c, list, i));
    out.push_back(v);
  }
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_map(Call& c) {
  TRY(Items list, items_of(c));
  List out;
  out.reserve(list.size);
  for (size_t i = 0; i < list.size; ++i) {
    TRY(Value v, c.run.apply(c.closure, item(list, i)));
    out.push_back(v);
  }
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_find(Call& c) { return find_matching(c, false, false); }
Result<Value> fn_find_index(Call& c) { return find_matching(c, false, true); }
Result<Value> fn_find_last(Call& c) { return find_matching(c, true, false); }
Result<Value> fn_find_last_index(Call& c) { return find_matching(c, true, true); }

Result<Value> fn_sum(Call& c) {
  TRY(Items list, items_of(c));
  c.run.arena.read(list.size * Arena::kElementBytes);
  Value sum = value_of(int64_t{0});
  for (size_t i = 0; i < list.size; ++i) {
    TRY(Value v,
        c.closure == kNone ? readable_item(c, list, i) : c.run.apply(c.closure, item(list, i)));
    if (!v.is_number()) return c.bad("wants numbers, got " + std::string(kind_name(v.kind)));
    TRY(sum, arithmetic(Op::add, sum, v, c.run.arena, c.at));
  }
  return sum;
}

Result<Value> fn_group_by(Call& c) {
  TRY(Items list, items_of(c));
  std::vector<std::pair<std::string, List>> groups;
  std::unordered_map<std::string, size_t> group_of;  // name -> place in `groups`
  for (size_t i = 0; i < list.size; ++i) {
    TRY(Value v, readable_item(c, list, i));
    TRY(Value key, c.run.apply(c.closure, v));
    std::string name;
    append_text(name, key, c.run.arena);
    auto [it, is_new] = group_of.try_emplace(name, groups.size());
    if (is_new) groups.push_back({std::move(name), {}});
    groups[it->second].second.push_back(v);
    // Journals record where this limit is reached, so it counts as it always did.
    c.run.arena.spend(groups.size() / 8);
    if (c.run.arena.full()) return c.bad("too many groups");
  }
  Map out;
  for (auto& [name, items] : groups)
    out.push_back({c.run.arena.keep(std::move(name)), c.run.arena.keep(std::move(items))});
  Value map = c.run.arena.keep(std::move(out));
  map.keys_not_text = true;
  return map;
}

Result<Value> fn_sort_by(Call& c) {
  TRY(Items list, items_of(c));
  TRY(bool down, descending(c, 1));
  List items, keys, out;
  for (size_t i = 0; i < list.size; ++i) {
    TRY(Value item, readable_item(c, list, i));
    TRY(Value key, c.run.apply(c.closure, item));
    items.push_back(item);
    keys.push_back(key);
  }
  TRY(std::vector<size_t> order, sorted_order(c, keys, down));
  for (size_t i : order)
    out.push_back(items[i]);
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_sort(Call& c) {
  TRY(bool down, descending(c, 1));
  if (c.args[0].kind != Kind::list) return Value{};
  TRY(Value list, c.list(0));
  List keys, out;
  for (size_t i = 0; i < size(list); ++i)
    keys.push_back(element(list, i));
  TRY(std::vector<size_t> order, sorted_order(c, keys, down));
  for (size_t i : order)
    out.push_back(keys[i]);
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_reduce(Call& c) {
  TRY(Items list, items_of(c));
  size_t i = 0;
  Value acc;
  if (c.args.size() > 1) {
    acc = c.args[1];
  } else {
    if (!list.size) return c.bad("an empty list needs a start value");
    TRY(acc, readable_item(c, list, i++));
  }
  for (; i < list.size; ++i) {
    TRY(acc, c.run.apply(c.closure, item(list, i), acc));
  }
  return acc;
}

namespace {
// An element of a list or a byte of a string; a negative place counts from the end. Nil when there
// is none.
Value element_or_nil(const Value& from, double place) {
  double n = static_cast<double>(from.kind == Kind::string ? from.text.size()
                                 : from.kind == Kind::list ? size(from)
                                                           : 0);
  place = std::trunc(place) + (place < 0 ? n : 0);
  if (!(place >= 0 && place < n)) return {};
  size_t i = static_cast<size_t>(place);
  return from.kind == Kind::list ? element(from, i)
                                 : value_of(int64_t{static_cast<unsigned char>(from.text[i])});
}
}  // namespace

Result<Value> fn_first(Call& c) { return element_or_nil(c.args[0], 0); }
Result<Value> fn_last(Call& c) { return element_or_nil(c.args[0], -1); }

Result<Value> fn_get(Call& c) {
  const Value& from = c.args[0];
  if (from.kind == Kind::map && c.args[1].kind != Kind::nil) {
    TRY(std::string_view name, c.text(1));
    Value out;
    c.run.arena.read(size(from) * Arena::kElementBytes);
    return member(from, name, out) ? out : Value{};
  }
  if (from.kind != Kind::list && from.kind != Kind::string) return Value{};
  if (!c.args[1].is_number())
    return c.bad("wants a number as the place, got " + std::string(kind_name(c.args[1].kind)));
  return element_or_nil(from, c.args[1].as_double());
}

Result<Value> fn_take(Call& c) {
  TRY(Value list, c.list(0));
  if (c.args[1].kind != Kind::integer) return c.bad("wants an int; write int(x) for a variable");
  int64_t n = c.args[1].whole;
  if (n < 0) return c.bad("wants a count that is not negative");
  List out;
  for (size_t i = 0; i < size(list) && static_cast<int64_t>(i) < n; ++i)
    out.push_back(element(list, i));
  return c.run.arena.keep(std::move(out));
}

namespace {
Result<Value> map_members(Call& c,
                          Value (*pick)(Call& c, std::string_view name, const Value& value)) {
  if (c.args[0].kind != Kind::map)
    return c.bad("wants a map, got " + std::string(kind_name(c.args[0].kind)));
  List out;
  for (size_t i = 0; i < size(c.args[0]); ++i) {
    auto [name, value] = entry(c.args[0], i);
    out.push_back(pick(c, name, value));
  }
  return c.run.arena.keep(std::move(out));
}
}  // namespace

Result<Value> fn_keys(Call& c) {
  return map_members(c, [](Call&, std::string_view name, const Value&) { return value_of(name); });
}
Result<Value> fn_values(Call& c) {
  return map_members(c, [](Call&, std::string_view, const Value& value) { return value; });
}
Result<Value> fn_to_pairs(Call& c) {
  return map_members(c, [](Call& call, std::string_view name, const Value& value) {
    return call.run.arena.keep(List{value_of(name), value});
  });
}

Result<Value> fn_from_pairs(Call& c) {
  TRY(Value list, c.list(0));
  Map out;
  for (size_t i = 0; i < size(list); ++i) {
    Value pair = element(list, i);
    if (pair.kind != Kind::list || size(pair) != 2)
      return c.bad("wants a list of [key, value] pairs");
    std::string name;
    append_text(name, element(pair, 0), c.run.arena);
    out.push_back({c.run.arena.keep(std::move(name)), element(pair, 1)});
  }
  Value map = c.run.arena.keep(std::move(out));
  map.keys_not_text = true;
  return map;
}

Result<Value> fn_reverse(Call& c) {
  TRY(Value list, c.list(0));
  List out;
  for (size_t i = size(list); i > 0; --i)
    out.push_back(element(list, i - 1));
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_uniq(Call& c) {
  TRY(Value list, c.list(0));
  List out;
  for (size_t i = 0; i < size(list); ++i) {
    Value v = element(list, i);
    // The search for an equal element is linear, so its cost counts as work.
    c.run.arena.spend(1 + out.size() / 16);
    if (c.run.arena.full()) return c.bad("too many different elements");
    if (std::none_of(out.begin(), out.end(),
                     [&](const Value& o) { return equal(o, v, c.run.arena); }))
      out.push_back(v);
  }
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_concat(Call& c) {
  List out;
  for (size_t k = 0; k < c.args.size(); ++k) {
    TRY(Value list, c.list(k));
    for (size_t i = 0; i < size(list); ++i)
      out.push_back(element(list, i));
  }
  return c.run.arena.keep(std::move(out));
}

Result<Value> fn_flatten(Call& c) {
  TRY(Value list, c.list(0));
  List out;
  Arena& arena = c.run.arena;
  auto open = [&](auto& self, const Value& v) -> void {
    // One list may stand in many others, so the result may be much larger than the values.
    arena.read(size(v) * Arena::kElementBytes);
    if (out.size() > Arena::kMaxSpent) arena.exhaust();
    for (size_t i = 0; i < size(v) && !arena.full(); ++i) {
      Value item = element(v, i);
      if (item.kind == Kind::list)
        self(self, item);
      else
        out.push_back(item);
    }
  };
  open(open, list);
  return c.run.arena.keep(std::move(out));
}

}  // namespace pawl::expr
