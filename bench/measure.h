#pragma once
// Tools of every scenario: clocks, percentiles, a temporary folder, a table of bars.

#include <chrono>
#include <string>
#include <vector>

namespace pawl::bench {

double seconds();                // steady
void pause(double for_seconds);  // sleeps; 0: not at all
double cpu_seconds();            // of this process, all threads
// Waits until the rows have compacted the loaded data, which is part of the cost of loading.
void let_settle();

struct Latencies {
  std::vector<double> us;
  double p(double percent);
};

// A folder in the current directory, on the disk to be measured. The destructor removes it.
class Folder {
 public:
  explicit Folder(const std::string& name);
  ~Folder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A line of the report: a measurement and the bar that it must reach.
struct Bar {
  std::string what;
  double value;  // ratio or amount
  double bar;
  bool at_least;  // else: at most
  std::string unit;
};
class Report {
 public:
  void line(const std::string& what, double value, const std::string& unit);
  void bar(Bar bar);
  int missed() const { return missed_; }

 private:
  int missed_ = 0;
};

size_t resident_bytes();
// One 4 KiB write with fdatasync: p50 in milliseconds.
double sync_ms(const std::string& folder);

}  // namespace pawl::bench
