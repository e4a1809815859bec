#pragma once
// Counters, gauges and histograms with labels, printed as Prometheus text. Each thread adds to a
// slot of its own with one atomic operation; a reader sums the slots.

#include <algorithm>
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

// Threads share a few slots: enough that two busy threads rarely use the same one.
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
    std::array<uint64_t, kBounds + 1>
        counts{};  // by bucket, not cumulative; the last bucket has no bound
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

// A row of the table of metrics. The table holds every metric of the server.
struct MetricRow {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::array<std::string_view, 2> labels{};  // unused places are empty
  size_t label_count() const {
    return labels.size() - static_cast<size_t>(std::count(labels.begin(), labels.end(), ""));
  }
};
std::span<const MetricRow> metric_table();

// All series of the server. Callers look a series up once and keep the reference, which stays valid
// as long as the Metrics object. Thread-safe.
class Metrics {
 public:
  Metrics();
  Counter& counter(std::string_view name, std::vector<std::string> labels = {});
  Gauge& gauge(std::string_view name, std::vector<std::string> labels = {});
  Histogram& histogram(std::string_view name, std::vector<std::string> labels = {});
  // Registers a gauge, or a counter, whose value is computed when the metrics are printed.
  using Source = std::function<int64_t()>;
  void gauge_from(std::string_view name, Source value, std::vector<std::string> labels = {});
  void counter_from(std::string_view name, Source value, std::vector<std::string> labels = {});
  // The same for a gauge with one label whose values are not known before. Values beyond
  // kMetricSeries are added up as "other".
  using Values = std::vector<std::pair<std::string, int64_t>>;
  void gauges_from(std::string_view name, std::function<Values()> values);
  std::string text() const;  // Prometheus exposition format 0.0.4

 private:
  using Labels = std::vector<std::string>;
  struct Family {
    MetricRow row;
    std::map<Labels, std::unique_ptr<Counter>> counters;
    std::map<Labels, std::unique_ptr<Gauge>> gauges;
    std::map<Labels, std::unique_ptr<Histogram>> histograms;
    std::map<Labels, Source> sources;
    std::function<Values()> series;
  };
  Family& family(std::string_view name, MetricType type, Labels& labels);
  static void print(std::string& out, const Family& family);

  mutable std::mutex mutex_;
  std::map<std::string, Family, std::less<>> families_;
};

}  // namespace pawl::server
