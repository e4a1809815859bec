#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <filesystem>

#include "server/http/server.h"
#include "server/http/test_client.h"

namespace pawl::net {
namespace {

// A self-signed certificate for tests, in a folder of its own.
class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pawl_tls_XXXXXX";
    folder_ = mkdtemp(name);
    files_ = {folder_ + "/certificate.pem", folder_ + "/key.pem"};
    EVP_PKEY* key = EVP_RSA_gen(2048);
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* subject = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, subject);
    X509_sign(certificate, key, EVP_sha256());
    FILE* file = fopen(files_.certificate.c_str(), "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    file = fopen(files_.key.c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Sends a request over TLS and returns everything until the server ends the session; empty when
  // the handshake fails.
  static std::string ask(uint16_t port, std::string_view bytes, int newest = TLS1_3_VERSION) {
    int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to);
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_max_proto_version(context, newest);
    SSL* session = SSL_new(context);
    SSL_set_fd(session, fd);
    std::string out;
    if (SSL_connect(session) == 1) {
      SSL_write(session, bytes.data(), static_cast<int>(bytes.size()));
      char buffer[4096];
      int got;
      while ((got = SSL_read(session, buffer, sizeof buffer)) > 0)
        out.append(buffer, static_cast<size_t>(got));
      // The server closed the session properly.
      EXPECT_EQ(SSL_get_error(session, got), SSL_ERROR_ZERO_RETURN);
    }
    SSL_free(session);
    SSL_CTX_free(context);
    ::close(fd);
    return out;
  }
  std::string folder_;
  TlsFiles files_;
};

TEST_F(TlsTest, requests_and_large_answers_pass_through) {
  server::HttpOptions options;
  options.address = {"127.0.0.1", 0};
  options.tls = files_;
  auto server =
      server::HttpServer::start(options, [](wire::Request request, wire::Respond respond) {
        respond(wire::text_response(200, request.path + std::string(2'000'000, 'x')));
      });
  ASSERT_TRUE(server) << server.error().message;
  uint16_t port = (*server)->address().port;
  std::string both = ask(
      port,
      "GET /1 HTTP/1.1\r\nHost: t\r\n\r\nGET /2 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  EXPECT_GT(both.size(), 4'000'000u);
  EXPECT_NE(both.find("/2xxx"), std::string::npos);
  EXPECT_GT(
      ask(port, "GET /1 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", TLS1_2_VERSION).size(),
      2'000'000u);
  EXPECT_EQ(ask(port, "GET /1 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", TLS1_1_VERSION),
            "");
  server::testing::Client plain(port);
  plain.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
  plain.until_end();
  EXPECT_TRUE(plain.ended());
  EXPECT_GT(ask(port, "GET /1 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").size(),
            2'000'000u);
  (*server)->stop(1000);
}

TEST_F(TlsTest, a_handshake_has_a_time_limit) {
  server::HttpOptions options;
  options.address = {"127.0.0.1", 0};
  options.tls = files_;
  options.times.request_ms = 200;
  options.times.linger_ms = 100;
  auto server =
      server::HttpServer::start(options, [](wire::Request, wire::Respond respond) { respond({}); });
  ASSERT_TRUE(server);
  server::testing::Client silent((*server)->address().port);
  silent.until_end();
  EXPECT_TRUE(silent.ended());
}

TEST_F(TlsTest, bad_files_are_named) {
  auto missing = TlsContext::load({folder_ + "/none.pem", files_.key});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("none.pem"), std::string::npos);
  EXPECT_FALSE(TlsContext::load({files_.certificate, files_.certificate}));
}

}  // namespace
}  // namespace pawl::net
