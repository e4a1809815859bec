#include "embed/remote_watch.h"

#include <charconv>

#include "base/limits.h"
#include "faces/lifecycle/limits.h"
#include "json/text.h"
#include "wire/message.h"

namespace pawl::lifecycle {

// Far more than the largest record a server accepts.
static constexpr size_t kMaxEventBytes = size_t{64} << 20;

RemoteSubscription::RemoteSubscription(std::shared_ptr<net::HttpClient> http, WorkflowTypePtr type,
                                       std::optional<revision> after)
    : http_(std::move(http)),
      type_(std::move(type)),
      asked_(after.value_or(0)),
      last_(after),
      thread_([this](std::stop_token stop) { read(stop); }) {}

void RemoteSubscription::read(std::stop_token stop) {
  while (!stop.stop_requested()) {
    read_once(stop);
    if (failed()) break;
    std::unique_lock lock(mutex_);
    // A pause before the next attempt, which the stop token ends early.
    wake_.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
  }
  std::lock_guard lock(mutex_);
  over_ = true;
  wake_.notify_all();
}

// One connection, from the request to its end. The server continues after Last-Event-ID.
void RemoteSubscription::read_once(const std::stop_token& stop) {
  net::HttpRequest request{"GET",
                           "/workflows/" + wire::percent_encode(type_->def.name) + "?stream=true",
                           {{"Accept", "text/event-stream"}},
                           {}};
  if (last_) request.headers.emplace_back("Last-Event-ID", std::to_string(*last_));
  buffer_.clear();
  auto answer = http_->stream(request, {.stop = stop},
                              std::chrono::seconds(pawl::limits::kClientSilenceSeconds),
                              [&](std::string_view piece) { return take_piece(piece, stop); });
  // A refusal is final. A broken connection or a busy server (429, 503) is tried again.
  const int status = answer ? answer->status : 0;
  if (status / 100 == 4 && status != 429) end_with(error_of(status, answer->body));
}

// An event ends with an empty line. A piece may hold several events or a part of one.
bool RemoteSubscription::take_piece(std::string_view piece, const std::stop_token& stop) {
  buffer_ += piece;
  if (buffer_.size() > kMaxEventBytes)
    end_with({make_error_code(errc::storage), "the server sent an event that is too large"});
  for (size_t end; (end = buffer_.find("\n\n")) != std::string::npos; buffer_.erase(0, end + 2))
    take(std::string_view(buffer_).substr(0, end), stop);
  return !stop.stop_requested() && !failed();
}

void RemoteSubscription::take(std::string_view event, const std::stop_token& stop) {
  std::string_view id_line, kind_line, data;
  while (!event.empty()) {
    size_t end = std::min(event.find('\n'), event.size());
    std::string_view line = event.substr(0, end);
    event.remove_prefix(std::min(end + 1, event.size()));
    if (line.starts_with("id: "))
      id_line = line.substr(4);
    else if (line.starts_with("event: "))
      kind_line = line.substr(7);
    else if (line.starts_with("data: "))
      data = line.substr(6);
  }
  // The server ends a watch for good with an event of the kind "error".
  if (kind_line == "error") return end_with(error_of(503, data));
  revision rev = 0;
  std::from_chars(id_line.data(), id_line.data() + id_line.size(), rev);
  // A keep-alive has no data and is dropped here.
  auto parsed = js::parse(data);
  if (!parsed || rev <= asked_) return;
  any_change out;
  out.snapshot = kind_line == "snapshot";
  out.deleted = kind_line == "deleted";
  if (out.deleted) {
    auto kept = std::make_shared<std::string>(parsed->string_or(type_->id_field));
    out.state.id = *kept;
    out.state.rev = rev;
    out.state.keep = kept;
  } else {
    auto state = parse_state(*type_, *parsed, rev);
    if (!state) return;
    out.state = *std::move(state);
  }
  std::unique_lock lock(mutex_);
  // When the queue is full, this thread waits for the reader and takes no more from the connection.
  // The server then applies its own limit for slow readers.
  wake_.wait(lock,
             [&] { return queue_.size() < limits::kWatchQueue || over_ || stop.stop_requested(); });
  if (over_) return;
  last_ = std::max(last_.value_or(0), rev);  // events come in the order of their revisions
  queue_.push_back(std::move(out));
  wake_.notify_all();
}

// Taking a change makes room, so the reader's thread is woken as well.
std::optional<any_change> RemoteSubscription::next(const call_options& options) {
  std::unique_lock lock(mutex_);
  auto ready = [&] { return over_ || !queue_.empty(); };
  if (options.until.never())
    wake_.wait(lock, options.stop, ready);
  else
    wake_.wait_until(lock, options.stop, options.until.at(), ready);
  if (options.stop.stop_requested() || queue_.empty()) return std::nullopt;
  any_change out = std::move(queue_.front());
  queue_.pop_front();
  wake_.notify_all();
  return out;
}

// Only records the reason; the reader's thread sees it and ends.
void RemoteSubscription::end_with(error why) {
  std::lock_guard lock(mutex_);
  failed_ = std::move(why);
}

std::optional<error> RemoteSubscription::failed() {
  std::lock_guard lock(mutex_);
  return failed_;
}

void RemoteSubscription::close() {
  thread_.request_stop();
  {
    std::lock_guard lock(mutex_);
    over_ = true;
    queue_.clear();
  }
  wake_.notify_all();
}

}  // namespace pawl::lifecycle
