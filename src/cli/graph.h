#pragma once
// A picture of a graph: steps of a process, states of a workflow, phases of a lifecycle. Three ways
// to draw it: SVG with a layout of our own, Mermaid and DOT for the tools of others.

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
// By name: svg, mermaid, dot.
Result<std::string> draw(const Graph& graph, std::string_view format);

}  // namespace pawl::cli
