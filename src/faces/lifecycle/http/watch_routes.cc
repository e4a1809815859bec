// Watch over HTTP: the existing instances first, then every change, as WebSocket messages or
// Server-Sent Events. A client that reads too slowly is disconnected and resumes by revision.

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <deque>

#include "base/log.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/http/answers.h"
#include "faces/lifecycle/http/shapes.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Response;

namespace {

// WatchFeed writes one watch. It catches up first, page by page: with a snapshot of the instances,
// or with the changes that the journal has since a revision. Changes that become durable meanwhile
// are queued. When the queue has been written, changes are written as they come ("live").
class WatchFeed : public std::enable_shared_from_this<WatchFeed> {
 public:
  WatchFeed(std::shared_ptr<WatchHub> hub, Reads reads, std::string tenant, WorkflowTypePtr type,
            bool events)
      : hub_(std::move(hub)),
        reads_(reads),
        tenant_(std::move(tenant)),
        type_(std::move(type)),
        events_(events) {}

  void start(std::shared_ptr<wire::Stream> out, std::optional<Seq> after, CatchUp& catch_up) {
    out_ = std::move(out);
    uint64_t number = hub_->add(
        tenant_, type_->def.name,
        [self = shared_from_this()](const InstanceChangePtr& change) { self->take(change); });
    // The hub owns the feed, and the feed owns the stream. So the stream must not own the feed.
    out_->on_close([weak = weak_from_this(), hub = hub_, number] {
      if (auto self = weak.lock()) self->closed_ = true;
      hub->remove(number);
    });
    {
      std::lock_guard lock(mutex_);
      caught_up_to_ = reads_.kernel().durable();
    }
    // A revision from the future (the server's data was restored from a backup) starts live.
    if (!after)
      step_ = events_ ? &WatchFeed::collect_snapshot : &WatchFeed::write_snapshot_page;
    else
      step_ = *after < caught_up_to_ ? &WatchFeed::write_journal : &WatchFeed::write_queue;
    next_frame_ = after && *after < caught_up_to_ ? *after + 1 : 0;
    // A short catch-up needs no background work.
    for (int pages = 0; pages < kPagesAtOnce; ++pages)
      if (run_step() == CatchUp::Next::done) return;
    catch_up.add([self = shared_from_this()] { return self->run_step(); });
  }

 private:
  static constexpr int kPagesAtOnce = 4;
  // Writes one page and chooses the next step. Returns false when the feed needs no further step.
  using Step = bool (WatchFeed::*)();

  CatchUp::Next run_step() {
    if (closed_ || ended_) return CatchUp::Next::done;
    if (!has_room()) return CatchUp::Next::wait;
    if ((this->*step_)()) return CatchUp::Next::more;
    if (!live_) out_->end();
    return CatchUp::Next::done;
  }

  bool has_room() const { return !ended_ && out_->buffered() <= limits::kWatchBufferedBytes; }

  void take(const InstanceChangePtr& change) {
    std::lock_guard lock(mutex_);
    if (ended_ || change->version <= caught_up_to_) return;
    if (live_) return write(message_of(*change, "change"));
    if (queue_.size() < limits::kWatchWaiting) return queue_.push_back(change);
    // The client is too far behind: it resumes from the journal.
    ended_ = true;
    out_->end();
  }

  void write(const std::string& text) {
    if (!text.empty() && !ended_ && !out_->write(text)) ended_ = true;
  }

  std::string framed(std::string_view event, Seq version, std::string_view json_text) const {
    if (!events_) return std::string(json_text) + "\n";
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", version, event, json_text);
  }

  std::string message_of(const InstanceChange& change, std::string_view event) const {
    if (!change.value) {
      return framed(
          "deleted", change.version,
          js::print(js::object(
              {{type_->id_field, change.id}, {"deleted", true}, {"revision", change.version}})));
    }
    std::string state;
    if (change.readable && append_state(state, type_->def, change.stored.record))
      return framed(event, change.version, state);
    log(Level::warn, "watch skips an instance that cannot be read",
        {{"workflow", type_->def.name}, {"id", change.id}});
    return {};
  }

  Result<InstanceList> next_page() {
    any_query query;
    query.limit = static_cast<int64_t>(limits::kWatchPage);
    query.cursor = cursor_;
    auto page = reads_.list(tenant_, *type_, query);
    if (page)
      cursor_ = page->cursor;
    else
      log(Level::error, "a watch ends: its snapshot cannot be read",
          {{"workflow", type_->def.name},
           {"code", page.error().reason},
           {"detail", page.error().message}});
    return page;
  }

  // An instance that has changed since the watch began comes as a change.
  void write_snapshot_of(const FoundInstance& found) {
    std::string state;
    if (found.version <= caught_up_to_ && append_instance(state, *type_, found))
      write(framed("snapshot", found.version, state));
  }

  bool write_snapshot_page() {
    if (written_ == page_.size()) {
      auto page = next_page();
      if (!page) {
        // Clients of Server-Sent Events reconnect by themselves; a WebSocket client has to be told.
        if (!events_) write(refusal_response("watch", page.error()).body + "\n");
        return false;
      }
      page_ = std::move(page->items);
      written_ = 0;
    }
    while (written_ < page_.size() && has_room())
      write_snapshot_of(page_[written_++]);
    if (written_ == page_.size() && cursor_.empty()) step_ = &WatchFeed::write_queue;
    return true;
  }

  // Events are written in the order of their ids, so that a client that is disconnected during the
  // snapshot resumes without a gap.
  bool collect_snapshot() {
    auto page = next_page();
    if (!page) return false;
    for (const FoundInstance& found : page->items)
      if (found.version <= caught_up_to_) collected_.emplace_back(found.version, found.id);
    if (!cursor_.empty()) return true;
    std::sort(collected_.begin(), collected_.end());
    step_ = &WatchFeed::write_collected;
    return true;
  }

  bool write_collected() {
    for (size_t n = 0; n < limits::kWatchPage && written_ < collected_.size() && has_room(); ++n) {
      if (auto found = reads_.get(tenant_, type_->def.name, collected_[written_].second))
        write_snapshot_of(*found);
      ++written_;
    }
    if (written_ == collected_.size()) {
      collected_.clear();
      step_ = &WatchFeed::write_queue;
    }
    return true;
  }

  bool write_journal() {
    Bytes cells = instance_prefix(tenant_, type_->def.name);
    Seq page_end = std::min<Seq>(caught_up_to_, next_frame_ + limits::kWatchPage - 1);
    Seq written = page_end;
    auto read = reads_.kernel().frames(next_frame_, [&](const Frame& frame) -> Result<bool> {
      if (frame.seq > page_end) return false;
      for (const InstanceChangePtr& change : changes_of(frame, cells))
        write(message_of(*change, "change"));
      if (has_room()) return true;
      written = frame.seq;
      return false;
    });
    if (!read) {
      Error error = read.error();
      if (error.is(kTrimmed)) error = refusal(errc::revision_gone, read.error().message);
      write(framed("error", next_frame_ - 1, refusal_response("watch", error).body));
      return false;
    }
    next_frame_ = written + 1;
    if (next_frame_ > caught_up_to_) step_ = &WatchFeed::write_queue;
    return true;
  }

  bool write_queue() {
    std::lock_guard lock(mutex_);
    for (size_t n = 0; n < limits::kWatchPage && !queue_.empty() && has_room(); ++n) {
      if (queue_.front()->version > caught_up_to_) write(message_of(*queue_.front(), "change"));
      queue_.pop_front();
    }
    live_ = queue_.empty();
    return !live_;
  }

  std::shared_ptr<WatchHub> hub_;
  Reads reads_;
  std::string tenant_;
  WorkflowTypePtr type_;
  bool events_;  // Server-Sent Events; else WebSocket messages
  std::shared_ptr<wire::Stream> out_;
  // The snapshot or the journal is written up to here; live changes come after it.
  Seq caught_up_to_ = 0;
  Step step_ = nullptr;
  std::string cursor_;                                  // of the next page of the snapshot
  std::vector<FoundInstance> page_;                     // the page that a WebSocket gets
  std::vector<std::pair<Seq, std::string>> collected_;  // versions and ids for Server-Sent Events
  size_t written_ = 0;                                  // how many of page_ or collected_
  Seq next_frame_ = 0;                                  // of the journal
  std::atomic<bool> closed_{false};                     // the connection is closed
  std::atomic<bool> ended_{false};                      // nothing is written any more
  std::mutex mutex_;
  std::deque<InstanceChangePtr> queue_;
  bool live_ = false;
};

// The revision to resume after; nothing: the watch begins with a snapshot.
Result<std::optional<Seq>> resume_point(const Request& request) {
  std::string text =
      request.query_param(http::kWatchQuery["after"])
          .value_or(std::string(request.header(http::kWatchHeaders["Last-Event-ID"])));
  if (text.empty()) return std::optional<Seq>();
  Seq after = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (bad != std::errc() || end != text.data() + text.size())
    return fail(
        Code::invalid, "BAD_REVISION",
        fmt::format("after (or Last-Event-ID) must be a revision, the id of an event, not {}",
                    js::quote(text)));
  return std::optional<Seq>(after);
}

}  // namespace

Response Face::watch(const Request& request) {
  bool upgrade = wire::lists_token(request.header("Upgrade"), "websocket");
  bool events = request.header("Accept").find("text/event-stream") != std::string_view::npos;
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  auto from = resume_point(request);
  if (!from) return error_response(400, "watch: " + from.error().message);
  auto after = *from;
  Response out;
  if (upgrade) {
    if (!options_.websocket) return error_response(403, "WebSocket is disabled on this server");
    std::string_view origin = request.header("Origin");
    const auto& allowed = options_.allowed_origins;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), origin) == allowed.end())
      return wire::text_response(403, "Forbidden");
    out.socket = [this, type, after,
                  tenant = request.caller.tenant](std::shared_ptr<wire::Socket> socket) {
      if (!type) {
        socket->write(refusal_response("watch", type.error()).body + "\n");
        return socket->end();
      }
      std::make_shared<WatchFeed>(hub_, reads_, tenant, *type, false)
          ->start(std::move(socket), after, catch_up_);
    };
    return out;
  }
  if (!events)
    return wire::text_response(
        400, "stream=true needs a WebSocket handshake or Accept: text/event-stream\n");
  if (!type) return refusal_response("watch", type.error());
  out.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  out.stream = [this, type = *type, after,
                tenant = request.caller.tenant](std::shared_ptr<wire::Stream> stream) {
    std::make_shared<WatchFeed>(hub_, reads_, tenant, type, true)
        ->start(std::move(stream), after, catch_up_);
  };
  return out;
}

}  // namespace pawl::lifecycle
