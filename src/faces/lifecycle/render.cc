#include "faces/lifecycle/render.h"

#include <fmt/format.h>

#include <map>

namespace pawl::lifecycle {

namespace {

// Names that Mermaid takes as they are; others get a number and carry their name as a label.
bool plain(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

constexpr int kColumn = 190, kRow = 74, kWidth = 130, kHeight = 38, kMargin = 24;

struct Box {
  int x, y;
};

// Phases by their distance from an entry; what no entry reaches begins columns of its own.
std::vector<size_t> columns_of(const dynamic_type& def) {
  std::vector<size_t> column(def.transitions.size(), ~size_t{0});
  auto place = [&](std::string_view name) {
    size_t i = 0;
    while (def.transitions[i].first != name) ++i;
    return i;
  };
  for (size_t start = 0; start < column.size(); ++start) {
    if (column[start] != ~size_t{0}) continue;
    std::vector<size_t> front{start};
    column[start] = 0;
    for (size_t distance = 1; !front.empty(); ++distance) {
      std::vector<size_t> next;
      for (size_t i : front)
        for (const std::string& to : def.transitions[i].second)
          if (size_t j = place(to); column[j] == ~size_t{0}) column[j] = distance, next.push_back(j);
      front = std::move(next);
    }
  }
  return column;
}

std::string edge(const Box& a, const Box& b) {
  int ax = a.x + kWidth, ay = a.y + kHeight / 2, bx = b.x, by = b.y + kHeight / 2;
  if (a.x == b.x && a.y == b.y)
    return fmt::format("M{} {} c 34 -30, 34 30, 0 8", ax, ay - 4);
  if (b.x > a.x) return fmt::format("M{} {} C {} {}, {} {}, {} {}", ax, ay, ax + 30, ay, bx - 30, by, bx, by);
  // Back or within a column: around below.
  int low = std::max(a.y, b.y) + kHeight + 16;
  return fmt::format("M{} {} C {} {}, {} {}, {} {}", a.x + kWidth / 2, a.y + kHeight, a.x + kWidth / 2, low, b.x + kWidth / 2, low, b.x + kWidth / 2, b.y + kHeight);
}

}  // namespace

std::string render_mermaid(const dynamic_type& def) {
  std::string out = "stateDiagram-v2\n";
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < def.transitions.size(); ++i) {
    const std::string& phase_name = def.transitions[i].first;
    names[phase_name] = plain(phase_name) ? phase_name : fmt::format("p{}", i);
    if (!plain(phase_name)) out += fmt::format("    state \"{}\" as p{}\n", escaped(phase_name), i);
  }
  if (!def.transitions.empty()) out += fmt::format("    [*] --> {}\n", names[def.transitions[0].first]);
  for (const auto& [from_phase, targets] : def.transitions) {
    for (const std::string& to : targets) out += fmt::format("    {} --> {}\n", names[from_phase], names[to]);
    if (targets.empty()) out += fmt::format("    {} --> [*]\n", names[from_phase]);
  }
  return out;
}

std::string render_svg(const dynamic_type& def, std::string_view marked) {
  std::vector<size_t> column = columns_of(def);
  std::map<size_t, int> used;
  std::map<std::string, Box> boxes;
  int width = 0, height = 0;
  for (size_t i = 0; i < def.transitions.size(); ++i) {
    Box box{kMargin + static_cast<int>(column[i]) * kColumn, kMargin + used[column[i]]++ * kRow};
    boxes[def.transitions[i].first] = box;
    width = std::max(width, box.x + kWidth + kMargin + 30);
    height = std::max(height, box.y + kHeight + kMargin + 20);
  }
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n"
      "<title>{2}</title>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">"
      "<path d=\"M0 0 L8 4 L0 8 z\" fill=\"#667\"/></marker></defs>\n",
      width, height, escaped(def.name));
  for (const auto& [from_phase, targets] : def.transitions)
    for (const std::string& to : targets)
      out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"#667\" marker-end=\"url(#tip)\"/>\n", edge(boxes[from_phase], boxes[to]));
  for (const auto& [phase_name, targets] : def.transitions) {
    const Box& box = boxes[phase_name];
    std::string_view fill = phase_name == marked ? "#cfe8ff" : targets.empty() ? "#eee" : "#fff";
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{}\" stroke=\"#334\" stroke-width=\"{}\"/>\n", box.x, box.y, kWidth, kHeight, fill,
                       targets.empty() ? 2.5 : 1.2);
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#112\">{}</text>\n", box.x + kWidth / 2, box.y + kHeight / 2 + 5, escaped(phase_name));
  }
  return out + "</svg>\n";
}

}  // namespace pawl::lifecycle
