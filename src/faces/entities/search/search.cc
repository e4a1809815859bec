#include "faces/entities/search/search.h"

#include <fmt/format.h>

#include <numeric>
#include <unordered_set>

#include "faces/entities/program.h"

namespace pawl::entities {

namespace {

using condition::Condition;
using condition::IndexUse;
using condition::Node;
using condition::Operand;

bool has_index(const Model& model, const condition::Path& path) {
  return path.plain() &&
         std::any_of(model.indexes.begin(), model.indexes.end(),
                     [&](const Index& i) { return i.ready && i.path == "$." + path.name(); });
}

// How well an index answers the node: smaller is better, 0 means not at all.
int rank(const Node& node, const Model& model) {
  if (node.kind != Node::simple || node.op->index_use == IndexUse::none ||
      !has_index(model, node.path))
    return 0;
  if (node.op->index_use == IndexUse::equal) return node.operand.null ? 0 : 1;
  if (node.op->index_use == IndexUse::prefix) return node.operand.text.empty() ? 0 : 2;
  return node.op->index_use == IndexUse::between ? 3 : 4;
}

// Half-open ranges of index values that include every match, and maybe more.
using Range = std::pair<Bytes, Bytes>;

std::vector<Range> ranges(const Node& node) {
  const Operand& v = node.operand;
  const Range all_numbers{"n", "o"}, all_texts{"s", "t"};
  Bytes text = index_text(v.text);
  switch (node.op->index_use) {
    case IndexUse::equal: {
      std::vector<Range> out{{text, after_prefix(text)}};
      if (v.numeric) out.emplace_back(index_number(v.number), after_prefix(index_number(v.number)));
      return out;
    }
    case IndexUse::above:
      return {v.numeric ? Range{index_number(v.number), "o"} : all_numbers, {text, "t"}};
    case IndexUse::below:
      return {v.numeric ? Range{"n", after_prefix(index_number(v.number))} : all_numbers,
              {"s", after_prefix(text)}};
    case IndexUse::between:
      return {{index_number(v.low), after_prefix(index_number(v.high))}, all_texts};
    case IndexUse::prefix: return {all_numbers, {text, after_prefix(text)}};
    case IndexUse::none: break;
  }
  return {all_numbers, all_texts};
}

bool is_match(const Query& q, const EntityView& e) {
  return e.model == q.model && e.version == q.version &&
         (!q.condition || q.condition->matches({e.data, e.state, e.created, e.transition}));
}

// The keys of removed entities, in the order of their ids, read in pieces.
struct RemovedKeys {
  static constexpr size_t kPiece = 1000;
  const ReadSnapshot& snapshot;
  std::string_view tenant;
  Bytes base;
  Bytes from = base;
  std::vector<Key> piece{};
  size_t at = 0;
  bool more = true;  // there may be keys after this piece

  Result<void> read_on() {
    piece.clear();
    at = 0;
    TRY_OK(snapshot.rows(
        kProgram, base,
        [&](BytesView row, BytesView) {
          piece.push_back(entity_key(tenant, row.substr(base.size())));
          from = Bytes(row) + '\0';
          return piece.size() < kPiece;
        },
        from));
    more = piece.size() == kPiece;
    return {};
  }

  // The next key that comes before `key`; an empty `key` stands for the end.
  Result<std::optional<Key>> before(BytesView key) {
    if (at == piece.size() && more) TRY_OK(read_on());
    if (at == piece.size() || (!key.empty() && piece[at] >= key)) return std::nullopt;
    return std::move(piece[at++]);
  }
};

struct Search {
  const ReadSnapshot& snapshot;
  const Query& query;
  const VisitEntity& visit;
  Plan plan{};
  size_t skipped = 0;
  uint64_t work = 0;
  uint64_t asked_at = 0;   // work when query.proceed was last asked
  Result<void> stopped{};  // why the search ended early
  EntityView view{};       // of the entity that is being tested

  static constexpr uint64_t kAskEvery = uint64_t{4} << 20;
  // About the size of a match without its document.
  static constexpr size_t kMatchBytes = 256;

  // Counts the work of testing the entity. Returns false when the search must end.
  bool may_test(const EntityView& e) {
    work += work_of(query.condition.get(), e, query.sort.size());
    if (work > query.max_work) stopped = too_much_work();
    if (stopped && query.proceed && work >= asked_at + kAskEvery) {
      asked_at = work;
      stopped = query.proceed();
    }
    return stopped.has_value();
  }

  // Returns false when the search has enough.
  bool offer(const EntityView& e) {
    ++plan.rows_read;
    if (!may_test(e)) return false;
    if (!is_match(query, e)) return true;
    if (skipped < query.skip) {
      ++skipped;
      return true;
    }
    if (query.hold) stopped = query.hold(kMatchBytes + e.data.size());
    if (!stopped) return false;
    ++plan.matched;
    return visit(e) && plan.matched < query.limit;
  }

  // The same for an entity as it is stored. One that cannot be read ends the search with an error:
  // a result without it would look whole.
  bool offer_stored(std::string_view id, BytesView stored) {
    if (view_entity(stored, view)) return offer(view);
    stopped = fail(unreadable_entity(id));
    return false;
  }

  Result<void> by_index(const Node& node) {
    plan.index = "$." + node.path.name();
    std::unordered_set<std::string> seen;
    Bytes base = index_row_prefix(query.tenant, query.model, query.version, plan.index);
    bool go = true;
    for (const auto& [from, to] : ranges(node)) {
      Result<void> good;
      TRY_OK(snapshot.rows(
          kProgram, base,
          [&](BytesView row, BytesView) {
            if (!to.empty() && row.substr(base.size()) >= to) return false;
            std::string id(id_at_end(row));
            if (!seen.insert(id).second) return true;
            auto cell = snapshot.read(entity_key(query.tenant, id));
            if (!cell) {
              good = fail(std::move(cell.error()));
              return false;
            }
            if (cell->exists()) go = offer_stored(id, cell->value());
            return go;
          },
          base + from));
      TRY_OK(good);
      if (!go) break;
    }
    return {};
  }

  Result<void> by_scan() {
    return snapshot.scan_bytes(
        entity_prefix(query.tenant, query.model, query.version),
        [&](BytesView key, Seq, BytesView value) { return offer_stored(id_at_end(key), value); });
  }

  // Visits the existing entities as they were at `seq`, and those that were removed since, in the
  // order of their ids.
  Result<void> as_at(Seq seq) {
    Result<void> good;
    bool go = true;
    auto old = [&](BytesView key) {
      auto cell = snapshot.read_at(key, seq);
      if (!cell) {
        good = fail(std::move(cell.error()));
        return false;
      }
      if (cell->exists()) go = offer_stored(id_at_end(key), cell->value());
      return go;
    };
    RemovedKeys removed{snapshot, query.tenant,
                        removed_row_prefix(query.tenant, query.model, query.version)};
    auto visit_removed_before = [&](BytesView key) {
      while (go && good) {
        Result<std::optional<Key>> next = removed.before(key);
        if (!next) {
          good = fail(std::move(next.error()));
          return false;
        }
        if (!*next) break;
        old(**next);
      }
      return go && good;
    };
    TRY_OK(snapshot.scan_bytes(entity_prefix(query.tenant, query.model, query.version),
                               [&](BytesView key, Seq version, BytesView value) {
                                 if (!visit_removed_before(key)) return false;
                                 if (version > seq) return old(key);
                                 return go = offer_stored(id_at_end(key), value);
                               }));
    if (go && good) visit_removed_before({});
    return good;
  }
};

Result<Plan> search_unsorted(const ReadSnapshot& snapshot, const Query& query, const Model* model,
                             const VisitEntity& visit) {
  Search s{snapshot, query, visit};
  if (query.limit == 0) return s.plan;
  std::optional<Seq> seq = query.seq;
  if (query.at) {
    TRY(seq, snapshot.seq_at(*query.at));
  }
  if (seq) {
    TRY_OK(s.as_at(*seq));
    TRY_OK(s.stopped);
    return s.plan;
  }
  const Node* node = model && query.condition ? indexed_node(*query.condition, *model) : nullptr;
  TRY_OK(node ? s.by_index(*node) : s.by_scan());
  TRY_OK(s.stopped);
  return s.plan;
}

// Numbers are compared by amount, texts by bytes, numbers before texts. Missing values and null
// come last in both directions.
int compare_fields(const condition::Field& a, const condition::Field& b, bool descending) {
  if (a.is_null() || b.is_null()) return a.is_null() - b.is_null();
  if (descending) return compare_fields(b, a, false);
  const bool number_a = a.kind == condition::Field::number;
  const bool number_b = b.kind == condition::Field::number;
  if (number_a != number_b) return number_a ? -1 : 1;
  if (number_a) return json::compare_numbers(a.text, b.text);
  std::string room_a;
  std::string room_b;
  return condition::text_of(a, room_a).compare(condition::text_of(b, room_b));
}

struct MetaField {
  std::string_view name;
  int (*compare)(const Entity& a, const Entity& b);
};
// Times are compared to the millisecond; entities written together are then sorted by id.
int by_time(Time a, Time b) {
  a /= kMillisecond;
  b /= kMillisecond;
  return a < b ? -1 : a > b;
}
constexpr MetaField kMetaFields[] = {
    {"id", [](const Entity& a, const Entity& b) { return a.id.compare(b.id); }},
    {"state", [](const Entity& a, const Entity& b) { return a.state.compare(b.state); }},
    {"creationDate",
     [](const Entity& a, const Entity& b) { return by_time(a.created, b.created); }},
    {"lastUpdateTime",
     [](const Entity& a, const Entity& b) { return by_time(a.updated, b.updated); }},
    {"previousTransition",
     [](const Entity& a, const Entity& b) { return a.transition.compare(b.transition); }},
    {"transitionForLatestSave",
     [](const Entity& a, const Entity& b) { return a.transition.compare(b.transition); }},
};

int compare_meta(const SortKey& key, const Entity& a, const Entity& b) {
  int order = 0;
  for (const MetaField& f : kMetaFields)
    if (f.name == key.field) order = f.compare(a, b);
  return key.descending ? -order : order;
}

}  // namespace

uint64_t work_of(const Condition* condition, const EntityView& e, size_t lookups) {
  return kRowWork + lookups * e.data.size() +
         (condition ? condition->work({e.data, e.state, e.created, e.transition}) : e.data.size());
}

std::unexpected<Error> too_much_work() {
  return fail(Code::unprocessable, kSearchTooLong,
              "the search reads too much for one request: use an index, fewer conditions, or a "
              "search job");
}

std::unexpected<Error> result_too_large() {
  return fail(Code::unprocessable, kSearchTooLong,
              fmt::format("the result has more than {} bytes: ask for fewer entities or smaller "
                          "pages, or use POST /search/direct, which streams its result",
                          limits::kWholeResultBytes));
}

const Node* indexed_node(const Condition& condition, const Model& model) {
  const Node& root = condition.root();
  if (rank(root, model)) return &root;
  const Node* best = nullptr;
  if (root.kind == Node::all)
    for (const Node& c : root.conditions)
      if (int r = rank(c, model); r && (!best || r < rank(*best, model))) best = &c;
  return best;
}

// The fields are looked up once for each entity and not for each comparison: documents are large.
void sort_entities(std::vector<Entity>& found, const std::vector<SortKey>& keys) {
  std::vector<condition::Field> fields;  // of entity i and key k at i * keys.size() + k
  fields.reserve(found.size() * keys.size());
  for (const Entity& e : found)
    for (const SortKey& key : keys)
      fields.push_back(key.path ? key.path->find(e.data) : condition::Field{});
  std::vector<size_t> order(found.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    for (size_t k = 0; k < keys.size(); ++k) {
      const int by = keys[k].path ? compare_fields(fields[a * keys.size() + k],
                                                   fields[b * keys.size() + k], keys[k].descending)
                                  : compare_meta(keys[k], found[a], found[b]);
      if (by) return by < 0;
    }
    return found[a].id < found[b].id;
  });
  std::vector<Entity> sorted;
  sorted.reserve(found.size());
  for (size_t i : order)
    sorted.push_back(std::move(found[i]));
  found = std::move(sorted);
}

void SortedMatches::add(const EntityView& e) {
  found_.push_back(copy_of(e));
  if (found_.size() / 2 < enough_ || found_.size() - enough_ < kSpare) return;
  sort_entities(found_, keys_);
  found_.resize(enough_);
}

std::vector<Entity> SortedMatches::take() {
  sort_entities(found_, keys_);
  if (found_.size() > enough_) found_.resize(enough_);
  return std::move(found_);
}

Result<Plan> search(const ReadSnapshot& snapshot, const Query& query, const Model* model,
                    const VisitEntity& visit) {
  if (query.sort.empty()) return search_unsorted(snapshot, query, model, visit);
  Query every = query;
  every.limit = ~size_t{0};
  every.skip = 0;
  every.hold = {};  // counted below: most matches are not kept
  const size_t enough =
      query.limit > ~size_t{0} - query.skip ? ~size_t{0} : query.skip + query.limit;
  SortedMatches matches(query.sort, enough);
  size_t most = 0;
  Result<void> held;
  TRY(Plan plan, search_unsorted(snapshot, every, model, [&](const EntityView& e) {
        matches.add(e);
        if (query.hold && matches.held() > most) {
          most = matches.held();
          held = query.hold(Search::kMatchBytes + e.data.size());
        }
        return held.has_value();
      }));
  TRY_OK(held);
  const std::vector<Entity> found = matches.take();
  plan.matched = 0;
  for (size_t i = query.skip; i < found.size() && plan.matched < query.limit; ++i) {
    ++plan.matched;
    if (!visit(view_of(found[i]))) break;
  }
  return plan;
}

// "@state" is a metadata field; so is "state", unless the documents have a field of that name.
static Result<SortKey> sort_key(std::string_view word, const Model* model) {
  SortKey key;
  if (word.starts_with('-')) {
    key.descending = true;
    word.remove_prefix(1);
  }
  for (std::string_view order : {":asc", ":desc", ":ASC", ":DESC"}) {
    if (!word.ends_with(order)) continue;
    key.descending = order[1] == 'd' || order[1] == 'D';
    word.remove_suffix(order.size());
  }
  bool meta = word.starts_with('@');
  if (meta) word.remove_prefix(1);
  bool is_meta_field = std::any_of(std::begin(kMetaFields), std::end(kMetaFields),
                                   [&](const MetaField& f) { return f.name == word; });
  if (word.empty() || (meta && !is_meta_field))
    return fail(
        Code::invalid, "BAD_REQUEST",
        fmt::format(
            "cannot sort by '{}'; use for example sort=$.name:asc or sort=@creationDate:desc",
            word));
  key.field = word;
  condition::Path path(word);
  if (meta || (is_meta_field && !(model && path.plain() && shape_at(model->shape, path.name()))))
    return key;
  if (!path.plain())
    return fail(Code::invalid, "BAD_REQUEST", fmt::format("cannot sort by the array '{}'", word));
  if (model && !shape_at(model->shape, path.name()))
    return fail(Code::invalid, "INVALID_FIELD_PATH",
                fmt::format("cannot sort by '{}', which is not a field of model {} version {}",
                            word, model->name, model->version));
  key.path = std::move(path);
  return key;
}

Result<std::vector<SortKey>> parse_sort(const std::vector<std::string>& given, const Model* model) {
  std::vector<SortKey> out;
  for (const std::string& list : given) {
    std::string_view rest = list;
    while (!rest.empty()) {
      size_t comma = rest.find(',');
      std::string_view word = rest.substr(0, comma);
      rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
      TRY(SortKey key, sort_key(word, model));
      out.push_back(std::move(key));
    }
  }
  if (out.size() > 16)
    return fail(Code::invalid, "BAD_REQUEST", "at most 16 sort keys are allowed");
  return out;
}

}  // namespace pawl::entities
