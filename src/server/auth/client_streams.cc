#include "server/auth/client_streams.h"

namespace pawl::server {

uint64_t ClientStreams::add(std::string_view client, std::function<void()> end) {
  std::lock_guard lock(mutex_);
  rows_.emplace(++last_, Row{std::string(client), std::move(end)});
  by_client_.emplace(client, last_);
  return last_;
}

void ClientStreams::remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  auto row = rows_.find(id);
  if (row == rows_.end()) return;
  auto [first, last] = by_client_.equal_range(row->second.client);
  for (auto it = first; it != last; ++it) {
    if (it->second != id) continue;
    by_client_.erase(it);
    break;
  }
  rows_.erase(row);
}

void ClientStreams::end_all(std::string_view client) {
  std::lock_guard lock(mutex_);
  auto [first, last] = by_client_.equal_range(client);
  for (auto it = first; it != last; ++it) {
    auto row = rows_.find(it->second);
    row->second.end();
    rows_.erase(row);
  }
  by_client_.erase(first, last);
}

size_t ClientStreams::size() const {
  std::lock_guard lock(mutex_);
  return rows_.size();
}

}  // namespace pawl::server
