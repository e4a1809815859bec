// Links between nodes: calls, streams, both ends that leave, connections that break, strangers.

#include "net/peer/peers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <future>

namespace pawl::net {
namespace {

using namespace std::chrono_literals;

int listen_anywhere(std::string& address, int port = 0) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(::listen(socket, 16), 0);
  socklen_t size = sizeof to;
  getsockname(socket, reinterpret_cast<sockaddr*>(&to), &size);
  address = "127.0.0.1:" + std::to_string(ntohs(to.sin_port));
  return socket;
}

bool soon(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// Answers "echo" with what came, "count" with as many pieces as asked for, "hold" never.
struct Server {
  explicit Server(PeerIdentity identity = {"b", "secret"}, int port = 0) {
    const int socket = listen_anywhere(address, port);
    auto tls = load_peer_tls(identity);
    EXPECT_TRUE(tls);
    listener = std::make_unique<PeerListener>(
        socket, identity, *tls,
        [this](const std::string& node, std::string_view method, BytesView first,
               const std::shared_ptr<PeerCall>& call) { return take(node, method, first, call); });
  }
  PeerReceiver take(const std::string& node, std::string_view method, BytesView first,
                    const std::shared_ptr<PeerCall>& call) {
    from = node;
    if (method == "echo") {
      if (!first.empty()) call->send(first);
      return {.piece = [call](BytesView piece) { call->send(piece); },
              .ended = [call] { call->end(); },
              .failed = [this](const Error&) { ++failures; }};
    }
    if (method == "count") {
      for (int i = 0; i < std::stoi(std::string(first)); ++i)
        call->send(Bytes(1000, 'x'));
      call->end();
      return {};
    }
    held = call;
    return {.failed = [this](const Error&) { ++failures; }};
  }
  std::string address, from;
  std::shared_ptr<PeerCall> held;
  std::atomic<int> failures{0};
  std::unique_ptr<PeerListener> listener;  // last: its threads use the others
};

Result<Bytes> ask(Peers& peers, std::string_view method, Bytes message) {
  std::promise<Result<Bytes>> answer;
  peers.ask("b", method, std::move(message),
            [&](Result<Bytes> got) { answer.set_value(std::move(got)); });
  return answer.get_future().get();
}

TEST(peers, a_call_is_answered) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  EXPECT_EQ(ask(peers, "echo", "hello").value_or("nothing"), "hello");
  EXPECT_EQ(server.from, "a");
  const Bytes large(20 << 20, 'l');
  EXPECT_EQ(ask(peers, "echo", large).value_or("nothing"), large);
}

TEST(peers, many_threads_share_a_link) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const Bytes text = std::to_string(t) + ":" + std::to_string(i);
        if (ask(peers, "echo", text).value_or("nothing") != text) ++wrong;
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(peers, pieces_go_both_ways_until_both_sides_end) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  std::mutex mutex;
  Bytes got;
  std::atomic<bool> ended{false};
  auto call = peers.open("b", "echo", "1",
                         {.piece =
                              [&](BytesView piece) {
                                std::lock_guard lock(mutex);
                                got.append(piece);
                              },
                          .ended = [&] { ended = true; }});
  for (int i = 2; i < 10; ++i)
    EXPECT_TRUE(call->send(std::to_string(i)));
  EXPECT_TRUE(soon([&] {
    std::lock_guard lock(mutex);
    return got == "123456789";
  }));
  EXPECT_FALSE(ended);
  call->end();
  EXPECT_TRUE(soon([&] { return ended.load(); }));
  EXPECT_FALSE(call->send("late"));
}

TEST(peers, a_cancelled_call_receives_nothing_and_the_other_side_learns_of_it) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  auto told = std::make_shared<int>(0);
  auto call = peers.open("b", "hold", "", {.failed = [told](const Error&) { ++*told; }});
  ASSERT_TRUE(soon([&] { return server.held != nullptr; }));
  call->cancel();
  EXPECT_TRUE(soon([&] { return server.failures == 1; }));
  EXPECT_FALSE(server.held->send("x"));
  EXPECT_EQ(*told, 0);
  EXPECT_EQ(told.use_count(), 1) << "the receiver is gone";
}

TEST(peers, a_side_that_does_not_take_stops_the_sender) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  std::promise<void> go_on;
  std::shared_future<void> gate = go_on.get_future().share();
  auto call = peers.open("b", "echo", "x", {.piece = [gate](BytesView) { gate.wait(); }});
  const Bytes piece(100'000, 'p');
  EXPECT_TRUE(soon([&] { return !call->send(piece); }))
      << "the echo of " << call->unread() << " bytes is not taken";
  EXPECT_GE(call->unread(), PeerCall::kWindow);
  go_on.set_value();
  EXPECT_TRUE(soon([&] { return call->unread() < PeerCall::kWindow; }));
}

TEST(peers, open_calls_fail_when_the_connection_breaks_and_the_next_one_is_made) {
  auto server = std::make_unique<Server>();
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server->address}});
  std::promise<std::string> reason;
  auto call =
      peers.open("b", "hold", "",
                 {.failed = [&](const Error& why) { reason.set_value(std::string(why.reason)); }});
  ASSERT_TRUE(soon([&] { return server->held != nullptr; }));
  const int port = std::stoi(server->address.substr(server->address.rfind(':') + 1));
  server.reset();
  EXPECT_EQ(reason.get_future().get(), "PEER_LOST");
  ASSERT_TRUE(soon([&] {
    auto got = ask(peers, "echo", "x");
    return !got && got.error().is(kPeerUnreachable);
  }));
  Server again({"b", "secret"}, port);
  EXPECT_TRUE(soon([&] { return ask(peers, "echo", "x").value_or("") == "x"; }));
}

TEST(peers, a_node_that_does_not_know_the_secret_gets_nowhere) {
  Server server;
  Peers peers({"a", "guess"}, nullptr);
  peers.set({{"b", server.address}});
  auto got = ask(peers, "echo", "x");
  ASSERT_FALSE(got);
  EXPECT_EQ(server.from, "");
}

TEST(peers, strangers_who_say_anything_harm_nobody) {
  Server server;
  Peers peers({"a", "secret"}, nullptr);
  peers.set({{"b", server.address}});
  const uint16_t port =
      static_cast<uint16_t>(std::stoi(server.address.substr(server.address.rfind(':') + 1)));
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4, '\xff'), std::string(100'000, 'x'),
        std::string("\x05\x00\x00\x00hello", 9), std::string()}) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    (void)!::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    EXPECT_EQ(ask(peers, "echo", "x").value_or("nothing"), "x");
    ::close(socket);
  }
}

// An authority that signs one certificate for all nodes.
class PeerTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pawl_peers_XXXXXX";
    folder_ = mkdtemp(name);
    for (const char* who : {"ours", "theirs"})
      write(who);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& who) {
    EVP_PKEY* key = EVP_RSA_gen(2048);
    X509* certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(who.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
    FILE* file = fopen((folder_ + "/" + who + ".pem").c_str(), "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    file = fopen((folder_ + "/" + who + ".key").c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  PeerIdentity identity(std::string node, const std::string& who = "ours") const {
    return {std::move(node),
            "secret",
            {folder_ + "/" + who + ".pem", folder_ + "/" + who + ".key"},
            folder_ + "/ours.pem"};
  }
  std::string folder_;
};

TEST_F(PeerTlsTest, calls_are_encrypted) {
  Server server(identity("b"));
  Peers peers(identity("a"), *load_peer_tls(identity("a")));
  peers.set({{"b", server.address}});
  const Bytes large(3 << 20, 'l');
  EXPECT_EQ(ask(peers, "echo", large).value_or("nothing"), large);
  EXPECT_EQ(ask(peers, "count", "100").value_or("nothing"), Bytes(100'000, 'x'));
}

TEST_F(PeerTlsTest, a_certificate_of_another_authority_is_refused) {
  Server server(identity("b"));
  Peers foreign(identity("a", "theirs"), *load_peer_tls(identity("a", "theirs")));
  foreign.set({{"b", server.address}});
  EXPECT_FALSE(ask(foreign, "echo", "x"));
  Peers plain({"a", "secret"}, nullptr);
  plain.set({{"b", server.address}});
  EXPECT_FALSE(ask(plain, "echo", "x"));
  EXPECT_EQ(server.from, "");
}

}  // namespace
}  // namespace pawl::net
