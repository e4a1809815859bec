#include "faces/processes/state/counts.h"

#include "base/log.h"
#include "faces/processes/state/cells.h"
#include "faces/processes/state/note.h"
#include "kernel/frame.h"

namespace pawl::processes {

InstanceCounts::InstanceCounts(KernelAccess& kernel) : kernel_(kernel) {
  watcher_ = kernel.watch([this](const Frame& frame) { watch(frame); });
  Bytes last;  // rows of one definition and status are adjacent: their prefix is parsed once
  std::array<int64_t, 6>* counts = nullptr;
  size_t status = 0;
  std::lock_guard lock(mutex_);
  // The rows `d` are below tenant, definition and status (docs/formats/processes.md).
  auto scanned = kernel.snapshot().rows(kProgram, prefix({"d"}), [&](BytesView key, BytesView) {
    if (key.size() <= rows::kPositionBytes) return true;
    BytesView head = key.substr(0, key.size() - rows::kPositionBytes);
    if (head != last) {
      last = head;
      std::vector<std::string> parts = parts_of(head.substr(0, head.size() - 1));
      auto found = parts.size() == 4 ? find_status(parts[3]) : std::nullopt;
      counts = found ? &counts_[{parts[1], parts[2]}] : nullptr;
      status = found ? static_cast<size_t>(*found) : 0;
    }
    if (counts) ++(*counts)[status];
    return true;
  });
  // Damaged rows are rebuilt by the host, which then makes a new face.
  if (!scanned) log(Level::error, scanned.error().message, {{"code", scanned.error().reason}});
}

InstanceCounts::~InstanceCounts() { kernel_.unwatch(watcher_); }

void InstanceCounts::watch(const Frame& frame) {
  if (frame.program != kProgram) return;
  for (const Bytes& bytes : frame.notes) {
    auto note = decode_note_head(bytes);
    if (!note || note->before == static_cast<uint8_t>(note->after)) continue;
    std::lock_guard lock(mutex_);
    auto& counts = counts_[{std::string(note->tenant), std::string(note->definition_id)}];
    // 0: the instance is new.
    if (note->before) --counts[note->before];
    if (note->after != kForgotten) ++counts[static_cast<size_t>(note->after)];
  }
}

// The map is sorted by tenant and definition, so one tenant is one range.
size_t InstanceCounts::total(std::string_view tenant, std::string_view definition_id,
                             std::optional<Status> status) const {
  std::lock_guard lock(mutex_);
  int64_t sum = 0;
  auto from = counts_.lower_bound({std::string(tenant), std::string(definition_id)});
  for (auto it = from; it != counts_.end() && it->first.first == tenant; ++it) {
    if (!definition_id.empty() && it->first.second != definition_id) break;
    for (size_t s = 1; s < it->second.size(); ++s)
      if (!status || s == static_cast<size_t>(*status)) sum += it->second[s];
  }
  return static_cast<size_t>(std::max<int64_t>(0, sum));
}

std::vector<InstanceCounts::DefinitionCounts> InstanceCounts::by_definition(
    std::string_view tenant) const {
  std::lock_guard lock(mutex_);
  std::vector<DefinitionCounts> out;
  for (auto it = counts_.lower_bound({std::string(tenant), ""});
       it != counts_.end() && it->first.first == tenant; ++it) {
    DefinitionCounts line{it->first.second};
    for (size_t s = 0; s < it->second.size(); ++s)
      line.by_status[s] = static_cast<size_t>(std::max<int64_t>(0, it->second[s]));
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace pawl::processes
