#include "faces/worlds/store/reads.h"

#include <charconv>

#include "faces/worlds/air/name.h"

namespace pawl::worlds {

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

Result<Consistency> parse_consistency(std::string_view text) {
  if (text.empty() || text == "head") return Consistency{};
  const size_t colon = text.find(':');
  auto height =
      colon == std::string_view::npos ? std::nullopt : whole_number(text.substr(colon + 1));
  const std::string_view kind = text.substr(0, colon);
  if (!height || (kind != "exact" && kind != "at_least"))
    return fail(Code::invalid, "invalid_request",
                "consistency is head, exact:HEIGHT or at_least:HEIGHT, not '" +
                    std::string(text.substr(0, 80)) + "'");
  return Consistency{kind == "exact" ? Consistency::exact : Consistency::at_least, *height};
}

// A read for a height that is still to come is a conflict, so that clients retry it.
Result<bool> head_serves(const Consistency& wanted, std::string_view world, uint64_t height) {
  if (wanted.kind == Consistency::at_least && height < wanted.height)
    return fail(Code::conflict, "query.error",
                "world '" + std::string(world) + "' stands at height " + std::to_string(height) +
                    ", before " + std::to_string(wanted.height) + ": retry later");
  return wanted.kind != Consistency::exact || wanted.height == height;
}

std::unexpected<Error> no_such_height(uint64_t height) {
  return fail(Code::invalid, "query.error",
              "exact reads serve the head or the height of a snapshot; " + std::to_string(height) +
                  " is neither");
}

// The roots of a snapshot are a list of [workflow, digest as 32 integers].
Result<std::optional<Bytes>> state_in_snapshot(const IndexStore& store, std::string_view ref,
                                               std::string_view workflow, BytesView key) {
  TRY(Bytes digest, parse_hash(ref));
  TRY(Bytes bytes, store.get(digest));
  TRY(cbor::Value blob, cbor::decode(bytes));
  const cbor::Value* roots = blob.find("workflow_index_roots");
  if (!roots || !roots->is_array())
    return fail(Code::corrupt, "snapshot.decode", "the snapshot has no roots");
  for (const cbor::Value& root : roots->array()) {
    if (root.array()[0].text() != workflow) continue;
    TRY(Bytes at, parse_digest_array(&root.array()[1]));
    TRY(std::optional<cbor::Value> entry, find_in_index(store, at, view(sha256(key))));
    if (!entry) break;
    TRY(Bytes hash, parse_digest_array(entry->find("state_hash")));
    TRY(Bytes state, store.get(hash));
    return std::optional<Bytes>(std::move(state));
  }
  return std::optional<Bytes>();
}

}  // namespace pawl::worlds
