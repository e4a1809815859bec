#include "kernel/sorter.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace pawl {
namespace {

constexpr size_t kHead = sizeof(uint64_t);
constexpr size_t kFew = 16, kMany = 256;

// Eight key bytes as a big-endian number, which compares as the bytes do. Missing bytes are zeros.
uint64_t head_at(BytesView key, size_t depth) {
  uint64_t head = 0;
  std::memcpy(&head, key.data() + depth, std::min(key.size() - depth, kHead));
  return __builtin_bswap64(head);
}

}  // namespace

// Returns how many bytes from `depth` on all keys have in common.
size_t Sorter::shared(std::span<const SortItem> places, size_t depth) const {
  const BytesView first = key(places.front()).substr(depth);
  size_t n = first.size();
  for (const SortItem& place : places.subspan(1)) {
    const BytesView other = key(place).substr(depth, n);
    if (other == first.substr(0, n)) continue;
    n = static_cast<size_t>(std::mismatch(other.begin(), other.end(), first.begin()).first -
                            other.begin());
    if (n == 0) break;
  }
  return n;
}

void Sorter::sort_plainly(std::span<SortItem> places) {
  std::sort(places.begin(), places.end(), [this](const SortItem& a, const SortItem& b) {
    const int by_key = key(a).compare(key(b));
    return by_key ? by_key < 0 : a.row < b.row;
  });
  for (size_t i = 1; i < places.size(); ++i)
    places[i].again = key(places[i]) == key(places[i - 1]);
}

// Radix sort by head, last byte first, skipping bytes that all heads share. Stable. A digest takes
// eight passes, a counter two or three.
void Sorter::sort_by_head(std::span<SortItem> places) {
  auto before = [](const SortItem& a, const SortItem& b) {
    return a.head != b.head ? a.head < b.head : a.row < b.row;
  };
  if (std::is_sorted(places.begin(), places.end(), before)) return;
  if (places.size() < kMany) return std::sort(places.begin(), places.end(), before);
  std::array<std::array<uint32_t, 256>, kHead> counts{};
  for (const SortItem& place : places)
    for (size_t byte = 0; byte < kHead; ++byte)
      ++counts[byte][(place.head >> (8 * byte)) & 0xff];
  aside_.resize(std::max(aside_.size(), places.size()));
  std::span<SortItem> from = places, to = std::span(aside_).first(places.size());
  for (size_t byte = 0; byte < kHead; ++byte) {
    auto& starts = counts[byte];
    if (starts[(from[0].head >> (8 * byte)) & 0xff] == places.size()) continue;
    std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), 0u);
    for (const SortItem& place : from)
      to[starts[(place.head >> (8 * byte)) & 0xff]++] = place;
    std::swap(from, to);
  }
  if (from.data() != places.data()) std::copy(from.begin(), from.end(), places.begin());
}

// Sorts by the eight bytes after the common prefix, then each run of equal heads by the bytes that
// follow. Keys of one program share long prefixes, so whole keys are rarely compared. All keys
// share their first `depth` bytes.
void Sorter::sort(std::span<SortItem> places, size_t depth) {
  if (places.size() <= kFew) return sort_plainly(places);
  depth += shared(places, depth);
  for (SortItem& place : places)
    place.head = head_at(key(place), depth);
  sort_by_head(places);
  for (size_t at = 0; at < places.size();) {
    size_t end = at + 1;
    while (end < places.size() && places[end].head == places[at].head)
      ++end;
    const std::span<SortItem> run = places.subspan(at, end - at);
    at = end;
    if (run.size() == 1) continue;
    const BytesView first = key(run.front());
    // Repeated changes of one row are in order already: the earlier change comes first.
    if (std::all_of(run.begin() + 1, run.end(),
                    [&](const SortItem& place) { return key(place) == first; }))
      for (SortItem& place : run.subspan(1))
        place.again = true;
    else if (std::all_of(run.begin(), run.end(),
                         [&](const SortItem& place) { return key(place).size() >= depth + kHead; }))
      sort(run, depth + kHead);
    else
      sort_plainly(run);  // a short key and a key with zero bytes have equal heads
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
    if (kind == RowKind::erase_prefix) return out_.add({key, value, kind});
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
