#pragma once
// A reader of the watch of one lifecycle type: it follows every change from the first revision on,
// over restarts and lost connections. No change may be missed, shown twice or shown differently.

#include <map>
#include <string>
#include <vector>

#include "sim/clients/client.h"

namespace pawl::sim {

class Watch {
 public:
  Watch(Session& world, std::string type) : world_(world), type_(std::move(type)) {}
  void begin();
  // Phases that an instance entered, as the watch saw them; "<deleted>" when it was removed.
  const std::vector<std::string>& phases_of(const std::string& id) { return phases_[id]; }

 private:
  void follow();
  void look();  // a second watch for a while, which begins with a snapshot
  void take(const EventLines::Event& event);
  void saw(const EventLines::Event& event);

  Session& world_;
  const std::string type_;
  uint64_t last_ = 0;  // the newest revision that the watch has shown
  EventLines lines_, others_;
  std::map<std::pair<std::string, uint64_t>, std::string> states_;  // by id and revision
  std::map<std::string, std::vector<std::string>> phases_;
};

}  // namespace pawl::sim
