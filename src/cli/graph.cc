#include "cli/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/markup.h"

namespace pawl::cli {

// Replaces each character of `bad` by `with`. Each format has another way to write a quote.
static std::string quoted(std::string_view text, std::string_view bad, std::string_view with) {
  std::string out;
  for (char c : text) {
    if (bad.find(c) != std::string_view::npos)
      out += with;
    else
      out.push_back(c);
  }
  return out;
}

// Ids may hold any characters, so nodes are numbered.
std::string to_mermaid(const Graph& g) {
  static constexpr std::pair<const char*, const char*> shapes[] = {
      {"[\"", "\"]"}, {"(\"", "\")"}, {"{\"", "\"}"}, {"((\"", "\"))"}};
  std::map<std::string, std::string> names;
  std::string out = "flowchart TD\n";
  for (const auto& n : g.nodes) {
    std::string name = fmt::format("n{}", names.size());
    names[n.id] = name;
    auto [open, close] = shapes[static_cast<size_t>(n.shape)];
    out += fmt::format("  {}{}{}{}\n", name, open, quoted(n.label, "\"", "#quot;"), close);
  }
  for (const auto& e : g.edges) {
    std::string label =
        e.label.empty() ? "" : fmt::format("|\"{}\"|", quoted(e.label, "\"", "#quot;"));
    out +=
        fmt::format("  {} {}{} {}\n", names[e.from], e.dashed ? "-.->" : "-->", label, names[e.to]);
  }
  return out;
}

// Quotes and backslashes in names are replaced, not escaped.
std::string to_dot(const Graph& g) {
  static constexpr const char* shapes[] = {"box", "box", "diamond", "circle"};
  std::string out = "digraph {\n  node [fontname=\"sans-serif\"];\n";
  for (const auto& n : g.nodes)
    out += fmt::format("  \"{}\" [label=\"{}\", shape={}{}];\n", quoted(n.id, "\"\\", "_"),
                       quoted(n.label, "\"\\", "'"), shapes[static_cast<size_t>(n.shape)],
                       n.shape == Graph::Shape::round ? ", style=rounded" : "");
  for (const auto& e : g.edges)
    out += fmt::format("  \"{}\" -> \"{}\" [label=\"{}\"{}];\n", quoted(e.from, "\"\\", "_"),
                       quoted(e.to, "\"\\", "_"), quoted(e.label, "\"\\", "'"),
                       e.dashed ? ", style=dashed" : "");
  return out + "}\n";
}

namespace {

// A node of the SVG: its row, and the middle of its shape in pixels before the picture is shifted.
struct Placed {
  int row = 0;
  double x = 0, y = 0;
};

// Assigns each node a row: the length of the longest path from the first node, without back edges.
// The order within a row follows the mean position of the predecessors.
std::map<std::string, Placed> place(const Graph& g) {
  std::map<std::string, Placed> at;
  std::map<std::string, size_t> order;
  for (const auto& n : g.nodes) {
    order[n.id] = at.size();
    at[n.id];
  }
  // A row is at most the number of nodes, which also ends the walk through a cycle.
  // Edges to a node that stands earlier in the list count as back edges.
  bool moved = true;
  for (size_t round = 0; moved && round < g.nodes.size(); ++round) {
    moved = false;
    for (const auto& e : g.edges) {
      if (!at.contains(e.from) || !at.contains(e.to) || order[e.to] <= order[e.from]) continue;
      if (at[e.to].row < at[e.from].row + 1) {
        at[e.to].row = at[e.from].row + 1;
        moved = true;
      }
    }
  }
  std::map<int, std::vector<std::string>> rows;
  for (const auto& n : g.nodes)
    rows[at[n.id].row].push_back(n.id);
  for (auto& [row, ids] : rows) {
    std::map<std::string, double> mean;
    for (const auto& id : ids) {
      double sum = 0, count = 0;
      for (const auto& e : g.edges)
        if (e.to == id && at.contains(e.from) && at[e.from].row < row) {
          sum += at[e.from].x;
          ++count;
        }
      mean[id] = count ? sum / count : 0;
    }
    std::stable_sort(ids.begin(), ids.end(),
                     [&](const auto& a, const auto& b) { return mean[a] < mean[b]; });
    for (size_t i = 0; i < ids.size(); ++i) {
      at[ids[i]].x = (static_cast<double>(i) - (static_cast<double>(ids.size()) - 1) / 2) * 220;
      at[ids[i]].y = row * 110;
    }
  }
  return at;
}

std::string shape_of(const Graph::Node& n, double x, double y) {
  switch (n.shape) {
    case Graph::Shape::diamond:
      return fmt::format("<polygon points=\"{},{} {},{} {},{} {},{}\"/>", x, y - 34, x + 90, y, x,
                         y + 34, x - 90, y);
    case Graph::Shape::circle:
      return fmt::format("<ellipse cx=\"{}\" cy=\"{}\" rx=\"60\" ry=\"24\"/>", x, y);
    default:
      return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"160\" height=\"48\" rx=\"{}\"/>", x - 80,
                         y - 24, n.shape == Graph::Shape::round ? 20 : 4);
  }
}

}  // namespace

// Edges are drawn first, so that the shapes cover their ends. Labels that are too long are cut.
std::string to_svg(const Graph& g) {
  auto at = place(g);
  double left = 0, right = 0, bottom = 0;
  for (auto& [id, p] : at) {
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    bottom = std::max(bottom, p.y);
  }
  // Columns are 220 and rows 110 pixels apart; this margin keeps shapes and back edges inside the
  // picture.
  double dx = 130 - left, dy = 60;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<defs><marker id=\"a\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L10 5L0 10z\" "
      "fill=\"#555\"/></marker></defs>\n",
      right - left + 260, bottom + 120);
  for (const auto& e : g.edges) {
    if (!at.contains(e.from) || !at.contains(e.to)) continue;
    const Placed &a = at[e.from], &b = at[e.to];
    bool down = b.row > a.row;
    double x1 = a.x + dx, y1 = a.y + dy + (down ? 24 : -24), x2 = b.x + dx,
           y2 = b.y + dy + (down ? -24 : 24);
    double side = down ? 0 : 110;  // back edges and loops go around the side
    out += fmt::format(
        "<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#555\"{} "
        "marker-end=\"url(#a)\"/>\n",
        x1 + (down ? 0 : 40), y1, x1 + side + (down ? 0 : 40), y1 + (down ? 40 : -30),
        x2 + side + (down ? 0 : 40), y2 - (down ? 40 : -30), x2 + (down ? 0 : 40), y2,
        e.dashed ? " stroke-dasharray=\"5 4\"" : "");
    if (!e.label.empty())
      out += fmt::format(
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\" "
          "font-size=\"10\">{}</text>\n",
          (x1 + x2) / 2 + side * 0.8, (y1 + y2) / 2,
          markup_text(e.label.size() > 40 ? e.label.substr(0, 37) + "..." : e.label));
  }
  for (const auto& n : g.nodes) {
    const Placed& p = at[n.id];
    out += fmt::format(
        "<g fill=\"#f4f6fa\" stroke=\"#345\">{}</g><text x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
        "fill=\"#111\">{}</text>\n",
        shape_of(n, p.x + dx, p.y + dy), p.x + dx, p.y + dy + 4,
        markup_text(n.label.size() > 24 ? n.label.substr(0, 21) + "..." : n.label));
  }
  return out + "</svg>\n";
}

Result<std::string> draw(const Graph& graph, std::string_view format) {
  static constexpr std::pair<std::string_view, std::string (*)(const Graph&)> formats[] = {
      {"svg", to_svg}, {"mermaid", to_mermaid}, {"dot", to_dot}};
  for (auto [name, function] : formats)
    if (name == format) return function(graph);
  return fail(Code::invalid, kBadUsage,
              fmt::format("there is no picture format '{}': choose svg, mermaid or dot", format));
}

}  // namespace pawl::cli
