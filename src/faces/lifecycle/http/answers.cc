#include "faces/lifecycle/http/answers.h"

#include <fmt/format.h>

#include "base/log.h"

namespace pawl::lifecycle {

wire::Response error_response(int status, std::string text) {
  return wire::json_response(status, "{\"error\":" + js::quote(text) + "}");
}

wire::Response refusal_response(std::string_view operation, const Error& error) {
  const errc_row* row = find_errc(error.reason);
  int status = row ? row->status : wire::code_status(error.code).http;
  if (status == 500) {
    log(Level::error, "lifecycle request failed",
        {{"operation", operation}, {"code", error.reason}, {"detail", error.message}});
    return error_response(
        500, fmt::format("{}: internal error (operator details in server log)", operation));
  }
  wire::Response out = error_response(status, fmt::format("{}: {}", operation, error.message));
  if (status == 503 || status == 429) out.headers.emplace_back("Retry-After", "1");
  return out;
}

wire::Response body_refusal(const Error& error, std::string_view operation) {
  const std::string lead = operation.empty() ? std::string() : std::string(operation) + ": ";
  return error_response(wire::code_status(error.code).http, lead + error.message);
}

wire::Response json_answer(int status, const js::Value& body) {
  return wire::json_response(status, js::print(body));
}

bool append_instance(std::string& out, const WorkflowType& type, const FoundInstance& found) {
  size_t before = out.size();
  if (append_state(out, type.def, found.stored.record)) return true;
  out.resize(before);
  return false;
}

wire::Response states_response(
    const std::vector<std::pair<WorkflowTypePtr, const FoundInstance*>>& states, size_t skipped) {
  std::string body = "[";
  for (const auto& [type, found] : states) {
    size_t before = body.size();
    if (before > 1) body.push_back(',');
    if (append_instance(body, *type, *found)) continue;
    body.resize(before);
    ++skipped;
    log(Level::warn, "an instance cannot be read and is left out",
        {{"workflow", type->def.name}, {"id", found->id}});
  }
  body.push_back(']');
  wire::Response out = wire::json_response(200, std::move(body));
  if (skipped) out.headers.emplace_back("X-Pawl-Skipped", std::to_string(skipped));
  return out;
}

js::Value event_json(const transition_event& event) {
  js::Object out;
  out.add("from", event.from);
  out.add("to", event.to);
  out.add("at",
          rfc3339(std::chrono::duration_cast<std::chrono::nanoseconds>(event.at.time_since_epoch())
                      .count()));
  out.add("triggered", name_of(event.triggered));
  if (!event.note.empty()) out.add("note", event.note);
  if (!event.caller.empty()) out.add("caller", event.caller);
  out.add("revision", event.rev);
  return out;
}

std::vector<std::pair<std::string, std::string>> query_pairs(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    size_t equals = pair.find('=');
    std::string_view text =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    out.emplace_back(wire::percent_decode(pair.substr(0, equals), true),
                     wire::percent_decode(text, true));
  }
  return out;
}

}  // namespace pawl::lifecycle
