// Routes of signals by name and correlation key.

#include "faces/processes/face.h"
#include "faces/processes/http/answers.h"
#include "faces/processes/limits.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

constexpr RequestShape kPublish{
    "PublishSignalRequest",
    {text("name", "The name of the signal.").required().range(1, kNameBytes).example(R"("paid")"),
     text("correlationKey", "The key that the waiting step computes.").example(R"("order-4711")"),
     text("ttl", "How long it is kept when nothing waits for it: an ISO 8601 duration.")
         .by_default("P1D"),
     variables("variables", "Merged into the variables of the instance.")}};
constexpr AnswerShape kPublished{
    "PublishedSignal",
    {flag("delivered", "A WAIT took it."), text("instanceId").optional(), text("stepId").optional(),
     text("id", "The id of the kept signal.").optional(),
     time("until", "The end of its time.").optional()}};
constexpr RequestShape kSignalsQuery{
    "",
    {text("name"), text("correlationKey"), text("cursor", "The cursor of the page before."),
     integer("pageSize", "The number of signals of a page.").by_default(20)}};
constexpr AnswerShape kKeptSignal{
    "KeptSignal",
    {text("id"), text("name").example(R"("paid")"), text("correlationKey"), time("at"),
     time("until"), text("by", "Who sent it."), variables("variables")}};
constexpr AnswerShape kKeptSignals{
    "KeptSignals",
    {list("items", "The oldest first.", kKeptSignal),
     text("cursor", "For the next page; absent: there is none.").optional()}};
constexpr RequestShape kSignalPath{"", {text("id", "The id of the kept signal.")}};
constexpr Operation kPublishSignal{
    .id = "publishSignal",
    .headers = &wire::kIdempotencyHeader,
    .body = {kPublish},
    .replies = {{200, "An instance goes on.", kPublished}, {202, "It is kept.", kPublished}},
    .errors = {409, 422}};
constexpr Operation kListSignals{.id = "listKeptSignals",
                                 .query = &kSignalsQuery,
                                 .replies = {{200, "Kept signals.", kKeptSignals}}};
constexpr Operation kDropSignal{.id = "dropKeptSignal",
                                .path = &kSignalPath,
                                .headers = &wire::kIdempotencyHeader,
                                .replies = {{204, "The signal is gone."}},
                                .errors = {409, 422}};

Result<int64_t> ttl_of(const std::string& text) {
  auto duration = parse_duration(text.empty() ? kPublish["ttl"].default_text : text);
  const Time max = kMaxSignalDays * 24 * 3600 * kSecond;
  if (duration && add(0, *duration) >= 0 && add(0, *duration) <= max) return add(0, *duration);
  return fail(Code::invalid, "BAD_TTL",
              "ttl must be an ISO 8601 duration of at most " + std::to_string(kMaxSignalDays) +
                  " days, such as PT1H or P7D, got \"" + text.substr(0, 64) + "\"");
}

Result<PublishCommand> publish_command(const wire::Request& request) {
  TRY(wire::BodyReader body, wire::BodyReader::of(request, kBody));
  PublishCommand c;
  TRY(c.name, body.text(kPublish["name"]));
  TRY(c.key, body.text(kPublish["correlationKey"]));
  TRY(std::string ttl, body.text(kPublish["ttl"]));
  TRY(c.ttl_ns, ttl_of(ttl));
  TRY(c.variables, take_variables(body));
  return c;
}

void publish(Service& service, wire::Request request, wire::Respond respond) {
  auto command = publish_command(request);
  if (!command) return respond(refusal(command.error()));
  service.publish(submitter_of(request), std::move(*command),
                  [respond = std::move(respond)](Result<Bytes> answer) mutable {
                    if (!answer) return respond(refusal(answer.error()));
                    int status = answer->starts_with(R"({"delivered":true)") ? 200 : 202;
                    respond(ok(status, std::move(*answer)));
                  });
}

Result<std::string> list(Service& service, const wire::Request& request) {
  KeptSignal like{.name = request.query_param(kSignalsQuery["name"]).value_or(""),
                  .key = request.query_param(kSignalsQuery["correlationKey"]).value_or("")};
  std::string cursor = request.query_param(kSignalsQuery["cursor"]).value_or(""), next;
  TRY(PageRequest page, page_of(request));
  TRY(auto found, service.kept_signals(request.caller.tenant, like, cursor, page.size, &next));
  json::Array items;
  for (auto& [id, signal] : found) {
    TRY(json::Value variables,
        json::parse(signal.variables, {.max_bytes = signal.variables.size() + 1}));
    items.push_back(json::object({{"id", id},
                                  {"name", signal.name},
                                  {"correlationKey", signal.key},
                                  {"at", rfc3339(signal.at, 6)},
                                  {"until", rfc3339(signal.until, 6)},
                                  {"by", signal.user},
                                  {"variables", std::move(variables)}}));
  }
  json::Value out = json::object({{"items", json::Value(std::move(items))}});
  if (!next.empty()) out.object().add("cursor", json::Value(next));
  return json::print(out);
}

}  // namespace

std::vector<wire::Route> signal_routes(Service& s) {
  using wire::Request, wire::Respond, wire::slow;
  const std::string p = "/pawl/v1/processes/signals";
  return {
      {"POST", p, [&s](Request r, Respond a) { publish(s, std::move(r), std::move(a)); },
       "Continues the WAIT that has waited longest for this name and correlation key, or keeps the "
       "signal for one that comes later.",
       &kPublishSignal},
      slow({"GET", p, [&s](Request r, Respond a) { respond_with(a, [&] { return list(s, r); }); },
            "Lists kept signals, oldest first, by name and correlationKey.", &kListSignals}),
      {"DELETE", p + "/{id}",
       [&s](Request r, Respond a) {
         s.drop_signal(submitter_of(r), r.params[0], reply_with(std::move(a), 204));
       },
       "Drops a kept signal.", &kDropSignal},
  };
}

}  // namespace pawl::processes
