// Cutting a journal: everything after one entry is given up, deliberately.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "storage/file/file_journal.h"
#include "storage/file/packed_segment.h"

namespace pawl {
namespace {

struct CutPoint {
  uint64_t end = 0;  // where the groups that are kept end
  Seq last = 0;
};

// The group that holds `last` must end with it: a group is kept or given up whole.
Result<CutPoint> find_cut(SegmentBytes& bytes, const SegmentHead& head, Seq last) {
  CutPoint cut{kSegmentHeadBytes, head.first - 1};
  GroupWalk walk(bytes, head.salt, kSegmentHeadBytes);
  while (cut.last < last) {
    TRY(auto found, walk.next(cut.last + 1));
    bool more = true;
    bool good = found == GroupWalk::Found::group;
    if (good) {
      TRY(good, walk.entries([](Seq, BytesView) -> Result<bool> { return true; }, more));
    }
    if (!good) {
      std::string what = found == GroupWalk::Found::end ? "the end of the groups" : walk.what();
      return fail(damaged(bytes.path(), walk.offset(), what, cut.last));
    }
    if (walk.head().last() > last) {
      return fail(
          Code::invalid, "CUT_INSIDE_GROUP",
          fmt::format(
              "entry {} is inside the group {} to {}, which was written as one; cut at {} or at {}",
              last, walk.head().first, walk.head().last(), cut.last, walk.head().last()));
    }
    cut = {walk.offset() + walk.head().size(), walk.head().last()};
  }
  return cut;
}

// The segment becomes the last: plain again if it was packed, zero after the cut.
Result<void> end_segment(Disk& disk, const std::string& folder, SegmentBytes& bytes, Seq first,
                         uint64_t end) {
  std::string name = segment_name(first);
  TRY(Bytes kept, bytes.at(0, end));
  if (kept.size() != end)
    return fail(damaged(bytes.path(), kept.size(), "the end of the file", first - 1));
  TRY_OK(replace_file(disk, folder, name + kPlainEnd, kept));
  return remove_files(disk, folder, {name + kPackedEnd});
}

}  // namespace

Result<void> cut_journal(const FileJournalOptions& options, Seq last) {
  Disk machine;
  Disk& disk = options.disk ? *options.disk : machine;
  const std::string& folder = options.folder;
  TRY(File lock, lock_folder(folder));
  TRY(FolderListing listing, list_folder(folder));
  TRY(std::optional<Seq> kept_from, read_first(folder));
  auto& segments = listing.segments;
  std::erase_if(segments,
                [&](const SegmentFiles& files) { return files.first < kept_from.value_or(1); });
  size_t keep = 0;
  while (keep < segments.size() && (keep == 0 || segments[keep].first <= last))
    ++keep;
  if (keep == 0 || last + 1 < segments[0].first) {
    return fail(Code::not_found, "NO_ENTRY",
                fmt::format("the journal in {} does not hold entry {}; it begins at {}", folder,
                            last, segments.empty() ? 0 : segments[0].first));
  }
  const SegmentFiles& end = segments[keep - 1];
  TRY(SegmentHead head, read_segment_head(folder, end));
  std::string path = folder + "/" + segment_name(end.first) + (end.plain ? kPlainEnd : kPackedEnd);
  std::unique_ptr<SegmentBytes> bytes;
  if (end.plain) {
    TRY(File file, open_file(path, O_RDONLY));
    bytes = std::make_unique<PlainBytes>(std::move(file), path);
  } else {
    TRY(bytes, open_packed(path, end.first));
  }
  TRY(CutPoint cut, find_cut(*bytes, head, last));

  // From the end backwards, so that what an interrupted cut leaves is a journal that was cut later,
  // or one that opening refuses until the cut is made again.
  for (size_t i = segments.size(); i-- > keep;) {
    std::string name = segment_name(segments[i].first);
    TRY_OK(remove_files(disk, folder, {name + kPlainEnd, name + kPackedEnd, name + kSealEnd}));
  }
  TRY_OK(remove_files(disk, folder, {segment_name(end.first) + kSealEnd}));
  return end_segment(disk, folder, *bytes, end.first, cut.end);
}

}  // namespace pawl
