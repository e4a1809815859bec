// cut_journal() removes every entry after a given one, for `pawl journal cut`. accept_loss() finds
// the last valid entry by itself, for `pawl journal accept-loss`.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "storage/file/compressed_segment.h"
#include "storage/file/file_journal.h"

namespace pawl {
namespace {

struct CutPoint {
  uint64_t end = 0;  // offset at which the last group that is kept ends
  Seq last = 0;      // its last entry
};

// A group is kept or removed as a whole, so `last` must be the last entry of its group.
Result<CutPoint> find_cut(SegmentReader& reader, const SegmentHeader& header, Seq last) {
  CutPoint cut{kSegmentHeaderBytes, header.first - 1};
  GroupCursor cursor(reader, header.salt, kSegmentHeaderBytes);
  while (cut.last < last) {
    TRY(bool valid, cursor.next_checked(cut.last + 1));
    if (!valid) {
      std::string found = cursor.problem().empty() ? "the end of the groups" : cursor.problem();
      return fail(damaged(reader.path(), cursor.offset(), found, cut.last));
    }
    const GroupHeader& group = cursor.header();
    if (group.last() > last) {
      return fail(Code::invalid, "CUT_INSIDE_GROUP",
                  fmt::format("entry {} is inside the group {} to {}, which was written as one; "
                              "cut at {} or at {}",
                              last, group.first, group.last(), cut.last, group.last()));
    }
    cut = {cursor.offset() + group.size(), group.last()};
  }
  return cut;
}

// Makes the segment the last one: plain, even if it was compressed, and without bytes after `end`.
Result<void> end_segment(Disk& disk, const std::string& folder, SegmentReader& reader, Seq first,
                         uint64_t end) {
  std::string name = segment_name(first);
  TRY(Bytes kept, reader.at(0, end));
  // The padding of the last group may be missing.
  if (kept.size() < end && kept.size() + kGroupAlignment > end) kept.resize(end, '\0');
  if (kept.size() != end)
    return fail(damaged(reader.path(), kept.size(), "the end of the file", first - 1));
  std::optional<SegmentHeader> header = decode_segment_header(kept);
  CHECK(header);  // the caller has read it
  header->file_bytes = end;
  kept.replace(0, kSegmentHeaderBytes, encode(*header));
  TRY_OK(replace_file(disk, folder, name + kPlainSuffix, kept));
  return remove_files(disk, folder, {name + kCompressedSuffix});
}

Result<std::unique_ptr<SegmentReader>> open_segment(Disk& disk, const std::string& folder,
                                                    const SegmentFiles& files) {
  std::string path = folder + "/" + segment_name(files.first);
  if (!files.plain) return open_compressed(disk, path + kCompressedSuffix, files.first);
  path += kPlainSuffix;
  TRY(File file, open_file(path, O_RDONLY));
  return std::make_unique<PlainSegment>(disk, std::move(file), path);
}

}  // namespace

Result<void> cut_journal(const FileJournalOptions& options, Seq last, const std::string& mark) {
  Disk real_disk;
  Disk& disk = options.disk ? *options.disk : real_disk;
  const std::string& folder = options.folder;
  TRY(File lock, lock_folder(folder));
  TRY(FolderListing listing, list_folder(folder));
  TRY(std::optional<Seq> first, read_first_seq(disk, folder));
  std::vector<SegmentFiles>& segments = listing.segments;
  std::erase_if(segments,
                [&](const SegmentFiles& files) { return files.first < first.value_or(1); });
  size_t kept = 0;  // segments that keep entries; the first one always stays
  while (kept < segments.size() && (kept == 0 || segments[kept].first <= last))
    ++kept;
  if (kept == 0 || last + 1 < segments[0].first) {
    return fail(Code::not_found, "NO_ENTRY",
                fmt::format("the journal in {} does not hold entry {}; it begins at {}", folder,
                            last, segments.empty() ? 0 : segments[0].first));
  }
  const SegmentFiles& last_kept = segments[kept - 1];
  TRY(SegmentHeader header, read_segment_header(disk, folder, last_kept));
  TRY(std::unique_ptr<SegmentReader> reader, open_segment(disk, folder, last_kept));
  TRY(CutPoint cut, find_cut(*reader, header, last));

  // Segments are removed from the end backwards. An interrupted cut then leaves a journal that was
  // cut later, or one that opening refuses until the cut is repeated.
  TRY_OK(add_loss_mark(disk, folder, mark));
  for (size_t i = segments.size(); i-- > kept;) {
    std::vector<std::string> names;
    add_segment_files(names, segments[i].first);
    TRY_OK(remove_files(disk, folder, names));
  }
  TRY_OK(remove_files(disk, folder, {segment_name(last_kept.first) + kIndexSuffix}));
  return end_segment(disk, folder, *reader, last_kept.first, cut.end);
}

Result<Seq> accept_loss(const FileJournalOptions& options, const std::string& mark) {
  Disk real_disk;
  Disk& disk = options.disk ? *options.disk : real_disk;
  const std::string& folder = options.folder;
  std::error_code error;
  if (std::filesystem::exists(folder, error)) {
    TRY(File lock, lock_folder(folder));
    TRY(FolderListing listing, list_folder(folder));
    if (listing.segments.empty()) TRY_OK(remove_files(disk, folder, {kFirstSeqName}));
    if (!listing.segments.empty() && listing.segments.back().plain) {
      const SegmentFiles& last = listing.segments.back();
      TRY(SegmentHeader header, read_segment_header(disk, folder, last));
      TRY(std::unique_ptr<SegmentReader> reader, open_segment(disk, folder, last));
      GroupCursor cursor(*reader, header.salt, kSegmentHeaderBytes);
      Seq kept = header.first - 1;
      for (;;) {
        TRY(bool valid, cursor.next_checked(kept + 1));
        if (!valid) break;
        kept = cursor.header().last();
      }
      TRY_OK(end_segment(disk, folder, *reader, last.first, cursor.offset()));
    }
  }
  TRY(std::unique_ptr<FileJournal> journal, FileJournal::open(options));
  TRY_OK(add_loss_mark(disk, folder, mark));
  return journal->last();
}

}  // namespace pawl
