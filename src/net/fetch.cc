#include "net/fetch.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "net/http_client.h"

namespace pawl::net {

namespace {

// A malformed request keeps its error. Everything else becomes TIMEOUT or FETCH_FAILED with the
// last field, `retryable`, set.
Error failed(const std::string& url, const Error& why) {
  if (why.code == Code::invalid) return why;
  const bool late = why.is(kTimedOut);
  return {Code::unavailable,
          late ? std::string(kTimedOut.name) : "FETCH_FAILED",
          fmt::format("{}: {}", url.substr(0, 200), late ? "no answer in time" : why.message),
          {},
          true};
}

}  // namespace

// Each request has a client and a connection of its own, so that a connection to a private address
// is never reused by a request that may not go there.
Result<wire::Response> fetch_now(const Fetch& fetch, int timeout_seconds) {
  HttpClient client({.timeout = std::chrono::seconds(timeout_seconds),
                     .max_answer_bytes = limits::kBodyBytes,
                     .public_addresses_only = !fetch.allow_private,
                     .allow_unknown_length = true});
  HttpRequest request{fetch.method, fetch.url, fetch.headers, fetch.body};
  request.headers.emplace_back("Connection", "close");
  auto answer = client.send(request);
  if (!answer) return fail(failed(fetch.url, answer.error()));
  return wire::Response{.status = answer->status,
                        .headers = std::move(answer->headers),
                        .body = std::move(answer->body)};
}

Fetcher::Fetcher(size_t threads, int timeout_seconds, size_t max_waiting, size_t max_waiting_bytes)
    : timeout_seconds_(timeout_seconds),
      max_waiting_(max_waiting),
      max_waiting_bytes_(max_waiting_bytes) {
  for (size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this] { loop(); });
}

// Drops requests that have not begun, without calling `done`, and waits for those that have.
Fetcher::~Fetcher() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    queue_.clear();
  }
  wake_.notify_all();
  for (auto& t : threads_)
    t.join();
}

void Fetcher::send(Fetch fetch, Done done) {
  {
    std::lock_guard lock(mutex_);
    const size_t bytes = waiting_bytes_ + fetch.body.size();
    // A body of any size may wait alone.
    if (queue_.empty() || (queue_.size() < max_waiting_ && bytes <= max_waiting_bytes_)) {
      waiting_bytes_ = bytes;
      queue_.emplace_back(std::move(fetch), std::move(done));
      wake_.notify_one();
      return;
    }
  }
  done(fail(Error{Code::unavailable,
                  "FETCH_QUEUE_FULL",
                  "too many HTTP requests wait to be sent; try again later",
                  {},
                  true}));
}

void Fetcher::loop() {
  while (true) {
    std::pair<Fetch, Done> next;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
      waiting_bytes_ -= next.first.body.size();
    }
    next.second(fetch_now(next.first, timeout_seconds_));
  }
}

}  // namespace pawl::net
