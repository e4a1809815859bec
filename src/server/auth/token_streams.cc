#include "server/auth/token_streams.h"

namespace pawl::server {

uint64_t TokenStreams::add(std::string_view client, Time until, std::function<void()> end) {
  std::lock_guard lock(mutex_);
  rows_.emplace(++last_, Row{std::string(client), until, std::move(end)});
  if (!client.empty()) by_client_.emplace(client, last_);
  by_time_.emplace(until, last_);
  return last_;
}

void TokenStreams::erase(std::map<uint64_t, Row>::iterator row) {
  by_client_.erase({row->second.client, row->first});
  by_time_.erase({row->second.until, row->first});
  rows_.erase(row);
}

void TokenStreams::remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  if (auto row = rows_.find(id); row != rows_.end()) erase(row);
}

void TokenStreams::end_all(std::string_view client) {
  std::lock_guard lock(mutex_);
  const std::string name(client);
  while (true) {
    auto first = by_client_.lower_bound({name, 0});
    if (first == by_client_.end() || first->first != name) return;
    auto row = rows_.find(first->second);
    row->second.end();
    erase(row);
  }
}

void TokenStreams::end_expired(Time now) {
  std::lock_guard lock(mutex_);
  while (!by_time_.empty() && by_time_.begin()->first < now) {
    auto row = rows_.find(by_time_.begin()->second);
    row->second.end();
    erase(row);
  }
}

size_t TokenStreams::size() const {
  std::lock_guard lock(mutex_);
  return rows_.size();
}

}  // namespace pawl::server
