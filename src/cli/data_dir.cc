#include "cli/data_dir.h"

#include "storage/file/file_journal.h"

namespace pawl::cli {

Result<Copied> copy_journal(const Journal& from, const std::string& data,
                            const Progress& progress) {
  TRY_OK(write_format(data));
  FileJournalOptions options;
  options.folder = journal_folder(data);
  TRY(auto to, FileJournal::open(options));
  // Each append ends with a flush to disk, so entries are copied a mebibyte at a time.
  static constexpr size_t kGroupBytes = 1 << 20;
  std::vector<Bytes> group;
  size_t bytes = 0;
  Copied out;
  auto flush = [&]() -> Result<void> {
    std::vector<BytesView> views(group.begin(), group.end());
    // The second argument is the last entry before the group; the journal refuses a gap.
    TRY_OK(to->append(views, out.last - group.size()));
    group.clear();
    bytes = 0;
    return {};
  };
  if (from.first() > 1)
    return fail(Code::unsupported, "TRIMMED",
                "the journal's beginning was let go of: back up its checkpoint together with the "
                "folder instead");
  // The journal may grow meanwhile when a running server backs itself up: the copy ends at this
  // entry.
  Seq last = from.last();
  TRY_OK(from.read(1, [&](Seq seq, BytesView entry) -> Result<bool> {
    if (seq > last) return false;
    group.emplace_back(entry);
    bytes += entry.size();
    out.bytes += entry.size();
    out.last = seq;
    if (bytes >= kGroupBytes) {
      TRY_OK(flush());
      if (progress) progress(seq, last);
    }
    return true;
  }));
  if (!group.empty()) TRY_OK(flush());
  return out;
}

}  // namespace pawl::cli
