// The table of metrics, and how they are printed.

#include "server/ops/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"

namespace pawl::server {
namespace {

constexpr Time kBoundTable[Histogram::kBounds] = {
    100 * kMicrosecond, 200 * kMicrosecond, 500 * kMicrosecond, 1 * kMillisecond,
    2 * kMillisecond,   5 * kMillisecond,   10 * kMillisecond,  20 * kMillisecond,
    50 * kMillisecond,  100 * kMillisecond, 200 * kMillisecond, 500 * kMillisecond,
    1 * kSecond,        2 * kSecond,        5 * kSecond,        10 * kSecond,
    20 * kSecond,       50 * kSecond,       100 * kSecond};

std::string_view name_of(MetricType type) {
  static constexpr std::string_view kNames[] = {"counter", "gauge", "histogram"};
  return kNames[static_cast<size_t>(type)];
}

void append_escaped(std::string& out, std::string_view text) {
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out.push_back('\\');
    out.push_back(c);
  }
}

// Prints labels as {a="x",b="y"}, with one more pair when `more` is given; empty without labels.
std::string label_text(const MetricRow& row, const std::vector<std::string>& values,
                       std::string_view more = {}, std::string_view more_value = {}) {
  std::string out;
  auto add = [&](std::string_view name, std::string_view value) {
    out += out.empty() ? "{" : ",";
    out += name;
    out += "=\"";
    append_escaped(out, value);
    out += "\"";
  };
  for (size_t i = 0; i < values.size(); ++i)
    add(row.labels[i], values[i]);
  if (!more.empty()) add(more, more_value);
  if (!out.empty()) out += "}";
  return out;
}

std::string seconds(Time t) { return fmt::format("{}", static_cast<double>(t) / kSecond); }

void print_histogram(std::string& out, const MetricRow& row, const std::vector<std::string>& labels,
                     const Histogram& histogram) {
  Histogram::Sum sum = histogram.sum();
  uint64_t count = 0;
  for (size_t i = 0; i <= Histogram::kBounds; ++i) {
    count += sum.counts[i];
    std::string bound = i < Histogram::kBounds ? seconds(kBoundTable[i]) : "+Inf";
    out += fmt::format("{}_bucket{} {}\n", row.name, label_text(row, labels, "le", bound), count);
  }
  out += fmt::format("{}_sum{} {}\n", row.name, label_text(row, labels), seconds(sum.total));
  out += fmt::format("{}_count{} {}\n", row.name, label_text(row, labels), count);
}

using enum MetricType;

constexpr MetricRow kMetrics[] = {
    {"pawl_http_request_seconds",
     histogram,
     "Time from a request's last byte to its answer, by route.",
     {"method", "route"}},
    {"pawl_http_responses_total", counter, "Answers by class of status.", {"status"}},
    {"pawl_http_requests_in_flight", gauge, "Requests that have no answer yet."},
    {"pawl_http_connections", gauge, "Open HTTP connections."},
    {"pawl_auth_refusals_total", counter, "Requests refused because of their credentials."},
    {"pawl_turns_total", counter, "Inputs that the kernel has run."},
    {"pawl_turn_seconds", histogram, "Time of one turn, as the mean of each batch."},
    {"pawl_frames_total", counter, "Frames written."},
    {"pawl_commit_seconds", histogram, "Time of one durable append of a group of turns."},
    {"pawl_publish_seconds", histogram, "Time until the cells of a durable group are visible."},
    {"pawl_replies_total", counter, "Answers sent after their frames were durable."},
    {"pawl_group_turns_total", counter,
     "Turns committed in groups; divided by pawl_groups_total, the mean group size."},
    {"pawl_groups_total", counter, "Groups appended to the journal."},
    {"pawl_shards", gauge, "Shards of the data directory."},
    {"pawl_queued_inputs", gauge, "Inputs that wait for the kernel."},
    {"pawl_open_turns", gauge, "Turns that wait for a receipt."},
    {"pawl_open_effects", gauge, "Open effects: timers and jobs together."},
    {"pawl_quarantined_effects", gauge, "Effects that are not delivered: they crashed the server."},
    {"pawl_workflow_cells", gauge, "Cached clean cells of the workflows of worlds."},
    {"pawl_packed_cells", gauge, "Cells in the packed second tier of the cache."},
    {"pawl_ready_jobs", gauge, "Jobs that wait for a worker."},
    {"pawl_leased_jobs", gauge, "Jobs under a lease."},
    {"pawl_limited_jobs", gauge, "Jobs that wait for a limit, by definition.", {"limit"}},
    {"pawl_timers", gauge, "Timers that are not due."},
    {"pawl_journal_seq", gauge, "The seq of the last durable frame."},
    {"pawl_journal_findings", gauge, "Damaged places in the journal that the scrubber found."},
    {"pawl_clock_behind_seconds", gauge,
     "How far the system clock is behind the server's time, because it was set back."},
    {"pawl_memory_budget_bytes",
     gauge,
     "Memory that requests hold, by purpose; `limit` is the whole budget.",
     {"purpose"}},
    {"pawl_memory_refusals_total",
     counter,
     "Requests and streams that were refused because the memory budget is used up.",
     {"purpose"}},
    {"pawl_limit_refusals_total",
     counter,
     "Requests, streams and connections that a limit of a tenant or of an address refused.",
     {"limit"}},
    {"pawl_start_time_seconds", gauge, "When this process started, in seconds since 1970."},
    {"pawl_build_info", gauge, "Always 1; the version is the label.", {"version"}},
};

}  // namespace

std::span<const MetricRow> metric_table() { return kMetrics; }

size_t metric_slot() {
  static std::atomic<size_t> next = 0;
  thread_local size_t slot = next.fetch_add(1, std::memory_order_relaxed) % kMetricSlots;
  return slot;
}

uint64_t Counter::value() const {
  uint64_t total = 0;
  for (const Slot& slot : slots_)
    total += slot.value.load(std::memory_order_relaxed);
  return total;
}

std::span<const Time> Histogram::bounds() { return kBoundTable; }

void Histogram::observe(Time duration) {
  Slot& slot = slots_[metric_slot()];
  size_t bucket = static_cast<size_t>(
      std::lower_bound(std::begin(kBoundTable), std::end(kBoundTable), duration) -
      std::begin(kBoundTable));
  slot.counts[bucket].fetch_add(1, std::memory_order_relaxed);
  slot.total.fetch_add(duration, std::memory_order_relaxed);
}

Histogram::Sum Histogram::sum() const {
  Sum sum;
  for (const Slot& slot : slots_) {
    for (size_t i = 0; i <= kBounds; ++i)
      sum.counts[i] += slot.counts[i].load(std::memory_order_relaxed);
    sum.total += slot.total.load(std::memory_order_relaxed);
  }
  return sum;
}

Metrics::Metrics() {
  for (const MetricRow& row : metric_table())
    families_[std::string(row.name)].row = row;
}

Metrics::Family& Metrics::family(std::string_view name, MetricType type, Labels& labels) {
  auto found = families_.find(name);
  CHECK(found != families_.end());  // every metric has a row in the table
  Family& family = found->second;
  CHECK(family.row.type == type && family.row.label_count() == labels.size());
  size_t series = family.counters.size() + family.gauges.size() + family.histograms.size();
  bool known = family.counters.contains(labels) || family.gauges.contains(labels) ||
               family.histograms.contains(labels);
  if (!known && series >= limits::kMetricSeries) labels.assign(labels.size(), "other");
  return family;
}

Counter& Metrics::counter(std::string_view name, Labels labels) {
  std::lock_guard lock(mutex_);
  auto& series = family(name, MetricType::counter, labels).counters[labels];
  if (!series) series = std::make_unique<Counter>();
  return *series;
}

Gauge& Metrics::gauge(std::string_view name, Labels labels) {
  std::lock_guard lock(mutex_);
  auto& series = family(name, MetricType::gauge, labels).gauges[labels];
  if (!series) series = std::make_unique<Gauge>();
  return *series;
}

Histogram& Metrics::histogram(std::string_view name, Labels labels) {
  std::lock_guard lock(mutex_);
  auto& series = family(name, MetricType::histogram, labels).histograms[labels];
  if (!series) series = std::make_unique<Histogram>();
  return *series;
}

void Metrics::gauge_from(std::string_view name, Source value, Labels labels) {
  std::lock_guard lock(mutex_);
  family(name, MetricType::gauge, labels).sources[labels] = std::move(value);
}

void Metrics::counter_from(std::string_view name, Source value, Labels labels) {
  std::lock_guard lock(mutex_);
  family(name, MetricType::counter, labels).sources[labels] = std::move(value);
}

void Metrics::gauges_from(std::string_view name, std::function<Values()> values) {
  std::lock_guard lock(mutex_);
  Labels one(1);
  family(name, MetricType::gauge, one).series = std::move(values);
}

void Metrics::print(std::string& out, const Family& family) {
  const MetricRow& row = family.row;
  out +=
      fmt::format("# HELP {} {}\n# TYPE {} {}\n", row.name, row.help, row.name, name_of(row.type));
  for (const auto& [labels, counter] : family.counters)
    out += fmt::format("{}{} {}\n", row.name, label_text(row, labels), counter->value());
  for (const auto& [labels, gauge] : family.gauges)
    out += fmt::format("{}{} {}\n", row.name, label_text(row, labels), gauge->value());
  for (const auto& [labels, histogram] : family.histograms)
    print_histogram(out, row, labels, *histogram);
  for (const auto& [labels, source] : family.sources)
    out += fmt::format("{}{} {}\n", row.name, label_text(row, labels), source());
  if (family.series) {
    int64_t other = 0;
    size_t printed = 0;
    for (const auto& [label, value] : family.series())
      if (++printed <= limits::kMetricSeries)
        out += fmt::format("{}{} {}\n", row.name, label_text(row, {label}), value);
      else
        other += value;
    if (other) out += fmt::format("{}{} {}\n", row.name, label_text(row, {"other"}), other);
  }
}

std::string Metrics::text() const {
  std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    bool used = !family.counters.empty() || !family.gauges.empty() || !family.histograms.empty() ||
                !family.sources.empty() || family.series;
    if (used) print(out, family);
  }
  return out;
}

}  // namespace pawl::server
