#include "faces/worlds/store/notes.h"

namespace pawl::worlds {
namespace {

// The first byte of a note, which says how to read the rest (docs/formats/worlds.md).
constexpr char kRecord = 'r', kEvent = 'e', kCompaction = 'c', kUnpointing = 'u';

Writer begin(Bytes& out, char kind, const WorldId& world_id, uint64_t seq) {
  Writer w(out);
  w.u8(static_cast<uint8_t>(kind));
  w.str(world_id.tenant);
  w.str(world_id.world);
  w.uint(seq);
  return w;
}

// Hashes are kept as bytes. Text that is not a hash (worlds of older hosts have such) is kept as it
// is.
void put_hash(Writer& w, std::string_view text) {
  auto digest = parse_hash(text);
  w.str(digest ? BytesView(*digest) : BytesView(text));
}
std::string get_hash(Reader& r) {
  const BytesView bytes = r.str();
  return bytes.size() == sizeof(Digest) ? hash_text(bytes) : std::string(bytes);
}

// The part of an event's note after its seq.
struct EventFields {
  Event event;
  Moment moment;
  BytesView digest;
};
// The order is that of encode_note() for events; skip_event() reads the same fields without copies.
EventFields get_event(Reader& r) {
  EventFields out;
  out.event.schema = r.str();
  out.event.value = r.str();
  if (r.boolean()) out.event.key = Bytes(r.str());
  out.moment.now_ns = r.uint();
  out.moment.logical_now_ns = r.uint();
  out.moment.chance = r.str();
  out.moment.manifest_hash = get_hash(r);
  out.digest = r.str();
  return out;
}

void skip_event(Reader& r, BytesView& key, BytesView& digest) {
  r.str();
  r.str();
  if (r.boolean()) key = r.str();
  r.uint();
  r.uint();
  r.str();
  r.str();
  digest = r.str();
}

}  // namespace

Bytes encode_note(const WorldId& world_id, uint64_t seq, BytesView record,
                  const Pointers& pointers) {
  Bytes out;
  out.reserve(record.size() + 160);
  Writer w = begin(out, kRecord, world_id, seq);
  w.str(record);
  w.uint(pointers.size());
  for (const auto& [kind, what] : pointers) {
    w.str(kind);
    w.str(what);
  }
  return out;
}

Bytes encode_note(const WorldId& world_id, const EventNote& n) {
  Bytes out;
  out.reserve(n.event.value.size() + 320);
  Writer w = begin(out, kEvent, world_id, n.moment.height);
  w.str(n.event.schema);
  w.str(n.event.value);
  w.boolean(n.event.key.has_value());
  if (n.event.key) w.str(*n.event.key);
  w.uint(n.moment.now_ns);
  w.uint(n.moment.logical_now_ns);
  w.str(n.moment.chance);
  put_hash(w, n.moment.manifest_hash);
  w.str(n.digest);
  w.uint(n.cells.size());
  for (const auto& [workflow, key] : n.cells) {
    // Most cells have the event's own key, which then is not written again.
    const bool own = n.event.key && key == *n.event.key;
    w.str(workflow);
    w.boolean(own);
    if (!own) w.str(key);
  }
  return out;
}

Bytes encode_compaction(const WorldId& world_id, uint64_t from, uint64_t to) {
  Bytes out;
  begin(out, kCompaction, world_id, from).uint(to);
  return out;
}

Bytes encode_unpointing(const WorldId& world_id, const std::vector<Bytes>& pointers) {
  Bytes out;
  Writer w = begin(out, kUnpointing, world_id, 0);
  w.uint(pointers.size());
  for (const Bytes& pointer : pointers)
    w.str(pointer);
  return out;
}

// The same keys as index_prefix() makes, built in one buffer. `r` is after the seq of the note.
template <class Visit>
static void visit_pointers(char form, uint64_t seq, Reader& r, Visit&& visit) {
  const Bytes at = ordered64(seq);
  Bytes pointer;
  auto point = [&](BytesView kind, BytesView what, BytesView further = {}) {
    pointer.assign(kind).append(1, '\0').append(what).append(further).append(at);
    visit(BytesView(pointer));
  };
  if (form == kRecord) {
    r.str();
    for (size_t n = r.count(); n > 0 && r.ok(); --n) {
      const BytesView kind = r.str();
      point(kind, r.str());
    }
    return;
  }
  BytesView own, digest;
  skip_event(r, own, digest);
  point("e", digest_lead(digest));
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    const BytesView workflow = r.str();
    point("c", cell_name(workflow, {}), r.boolean() ? own : r.str());
  }
}

void each_pointer(BytesView note, const std::function<void(BytesView pointer)>& visit) {
  Reader r(note);
  const char form = static_cast<char>(r.u8());
  r.str();
  r.str();
  const uint64_t seq = r.uint();
  if (r.ok() && (form == kRecord || form == kEvent)) visit_pointers(form, seq, r, visit);
}

// A note that cannot be read leaves no rows.
void put_rows(BytesView note, ViewRows& rows) {
  Reader r(note);
  const char form = static_cast<char>(r.u8());
  const BytesView tenant = r.str(), world = r.str();
  const uint64_t seq = r.uint();
  // Only the records go. Rows that point to them go later, and readers skip them by
  // `retained_from`.
  if (form == kCompaction) {
    const uint64_t to = r.uint();
    const WorldId world_id{std::string(tenant), std::string(world)};
    for (uint64_t at = seq; r.ok() && at < to; ++at)
      rows.erase(record_row(world_id, at));
    return;
  }
  if (!r.ok()) return;
  Bytes pointer = prefix({"x", tenant, world});
  const size_t lead = pointer.size();
  if (form == kUnpointing) {
    for (size_t n = r.count(); n > 0 && r.ok(); --n) {
      pointer.resize(lead);
      rows.erase(pointer.append(r.str()));
    }
    return;
  }
  rows.put(prefix({"j", tenant, world}).append(ordered64(seq)), note);
  visit_pointers(form, seq, r, [&](BytesView one) {
    pointer.resize(lead);
    rows.put(pointer.append(one), {});
  });
}

Result<Bytes> record_of(BytesView row) {
  Reader r(row);
  const char form = static_cast<char>(r.u8());
  r.str();
  r.str();
  const uint64_t seq = r.uint();
  if (form == kRecord) {
    Bytes record(r.str());
    if (r.ok()) return record;
  } else if (form == kEvent) {
    EventFields e = get_event(r);
    e.moment.height = seq;
    if (r.ok()) return domain_event_record(e.event, e.moment, hash_text(e.digest));
  }
  return fail(Code::corrupt, "journal.error",
              "journal.error: a record's row is damaged: delete the rows folder and start again");
}

}  // namespace pawl::worlds
