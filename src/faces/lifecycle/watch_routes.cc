// Watch over HTTP: what is there, then every change, as WebSocket frames or Server-Sent Events. A
// reader that falls behind by more than the server buffers is let go and resumes by revision.

#include <fmt/format.h>

#include <charconv>

#include "base/log.h"
#include "faces/lifecycle/answers.h"
#include "faces/lifecycle/face.h"
#include "faces/lifecycle/limits.h"

namespace pawl::lifecycle {

using wire::Request;
using wire::Response;

namespace {

// One reader. Changes wait until what was there has been told.
class Feed : public std::enable_shared_from_this<Feed> {
 public:
  Feed(std::shared_ptr<Hub> hub, Reads reads, std::string tenant, TypePtr type, bool events)
      : hub_(std::move(hub)), reads_(reads), tenant_(std::move(tenant)), type_(std::move(type)), events_(events) {}

  void start(std::shared_ptr<wire::Stream> out, std::optional<Seq> after) {
    out_ = std::move(out);
    number_ = hub_->add(tenant_, type_->def.name, [self = shared_from_this()](const ToldPtr& one) { self->take(one); });
    out_->on_close([hub = hub_, number = number_] { hub->remove(number); });
    upto_ = reads_.door().durable();
    bool told = after ? replay(*after) : snapshot();
    if (!told) return out_->end();
    std::lock_guard lock(mutex_);
    live_ = true;
    for (const ToldPtr& one : waiting_)
      if (one->version > upto_) write(piece(*one, "change"));
    waiting_.clear();
  }

 private:
  void take(const ToldPtr& one) {
    std::lock_guard lock(mutex_);
    if (over_) return;
    if (!live_) return waiting_.push_back(one);
    write(piece(*one, "change"));
  }

  void write(const std::string& text) {
    if (!text.empty() && !over_) over_ = !out_->write(text);
  }

  std::string framed(std::string_view event, Seq version, std::string_view json_text) const {
    if (!events_) return std::string(json_text) + "\n";
    return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", version, event, json_text);
  }

  std::string piece(const Told& one, std::string_view event) const {
    if (!one.stored) {
      return framed("deleted", one.version,
                    js::print(js::object({{type_->id_field, one.id}, {"deleted", true}, {"revision", one.version}})));
    }
    std::string state;
    if (one.readable && append_state(state, type_->def, one.held.record)) return framed(event, one.version, state);
    log(Level::warn, "watch skips an instance that cannot be read", {{"workflow", type_->def.name}, {"id", one.id}});
    return {};
  }

  // Pages until all that was there is told; what has changed since comes live. Events go in the order
  // of their ids, so that a reader that breaks off resumes without a gap.
  bool snapshot() {
    any_query query;
    query.limit = static_cast<int64_t>(limits::kWatchPage);
    std::vector<std::pair<Seq, std::string>> pieces;
    do {
      auto page = reads_.list(tenant_, *type_, query);
      if (!page) return false;
      for (const Found& found : page->items) {
        if (found.version > upto_) continue;
        std::string state;
        if (append_instance(state, *type_, found)) pieces.emplace_back(found.version, framed("snapshot", found.version, state));
      }
      query.cursor = page->cursor;
    } while (!query.cursor.empty());
    if (events_) std::stable_sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    // A frame each while the reader keeps up; then one large piece, which is no sign of slowness.
    std::string rest;
    for (const auto& [version, text] : pieces) {
      if (!events_ && rest.empty() && out_->buffered() < kEasyBytes) write(text);
      else rest += text;
    }
    write(rest);
    return true;
  }

  bool replay(Seq after) {
    if (after >= upto_) return true;
    Bytes cells = instance_prefix(tenant_, type_->def.name);
    std::string rest;
    auto read = reads_.door().frames(after + 1, [&](const Frame& frame) -> Result<bool> {
      if (frame.seq > upto_) return false;
      for (const ToldPtr& one : changes_of(frame, cells)) rest += piece(*one, "change");
      return true;
    });
    if (!read) {
      write(framed("error", after, js::print(js::object({{"error", "watch: " + read.error().message}}))));
      return false;
    }
    write(rest);
    return true;
  }

  static constexpr size_t kEasyBytes = 1 << 20;
  std::shared_ptr<Hub> hub_;
  Reads reads_;
  std::string tenant_;
  TypePtr type_;
  bool events_;
  std::shared_ptr<wire::Stream> out_;
  uint64_t number_ = 0;
  Seq upto_ = 0;
  std::mutex mutex_;
  std::vector<ToldPtr> waiting_;
  bool live_ = false, over_ = false;
};

std::optional<Seq> resume_point(const Request& request) {
  std::string text = request.query_param("after").value_or(std::string(request.header("Last-Event-ID")));
  Seq after = 0;
  auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (text.empty() || bad != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return after;
}

}  // namespace

Response Face::watch(const Request& request) {
  bool upgrade = wire::lists_token(request.header("Upgrade"), "websocket");
  bool events = request.header("Accept").find("text/event-stream") != std::string_view::npos;
  auto type = reads_.type(request.caller.tenant, request.params[0]);
  auto after = resume_point(request);
  Response out;
  if (upgrade) {
    if (!options_.websocket) return error_response(403, "WebSocket is disabled on this server");
    std::string_view origin = request.header("Origin");
    const auto& allowed = options_.allowed_origins;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), origin) == allowed.end()) return wire::text_response(403, "Forbidden");
    out.socket = [this, type, after, tenant = request.caller.tenant](std::shared_ptr<wire::Socket> socket) {
      if (!type) {
        socket->write(refusal_response("watch", type.error()).body + "\n");
        return socket->end();
      }
      std::make_shared<Feed>(hub_, reads_, tenant, *type, false)->start(std::move(socket), after);
    };
    return out;
  }
  if (!events) return wire::text_response(400, "stream=true needs a WebSocket handshake or Accept: text/event-stream\n");
  if (!type) return refusal_response("watch", type.error());
  out.headers = {{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  out.stream = [this, type = *type, after, tenant = request.caller.tenant](std::shared_ptr<wire::Stream> stream) {
    std::make_shared<Feed>(hub_, reads_, tenant, type, true)->start(std::move(stream), after);
  };
  return out;
}

}  // namespace pawl::lifecycle
