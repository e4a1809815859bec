#include "cli/remote.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "json/text.h"

namespace pawl::cli {

Result<std::string> read_file(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  // An ifstream opens a folder without an error and reads nothing from it.
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown))
    return fail(Code::not_found, "NO_FILE", fmt::format("cannot read {}: it is a folder", path));
  std::ifstream in(path);
  if (!in) return fail(Code::not_found, "NO_FILE", fmt::format("cannot read {}", path));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

Result<json::Value> read_json(const std::string& path) {
  TRY(std::string text, read_file(path));
  auto value = json::parse(text);
  if (!value) value.error().message = fmt::format("{}: {}", path, value.error().message);
  return value;
}

// The address from --server, else from PAWL_SERVER, else the default. The parser has checked the
// flag; the variable is checked here in the same way.
static Result<std::string> server_of(const Args& args) {
  const char* given = std::getenv("PAWL_SERVER");
  if (args.has(kServer.name) || !given || !*given) return args.get(kServer.name, "127.0.0.1:8080");
  if (auto address = server::normal_value(kServer.type, given)) return *std::move(address);
  return fail(Code::invalid, kBadUsage,
              fmt::format("the environment variable PAWL_SERVER is '{}'; allowed: {}", given,
                          server::allowed_values(kServer.type)));
}

Result<std::unique_ptr<Client>> client_of(const Args& args) {
  TRY(std::string server, server_of(args));
  return client_to(args, std::move(server));
}

// Flags win over environment variables. A token file may end with a line break.
Result<std::unique_ptr<Client>> client_to(const Args& args, std::string server) {
  std::string token;
  if (args.has("token-file")) {
    TRY(token, read_file(args.get("token-file")));
    while (!token.empty() && isspace(static_cast<unsigned char>(token.back())))
      token.pop_back();
  } else if (const char* t = std::getenv("PAWL_TOKEN")) {
    token = t;
  }
  return std::make_unique<Client>(std::move(server), std::move(token));
}

Result<int> print_answer(const Args& args, std::string_view method, const std::string& path,
                         const json::Value* body) {
  TRY(auto client, client_of(args));
  TRY(json::Value answer, client->call(method, path, body));
  show(args, answer, [&] { fmt::print("{}\n", json::print_pretty(answer)); });
  return kDone;
}

Result<std::string> word(const Args& args, size_t at, std::string_view what) {
  if (at < args.words.size()) return args.words[at];
  return fail(Code::invalid, kBadUsage, fmt::format("name {}; see --help", what));
}

Result<json::Object> pairs(const std::vector<std::string>& words) {
  json::Object out;
  for (const std::string& w : words) {
    size_t equals = w.find('=');
    if (equals == std::string::npos || equals == 0)
      return fail(Code::invalid, kBadUsage, fmt::format("'{}' is not NAME=VALUE", w));
    auto value = json::parse(w.substr(equals + 1));
    out.set(w.substr(0, equals), value ? std::move(*value) : json::Value(w.substr(equals + 1)));
  }
  return out;
}

static std::string cell(const json::Value* v) {
  if (!v || v->is_null()) return "";
  return v->is_string() ? v->string() : json::print(*v);
}

// Cells are cut at 60 bytes, so that a row stays readable; --json prints them whole.
void print_table(const json::Value& items, const std::vector<std::string_view>& columns) {
  if (!items.is_array() || items.array().empty()) {
    fmt::print("nothing\n");
    return;
  }
  std::vector<size_t> widths;
  for (auto c : columns) {
    size_t w = c.size();
    for (const auto& item : items.array())
      w = std::max(w, std::min<size_t>(60, cell(item.find(c)).size()));
    widths.push_back(w);
  }
  for (size_t i = 0; i < columns.size(); ++i)
    fmt::print("{:<{}}  ", columns[i], widths[i]);
  fmt::print("\n");
  for (const auto& item : items.array()) {
    for (size_t i = 0; i < columns.size(); ++i) {
      std::string text = cell(item.find(columns[i]));
      if (text.size() > 60) text = text.substr(0, 57) + "...";
      fmt::print("{:<{}}  ", text, widths[i]);
    }
    fmt::print("\n");
  }
}

// Parameters without a value are left out: a flag that was not given becomes an empty text.
std::string query(const std::vector<std::pair<std::string_view, std::string>>& params) {
  std::string out;
  for (const auto& [name, value] : params)
    if (!value.empty())
      out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, wire::percent_encode(value));
  return out;
}

}  // namespace pawl::cli
