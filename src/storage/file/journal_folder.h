#pragma once
// The folder of a file journal: the names of its files, its lock, and the FIRST file, which holds
// the seq of the first entry that is kept.

#include <optional>
#include <string>
#include <vector>

#include "storage/file/disk.h"
#include "storage/file/segment.h"

namespace pawl {

inline constexpr char kPlainSuffix[] = ".seg";
inline constexpr char kCompressedSuffix[] = ".zseg";
inline constexpr char kIndexSuffix[] = ".idx";
inline constexpr char kSpareName[] = "next.tmp";
inline constexpr char kFirstSeqName[] = "FIRST";
inline constexpr char kLossName[] = "LOSS";

// The name of a segment's files without suffix: 20 digits.
std::string segment_name(Seq first);
// Adds the names of all files that a segment may have.
void add_segment_files(std::vector<std::string>& names, Seq first);

// Which files of a segment are there.
struct SegmentFiles {
  Seq first = 0;
  bool plain = false;
  bool compressed = false;
  bool indexed = false;
};
struct FolderListing {
  std::vector<SegmentFiles> segments;   // in the order of their seqs
  std::vector<std::string> unfinished;  // names of .tmp files
};
Result<FolderListing> list_folder(const std::string& folder);

// Locks the folder until the File closes. Fails with `conflict` JOURNAL_LOCKED, which names the
// process that holds the lock.
Result<File> lock_folder(const std::string& folder);

// Nothing when the file FIRST does not exist.
Result<std::optional<Seq>> read_first_seq(Disk& disk, const std::string& folder);
Result<void> write_first_seq(Disk& disk, const std::string& folder, Seq first);

// Reads the header of a segment and checks that it belongs to the file's name.
Result<SegmentHeader> read_segment_header(Disk& disk, const std::string& folder,
                                          const SegmentFiles& files);

// The mark of a loss that the operator accepted: one line of text for each, the oldest first. A
// mark stays for good, so that nobody takes the journal for complete later.
std::vector<std::string> read_loss_marks(const std::string& folder);
Result<void> add_loss_mark(Disk& disk, const std::string& folder, const std::string& line);

// Removes the files that exist among `names` and flushes the folder.
Result<void> remove_files(Disk& disk, const std::string& folder,
                          const std::vector<std::string>& names);

}  // namespace pawl
