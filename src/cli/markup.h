#pragma once
// Escapes text for HTML and SVG.

#include <string>
#include <string_view>

namespace pawl::cli {

std::string markup_text(std::string_view text);

}  // namespace pawl::cli
