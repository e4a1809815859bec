#pragma once
// Pictures of a type's phases: Mermaid text, or SVG that needs nothing else.

#include "faces/lifecycle/model.h"

namespace pawl::lifecycle {

std::string render_mermaid(const dynamic_type& def);
// Phases in columns by their distance from the first; `marked` is drawn as the current one.
std::string render_svg(const dynamic_type& def, std::string_view marked = {});

}  // namespace pawl::lifecycle
