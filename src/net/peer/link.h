#pragma once
// A link is one kept connection between two nodes of a cluster. Both sides open calls on it. A call
// carries pieces both ways until both sides have ended it, or one has cancelled it. Many calls
// share the connection: frames say which call they belong to.
//
// Frame: size of the payload (4 bytes), number of the call (8), kind (1), payload. The side that
// connected numbers its calls 1, 3, 5 ..., the other side 2, 4, 6 ...

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "base/bytes.h"
#include "net/peer/pipe.h"

namespace pawl::net {

// The call was not sent: it may be made again.
inline constexpr Reason kPeerUnreachable{"PEER_UNREACHABLE"};
// The connection broke while the call was open: the other side may have carried it out.
inline constexpr Reason kPeerLost{"PEER_LOST"};
// The other side gave the call up.
inline constexpr Reason kPeerLeft{"PEER_LEFT"};

// One side of a call. Thread-safe.
class PeerCall {
 public:
  // A side that has sent this much that the other side did not take may not send more.
  static constexpr size_t kWindow = 4 * 1024 * 1024;

  virtual ~PeerCall() = default;
  // False: the call is over, or the window is full. The piece was not sent.
  virtual bool send(BytesView piece) = 0;
  virtual void end() = 0;     // this side sends no more
  virtual void cancel() = 0;  // gives the call up; nothing is received after it
  virtual size_t unread() const = 0;
};

// What a side of a call receives. The functions are called one after the other on the link's
// reading thread, so they must not wait. After `ended` or `failed` comes nothing.
struct PeerReceiver {
  std::function<void(BytesView piece)> piece{};
  std::function<void()> ended{};  // the other side sends no more
  std::function<void(const Error& why)> failed{};
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  // Called on the reading thread for each call that the other side opens. Empty functions of the
  // receiver are not called.
  using OnCall = std::function<PeerReceiver(std::string_view method, BytesView first,
                                            const std::shared_ptr<PeerCall>& call)>;
  // A payload may have this many bytes: the largest answer and its head.
  static constexpr size_t kMaxPayload = 80u << 20;
  // With this much unsent the link takes no more pieces.
  static constexpr size_t kMaxUnsent = 256u << 20;

  // `connected`: this side has made the connection. The handshake is done.
  static std::shared_ptr<Link> make(std::unique_ptr<Pipe> pipe, bool connected, OnCall on_call);
  ~Link();

  // Null: the link is broken. The first piece belongs to the opening frame.
  std::shared_ptr<PeerCall> open(std::string_view method, BytesView first, PeerReceiver receiver);
  // Reads until the link breaks or close() is called; then every open call has failed.
  void read_all();
  void close();
  bool broken() const { return broken_; }
  const std::string& peer() const { return pipe_->peer(); }

 private:
  enum class Kind : uint8_t { open = 1, piece, end, cancel, took, ping };
  class Call;
  using CallPtr = std::shared_ptr<Call>;

  Link(std::unique_ptr<Pipe> pipe, bool connected, OnCall on_call);
  // These need mutex_.
  void append(Kind kind, uint64_t call, BytesView payload, BytesView more = {});
  void flush(std::unique_lock<std::mutex>& lock);
  CallPtr find(uint64_t id);
  template <class Function>
  void tell(const CallPtr& call, std::unique_lock<std::mutex>& lock, const Function& function);

  void write_loop();
  bool take_frames(Bytes& buffer);
  bool take(Kind kind, uint64_t id, BytesView payload);
  bool begin(uint64_t id, BytesView payload);
  void break_off();

  const std::unique_ptr<Pipe> pipe_;
  const OnCall on_call_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Bytes unsent_;
  bool writing_ = false;  // a thread writes outside of the lock
  std::unordered_map<uint64_t, CallPtr> calls_;
  uint64_t next_call_;
  std::atomic<bool> broken_{false};
  std::thread writer_;  // last: it uses everything above
};

}  // namespace pawl::net
