#include "server/proxy/grpc_door.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "base/limits.h"

namespace pawl::server {
namespace {

// A call with this mark comes from another node's door and is not sent on a second time.
constexpr char kHop[] = "pawl-hop";

std::string text_of(const grpc::string_ref& text) { return {text.data(), text.size()}; }

// Metadata of the caller; the rest belongs to the connection.
bool is_passed_on(const std::string& name) {
  return !name.starts_with(':') && !name.starts_with("grpc-") && name != "user-agent" &&
         name != "content-type" && name != "te" && name != kHop;
}

// A call that the door ends itself.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// One call on its way: what the client sends is written to the owner, and what the owner sends to
// the client. Each direction has one message under way, so a slow reader slows its writer. The
// object deletes itself when both sides are done.
class Passage final {
 public:
  Passage(grpc::GenericCallbackServerContext& from, const std::shared_ptr<grpc::Channel>& channel)
      : from_(from), stub_(channel), client_(*this), owner_(*this) {
    for (const auto& [name, value] : from.client_metadata())
      if (is_passed_on(text_of(name))) to_.AddMetadata(text_of(name), text_of(value));
    to_.AddMetadata(kHop, "1");
    to_.set_deadline(from.deadline());
    stub_.PrepareBidiStreamingCall(&to_, from.method(), {}, &owner_);
    // Keeps the owner's side from being done while the client's side may still write to it: until
    // the owner has sent its last message.
    owner_.AddHold();
    owner_.StartRead(&from_owner_);
    owner_.StartCall();
    client_.StartRead(&from_client_);
  }
  grpc::ServerGenericBidiReactor* client() { return &client_; }

 private:
  struct Client final : grpc::ServerGenericBidiReactor {
    explicit Client(Passage& passage) : p(passage) {}
    void OnReadDone(bool ok) override {
      std::lock_guard lock(p.mutex_);
      if (p.owner_ended_) return;
      if (ok)
        p.owner_.StartWrite(&p.from_client_);
      else
        p.owner_.StartWritesDone();
    }
    void OnWriteDone(bool ok) override {
      if (!ok) p.to_.TryCancel();
      p.owner_.StartRead(&p.from_owner_);
    }
    void OnCancel() override { p.to_.TryCancel(); }
    void OnDone() override { p.release(); }
    Passage& p;
  };
  struct Owner final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    explicit Owner(Passage& passage) : p(passage) {}
    void OnReadInitialMetadataDone(bool ok) override {
      // May come after the first message, which sends the metadata too.
      std::lock_guard lock(p.mutex_);
      if (!ok || std::exchange(p.began_, true)) return;
      for (const auto& [name, value] : p.to_.GetServerInitialMetadata())
        if (is_passed_on(text_of(name))) p.from_.AddInitialMetadata(text_of(name), text_of(value));
      p.client_.StartSendInitialMetadata();
    }
    void OnWriteDone(bool ok) override {
      if (ok) p.client_.StartRead(&p.from_client_);
    }
    void OnReadDone(bool ok) override {
      std::lock_guard lock(p.mutex_);
      if (ok) {
        p.began_ = true;
        return p.client_.StartWrite(&p.from_owner_);
      }
      p.owner_ended_ = true;
      RemoveHold();
    }
    void OnDone(const grpc::Status& status) override {
      for (const auto& [name, value] : p.to_.GetServerTrailingMetadata())
        if (is_passed_on(text_of(name))) p.from_.AddTrailingMetadata(text_of(name), text_of(value));
      p.client_.Finish(status);
      p.release();
    }
    Passage& p;
  };
  void release() {
    if (--users_ == 0) delete this;
  }

  grpc::GenericCallbackServerContext& from_;  // lives until the client's side is done
  grpc::ClientContext to_;
  grpc::GenericStub stub_;
  grpc::ByteBuffer from_client_, from_owner_;
  std::mutex mutex_;
  bool began_ = false;        // metadata or a message was sent to the client
  bool owner_ended_ = false;  // it has sent its last message
  std::atomic<int> users_{2};
  Client client_;
  Owner owner_;
};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

class GrpcDoor::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(GrpcDoorOptions options) : options_(std::move(options)) {
    if (options_.ca_file.empty()) {
      credentials_ = grpc::InsecureChannelCredentials();
    } else {
      grpc::SslCredentialsOptions tls;
      tls.pem_root_certs = read_text(options_.ca_file);
      credentials_ = grpc::SslCredentials(tls);
    }
  }
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    const auto& metadata = context->client_metadata();
    const auto token = metadata.find("authorization");
    auto target = options_.where(token == metadata.end() ? std::string() : text_of(token->second));
    if (!target) return new Refusal({grpc::StatusCode::UNAVAILABLE, target.error().message});
    // Two nodes that do not agree about an owner would send a call to and fro.
    if (!target->address.empty() && metadata.contains(kHop))
      return new Refusal(
          {grpc::StatusCode::UNAVAILABLE, "the shard of this call moves between nodes; ask again"});
    const auto channel = target->address.empty() ? inside_ : channel_to(target->address);
    return (new Passage(*context, channel))->client();
  }
  void set_inside(std::shared_ptr<grpc::Channel> inside) { inside_ = std::move(inside); }

 private:
  // Kept: a channel is a connection, and connects again by itself.
  std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
    std::lock_guard lock(mutex_);
    std::shared_ptr<grpc::Channel>& channel = channels_[address];
    if (channel) return channel;
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kGrpcMessageBytes));
    arguments.SetMaxSendMessageSize(static_cast<int>(limits::kGrpcMessageBytes));
    constexpr int kReconnectMs = 1000;
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel = grpc::CreateCustomChannel(address, credentials_, arguments);
    return channel;
  }

  const GrpcDoorOptions options_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  std::shared_ptr<grpc::Channel> inside_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

GrpcDoor::GrpcDoor(GrpcDoorOptions options)
    : service_(std::make_unique<Service>(std::move(options))) {}
GrpcDoor::~GrpcDoor() = default;
void GrpcDoor::set_inside(std::shared_ptr<grpc::Channel> inside) {
  service_->set_inside(std::move(inside));
}
grpc::CallbackGenericService& GrpcDoor::service() { return *service_; }

}  // namespace pawl::server
