#pragma once
// Counters, gauges and histograms, each with labels, printed as Prometheus text. Adding to one is
// an atomic in a slot of the thread's own; reading adds the slots up.

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace pawl::server {

// Threads share few cells: enough that two busy ones rarely meet.
inline constexpr size_t kMetricSlots = 8;
size_t metric_slot();  // of this thread

class Counter {
 public:
  void add(uint64_t n = 1) { slots_[metric_slot()].value.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const;

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> value = 0;
  };
  std::array<Slot, kMetricSlots> slots_;
};

class Gauge {
 public:
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_ = 0;
};

// Durations in buckets of 1-2-5 from 100 microseconds to 100 seconds.
class Histogram {
 public:
  static constexpr size_t kBounds = 19;
  static std::span<const Time> bounds();
  void observe(Time duration);
  struct Sum {
    std::array<uint64_t, kBounds + 1> counts{};  // by bucket, not cumulated; the last has no bound
    Time total = 0;
  };
  Sum sum() const;

 private:
  struct alignas(64) Slot {
    std::array<std::atomic<uint64_t>, kBounds + 1> counts{};
    std::atomic<Time> total = 0;
  };
  std::array<Slot, kMetricSlots> slots_;
};

enum class MetricType { counter, gauge, histogram };

// One row of the table below: everything that is measured, in one place.
struct MetricRow {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::vector<std::string_view> labels{};
};
const std::vector<MetricRow>& metric_table();

// All series. Look a series up once and keep the reference: it lives as long as this does.
class Metrics {
 public:
  Metrics();
  Counter& counter(std::string_view name, std::vector<std::string> labels = {});
  Gauge& gauge(std::string_view name, std::vector<std::string> labels = {});
  Histogram& histogram(std::string_view name, std::vector<std::string> labels = {});
  // A gauge that is asked for its value when someone reads.
  void gauge_from(std::string_view name, std::function<int64_t()> value);
  std::string text() const;  // Prometheus exposition format 0.0.4

 private:
  using Labels = std::vector<std::string>;
  struct Family {
    MetricRow row;
    std::map<Labels, std::unique_ptr<Counter>> counters;
    std::map<Labels, std::unique_ptr<Gauge>> gauges;
    std::map<Labels, std::unique_ptr<Histogram>> histograms;
    std::function<int64_t()> source;
  };
  Family& family(std::string_view name, MetricType type, Labels& labels);
  static void print(std::string& out, const Family& family);

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace pawl::server
