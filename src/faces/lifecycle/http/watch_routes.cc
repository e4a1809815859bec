// Watch over HTTP: what is there, then every change, as WebSocket frames or Server-Sent Events. A
// reader that falls behind by more than the server buffers is let go and resumes by revision.

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <deque>

#include "base/log.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/http/answers.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Response;

namespace {

// One reader: first what was there or what the journal has since, page by page; then every change
// as it becomes durable. Changes wait until the first part is told.
class Feed : public std::enable_shared_from_this<Feed> {
 public:
  Feed(std::shared_ptr<Hub> hub, Reads reads, std::string tenant, TypePtr type, bool events)
      : hub_(std::move(hub)),
        reads_(reads),
        tenant_(std::move(tenant)),
        type_(std::move(type)),
        events_(events) {}

  void start(std::shared_ptr<wire::Stream> out, std::optional<Seq> after, Teller& teller) {
    out_ = std::move(out);
    uint64_t number =
        hub_->add(tenant_, type_->def.name,
                  [self = shared_from_this()](const ToldPtr& one) { self->take(one); });
    // The hub keeps this alive while it listens; the stream must not: this keeps the stream.
    out_->on_close([weak = weak_from_this(), hub = hub_, number] {
      if (auto self = weak.lock()) self->gone_ = true;
      hub->remove(number);
    });
    {
      std::lock_guard lock(mutex_);
      upto_ = reads_.kernel().durable();
    }
    // An id from the future, as of a server whose data was put back, begins now.
    stage_ = !after           ? events_ ? &Feed::collect : &Feed::tell_page
             : *after < upto_ ? &Feed::tell_journal
                              : &Feed::tell_waiting;
    from_ = after && *after < upto_ ? *after + 1 : 0;
    // A short story is told at once.
    for (int pages = 0; pages < kPagesAtOnce; ++pages)
      if (tell() == Teller::Next::done) return;
    teller.add([self = shared_from_this()] { return self->tell(); });
  }

 private:
  static constexpr int kPagesAtOnce = 4;
  using Stage = bool (Feed::*)();  // false: it is over

  Teller::Next tell() {
    if (gone_ || over_) return Teller::Next::done;
    if (!easy()) return Teller::Next::wait;
    if ((this->*stage_)()) return Teller::Next::more;
    if (!live_) out_->end();
    return Teller::Next::done;
  }

  // There is room for more of the story.
  bool easy() const { return !over_ && out_->buffered() <= limits::kWatchEasyBytes; }

  void take(const ToldPtr& one) {
    std::lock_guard lock(mutex_);
    if (over_ || one->version <= upto_) return;
    if (live_) return write(piece(*one, "change"));
    if (waiting_.size() < limits::kWatchWaiting) return waiting_.push_back(one);
    // So far behind it is better off resuming.
    over_ = true;
    out_->end();
  }

  void write(const std::string& text) {
    if (!text.empty() && !over_ && !out_->write(text)) over_ = true;
  }

  std::string framed(std::string_view event, Seq version, std::string_view json_text) const {
    if (!events_) return std::string(json_text) + "\n";
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", version, event, json_text);
  }

  std::string piece(const Told& one, std::string_view event) const {
    if (!one.stored) {
      return framed(
          "deleted", one.version,
          js::print(js::object(
              {{type_->id_field, one.id}, {"deleted", true}, {"revision", one.version}})));
    }
    std::string state;
    if (one.readable && append_state(state, type_->def, one.held.record))
      return framed(event, one.version, state);
    log(Level::warn, "watch skips an instance that cannot be read",
        {{"workflow", type_->def.name}, {"id", one.id}});
    return {};
  }

  Result<Listed> next_page() {
    any_query query;
    query.limit = static_cast<int64_t>(limits::kWatchPage);
    query.cursor = cursor_;
    auto page = reads_.list(tenant_, *type_, query);
    if (page)
      cursor_ = page->cursor;
    else
      log(Level::error, "a watch ends: what is there cannot be read",
          {{"workflow", type_->def.name},
           {"code", page.error().reason},
           {"detail", page.error().message}});
    return page;
  }

  // The last word of a socket, which nobody resumes by itself as they do events.
  bool give_up(const Error& why) {
    if (!events_) write(refusal_response("watch", why).body + "\n");
    return false;
  }

  // What has changed since the watch began comes live.
  void tell_snapshot(const Found& found) {
    std::string state;
    if (found.version <= upto_ && append_instance(state, *type_, found))
      write(framed("snapshot", found.version, state));
  }

  bool tell_page() {
    if (told_ == page_.size()) {
      auto page = next_page();
      if (!page) return give_up(page.error());
      page_ = std::move(page->items);
      told_ = 0;
    }
    while (told_ < page_.size() && easy())
      tell_snapshot(page_[told_++]);
    if (told_ == page_.size() && cursor_.empty()) stage_ = &Feed::tell_waiting;
    return true;
  }

  // Events go in the order of their ids, so that a reader that breaks off resumes without a gap.
  bool collect() {
    auto page = next_page();
    if (!page) return false;
    for (const Found& found : page->items)
      if (found.version <= upto_) there_.emplace_back(found.version, found.id);
    if (!cursor_.empty()) return true;
    std::sort(there_.begin(), there_.end());
    stage_ = &Feed::tell_collected;
    return true;
  }

  bool tell_collected() {
    for (size_t n = 0; n < limits::kWatchPage && told_ < there_.size() && easy(); ++n, ++told_)
      if (auto found = reads_.get(tenant_, type_->def.name, there_[told_].second))
        tell_snapshot(*found);
    if (told_ == there_.size()) {
      there_.clear();
      stage_ = &Feed::tell_waiting;
    }
    return true;
  }

  bool tell_journal() {
    Bytes cells = instance_prefix(tenant_, type_->def.name);
    Seq until = std::min<Seq>(upto_, from_ + limits::kWatchPage - 1), told = until;
    auto read = reads_.kernel().frames(from_, [&](const Frame& frame) -> Result<bool> {
      if (frame.seq > until) return false;
      for (const ToldPtr& one : changes_of(frame, cells))
        write(piece(*one, "change"));
      if (easy()) return true;
      told = frame.seq;
      return false;
    });
    if (!read) {
      bool gone = read.error().is(kTrimmed);
      write(
          framed("error", from_ - 1,
                 refusal_response("watch", gone ? refusal(errc::revision_gone, read.error().message)
                                                : read.error())
                     .body));
      return false;
    }
    from_ = told + 1;
    if (from_ > upto_) stage_ = &Feed::tell_waiting;
    return true;
  }

  bool tell_waiting() {
    std::lock_guard lock(mutex_);
    for (size_t n = 0; n < limits::kWatchPage && !waiting_.empty() && easy(); ++n) {
      if (waiting_.front()->version > upto_) write(piece(*waiting_.front(), "change"));
      waiting_.pop_front();
    }
    live_ = waiting_.empty();
    return !live_;
  }

  std::shared_ptr<Hub> hub_;
  Reads reads_;
  std::string tenant_;
  TypePtr type_;
  bool events_;
  std::shared_ptr<wire::Stream> out_;
  Seq upto_ = 0;  // told by the first part; changes go on after it
  Stage stage_ = nullptr;
  std::string cursor_;                              // of the next page
  std::vector<Found> page_;                         // what a socket is being told
  std::vector<std::pair<Seq, std::string>> there_;  // what an event reader will be told
  size_t told_ = 0;                                 // of one or the other
  Seq from_ = 0;                                    // the next frame of the journal
  std::atomic<bool> gone_{false};                   // the connection is over
  std::atomic<bool> over_{false};                   // nothing is written any more
  std::mutex mutex_;
  std::deque<ToldPtr> waiting_;
  bool live_ = false;
};

// Where to go on; nothing: from the start.
Result<std::optional<Seq>> resume_point(const Request& request) {
  std::string text =
      request.query_param("after").value_or(std::string(request.header("Last-Event-ID")));
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
      std::make_shared<Feed>(hub_, reads_, tenant, *type, false)
          ->start(std::move(socket), after, teller_);
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
    std::make_shared<Feed>(hub_, reads_, tenant, type, true)
        ->start(std::move(stream), after, teller_);
  };
  return out;
}

}  // namespace pawl::lifecycle
