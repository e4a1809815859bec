#pragma once
// How many entities each model has in each state. Lives in memory: counted once from the cells at
// start, then kept up from the frames.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "faces/entities/audit.h"
#include "kernel/door.h"

namespace pawl::entities {

class Counts {
 public:
  explicit Counts(Door& door) : door_(door) {}
  ~Counts() { stop(); }
  Result<void> start();
  void stop();

  struct Row {
    std::string model;
    int32_t version;
    std::string state;
    int64_t count;
  };
  // By model, version and state; rows of zero are left out.
  std::vector<Row> by_state(std::string_view tenant) const;
  int64_t total(std::string_view tenant, std::string_view model, int32_t version) const;

 private:
  using States = std::map<std::string, int64_t, std::less<>>;
  using Models = std::map<std::pair<std::string, int32_t>, States>;
  void add(const std::string& tenant, const std::string& model, int32_t version, const std::string& state, int64_t by);
  void take(const Frame& frame);

  Door& door_;
  mutable std::mutex mutex_;
  std::map<std::string, Models, std::less<>> tenants_;
  Seq counted_ = 0;
  uint64_t watch_ = 0;
};

}  // namespace pawl::entities
