#include "storage/postgres/group.h"

#include "base/hash.h"

namespace pawl::postgres {

static constexpr uint8_t kVersion = 1;

void pack_group(std::span<const BytesView> entries, Bytes& out) {
  out.clear();
  size_t size = 16;
  for (BytesView entry : entries)
    size += entry.size() + 5;
  out.reserve(size);
  Writer w(out);
  w.u8(kVersion);
  w.uint(entries.size());
  for (BytesView entry : entries)
    w.uint(entry.size());
  for (BytesView entry : entries)
    out.append(entry);
  w.fixed32(crc32c(out));
}

Result<std::vector<BytesView>> unpack_group(BytesView group) {
  const auto damaged = [](std::string what) {
    return fail(Code::corrupt, "JOURNAL_CORRUPT", std::move(what));
  };
  if (group.size() < 6) return damaged("the group is shorter than its head");
  const BytesView body = group.substr(0, group.size() - 4);
  if (Reader(group.substr(body.size())).fixed32() != crc32c(body))
    return damaged("the checksum of the group does not fit its bytes");
  Reader r(body);
  if (r.u8() != kVersion) return damaged("the group was written by a newer version of pawl");
  std::vector<size_t> sizes(r.count());
  size_t sum = 0;
  for (size_t& size : sizes)
    sum += size = r.uint();
  if (!r.ok() || sum != r.rest().size()) return damaged("the sizes of the entries do not fit");
  std::vector<BytesView> entries;
  entries.reserve(sizes.size());
  BytesView rest = r.rest();
  for (size_t size : sizes) {
    entries.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return entries;
}

}  // namespace pawl::postgres
