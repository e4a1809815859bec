#include "storage/journal.h"

#include <fmt/format.h>

namespace pawl {

Result<Bytes> Journal::get(Seq seq) const {
  std::optional<Bytes> found;
  if (seq > 0) {
    TRY_OK(read(seq, [&](Seq, BytesView entry) -> Result<bool> {
      found = Bytes(entry);
      return false;
    }));
  }
  if (!found) {
    return fail(
        Code::not_found, "NO_ENTRY",
        fmt::format("the journal has no entry {}; it holds {} to {}", seq, first(), last()));
  }
  return *std::move(found);
}

Error fenced(Seq last, Seq expected_last) {
  return Error{
      Code::conflict, std::string(kFenced.name),
      fmt::format(
          "the last entry of the journal is {}, but the writer expected {}: another owner has this "
          "shard; stop serving it and start again from the journal",
          last, expected_last)};
}

Error trimmed(Seq from, Seq first) {
  return Error{
      Code::not_found, std::string(kTrimmed.name),
      fmt::format(
          "entry {} was trimmed; the journal begins at {}: read from there, or restore an older "
          "backup with `pawl restore`",
          from, first)};
}

}  // namespace pawl
