#pragma once
// Streams a large search result to a client as fast as the client reads it. The search stores only
// the ids of the entities; their documents are read from the snapshot of the search when there is
// room for them. A slow client holds its snapshot, but neither a thread nor the whole result. When
// an entity cannot be read, the last line is the error: {"type":"ERROR","error":{...}}.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "faces/entities/search/stream_slots.h"
#include "kernel/access.h"
#include "runtime/background.h"
#include "wire/message.h"

namespace pawl::entities {

struct ResultStream {
  ReadSnapshot snapshot;
  std::string tenant;
  std::optional<Seq> seq{};  // read the versions that were newest then; empty: of the snapshot
  std::string lines{};       // lines that are not written yet
  std::vector<std::string> ids{};  // the entities that follow `lines`
  size_t next = 0;                 // index of the first id without a line
  StreamSlots::SlotPtr slot{};
  std::shared_ptr<wire::Stream> out{};  // shared with the server's connection

  // Writes as much as the client has room for. Returns false when the stream is over.
  bool write();
};

class ResultStreams {
 public:
  explicit ResultStreams(Background& background);
  ~ResultStreams() { stop(); }
  // Drops the streams that are not complete. They are not ended: a client must not take a part of
  // the result for the whole.
  void stop();
  void add(std::unique_ptr<ResultStream> stream);

 private:
  Time step();

  Background& background_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::vector<std::unique_ptr<ResultStream>> streams_;
  std::unique_ptr<BackgroundLoop> loop_;
};

}  // namespace pawl::entities
