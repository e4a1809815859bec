#pragma once
// The folder of a journal: which files are in it, what they are called, who holds it.

#include <optional>
#include <string>
#include <vector>

#include "storage/file/disk.h"
#include "storage/file/segment.h"

namespace pawl {

inline constexpr char kPlainEnd[] = ".seg";
inline constexpr char kPackedEnd[] = ".zseg";
inline constexpr char kSealEnd[] = ".idx";
inline constexpr char kNextName[] = "next.tmp";
inline constexpr char kFirstName[] = "FIRST";

std::string segment_name(Seq first);  // 20 digits, without an end

struct SegmentFiles {
  Seq first = 0;
  bool plain = false, packed = false, sealed = false;
};
struct FolderListing {
  std::vector<SegmentFiles> segments;   // in order
  std::vector<std::string> unfinished;  // names of tmp files
};
Result<FolderListing> list_folder(const std::string& folder);

// Held until the File closes. Fails `conflict` JOURNAL_LOCKED, naming the process that has it.
Result<File> lock_folder(const std::string& folder);

Result<std::optional<Seq>> read_first(const std::string& folder);  // none: no such file
Result<void> write_first(Disk& disk, const std::string& folder, Seq first);

// The header of a segment, which must be the one its name says.
Result<SegmentHead> read_segment_head(const std::string& folder, const SegmentFiles& files);

Result<void> remove_files(Disk& disk, const std::string& folder,
                          const std::vector<std::string>& names);

}  // namespace pawl
