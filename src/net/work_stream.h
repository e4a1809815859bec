#pragma once
// WorkStream is the server's side of a bidirectional gRPC stream that pushes work to a worker. It
// is the part that all such streams share:
//   - credit: the worker says how much work it takes; one poll at a time asks for as much;
//   - ordered writes: one message is written at a time, the face makes the next when it is due;
//   - bounded memory: a worker that does not read its messages gets no more work, and its messages
//     are not read while too many of its results wait for their confirmation;
//   - the end: when the worker has sent everything, the stream ends after the last result is
//     confirmed. When the call is cancelled or a message is refused, it ends at once. It ends once.
//
// A face derives from it, implements the virtual functions, and calls the protected ones. State
// that is shared between threads is guarded by mutex(): functions named *_locked need the lock, all
// others must be called without it.

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

namespace pawl::net {

template <class In, class Out>
class WorkStream : public grpc::ServerBidiReactor<In, Out>,
                   public std::enable_shared_from_this<WorkStream<In, Out>> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  // begin() or refuse() is called once, after the stream was made with std::make_shared. The stream
  // stays alive until gRPC is done with it.
  void begin() {
    self_ = this->shared_from_this();
    reading_ = true;
    this->StartRead(&in_);
  }
  void refuse(const grpc::Status& status) {
    self_ = this->shared_from_this();
    ended_ = true;
    this->Finish(status);
  }

  void OnReadDone(bool ok) final {
    if (!ok) {
      Lock lock(mutex_);
      worker_done_ = true;
      return end_if_idle(lock);
    }
    // The message is moved out and handled without the lock; the next read starts when it is
    // handled, so messages of one worker are handled in their order.
    const In message = std::move(in_);
    in_.Clear();
    grpc::Status status = take(message);
    if (!status.ok()) return end(status);
    Lock lock(mutex_);
    reading_ = false;
    read_next_locked();
  }
  void OnWriteDone(bool ok) final {
    if (!ok) return end(grpc::Status::CANCELLED);
    {
      Lock lock(mutex_);
      writing_ = false;
      write_next_locked();
      read_next_locked();
      end_if_idle(lock);
    }
    // Work that was held back because of unread messages.
    ask_for_work();
  }
  void OnCancel() final { end(grpc::Status::CANCELLED); }
  void OnDone() final { self_.reset(); }

 protected:
  explicit WorkStream(int64_t max_credit) : max_credit_(max_credit) {}

  // Handles one message of the worker. A status other than OK ends the stream.
  virtual grpc::Status take(const In& message) = 0;
  // Starts a poll for up to `limit` pieces of work. Its answer must call finish_poll_locked(), on
  // any thread. Returns the number for cancel_poll(); 0 when the poll cannot be cancelled.
  virtual uint64_t start_poll(int64_t limit) = 0;
  // After this the poll is not answered any more.
  virtual void cancel_poll(uint64_t) {}
  // Bytes of the messages that are not written yet.
  virtual size_t unwritten_bytes_locked() const = 0;
  // Fills the next message to write; returns false when there is none.
  virtual bool next_message_locked(Out& out) = 0;
  // The stream has ended: gives back the work that has no result yet. Called once.
  virtual void release_work() = 0;

  std::mutex& mutex() { return mutex_; }
  bool ended_locked() const { return ended_; }
  int64_t credit_locked() const { return credit_; }
  size_t results_locked() const { return results_; }

  // The worker takes more work.
  void grant(int64_t more) {
    {
      Lock lock(mutex_);
      add_credit_locked(more);
    }
    ask_for_work();
  }
  void add_credit_locked(int64_t more) {
    credit_ = std::clamp<int64_t>(credit_ + more, 0, max_credit_);
  }

  // Starts a poll if there is credit and no poll waits. The lock is released around start_poll(),
  // because a poll may be answered before it returns.
  void ask_for_work() {
    int64_t limit = 0;
    uint64_t turn = 0;
    {
      Lock lock(mutex_);
      if (ended_ || polling_ || worker_done_ || credit_ <= 0) return;
      if (unwritten_bytes_locked() > kUnwrittenBytes) return;
      polling_ = true;
      poll_ = 0;
      turn = ++polls_started_;
      limit = credit_;
    }
    const uint64_t poll = start_poll(limit);
    Lock lock(mutex_);
    // The poll may have been answered already, and the answer may have started the next one.
    if (!polling_ || turn != polls_started_) return;
    poll_ = poll;
    if (!ended_ && !worker_done_) return;
    lock.unlock();
    if (poll) cancel_poll(poll);
  }
  // The first thing to do with the answer of a poll. Returns false when the stream takes no more
  // work: the face gives the work back and calls end_if_idle().
  bool finish_poll_locked() {
    polling_ = false;
    return !ended_ && !worker_done_;
  }

  // Each result of the worker is counted until it is confirmed: the stream does not end before.
  void begin_result_locked() { ++results_; }
  void finish_result_locked() {
    --results_;
    read_next_locked();
  }

  // Writes the next message unless one is being written.
  void write_next_locked() {
    if (writing_ || ended_) return;
    out_.Clear();
    if (!next_message_locked(out_)) return;
    writing_ = true;
    this->StartWrite(&out_);
  }

  // Ends the stream if the worker has sent everything and nothing is left to write or to confirm.
  void end_if_idle(Lock& lock) {
    if (!worker_done_ || ended_) return;
    if (polling_ && poll_) {
      polling_ = false;  // a cancelled poll is not answered
      uint64_t poll = poll_;
      lock.unlock();
      cancel_poll(poll);
      lock.lock();
    }
    if (ended_ || writing_ || results_) return;
    lock.unlock();
    end(grpc::Status::OK);
  }

 private:
  // A stream takes no more work, and reads no further message, while more than this is unwritten.
  static constexpr size_t kUnwrittenBytes = 1024 * 1024;
  // It reads no further message while more results than this wait for their confirmation.
  static constexpr size_t kUnconfirmedResults = 2048;

  void read_next_locked() {
    if (reading_ || ended_ || worker_done_) return;
    if (results_ > kUnconfirmedResults || unwritten_bytes_locked() > kUnwrittenBytes) return;
    reading_ = true;
    this->StartRead(&in_);
  }

  void end(const grpc::Status& status) {
    uint64_t poll = 0;
    {
      Lock lock(mutex_);
      if (ended_) return;
      ended_ = true;
      if (polling_) poll = poll_;
    }
    if (poll) cancel_poll(poll);
    release_work();
    this->Finish(status);
  }

  const int64_t max_credit_;
  In in_;
  std::shared_ptr<WorkStream> self_;  // until gRPC is done with the stream

  std::mutex mutex_;
  Out out_;
  int64_t credit_ = 0;
  size_t results_ = 0;
  uint64_t poll_ = 0;  // the number of the waiting poll; 0: not known or not to be cancelled
  uint64_t polls_started_ = 0;
  bool polling_ = false;
  bool reading_ = false;  // a read is under way, or its message is being handled
  bool writing_ = false;
  bool worker_done_ = false;  // the worker sends no more messages
  bool ended_ = false;
};

}  // namespace pawl::net
