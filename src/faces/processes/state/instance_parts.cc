#include "faces/processes/state/instance_parts.h"

#include "json/text.h"

namespace pawl::processes {

namespace {

// n x (index of the token, what `put` writes) for the tokens that `wanted` names.
template <class Wanted, class Put>
void write_tokens(Writer& w, const Instance& i, Wanted&& wanted, Put&& put) {
  w.uint(static_cast<uint64_t>(std::count_if(i.tokens.begin(), i.tokens.end(), wanted)));
  for (size_t at = 0; at < i.tokens.size(); ++at) {
    if (!wanted(i.tokens[at])) continue;
    w.uint(at);
    put(i.tokens[at]);
  }
}

template <class Take>
void read_tokens(Reader& r, Instance& i, Take&& take) {
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    size_t at = r.uint();
    Token ignored;  // damaged bytes may name a token that does not exist
    take(at < i.tokens.size() ? i.tokens[at] : ignored);
  }
}

// Attempts of jobs under an attemptTimeout.
bool is_timed(const Token& t) { return t.leases > 0; }
bool has_attempts(const Instance& i) {
  return std::any_of(i.tokens.begin(), i.tokens.end(), is_timed);
}
void write_attempts(Writer& w, const Instance& i) {
  write_tokens(w, i, is_timed, [&](const Token& t) {
    w.uint(t.leases);
    w.sint(t.attempt_due);
  });
}
void read_attempts(Reader& r, Instance& i) {
  read_tokens(r, i, [&](Token& t) {
    t.leases = static_cast<uint32_t>(r.uint());
    t.attempt_due = r.sint();
  });
}

bool is_subscribed(const Token& t) { return t.subscription.has_value(); }
bool has_subscriptions(const Instance& i) {
  return std::any_of(i.tokens.begin(), i.tokens.end(), is_subscribed);
}
void write_subscriptions(Writer& w, const Instance& i) {
  write_tokens(w, i, is_subscribed, [&](const Token& t) {
    w.str(t.subscription->name);
    w.str(t.subscription->key);
    w.sint(t.subscription->since);
  });
}
void read_subscriptions(Reader& r, Instance& i) {
  read_tokens(r, i, [&](Token& t) {
    t.subscription.emplace();
    t.subscription->name = r.str();
    t.subscription->key = r.str();
    t.subscription->since = r.sint();
  });
}

bool has_kept_signals(const Instance& i) { return !i.kept_signals.empty(); }
void write_kept_signals(Writer& w, const Instance& i) {
  w.uint(i.kept_signals.size());
  for (const Instance::KeptSignal& kept : i.kept_signals) {
    w.uint(kept.step);
    w.str(kept.variables->text);
  }
}
void read_kept_signals(Reader& r, Instance& i) {
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    uint32_t step = static_cast<uint32_t>(r.uint());
    BytesView text = r.str();
    auto parsed = json::parse(text, {.max_bytes = text.size() + 1});
    // Damaged bytes: an empty signal, which changes nothing.
    json::Object object =
        parsed && parsed->is_object() ? std::move(parsed->object()) : json::Object();
    i.kept_signals.push_back({step, make_variables(std::move(object))});
  }
}

bool has_parent(const Instance& i) { return !i.parent_id.empty(); }
void write_parent(Writer& w, const Instance& i) {
  w.str(i.parent_id);
  w.uint(i.parent_execution);
  w.uint(i.call_depth);
}
void read_parent(Reader& r, Instance& i) {
  i.parent_id = r.str();
  i.parent_execution = static_cast<uint32_t>(r.uint());
  i.call_depth = static_cast<uint32_t>(r.uint());
}

bool is_calling(const Token& t) { return !t.child_id.empty(); }
bool has_children(const Instance& i) {
  return std::any_of(i.tokens.begin(), i.tokens.end(), is_calling);
}
void write_children(Writer& w, const Instance& i) {
  write_tokens(w, i, is_calling, [&](const Token& t) { w.str(t.child_id); });
}
void read_children(Reader& r, Instance& i) {
  read_tokens(r, i, [&](Token& t) { t.child_id = r.str(); });
}

bool has_done_steps(const Instance& i) { return i.compensating || !i.done_steps.empty(); }
void write_done_steps(Writer& w, const Instance& i) {
  w.boolean(i.compensating);
  w.str(i.compensation_reason);
  w.uint(i.done_steps.size());
  for (const Instance::DoneStep& done : i.done_steps) {
    w.uint(done.step);
    w.str(done.variables);
  }
}
void read_done_steps(Reader& r, Instance& i) {
  i.compensating = r.boolean();
  i.compensation_reason = r.str();
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    uint32_t step = static_cast<uint32_t>(r.uint());
    i.done_steps.push_back({step, std::string(r.str())});
  }
}

struct Part {
  uint8_t number;  // stored: append only
  bool (*filled)(const Instance& i);
  void (*write)(Writer& w, const Instance& i);
  void (*read)(Reader& r, Instance& i);
};
constexpr Part kParts[] = {
    {1, has_attempts, write_attempts, read_attempts},
    {2, has_subscriptions, write_subscriptions, read_subscriptions},
    {3, has_kept_signals, write_kept_signals, read_kept_signals},
    {4, has_parent, write_parent, read_parent},
    {5, has_children, write_children, read_children},
    {6, has_done_steps, write_done_steps, read_done_steps},
};

}  // namespace

bool has_parts(const Instance& i) {
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](const Part& part) { return part.filled(i); });
}

void write_parts(Writer& w, const Instance& i) {
  for (const Part& part : kParts) {
    if (!part.filled(i)) continue;
    Bytes content;
    Writer inner(content);
    part.write(inner, i);
    w.u8(part.number);
    w.str(content);
  }
}

bool read_parts(Reader& r, Instance& i) {
  while (r.ok() && !r.done()) {
    const uint8_t number = r.u8();
    Reader content(r.str());
    const Part* part = std::find_if(std::begin(kParts), std::end(kParts),
                                    [&](const Part& p) { return p.number == number; });
    if (part == std::end(kParts)) return false;
    part->read(content, i);
    if (!content.done()) return false;
  }
  return r.ok();
}

}  // namespace pawl::processes
