#pragma once
// A model of the lifecycle in memory: about forty lines for each verb. model_test.cc compares the
// library with it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <map>
#include <set>

#include "faces/lifecycle/missions_test.h"

namespace pawl::lifecycle::model {

using Text = std::string;
using Names = std::vector<std::string>;

inline Text show(const Mission& m) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", m.entity_id, m.phase, m.owner, m.drone,
                     m.waypoint, m.retries, m.battery, m.armed, fmt::join(m.labels, ","), m.note,
                     m.internal, m.parent);
}
inline Text show(const error& e) { return Text(row_of(e.kind()).name); }
inline Text show(const std::vector<snapshot>& all) {
  Text out;
  for (const snapshot& one : all)
    out += fmt::format("{} {} {} {} {};", one.workflow, one.id, one.phase, one.terminal, one.rev);
  return out;
}
inline Text show(const history_log& log) {
  Text out;
  for (const transition_event& e : log)
    out += fmt::format("{}>{} {} '{}' {};", e.from, e.to, name_of(e.triggered), e.note, e.rev);
  return out;
}
template <class T>
Text show(const result<T>& r) {
  if (!r) return show(r.error());
  if constexpr (std::is_same_v<T, revision>)
    return fmt::format("rev {}", *r);
  else
    return show(*r);
}
inline Text said(errc code) { return Text(row_of(code).name); }

// A change as a watcher should see it.
struct Seen {
  revision rev;
  Text id, state;  // the state is empty when the instance was removed
};

// The instances of one type.
struct Kind {
  Text name;
  dynamic_type def;
  struct One {
    Mission state;
    revision rev = 0, created = 0;
  };
  std::map<Text, One> live;
  std::map<Text, std::vector<transition_event>> past;
  std::vector<Seen> changes;
};

// The expected answer of every verb, as text.
class Model {
 public:
  explicit Model(revision begun) : rev_(begun) {
    for (const dynamic_type& def : {describe<Capture>(), describe<Mission>()})
      kinds_[def.name] = {def.name, def, {}, {}, {}};
  }
  Kind& missions() { return kinds_.at("drone-survey"); }
  Kind& captures() { return kinds_.at("capture-task"); }
  revision rev() const { return rev_; }

  Text create(Kind& k, const Mission& state) {
    if (bad(state.entity_id)) return said(errc::bad_id);
    if (!k.def.declares(state.phase)) return said(errc::invalid_transition);
    if (k.live.contains(state.entity_id)) return said(errc::already_exists);
    return put(k, state, {source::framework, ""}, true);
  }
  Text get(Kind& k, const Text& id) {
    auto there = find(k, id);
    return there.second.empty() ? show(there.first->state) : there.second;
  }
  Text transition(Kind& k, const Text& id, const Text& to, const how& why,
                  const std::function<void(Mission&)>& f = {}) {
    if (!k.def.declares(to)) return said(errc::invalid_transition);
    auto [one, missing] = find(k, id);
    if (!one) return missing;
    if (k.def.is_terminal(one->state.phase)) return said(errc::terminal_phase);
    if (!k.def.allows(one->state.phase, to)) return said(errc::invalid_transition);
    Mission next = one->state;
    if (f) f(next);
    next.phase = to;
    return put(k, next, why, true);
  }
  Text complete(Kind& k, const Text& id, Text target) {
    if (!target.empty() && (!k.def.declares(target) || !k.def.is_terminal(target)))
      return said(errc::invalid_transition);
    auto [one, missing] = find(k, id);
    if (!one) return missing;
    if (k.def.is_terminal(one->state.phase)) return said(errc::terminal_phase);
    std::set<Text> endings;
    for (const Text& to : *k.def.targets(one->state.phase))
      if (k.def.is_terminal(to)) endings.insert(to);
    if (target.empty() && endings.empty()) return said(errc::invalid_transition);
    return transition(k, id, target.empty() ? *endings.begin() : target, {source::framework, ""});
  }
  Text fail(Kind& k, const Text& id, const Text& reason) {
    if (reason.empty()) return said(errc::reason_required);
    return transition(k, id, "failed", {source::framework, reason});
  }
  Text update(Kind& k, const Text& id, const std::function<bool(Mission&)>& f) {
    auto [one, missing] = find(k, id);
    if (!one) return missing;
    Mission next = one->state;
    if (!f(next)) return said(errc::rejected);
    if (next.entity_id != id) return said(errc::bad_id);
    return put(k, next, {}, false);
  }
  Text swap(Kind& k, const Mission& state, revision expected) {
    auto [one, missing] = find(k, state.entity_id);
    if (!one) return missing;
    if (one->rev != expected) return said(errc::conflict);
    return put(k, state, {}, false);
  }
  Text patch(Kind& k, const Text& id, errc wrong, const std::function<void(Mission&)>& f) {
    if (wrong == errc::unknown_field || wrong == errc::field_not_operator_writable)
      return said(wrong);
    auto [one, missing] = find(k, id);
    if (!one) return missing;
    if (wrong != errc{}) return said(wrong);
    if (!f) return fmt::format("rev {}", one->rev);
    Mission next = one->state;
    f(next);
    return put(k, next, {source::op, ""}, false);
  }
  Text remove(Kind& k, const Text& id) {
    auto [one, missing] = find(k, id);
    if (!one) return missing;
    ++rev_;
    auto& past = k.past[id];
    past.push_back({past.back().to, Text(kDeleted), {}, source::component, "", "", rev_});
    k.live.erase(id);
    k.changes.push_back({rev_, id, ""});
    return fmt::format("rev {}", rev_);
  }
  Text history(Kind& k, const Text& id) {
    if (bad(id)) return said(errc::bad_id);
    if (!k.past.contains(id)) return said(errc::entity_not_found);
    return show(history_log{k.past[id], false});
  }
  // The matching instances in creation order.
  std::vector<const Kind::One*> list(Kind& k, const any_query& q,
                                     const std::function<bool(const Mission&)>& fits,
                                     revision after) {
    std::map<revision, const Kind::One*> by_age;
    for (const auto& [id, one] : k.live)
      by_age[one.created] = &one;
    std::vector<const Kind::One*> out;
    int64_t skip = std::max<int64_t>(0, q.offset);
    for (const auto& [created, one] : by_age) {
      bool yes = (q.phase.empty() || one->state.phase == q.phase) &&
                 (!q.active || !k.def.is_terminal(one->state.phase)) && fits(one->state) &&
                 one->rev > after;
      if (yes && skip-- <= 0) out.push_back(one);
    }
    return out;
  }
  Text children(const Text& id) {
    Text out;
    for (auto& [name, k] : kinds_) {
      std::map<std::pair<revision, Text>, const Kind::One*>
          in_order;  // roots by age, children by id
      for (const auto& [own, one] : k.live)
        if (one.state.parent == id) in_order[{id.empty() ? one.created : 0, own}] = &one;
      for (const auto& [key, one] : in_order)
        out += snapped(k, *one);
    }
    return out;
  }
  Text lookup(const Text& id) {
    auto [k, one, wrong] = look_up(id);
    return one ? snapped(*k, *one) : wrong;
  }
  Text ancestors(const Text& id) {
    auto [k, one, wrong] = look_up(id);
    if (!one) return wrong;
    Text out;
    std::set<Text> met{id};
    while (!one->state.parent.empty()) {
      Text up = one->state.parent;
      if (!met.insert(up).second) return said(errc::parent_cycle);
      std::tie(k, one, wrong) = look_up(up);
      if (!one) return wrong == said(errc::entity_not_found) ? out : wrong;
      out += snapped(*k, *one);
    }
    return out;
  }

 private:
  static bool bad(const Text& id) { return id.empty() || id.find_first_of(" *>") != Text::npos; }
  static Text snapped(const Kind& k, const Kind::One& one) {
    return fmt::format("{} {} {} {} {};", k.name, one.state.entity_id, one.state.phase,
                       k.def.is_terminal(one.state.phase), one.rev);
  }
  std::pair<Kind::One*, Text> find(Kind& k, const Text& id) {
    if (bad(id)) return {nullptr, said(errc::bad_id)};
    auto it = k.live.find(id);
    if (it == k.live.end()) return {nullptr, said(errc::entity_not_found)};
    return {&it->second, ""};
  }
  std::tuple<Kind*, Kind::One*, Text> look_up(const Text& id) {
    if (bad(id)) return {nullptr, nullptr, said(errc::bad_id)};
    std::tuple<Kind*, Kind::One*, Text> out{nullptr, nullptr, said(errc::entity_not_found)};
    for (auto& [name, k] : kinds_)
      if (k.live.contains(id))
        out = std::get<1>(out)
                  ? std::tuple<Kind*, Kind::One*, Text>{nullptr, nullptr, said(errc::ambiguous_id)}
                  : std::tuple<Kind*, Kind::One*, Text>{&k, &k.live[id], ""};
    return out;
  }
  Text put(Kind& k, const Mission& state, const how& why, bool event) {
    ++rev_;
    Kind::One& one = k.live[state.entity_id];
    auto& past = k.past[state.entity_id];
    Text before = past.empty() ? "" : past.back().to;
    if (event || before != state.phase)
      past.push_back({before, state.phase, {}, why.triggered, why.note, "", rev_});
    if (!one.created) one.created = rev_;
    one.rev = rev_;
    one.state = state;
    k.changes.push_back({rev_, state.entity_id, show(state)});
    return fmt::format("rev {}", rev_);
  }

  std::map<Text, Kind> kinds_;
  revision rev_;
};

}  // namespace pawl::lifecycle::model
