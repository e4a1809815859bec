// The same random commands go to the library in process, to the library connected to a server, and
// to a model. After every command all three must give the same answer. PAWL_MODEL_SEEDS=FIRST:COUNT
// chooses other random seeds.

#include <fmt/format.h>

#include <cstdlib>
#include <random>
#include <thread>

#include "faces/lifecycle/run/model_test.h"
#include "faces/lifecycle/served_test.h"
#include "json/text.h"

namespace pawl::lifecycle {

using namespace std::chrono_literals;

namespace {

using namespace model;

// One of the two libraries, with its open watches.
struct Side {
  Text name;
  manager* m;
  struct Watch {
    watch_stream<Mission> stream;
    std::optional<revision> after;  // nothing: the watch began with a snapshot
    revision newest;                // the newest revision that it has shown, or need not show
    std::vector<Seen> live;
    std::map<Text, Text> shown;
  };
  std::vector<Watch> watches;
};

using Fits = std::function<bool(const Mission&)>;

struct story : testing::TestWithParam<uint64_t> {
  std::unique_ptr<Engine> here = *Engine::open();
  Served served;
  Engine* const there = served.engine.get();
  Warnings unheard;
  manager local{*here, unheard.options()};
  std::optional<manager> remote;
  std::vector<Side> sides;
  std::optional<Model> model;
  std::mt19937_64 dice;
  std::vector<std::pair<revision, time_point>> moments;

  void SetUp() override {
    uint64_t first = 0;
    if (const char* seeds = std::getenv("PAWL_MODEL_SEEDS"))
      first = std::strtoull(seeds, nullptr, 10);
    dice.seed(first + GetParam());
    remote.emplace(*manager::connect(served.start(), {.log = unheard.options().log}));
    sides = {{"in process", &local, {}}, {"remote", &*remote, {}}};
    for (Side& side : sides) {
      ASSERT_TRUE(side.m->register_type<Mission>());
      ASSERT_TRUE(side.m->register_type<Capture>());
    }
    ASSERT_EQ(here->last(), there->last());
    model.emplace(here->last());
  }
  void TearDown() override {
    sides.clear();
    for (Engine* engine : {here.get(), there}) {
      auto verified = engine->verify();
      EXPECT_TRUE(verified) << verified.error().message();
    }
  }

  uint64_t roll(uint64_t n) { return dice() % n; }
  Text pick(const Names& of) { return of[roll(of.size())]; }
  Text an_id() {
    return roll(20) ? pick({"a", "b", "c", "d/e", "f%41", "é", "..", "g+h"})
                    : pick({"", "x y", "*", "nobody"});
  }
  Text a_phase() {
    return pick({"planning", "flying", "capturing", "landing", "completed", "failed", "aborted"});
  }
  Text a_word() {
    return pick({"", "acme", "globex", "a&b=c%20+d", "Ünï \"q\"\n", Text(200, 'x')});
  }
  how a_reason() { return {static_cast<source>(roll(4)), pick({"", "why not", "ä&/?"})}; }
  Mission a_mission() {
    Mission out{.entity_id = an_id(),
                .phase = roll(9) ? a_phase() : "limbo",
                .owner = a_word(),
                .drone = a_word()};
    change(out);
    return out;
  }
  void change(Mission& m) {
    static const int64_t numbers[] = {0, 1, -1, INT64_MAX, INT64_MIN, 1'000'000'007};
    static const double reals[] = {0, 0.1, -2.5e-300, 1e300, 1.0 / 3};
    m.waypoint = pick({"0", "7", "x"}) == "x" ? UINT32_MAX : static_cast<uint32_t>(roll(3));
    m.retries = numbers[roll(std::size(numbers))];
    m.battery = reals[roll(std::size(reals))];
    m.armed = roll(2);
    m.labels.clear();
    for (uint64_t n = roll(3); n > 0; --n)
      m.labels.push_back(a_word());
    if (roll(3) == 0) m.owner = a_word();
    if (roll(3) == 0) m.drone = a_word();
    if (roll(3) == 0) m.parent = roll(2) ? "" : an_id();
    if (roll(12) == 0) m.phase = roll(3) ? a_phase() : "limbo";
  }

  // Asks both libraries and compares their answers with the model's.
  void agree(const Text& sentence, const Text& model_says,
             const std::function<Text(manager&)>& ask) {
    for (Side& side : sides) {
      Text got = ask(*side.m);
      ASSERT_EQ(got, model_says) << side.name << " at " << sentence << ", seed " << GetParam();
    }
    ASSERT_EQ(here->last(), there->last()) << sentence;
    ASSERT_EQ(here->last(), model->rev()) << sentence;
  }

  void say_write();
  void say_mutation();
  void say_patch();
  void say_capture();
  void say_read();
  query<Mission> a_query(std::vector<Fits>& wants);
  void say_list();
  void say_watch();
  void read_watches(bool all);
  void check(Side& side, Side::Watch& w);
};

void story::say_write() {
  Kind& k = model->missions();
  Text id = an_id(), to = roll(15) ? a_phase() : "nowhere";
  // One mistake at a time: which of two mistakes is reported is not promised.
  if (to == "nowhere") id = "a";
  how why = a_reason();
  Mission fresh = a_mission();
  switch (roll(6)) {
    case 0:
      return agree("create " + show(fresh), model->create(k, fresh),
                   [&](manager& m) { return show(m.create(fresh)); });
    case 1:
      return agree("transition " + id + " to " + to, model->transition(k, id, to, why),
                   [&](manager& m) { return show(m.transition<Mission>(id, to, why)); });
    case 2:
      return agree("complete " + id, model->complete(k, id, ""),
                   [&](manager& m) { return show(m.complete<Mission>(id)); });
    case 3:
      if (!model->missions().live.contains(id)) to = "completed";
      return agree("complete " + id + " to " + to, model->complete(k, id, to),
                   [&](manager& m) { return show(m.complete<Mission>(id, to)); });
    case 4:
      return agree("fail " + id, model->fail(k, id, why.note),
                   [&](manager& m) { return show(m.fail<Mission>(id, why.note)); });
    default:
      if (roll(3) == 0)
        agree("remove " + id, model->remove(k, id),
              [&](manager& m) { return show(m.remove<Mission>(id)); });
  }
}

void story::say_mutation() {
  Kind& k = model->missions();
  Text id = an_id(), to = a_phase();
  how why = a_reason();
  Mission next;
  change(next);
  bool refuses = roll(10) == 0, renames = roll(15) == 0;
  auto mutate = [&](Mission& x) {
    next.entity_id = renames ? "other" : x.entity_id;
    next.phase = next.phase == "planning" ? x.phase : next.phase;
    next.note = x.note + ".";
    x = next;
    return !refuses;
  };
  auto mutator = [&](Mission& x) -> result<void> {
    if (!mutate(x)) return lifecycle::fail(errc::rejected, "no");
    return {};
  };
  auto keeps_id = [&](Mission& x) {
    x.waypoint = next.waypoint;
    x.note += "!";
  };
  switch (roll(4)) {
    case 0:
      return agree("update " + id, model->update(k, id, mutate),
                   [&](manager& m) { return show(m.update<Mission>(id, mutator)); });
    case 1:
      return agree("update_cas " + id, model->update(k, id, mutate),
                   [&](manager& m) { return show(m.update_cas<Mission>(id, mutator)); });
    case 2:
      return agree(
          "transition_with " + id + " to " + to, model->transition(k, id, to, why, keeps_id),
          [&](manager& m) { return show(m.transition_with<Mission>(id, to, why, keeps_id)); });
    default: {
      auto at = k.live.find(id);
      revision expected = at == k.live.end() ? 1 : at->second.rev - (roll(3) ? 0 : 1);
      next.entity_id = id;
      return agree("swap " + id, model->swap(k, next, expected),
                   [&](manager& m) { return show(m.compare_and_swap(next, expected)); });
    }
  }
}

void story::say_patch() {
  struct Row {
    Text patch;
    errc wrong;
    std::function<void(Mission&)> f;
  };
  const std::vector<Row> rows{
      {"{}", errc{}, {}},
      {"null", errc{}, {}},
      {R"({"note":"n","waypoint_index":4294967295})", errc{},
       [](Mission& x) {
         x.note = "n";
         x.waypoint = UINT32_MAX;
       }},
      {R"({"owner_org_id":null,"tags":["","é"],"battery_pct":1e300})", errc{},
       [](Mission& x) {
         x.owner = "";
         x.labels = {"", "é"};
         x.battery = 1e300;
       }},
      {R"({"retries":-9223372036854775808,"armed":true,"drone_id":"acme"})", errc{},
       [](Mission& x) {
         x.retries = INT64_MIN;
         x.armed = true;
         x.drone = "acme";
       }},
      {R"({"waypoint_index":4294967296})", errc::type_mismatch, {}},
      {R"({"waypoint_index":-1})", errc::type_mismatch, {}},
      {R"({"note":7})", errc::type_mismatch, {}},
      {R"({"note":"n","surprise":1})", errc::unknown_field, {}},
      {R"({"phase":"flying"})", errc::field_not_operator_writable, {}},
      {R"({"internal_state":"x"})", errc::field_not_operator_writable, {}},
  };
  const Row& row = rows[roll(rows.size())];
  Text id = row.wrong == errc{} ? an_id() : "a";
  agree("patch " + id + " " + row.patch, model->patch(model->missions(), id, row.wrong, row.f),
        [&](manager& m) { return show(m.operator_patch<Mission>(id, row.patch)); });
}

// Instances of another type with the same ids, so that links and lookups span types.
void story::say_capture() {
  Kind& k = model->captures();
  Mission as{.entity_id = an_id(), .phase = "queued", .parent = roll(3) ? an_id() : ""};
  Capture one{.entity_id = as.entity_id, .mission = as.parent};
  if (roll(2))
    return agree("create capture " + one.entity_id, model->create(k, as),
                 [&](manager& m) { return show(m.create(one)); });
  agree("remove capture " + one.entity_id, model->remove(k, one.entity_id),
        [&](manager& m) { return show(m.remove<Capture>(one.entity_id)); });
}

void story::say_read() {
  Kind& k = model->missions();
  Text id = an_id();
  switch (roll(5)) {
    case 0:
      return agree("get " + id, model->get(k, id),
                   [&](manager& m) { return show(m.get<Mission>(id)); });
    case 1:
      return agree("history " + id, model->history(k, id),
                   [&](manager& m) { return show(m.history<Mission>(id)); });
    case 2:
      return agree("children " + id, model->children(id),
                   [&](manager& m) { return show(m.children(id)); });
    case 3:
      return agree("ancestors " + id, model->ancestors(id),
                   [&](manager& m) { return show(m.ancestors(id)); });
    default:
      return agree("lookup " + id, model->lookup(id), [&](manager& m) {
        auto got = m.lookup(id);
        return got ? show(std::vector<snapshot>{*got}) : show(got.error());
      });
  }
}

// Adds a filter to the query and to the list of what the model must match, once in `n` times.
template <auto Field>
static void filter_by(story& s, query<Mission>& q, uint64_t n, const Mission& like,
                      std::vector<Fits>& wants) {
  if (s.roll(n)) return;
  q.where<Field>(like.*Field);
  wants.push_back([like](const Mission& x) { return x.*Field == like.*Field; });
}

query<Mission> story::a_query(std::vector<Fits>& wants) {
  query<Mission> q;
  if (roll(3) == 0) q.phase = roll(4) ? a_phase() : "limbo";
  q.active = roll(3) == 0;
  Mission other{.owner = a_word()};
  auto kept = model->missions().live;
  Mission like = kept.empty() || roll(3) == 0
                     ? a_mission()
                     : std::next(kept.begin(), static_cast<long>(roll(kept.size())))->second.state;
  filter_by<&Mission::drone>(*this, q, 3, like, wants);
  filter_by<&Mission::owner>(*this, q, 4, other, wants);
  filter_by<&Mission::battery>(*this, q, 6, like, wants);
  filter_by<&Mission::retries>(*this, q, 6, like, wants);
  filter_by<&Mission::labels>(*this, q, 6, like, wants);
  filter_by<&Mission::armed>(*this, q, 6, like, wants);
  filter_by<&Mission::parent>(*this, q, 6, like, wants);
  if (roll(12) == 0) {
    q.where("waypoint_index", int64_t{0});  // a value of another kind matches nothing
    wants.push_back([](const Mission&) { return false; });
  }
  q.offset = roll(3) ? 0 : static_cast<int64_t>(roll(3));
  q.limit = roll(2) ? 0 : static_cast<int64_t>(1 + roll(3));
  return q;
}

void story::say_list() {
  std::vector<Fits> wants;
  query<Mission> q = a_query(wants);
  revision after = 0;
  if (!moments.empty() && roll(4) == 0)
    std::tie(after, q.updated_after) = moments[roll(moments.size())];
  auto fits = [&](const Mission& x) {
    return std::all_of(wants.begin(), wants.end(), [&](const auto& want) { return want(x); });
  };
  Text expected;
  for (const Kind::One* one : model->list(model->missions(), q, fits, after))
    expected += fmt::format("{} {};", show(one->state), one->rev);
  agree("list", expected, [&](manager& m) {
    // All pages; the offset applies to the first one.
    Text got;
    query<Mission> page_query = q;
    for (int pages = 0; pages < 100; ++pages) {
      auto page = m.list(page_query);
      if (!page) return show(page.error());
      for (size_t i = 0; i < page->size(); ++i)
        got += fmt::format("{} {};", show((*page)[i]), page->revisions[i]);
      if (page->cursor.empty()) return got;
      page_query.cursor = page->cursor;
      page_query.offset = 0;
    }
    return got + "and no end";
  });
  query<Mission> wrong = q;
  wrong.where("surprise", Text("x"));
  agree("list by an unknown field", said(errc::unknown_field), [&](manager& m) {
    auto got = m.list(wrong);
    return got ? "a page" : show(got.error());
  });
}

void story::say_watch() {
  std::optional<revision> after;
  if (roll(2)) after = roll(model->rev() + 2);
  for (Side& side : sides) {
    if (side.watches.size() > 3) {
      // Closes a watch and resumes it after the last change that was read.
      Side::Watch& w = side.watches[roll(side.watches.size())];
      if (w.after)
        w.stream = *side.m->watch<Mission>(w.live.empty() ? *w.after : w.live.back().rev);
      continue;
    }
    side.watches.push_back({*side.m->watch<Mission>(after), after, after.value_or(0), {}, {}});
  }
}

// Reads a few changes of each watch, or all of them.
void story::read_watches(bool all) {
  const std::vector<Seen>& changes = model->missions().changes;
  for (Side& side : sides)
    for (Side::Watch& w : side.watches) {
      revision until = changes.empty() ? 0 : changes.back().rev;
      for (uint64_t n = all ? UINT64_MAX : roll(4); n > 0 && w.newest < until; --n) {
        auto c = w.stream.next(deadline::in(all ? 10s : 1ms));
        if (!c) break;
        ASSERT_EQ(c->skipped, 0u);
        w.newest = std::max(w.newest, c->rev);
        Text state = c->deleted ? "" : show(c->state);
        if (c->snapshot) {
          ASSERT_FALSE(w.after) << "a watch from a revision has no snapshot";
          ASSERT_TRUE(w.live.empty()) << "the snapshot comes first";
        } else {
          w.live.push_back({c->rev, c->id, state});
        }
        if (state.empty())
          w.shown.erase(c->id);
        else
          w.shown[c->id] = state;
      }
    }
}

void story::check(Side& side, Side::Watch& w) {
  const std::vector<Seen>& changes = model->missions().changes;
  // Each live change is in the model, and none is missing after the first one.
  revision from = w.after ? *w.after + 1 : w.live.empty() ? model->rev() + 1 : w.live.front().rev;
  std::vector<Seen> expected;
  for (const Seen& one : changes)
    if (one.rev >= from) expected.push_back(one);
  Text got_text, expected_text;
  for (const Seen& one : w.live)
    got_text += fmt::format("{} {} {}\n", one.rev, one.id, one.state);
  for (const Seen& one : expected)
    expected_text += fmt::format("{} {} {}\n", one.rev, one.id, one.state);
  ASSERT_EQ(got_text, expected_text)
      << side.name << " watch after " << (w.after ? std::to_string(*w.after) : "nothing");
  if (w.after) return;
  // The snapshot and the changes after it give the current state.
  std::map<Text, Text> whole;
  for (const auto& [id, one] : model->missions().live)
    whole[id] = show(one.state);
  ASSERT_EQ(w.shown, whole) << side.name;
}

}  // namespace

TEST_P(story, library_server_and_model_agree) {
  using Say = void (story::*)();
  static constexpr Say kSentences[] = {&story::say_write,    &story::say_write, &story::say_write,
                                       &story::say_mutation, &story::say_patch, &story::say_capture,
                                       &story::say_read,     &story::say_read,  &story::say_list,
                                       &story::say_watch};
  for (int step = 0; step < 150; ++step) {
    (this->*kSentences[roll(std::size(kSentences))])();
    if (HasFatalFailure()) return;
    moments.emplace_back(model->rev(), std::chrono::system_clock::now());
    read_watches(false);
    if (HasFatalFailure()) return;
  }
  // One more change that every watch must reach.
  Mission last{.entity_id = "last"};
  agree("the end", model->create(model->missions(), last),
        [&](manager& m) { return show(m.create(last)); });
  read_watches(true);
  for (Side& side : sides)
    for (Side::Watch& w : side.watches)
      check(side, w);
  // A frame changes one instance of a type, so a watch that resumes after the frame misses nothing.
  for (Engine* engine : {here.get(), there})
    ASSERT_TRUE(engine->parts().shard->frames(1, [&](const Frame& frame) -> Result<bool> {
      EXPECT_LE(changes_of(frame, instance_prefix(engine->options().tenant, "drone-survey")).size(),
                1u);
      return true;
    }));
}

static uint64_t stories() {
  const char* seeds = std::getenv("PAWL_MODEL_SEEDS");
  const char* colon = seeds ? std::strchr(seeds, ':') : nullptr;
  return colon ? std::strtoull(colon + 1, nullptr, 10) : 12;
}

INSTANTIATE_TEST_SUITE_P(model, story, testing::Range<uint64_t>(0, stories()));

}  // namespace pawl::lifecycle
