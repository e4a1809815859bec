#include "faces/entities/http/routes.h"

#include <fmt/format.h>

#include "faces/entities/model/xml.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

template <class T>
bool read_number(std::string_view text, T& out) {
  auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), out);
  return err == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<std::string> HttpExchange::uuid(size_t i) const {
  std::string id = param(i);
  if (!is_uuid(id)) return bad_request(fmt::format("'{}' is not a UUID", id));
  for (char& c : id)
    c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  return id;
}

Result<int32_t> HttpExchange::version(size_t i) const {
  int32_t v = 0;
  if (!read_number(param(i), v))
    return bad_request(fmt::format("the model version '{}' is not a 32-bit integer", param(i)));
  return v;
}

Result<int64_t> HttpExchange::number(const wire::Member& row) const {
  auto text = request.query_param(row);
  if (!text) return row.default_integer.value_or(0);
  int64_t v = 0;
  if (!read_number(*text, v))
    return bad_request(fmt::format("the parameter {} is '{}', not an integer", row.name, *text));
  return v;
}

Result<std::optional<Time>> HttpExchange::time(const wire::Member& row) const {
  auto text = request.query_param(row);
  if (!text) return std::optional<Time>();
  // An unescaped plus sign of the offset was decoded as a space.
  for (size_t i = 19; i < text->size(); ++i)
    if ((*text)[i] == ' ') (*text)[i] = '+';
  auto time = parse_rfc3339(*text);
  if (!time)
    return bad_request(
        fmt::format("the parameter {} is '{}', not an RFC 3339 time such as 2026-11-15T13:32:00Z",
                    row.name, *text));
  return std::optional(*time);
}

Result<AsOf> HttpExchange::as_of() const {
  AsOf as_of;
  TRY(as_of.time, time(http::kAsOfQuery["pointInTime"]));
  if (auto tx = request.query_param(http::kAsOfQuery["transactionId"])) {
    if (!is_uuid(*tx)) return bad_request(fmt::format("the transactionId '{}' is not a UUID", *tx));
    if (as_of.time) return bad_request("give pointInTime or transactionId, not both");
    as_of.tx = *tx;
  }
  return as_of;
}

static constexpr wire::BodyRules kBody{
    .reason = "BAD_REQUEST", .not_json = "malformed JSON: ", .empty_is_object = false};

Result<json::Value> HttpExchange::body() const {
  return wire::BodyReader::value_of(request, kBody);
}

Result<wire::BodyReader> HttpExchange::body_object() const {
  return wire::BodyReader::of(request, kBody);
}

Result<void> known_format(std::string_view format) {
  if (format == "JSON" || format == "XML") return {};
  return bad_request(fmt::format("unknown format '{}'; use JSON or XML", format));
}

Result<json::Value> HttpExchange::document(size_t format) const {
  TRY_OK(known_format(param(format)));
  if (param(format) == "XML") return parse_xml(request.body);
  return body();
}

Result<void> HttpExchange::issues_tokens() const {
  if (face.options().keys.issue) return {};
  return fail(
      Code::unsupported, "NOT_IMPLEMENTED",
      "machine clients and keys exist when the server runs with --auth jwt and a signing key");
}

bool HttpExchange::is_operator() const {
  const std::string& tenant_of_operators = face.options().operator_tenant;
  return !tenant_of_operators.empty() && tenant() == tenant_of_operators;
}

Bytes array_of_lines(Bytes lines) {
  if (!lines.empty()) lines.pop_back();
  std::replace(lines.begin(), lines.end(), '\n', ',');
  return "[" + lines + "]";
}

Item item_of(Item::Op op, json::Value value) {
  Item item{.op = op};
  sort_names(value);
  item.data = json::print(value);
  item.value = std::move(value);
  return item;
}

void RouteTable::add(std::string method, std::string pattern, SyncHandler handle, std::string doc,
                     const wire::Operation& operation, bool open) {
  auto run = [face = &face_, handle = std::move(handle)](wire::Request request,
                                                         wire::Respond respond) {
    HttpExchange http(*face, std::move(request), std::move(respond));
    auto may = http.may_join();
    http.reply(may ? handle(http) : fail(std::move(may.error())));
  };
  out_.push_back({std::move(method), face_.options().prefix + pattern, std::move(run),
                  std::move(doc), &operation, open});
}

void RouteTable::add_async(std::string method, std::string pattern, AsyncHandler handle,
                           std::string doc, const wire::Operation& operation, bool open,
                           bool root) {
  auto run = [face = &face_, handle = std::move(handle)](wire::Request request,
                                                         wire::Respond respond) {
    auto http = std::make_shared<HttpExchange>(*face, std::move(request), std::move(respond));
    auto begun = http->may_join();
    if (begun) begun = handle(http);
    if (!begun) http->refuse(begun.error());
  };
  out_.push_back({std::move(method), root ? pattern : face_.options().prefix + pattern,
                  std::move(run), std::move(doc), &operation, open});
}

}  // namespace pawl::entities
