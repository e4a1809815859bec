#include "kernel/sorter.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace pawl {
namespace {

constexpr size_t kHead = sizeof(uint64_t);
constexpr size_t kFew = 16, kMany = 256;

// As numbers compare, so do the bytes; what a short key lacks counts as zeros.
uint64_t head_at(BytesView key, size_t depth) {
  uint64_t head = 0;
  std::memcpy(&head, key.data() + depth, std::min(key.size() - depth, kHead));
  return __builtin_bswap64(head);
}

}  // namespace

// How many bytes from `depth` on all keys have in common.
size_t Sorter::shared(std::span<const Place> places, size_t depth) const {
  const BytesView first = key(places.front()).substr(depth);
  size_t n = first.size();
  for (const Place& place : places.subspan(1)) {
    const BytesView other = key(place).substr(depth, n);
    if (other == first.substr(0, n)) continue;
    n = static_cast<size_t>(std::mismatch(other.begin(), other.end(), first.begin()).first -
                            other.begin());
    if (n == 0) break;
  }
  return n;
}

void Sorter::sort_plainly(std::span<Place> places) {
  std::sort(places.begin(), places.end(), [this](const Place& a, const Place& b) {
    const int by_key = key(a).compare(key(b));
    return by_key ? by_key < 0 : a.row < b.row;
  });
  for (size_t i = 1; i < places.size(); ++i)
    places[i].again = key(places[i]) == key(places[i - 1]);
}

// Equal heads keep the order in which they came. Byte by byte from the last, without those
// that all have in common: a digest takes eight passes, a number that counts up two or three.
void Sorter::sort_by_head(std::span<Place> places) {
  auto before = [](const Place& a, const Place& b) {
    return a.head != b.head ? a.head < b.head : a.row < b.row;
  };
  if (std::is_sorted(places.begin(), places.end(), before)) return;
  if (places.size() < kMany) return std::sort(places.begin(), places.end(), before);
  std::array<std::array<uint32_t, 256>, kHead> counts{};
  for (const Place& place : places)
    for (size_t byte = 0; byte < kHead; ++byte)
      ++counts[byte][(place.head >> (8 * byte)) & 0xff];
  aside_.resize(std::max(aside_.size(), places.size()));
  std::span<Place> from = places, to = std::span(aside_).first(places.size());
  for (size_t byte = 0; byte < kHead; ++byte) {
    auto& starts = counts[byte];
    if (starts[(from[0].head >> (8 * byte)) & 0xff] == places.size()) continue;
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), 0u);
    for (const Place& place : from)
      to[starts[(place.head >> (8 * byte)) & 0xff]++] = place;
    std::swap(from, to);
  }
  if (from.data() != places.data()) std::copy(from.begin(), from.end(), places.begin());
}

// By the eight bytes after those that all share, then each run of equal ones by what comes behind.
// Rows of one program begin alike and differ late: whole keys are rarely compared. All keys share
// `depth` bytes.
void Sorter::sort(std::span<Place> places, size_t depth) {
  if (places.size() <= kFew) return sort_plainly(places);
  depth += shared(places, depth);
  for (Place& place : places)
    place.head = head_at(key(place), depth);
  sort_by_head(places);
  for (size_t at = 0; at < places.size();) {
    size_t end = at + 1;
    while (end < places.size() && places[end].head == places[at].head)
      ++end;
    const std::span<Place> run = places.subspan(at, end - at);
    at = end;
    if (run.size() == 1) continue;
    const BytesView first = key(run.front());
    // One row changed again and again is in order: the earlier change comes first.
    if (std::all_of(run.begin() + 1, run.end(),
                    [&](const Place& place) { return key(place) == first; }))
      for (Place& place : run.subspan(1))
        place.again = true;
    else if (std::all_of(run.begin(), run.end(),
                         [&](const Place& place) { return key(place).size() >= depth + kHead; }))
      sort(run, depth + kHead);
    else
      sort_plainly(run);  // zeros that are there, and zeros that are not
  }
}

const RowChanges& Sorter::in_order(const RowBatch& batch) {
  rows_.clear();
  order_.clear();
  out_.clear();
  rows_.reserve(batch.count());
  order_.reserve(batch.count());
  out_.reserve(batch.count());
  batch.each_change([&](RowKind kind, BytesView key, BytesView value) {
    order_.push_back({0, static_cast<uint32_t>(rows_.size()), false});
    rows_.push_back({key, value, kind});
  });
  sort(order_, 0);
  for (size_t i = 0; i < order_.size();) {
    const RowKind first = rows_[order_[i].row].kind;
    size_t last = i;
    while (last + 1 < order_.size() && order_[last + 1].again)
      ++last;
    const RowChange& row = rows_[order_[last].row];
    if (row.kind != RowKind::erase || first != RowKind::put_new) out_.add(row);
    i = last + 1;
  }
  return out_;
}

}  // namespace pawl
