#include "kernel/verify.h"

#include <fmt/format.h>

#include "kernel/commit.h"
#include "kernel/kernel.h"

namespace pawl {

static std::string readable(BytesView bytes) {
  std::string out;
  for (unsigned char c : bytes.substr(0, 200)) {
    if (c >= 0x20 && c < 0x7f) out.push_back(static_cast<char>(c));
    else out += fmt::format("\\x{:02x}", c);
  }
  return bytes.size() > 200 ? out + "..." : out;
}

// Names the first part of two frames that differs.
static std::string differ(const Frame& was, const Frame& now) {
  size_t n = std::min(was.writes.size(), now.writes.size());
  for (size_t i = 0; i < n; ++i) {
    const auto &a = was.writes[i], &b = now.writes[i];
    if (a.key != b.key) return fmt::format("write {}: recorded key '{}', now '{}'", i, readable(a.key), readable(b.key));
    if (a.before != b.before) return fmt::format("cell '{}': recorded as replacing version {}, now {}", readable(a.key), a.before, b.before);
    BytesView x = a.value ? BytesView(a.value->bytes) : BytesView(), y = b.value ? BytesView(b.value->bytes) : BytesView();
    if (!a.value != !b.value || x != y) {
      size_t at = std::mismatch(x.begin(), x.begin() + static_cast<ptrdiff_t>(std::min(x.size(), y.size())), y.begin()).first - x.begin();
      return fmt::format("cell '{}', byte {}: recorded {}, now {}", readable(a.key), at,
                         a.value ? "'" + readable(x.substr(at)) + "'" : "erased", b.value ? "'" + readable(y.substr(at)) + "'" : "erased");
    }
  }
  if (was.writes.size() != now.writes.size())
    return fmt::format("recorded {} changed cells, now {}", was.writes.size(), now.writes.size());
  for (size_t i = 0; i < std::min(was.notes.size(), now.notes.size()); ++i)
    if (was.notes[i] != now.notes[i])
      return fmt::format("note {}: recorded '{}', now '{}'", i, readable(was.notes[i]), readable(now.notes[i]));
  return fmt::format("recorded {} notes, now {}", was.notes.size(), now.notes.size());
}

static std::string rerun(Kernel& kernel, const Frame& frame, BytesView body, Group& group) {
  for (const Input& input : frame.inputs) kernel.run(input, [](Result<Answer>) {});
  group = kernel.take();
  if (group.frames.size() != 1) {
    std::string why;
    for (auto& answered : group.answers)
      if (!answered.answer) why = answered.answer.error().message;
    if (why.empty() && kernel.open_turns()) why = "the program waits for a receipt that was not recorded";
    return fmt::format("recorded one frame, now {}{}{}", group.frames.size(), why.empty() ? "" : ": ", why);
  }
  if (body_of(group.entries[0]) != body) return differ(frame, group.frames[0]);
  return {};
}

Result<Verified> verify(const Journal& journal, Rows& scratch, std::span<const Program* const> programs, const Progress& progress) {
  Verified out;
  if (journal.last() == 0) return out;
  // Without the beginning there is nothing to run on: links and bytes are checked all the same.
  bool from_start = journal.first() == 1;
  CellCache cache(scratch, 64 << 20);
  Kernel kernel(cache, [&] { return Look(scratch.snapshot()); }, {programs.begin(), programs.end()}, 0);
  Digest none{};
  std::optional<Digest> link;
  if (from_start) link = none;
  TRY_OK(journal.read(journal.first(), [&](Seq seq, BytesView entry) -> Result<bool> {
    TRY(Sealed sealed, unseal(entry));
    auto different = [&](std::string why) {
      out.difference = fmt::format("frame {}: {}", seq, why);
      out.different_at = seq;
      return false;
    };
    if (link && sealed.before != *link) return different("its link does not follow the frame before");
    link = sealed.own;
    TRY(Frame frame, decode_frame(seq, sealed.body));
    if (encode_body(frame) != sealed.body) return different("its bytes are not what encoding it gives");
    ++out.frames;
    ++out.by_program[frame.program];
    if (from_start) {
      Group group;
      std::string why = rerun(kernel, frame, sealed.body, group);
      if (!why.empty()) return different(fmt::format("program {}, verb {}: {}", frame.program, frame.inputs.empty() ? "?" : frame.inputs[0].verb, why));
      ++out.rerun;
      cache.begin();
      TRY_OK(scratch.apply(group.rows, seq));
      group.each_cell([&](BytesView key, const Cell& cell, Seq written) { cache.publish(key, cell, written, seq); });
      cache.end(seq);
    }
    if (out.frames % 4096 == 0 && progress) progress(seq, journal.last());
    return true;
  }));
  return out;
}

}  // namespace pawl
