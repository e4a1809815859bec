#pragma once
// Draws a graph: the steps of a process, the states of a workflow or the phases of a lifecycle. SVG
// has a layout of our own; Mermaid and DOT are for other tools.

#include <string>
#include <vector>

#include "base/result.h"

namespace pawl::cli {

struct Graph {
  enum class Shape { box, round, diamond, circle };
  struct Node {
    std::string id, label;
    Shape shape = Shape::box;
  };
  struct Edge {
    std::string from, to, label;
    bool dashed = false;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

std::string to_mermaid(const Graph& graph);
std::string to_dot(const Graph& graph);
std::string to_svg(const Graph& graph);
// `format` is svg, mermaid or dot.
Result<std::string> draw(const Graph& graph, std::string_view format);

}  // namespace pawl::cli
