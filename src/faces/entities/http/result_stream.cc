#include "faces/entities/http/result_stream.h"

#include "base/log.h"
#include "faces/entities/http/problem.h"
#include "faces/entities/store/entity.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

constexpr size_t kPieceBytes = 256 * 1024;
// Bytes on their way to a slow client before the stream waits for it.
constexpr size_t kMaxBufferedBytes = 1024 * 1024;
// Pieces written to one client before the other streams have their turn.
constexpr int kMaxPiecesInStep = 8;
// How often a stream looks whether its client has room again.
constexpr Time kRecheck = kMillisecond;

Result<void> append_line(ResultStream& stream, const std::string& id) {
  const Key key = entity_key(stream.tenant, id);
  TRY(Cell cell,
      stream.seq ? stream.snapshot.read_at(key, *stream.seq) : stream.snapshot.read(key));
  EntityView entity;
  if (!view_entity(cell.value(), entity)) return fail(unreadable_entity(id));
  append_envelope(stream.lines, entity, false);
  stream.lines += '\n';
  return {};
}

// The head of the response says 200 already, so the error is a line, and the body is cut behind it:
// it must not be taken for a whole result.
void append_error(std::string& lines, const Error& error) {
  const Problem p = problem_of(error);
  log(Level::error, "a streamed search ended early",
      {{"reason", error.reason}, {"why", error.message}});
  json::append(lines, json::object({{"type", "ERROR"},
                                    {"error", json::object({{"status", p.status},
                                                            {"code", p.code},
                                                            {"message", error.message}})}}));
  lines += '\n';
}

}  // namespace

bool ResultStream::write() {
  for (int piece = 0; piece < kMaxPiecesInStep; ++piece) {
    if (out->buffered() > kMaxBufferedBytes) return true;
    Result<void> readable;
    while (readable && next < ids.size() && lines.size() < kPieceBytes)
      readable = append_line(*this, ids[next++]);
    if (!readable) append_error(lines, readable.error());
    if (!lines.empty() && !out->write(lines)) return false;
    lines.clear();
    if (!readable) {
      out->cut();
      return false;
    }
    if (next == ids.size()) {
      out->end();
      return false;
    }
  }
  return true;
}

ResultStreams::ResultStreams(Background& background) : background_(background) {
  std::lock_guard lock(mutex_);  // the first step may run before loop_ is assigned
  loop_ = background.loop("entity results", [this] { return step(); });
}

void ResultStreams::stop() {
  std::unique_ptr<BackgroundLoop> loop;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    loop = std::move(loop_);
  }
  loop.reset();
  streams_.clear();
}

void ResultStreams::add(std::unique_ptr<ResultStream> stream) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  streams_.push_back(std::move(stream));
  loop_->wake();
}

Time ResultStreams::step() {
  std::vector<std::unique_ptr<ResultStream>> streams;
  {
    std::lock_guard lock(mutex_);
    streams.swap(streams_);
  }
  std::erase_if(streams, [](const auto& stream) { return !stream->write(); });
  std::lock_guard lock(mutex_);
  for (auto& stream : streams)
    streams_.push_back(std::move(stream));
  return streams_.empty() ? BackgroundLoop::kNever : background_.steady_now() + kRecheck;
}

}  // namespace pawl::entities
