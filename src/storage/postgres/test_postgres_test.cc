#include <fmt/format.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "storage/postgres/connection.h"
#include "storage/postgres/test_postgres.h"

namespace pawl {
namespace fs = std::filesystem;

static constexpr char kBin[] = "/usr/lib/postgresql/15/bin/";

// initdb and the server refuse to run as root.
static std::string as_user(const std::string& command) {
  return geteuid() == 0 ? fmt::format("runuser -u postgres -- {}", command) : command;
}

static bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

static int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int port = 0;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0)
    port = ntohs(address.sin_port);
  ::close(fd);
  return port;
}

TestPostgres* TestPostgres::running() {
  static std::unique_ptr<TestPostgres> server = [] {
    auto made = std::make_unique<TestPostgres>();
    return made->make() ? std::move(made) : nullptr;
  }();
  return server.get();
}

bool TestPostgres::make() {
  if (!fs::exists(std::string(kBin) + "initdb")) return false;
  std::string name = (fs::temp_directory_path() / "pawl_postgres_XXXXXX").string();
  if (!::mkdtemp(name.data())) return false;
  folder_ = name;
  if (const passwd* user = geteuid() == 0 ? getpwnam("postgres") : nullptr)
    if (::chown(folder_.c_str(), user->pw_uid, user->pw_gid) != 0) return false;
  if (!run(as_user(fmt::format("{}initdb -D {}/data -A trust -U postgres -N", kBin, folder_))))
    return false;
  // The folder is on the test's disk; a real server flushes, and these tests end it hard.
  std::ofstream(folder_ + "/data/postgresql.conf", std::ios::app)
      << "shared_buffers = 32MB\nmax_connections = 60\nautovacuum = off\n";
  port_ = free_port();
  start();
  return run(fmt::format("{}psql '{}' -c 'SELECT 1'", kBin, url()));
}

bool TestPostgres::control(const std::string& what) const {
  return run(as_user(fmt::format(
      "{}pg_ctl -D {}/data -w -l {}/log -o '-p {} -k {} -c listen_addresses=127.0.0.1' {}", kBin,
      folder_, folder_, port_, folder_, what)));
}

std::string TestPostgres::url() const {
  return fmt::format("postgres://postgres@127.0.0.1:{}/postgres", port_);
}

std::string TestPostgres::through(int port, std::string store) const {
  const std::string own = fmt::format(":{}/", port_);
  return store.replace(store.find(own), own.size(), fmt::format(":{}/", port));
}

std::string TestPostgres::new_store() {
  const std::string schema = fmt::format("s{}_{}", getpid(), ++stores_);
  postgres::Connection connection(url(), true);
  auto made = connection.run_all("CREATE SCHEMA " + schema);
  CHECK(made.has_value());
  return fmt::format("{}?options=-csearch_path%3D{}", url(), schema);
}

void TestPostgres::start() { control("start"); }
void TestPostgres::stop() { control("stop -m immediate"); }
void TestPostgres::restart_immediately() { control("restart -m immediate"); }

TestPostgres::~TestPostgres() {
  if (folder_.empty()) return;
  stop();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace pawl
