#include "cli/openapi.h"

#include <fmt/format.h>

#include "cli/markup.h"
#include "pawl/version.h"

namespace pawl::cli {

namespace {

// The first two words of a path: "/api/entity".
std::string group_of(std::string_view pattern) {
  size_t second = pattern.find('/', 1);
  size_t third = second == pattern.npos ? second : pattern.find('/', second + 1);
  std::string_view group = pattern.substr(0, third);
  if (size_t brace = group.find("/{"); brace != group.npos) group = group.substr(0, brace);
  return std::string(group);
}

}  // namespace

// The page is self-contained: it has no script and loads nothing, and its security policy allows
// only its own style. Routes come in the order of the tables, so a new group begins where the first
// two words change.
wire::Response docs_page(const wire::Router& router) {
  std::string out =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>Pawl API</title><style>"
      "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 "
      "1rem}table{border-collapse:collapse;width:100%}"
      "td{padding:.25rem .75rem .25rem 0;vertical-align:top;border-top:1px solid "
      "#8884}td:first-child{width:5rem;font-weight:600}"
      "code{font-size:.95em}:root{color-scheme:light dark}</style>";
  out += fmt::format(
      "<h1>Pawl {}</h1><p>The same as <a href=\"/openapi.json\">OpenAPI</a>. Help on entities: <a "
      "href=\"/help\">topics</a>.",
      PAWL_VERSION);
  std::string group;
  for (const wire::Route* route : router.rows()) {
    if (std::string next = group_of(route->pattern); next != group || group.empty()) {
      if (!group.empty()) out += "</table>";
      group = std::move(next);
      out += fmt::format("<h2>{}</h2><table>", markup_text(group));
    }
    out += fmt::format("<tr><td>{}<td><code>{}</code><td>{}", markup_text(route->method),
                       markup_text(route->pattern), markup_text(route->doc));
  }
  wire::Response page;
  page.headers.emplace_back("Content-Type", "text/html; charset=utf-8");
  page.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
  page.body = out + "</table></html>\n";
  return page;
}

}  // namespace pawl::cli
