#include "cli/markup.h"

namespace pawl::cli {

// The quote is escaped as well, so the result also fits an attribute in double quotes.
std::string markup_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out.push_back(c);
  }
  return out;
}

}  // namespace pawl::cli
