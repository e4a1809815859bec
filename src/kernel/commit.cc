#include "kernel/commit.h"

namespace pawl {

Result<void> Committer::append(std::span<Group> groups) {
  entries_.clear();
  Seq expected = 0;
  for (Group& group : groups) {
    if (group.frames.empty()) continue;
    if (entries_.empty()) expected = group.last_before;
    CHECK(expected + entries_.size() == group.last_before);
    for (Bytes& body : group.bodies) {
      entries_.push_back(seal(body, link_));
      link_ = sha256(entries_.back(), {});
    }
  }
  if (entries_.empty()) return {};
  std::vector<BytesView> views(entries_.begin(), entries_.end());
  return journal_.append(views, expected);
}

Result<void> Committer::apply(std::span<Group> groups) {
  bool any = false;
  for (Group& group : groups) any = any || !group.frames.empty();
  if (!any) return {};
  Seq last = 0;
  RowBatch* all = nullptr;
  for (Group& group : groups) {
    if (group.frames.empty()) continue;
    last = group.last();
    if (!all) all = &group.rows;
    else all->append(group.rows);
  }
  cache_.begin();
  Result<void> done = rows_.apply(*all, last);
  if (done)
    for (Group& group : groups)
      for (auto& [key, cell] : group.cells) cache_.put(key, cell);
  cache_.end();
  return done;
}

void refuse_all(std::span<Group> groups, const Error& why) {
  for (Group& group : groups) {
    for (auto& [reply, answer] : group.answers) reply(fail(why));
    group.answers.clear();
  }
}

}  // namespace pawl
