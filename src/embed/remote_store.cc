#include "embed/remote_store.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>
#include <shared_mutex>

#include "base/utf8.h"
#include "embed/local_store.h"
#include "embed/remote_watch.h"
#include "faces/lifecycle/read/reads.h"
#include "faces/lifecycle/type/values.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::lifecycle {

namespace {

// A server that sends a longer answer is not a Pawl server.
constexpr size_t kMaxAnswerBytes = size_t{1} << 30;

std::string in_path(std::string_view text) { return wire::percent_encode(text); }

// Reads and operator writes use the operator API (/workflows). Writes that only programs may make
// use Pawl's own API (/pawl/v1/lifecycle).
std::string below(std::string_view what) { return fmt::format("/pawl/v1/lifecycle/{}", what); }
std::string instances(std::string_view workflow) { return below("instances/") + in_path(workflow); }
std::string operators(std::string_view workflow) { return "/workflows/" + in_path(workflow); }

// A request about the instance or rule `id_text` below the path `head`. A malformed id is refused
// here, since it could turn the path into another one.
result<net::HttpRequest> about(std::string method, const std::string& head,
                               std::string_view id_text, std::string_view rest = {},
                               std::string body = {}) {
  if (auto good = check_id(id_text); !good) return lifecycle::fail(to_error(good.error()));
  return net::HttpRequest{
      std::move(method), fmt::format("{}/{}{}", head, in_path(id_text), rest), {}, std::move(body)};
}

// The ETag is the revision in quotes. An answer without one gives 0.
revision revision_of(const net::HttpAnswer& answer) {
  std::string_view tag = answer.header("ETag");
  if (tag.starts_with('"')) tag.remove_prefix(1);
  revision out = 0;
  std::from_chars(tag.data(), tag.data() + tag.size(), out);
  return out;
}

// The error of a request that got no answer, from the HTTP client's error.
// Says for each kind of failure what the caller can do; after a timeout the write may still happen.
error no_answer(const net::HttpClient& http, const Error& why) {
  const std::string& server = http.options().base_url;
  if (why.is(net::kTimedOut))
    return {make_error_code(errc::deadline_exceeded),
            fmt::format("no answer from {} in time; what was asked may still happen", server)};
  if (why.is(net::kUnreachable))
    return {make_error_code(errc::storage),
            fmt::format("nobody answers at {} ({}): is the server running?", server, why.message)};
  if (why.is(net::kBadCertificate))
    return {make_error_code(errc::storage),
            fmt::format("{}: is the certificate of {} trusted, and is it for this name?",
                        why.message, server)};
  return {make_error_code(errc::storage), fmt::format("{}: {}", server, why.message)};
}

// A write over HTTP is answered before replace() returns, so nothing is left to wait for.
class Settled final : public pending_write {
 public:
  explicit Settled(result<written> outcome) : outcome_(std::move(outcome)) {}
  result<written> wait(deadline) override { return outcome_; }

 private:
  result<written> outcome_;
};

uint64_t uint_member(const js::Value& from, std::string_view name) {
  const js::Value* member = from.find(name);
  return member && member->is_number() ? member->as_uint64().value_or(0) : 0;
}

js::Value context_json(std::string_view id_text, const rule_context& context) {
  return js::object({{"entity_id", id_text},
                     {"message", object_or_empty(context.message)},
                     {"caller", object_or_empty(context.caller)},
                     {"schedule", object_or_empty(context.schedule)},
                     {"state", object_or_empty(context.state)}});
}

// Strings are sent as they are, other values as JSON; the server reads each by the kind of its
// field.
std::string query_text(const any_query& query) {
  std::string out = fmt::format("?limit={}&offset={}", std::max<int64_t>(0, query.limit),
                                std::max<int64_t>(0, query.offset));
  if (!query.phase.empty()) out += "&phase=" + wire::percent_encode(query.phase);
  if (query.active) out += "&active=true";
  if (!query.cursor.empty()) out += "&cursor=" + wire::percent_encode(query.cursor);
  if (query.updated_after)
    out += "&updated_after=" +
           wire::percent_encode(rfc3339(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                            query.updated_after->time_since_epoch())
                                            .count()));
  for (const auto& [name, v] : query.match) {
    std::string text = v.k == kind::string ? std::get<std::string>(v.v) : js::print(to_json(v));
    out += "&match." + wire::percent_encode(name) + "=" + wire::percent_encode(text);
  }
  return out;
}

}  // namespace

// The server's message begins with "lifecycle: " and the fixed words of an errc (see kErrors),
// which bring the code back. A message without them is judged by its status.
error error_of(int status, std::string_view body) {
  std::string text(body);
  if (auto parsed = js::parse(body); parsed && parsed->is_object())
    text = parsed->string_or("error", body);
  size_t at = text.find("lifecycle: ");
  if (at != std::string::npos) {
    std::string_view words = std::string_view(text).substr(at + 11);
    for (const errc_row& row : kErrors)
      if (words.starts_with(row.words)) {
        words.remove_prefix(row.words.size());
        if (words.starts_with(": ")) words.remove_prefix(2);
        return {make_error_code(row.code), std::string(words)};
      }
  }
  errc code = status == 403 || status == 401 ? errc::denied
              : status == 404                ? errc::entity_not_found
              : status == 500                ? errc::corrupt_value
                                             : errc::storage;
  return {make_error_code(code), fmt::format("the server answered {}: {}", status, text)};
}

result<instance> parse_state(const WorkflowType& type, const js::Value& state, revision rev) {
  std::string id_text(state.string_or(type.id_field));
  // Members that this program does not know belong to another version of the type. They are kept,
  // and state_of() writes them back.
  js::Object listed;
  std::string unlisted;
  if (state.is_object())
    for (const auto& [name, member] : state.object()) {
      if (type.def.find(name))
        listed.add(name, member);
      else
        record::put(unlisted, name, value(json{js::print(member)}));
    }
  auto bytes = record_of(type, id_text, js::Value(std::move(listed)));
  if (!bytes) return lifecycle::fail(to_error(bytes.error()));
  *bytes += unlisted;
  struct Kept {
    std::string id, record;
  };
  auto kept = std::make_shared<Kept>(Kept{std::move(id_text), *std::move(bytes)});
  instance out;
  out.id = kept->id;
  out.record = kept->record;
  out.phase = text_field(kept->record, type.phase_field);
  out.parent =
      type.parent_field.empty() ? std::string_view() : text_field(kept->record, type.parent_field);
  out.rev = rev;
  out.stamp = rev;  // a server names a write by its revision
  out.keep = std::move(kept);
  return out;
}

// Whether JSON can carry the value unchanged.
static bool travels(const value& v) {
  switch (record::form_of(v.k)) {
    case record::f_string: return is_utf8(std::get<std::string>(v.v));
    case record::f_real: return std::isfinite(std::get<double>(v.v));
    case record::f_list:
      return std::all_of(std::get<std::vector<std::string>>(v.v).begin(),
                         std::get<std::vector<std::string>>(v.v).end(),
                         [](const std::string& s) { return is_utf8(s); });
    default: return true;
  }
}

// The body of a request that writes a record.
static result<std::string> state_of(const dynamic_type& def, std::string_view bytes) {
  std::string out;
  for (const auto& f : def.fields)
    if (auto v = read_field(bytes, f); v && !travels(*v))
      return lifecycle::fail(
          errc::type_mismatch,
          fmt::format("field '{}' of {} is not UTF-8 or not a finite number: it cannot be sent",
                      f.name, def.name));
  if (!append_state(out, def, bytes))
    return lifecycle::fail(errc::type_mismatch,
                           "the state does not fit the definition of " + def.name);
  // Adds the members that parse_state() kept: append_state() has written only the fields of the
  // type. The closing brace is replaced by a comma each time.
  record::walk at(bytes);
  while (at.next()) {
    if (def.find(at.name) || at.f != record::f_json) continue;
    out.back() = ',';
    js::append_string(out, at.name);
    out.append(":").append(at.as_text()).append("}");
  }
  return out;
}

// Types are fetched once and cached, because every state is read and written by its type.
// register_type() and known() fill the cache.
class RemoteStore final : public store {
 public:
  explicit RemoteStore(net::HttpClientOptions server)
      : http_(std::make_shared<net::HttpClient>(std::move(server))) {}

  result<void> put_type(const dynamic_type& def) override {
    auto done = ask(net::HttpRequest{"PUT",
                                     below("types/") + in_path(def.name),
                                     {{"X-Pawl-Definition", "code"}},
                                     js::print(type_json(def))});
    if (!done) return lifecycle::fail(done.error());
    std::unique_lock lock(types_mutex_);
    types_.insert_or_assign(def.name, std::make_shared<const WorkflowType>(make_type(def)));
    return {};
  }

  result<dynamic_type> type(std::string_view workflow) override {
    auto body = ask_json(net::HttpRequest{"GET", below("types/") + in_path(workflow)});
    if (!body) return lifecycle::fail(body.error());
    auto def = parse_type(workflow, *body);
    if (!def) return lifecycle::fail(to_error(def.error()));
    return *std::move(def);
  }

  result<std::vector<dynamic_type>> types() override {
    auto body = ask_json(net::HttpRequest{"GET", below("types")});
    if (!body) return lifecycle::fail(body.error());
    std::vector<dynamic_type> out;
    if (body->is_array())
      for (const js::Value& one : body->array())
        if (auto def = parse_type(one.string_or("workflow"), one)) out.push_back(*std::move(def));
    return out;
  }

  result<instance> get(std::string_view workflow, std::string_view id_text) override {
    auto def = known(workflow);
    if (!def) return lifecycle::fail(def.error());
    net::HttpAnswer whole;
    auto body = ask_json(about("GET", operators(workflow), id_text), &whole);
    if (!body) return lifecycle::fail(body.error());
    return parse_state(**def, *body, revision_of(whole));
  }

  result<written> create(std::string_view workflow, std::string_view id_text, std::string bytes,
                         deadline until) override {
    auto def = known(workflow);
    if (!def) return lifecycle::fail(def.error());
    auto body = state_of((*def)->def, bytes);
    if (!body) return lifecycle::fail(body.error());
    return write(about("POST", instances(workflow), id_text, {}, *std::move(body)), until);
  }

  std::unique_ptr<pending_write> replace(replace_request r) override {
    auto def = known(r.workflow);
    if (!def) return std::make_unique<Settled>(lifecycle::fail(def.error()));
    auto body = state_of((*def)->def, r.record);
    if (!body) return std::make_unique<Settled>(lifecycle::fail(body.error()));
    // The stamp of a state from a server is its revision; see parse_state().
    revision expected = r.expected_rev ? r.expected_rev : r.expected_stamp;
    // The source, the target and the note travel in the query, because the body is the state
    // itself.
    std::string query = fmt::format("?source={}&to={}&note={}", name_of(r.why.triggered),
                                    in_path(r.to), in_path(r.why.note));
    auto what = about("PUT", instances(r.workflow), r.id, query, *std::move(body));
    if (what) what->headers.emplace_back("If-Match", fmt::format("\"{}\"", expected));
    return std::make_unique<Settled>(write(std::move(what), r.until));
  }

  result<written> transition(std::string_view workflow, std::string_view id_text,
                             std::string_view to, const how& why, deadline until) override {
    // The HTTP API answers "phase is required" to a blank phase, without the words of an errc. In
    // process it is an invalid transition.
    if (to.find_first_not_of(" \t\r\n") == std::string_view::npos)
      return lifecycle::fail(errc::invalid_transition,
                             fmt::format("'{}' is not a phase of {}", to, workflow));
    std::string rest = fmt::format("/transition?source={}", name_of(why.triggered));
    return write(about("POST", instances(workflow), id_text, rest,
                       js::print(js::object({{"phase", to}, {"note", why.note}}))),
                 until);
  }

  result<written> complete(std::string_view workflow, std::string_view id_text,
                           std::string_view target, deadline until) override {
    return write(about("POST", instances(workflow), id_text, "/complete",
                       js::print(js::object({{"target", target}}))),
                 until);
  }

  result<written> mark_failed(std::string_view workflow, std::string_view id_text,
                              std::string_view reason, deadline until) override {
    return write(about("POST", instances(workflow), id_text, "/fail",
                       js::print(js::object({{"reason", reason}}))),
                 until);
  }

  result<written> remove(std::string_view workflow, std::string_view id_text,
                         deadline until) override {
    return write(about("DELETE", instances(workflow), id_text, "?source=component"), until);
  }

  result<written> patch(std::string_view workflow, std::string_view id_text,
                        std::string_view json_object, deadline until) override {
    auto fields = parse_or(errc::type_mismatch, json_object);
    if (!fields) return lifecycle::fail(to_error(fields.error()));
    if (!fields->is_object() && !fields->is_null())
      return lifecycle::fail(errc::type_mismatch, "a patch must be an object of fields");
    return write(about("POST", operators(workflow), id_text, "/state", std::string(json_object)),
                 until);
  }

  result<any_page> list(std::string_view workflow, const any_query& query) override {
    auto def = known(workflow);
    if (!def) return lifecycle::fail(def.error());
    if (auto known_fields = check_match(**def, query); !known_fields)
      return lifecycle::fail(to_error(known_fields.error()));
    // A value of another kind than the field equals no stored value. The server would convert it.
    for (const auto& [name, v] : query.match)
      if ((*def)->def.find(name)->k != v.k) return any_page{};
    auto body = ask_json(net::HttpRequest{"GET", instances(workflow) + query_text(query)});
    if (!body) return lifecycle::fail(body.error());
    any_page out;
    const js::Value* list = body->find("instances");
    if (!list || !list->is_array())
      return lifecycle::fail(errc::storage, "the server's answer has no \"instances\"");
    for (const js::Value& one : list->array()) {
      const js::Value* state = one.find("state");
      auto made = parse_state(**def, state ? *state : js::Value(), uint_member(one, "revision"));
      if (!made) {
        ++out.skipped;
        continue;
      }
      // The times are extra information of this list; a time that cannot be read becomes 0.
      made->created_ns = parse_rfc3339(one.string_or("created")).value_or(0);
      made->updated_ns = parse_rfc3339(one.string_or("updated")).value_or(0);
      out.items.push_back(*std::move(made));
    }
    out.skipped += uint_member(*body, "skipped");
    out.cursor = body->string_or("cursor");
    return out;
  }

  result<history_log> history(std::string_view workflow, std::string_view id_text) override {
    auto body = ask_json(about("GET", operators(workflow), id_text, "/history"));
    if (!body) return lifecycle::fail(body.error());
    history_log out;
    if (!body->is_array()) return out;
    for (const js::Value& one : body->array()) {
      transition_event event;
      event.from = one.string_or("from");
      event.to = one.string_or("to");
      event.note = one.string_or("note");
      event.caller = one.string_or("caller");
      if (auto at = parse_rfc3339(one.string_or("at")))
        event.at = time_point(
            std::chrono::duration_cast<time_point::duration>(std::chrono::nanoseconds(*at)));
      // An unknown source keeps the default.
      for (size_t i = 0; i < std::size(kSources); ++i)
        if (kSources[i] == one.string_or("triggered")) event.triggered = static_cast<source>(i);
      event.rev = uint_member(one, "revision");
      out.events.push_back(std::move(event));
    }
    return out;
  }

  result<std::vector<snapshot>> children(std::string_view id_text) override {
    auto body = ask_json(net::HttpRequest{
        "GET", below("children") + (id_text.empty() ? std::string() : "/" + in_path(id_text))});
    if (!body) return lifecycle::fail(body.error());
    std::vector<snapshot> out;
    if (body->is_array())
      for (const js::Value& one : body->array())
        if (auto made = linked(one)) out.push_back(*std::move(made));
    return out;
  }

  result<std::vector<snapshot>> ancestors(std::string_view id_text, std::string& warning) override {
    net::HttpAnswer whole;
    auto body = ask_json(about("GET", below("ancestors"), id_text), &whole);
    if (!body) return lifecycle::fail(body.error());
    warning = whole.header("Warning");
    std::vector<snapshot> out;
    if (body->is_array())
      for (const js::Value& one : body->array())
        if (auto made = linked(one)) out.push_back(*std::move(made));
    return out;
  }

  result<snapshot> lookup(std::string_view id_text) override {
    auto body = ask_json(about("GET", below("lookup"), id_text));
    if (!body) return lifecycle::fail(body.error());
    return linked(*body);
  }

  result<std::unique_ptr<subscription>> watch(std::string_view workflow,
                                              std::optional<revision> after) override {
    auto def = known(workflow);
    if (!def) return lifecycle::fail(def.error());
    return std::unique_ptr<subscription>(std::make_unique<RemoteSubscription>(http_, *def, after));
  }

  result<void> put_rule(std::string_view name, std::string_view json_rule) override {
    auto rule = parse_or(errc::invalid_rule, json_rule);
    if (!rule) return lifecycle::fail(to_error(rule.error()));
    if (!rule->is_object()) return lifecycle::fail(errc::invalid_rule, "a rule must be an object");
    auto done = ask(about("PUT", below("rules"), name, {}, std::string(json_rule)));
    if (!done) return lifecycle::fail(done.error());
    return {};
  }

  result<written> run_action(std::string_view id_text, std::string_view json_action,
                             const rule_context& context, deadline until) override {
    auto action = parse_or(errc::invalid_rule, json_action);
    if (!action) return lifecycle::fail(to_error(action.error()));
    js::Value body = context_json(id_text, context);
    body.object().set("action", *std::move(action));
    return write(net::HttpRequest{"POST", below("actions"), {}, js::print(body)}, until);
  }

  result<std::string> substitute(std::string_view id_text, std::string_view text,
                                 const rule_context& context) override {
    js::Value body = context_json(id_text, context);
    body.object().set("text", js::Value(text));
    auto answer = ask_json(net::HttpRequest{"POST", below("substitute"), {}, js::print(body)});
    if (!answer) return lifecycle::fail(answer.error());
    return std::string(answer->string_or("text"));
  }

 private:
  // Returns a 2xx answer, or the error that another status carries.
  result<net::HttpAnswer> ask(result<net::HttpRequest> what, deadline until = {}) {
    if (!what) return lifecycle::fail(what.error());
    auto answer = http_->send(*what, {.deadline = until.at()});
    if (!answer) return lifecycle::fail(no_answer(*http_, answer.error()));
    if (answer->status / 100 != 2) return lifecycle::fail(error_of(answer->status, answer->body));
    return *std::move(answer);
  }

  // The same with the answer's JSON. `whole` receives the answer itself, for its headers.
  result<js::Value> ask_json(result<net::HttpRequest> what, net::HttpAnswer* whole = nullptr,
                             deadline until = {}) {
    auto answer = ask(std::move(what), until);
    if (!answer) return lifecycle::fail(answer.error());
    auto parsed = js::parse(answer->body);
    if (!parsed)
      return lifecycle::fail(errc::storage,
                             "the server's answer is not JSON: " + parsed.error().message);
    if (whole) *whole = *std::move(answer);
    return *std::move(parsed);
  }

  result<written> write(result<net::HttpRequest> what, deadline until) {
    net::HttpAnswer whole;
    auto body = ask_json(std::move(what), &whole, until);
    if (!body) return lifecycle::fail(body.error());
    return written{revision_of(whole), std::string(body->string_or("phase")),
                   std::string(body->string_or("warning"))};
  }

  // Two threads may fetch the same type at once; the later one replaces an equal entry.
  result<WorkflowTypePtr> known(std::string_view workflow) {
    {
      std::shared_lock lock(types_mutex_);
      if (auto it = types_.find(workflow); it != types_.end()) return it->second;
    }
    auto def = type(workflow);
    if (!def) return lifecycle::fail(def.error());
    auto made = std::make_shared<const WorkflowType>(make_type(*std::move(def)));
    std::unique_lock lock(types_mutex_);
    return types_.insert_or_assign(std::string(workflow), made).first->second;
  }

  // An instance of any type, as children, ancestors and lookup report it.
  result<snapshot> linked(const js::Value& from) {
    auto def = known(from.string_or("workflow"));
    if (!def) return lifecycle::fail(def.error());
    const js::Value* state = from.find("state");
    if (!state) return lifecycle::fail(errc::corrupt_value, "the server could not read the state");
    auto one = parse_state(**def, *state, uint_member(from, "revision"));
    if (!one) return lifecycle::fail(one.error());
    return to_snapshot((*def)->def, *one);
  }

  std::shared_ptr<net::HttpClient> http_;  // shared with watches, which may outlive the store
  std::shared_mutex types_mutex_;
  std::map<std::string, WorkflowTypePtr, std::less<>> types_;
};

result<std::shared_ptr<store>> connect_remote_store(std::string_view address,
                                                    const remote_options& options) {
  while (address.ends_with('/'))
    address.remove_suffix(1);
  auto url = net::parse_url(address);
  if (!url || url->target != "/")
    return lifecycle::fail(
        errc::storage, fmt::format("'{}' must be http://host:port or https://host:port", address));
  net::HttpClientOptions server{.base_url = url->origin(),
                                .media_type = "application/json",
                                .timeout = options.timeout,
                                .ca_file = options.ca_file,
                                .max_answer_bytes = kMaxAnswerBytes};
  if (!options.token.empty())
    server.headers.emplace_back("Authorization", "Bearer " + options.token);
  auto out = std::make_shared<RemoteStore>(std::move(server));
  // A first request, so that a wrong address or token is reported here and not at the first use.
  if (auto reached = out->types(); !reached) return lifecycle::fail(reached.error());
  return std::shared_ptr<store>(std::move(out));
}

}  // namespace pawl::lifecycle
