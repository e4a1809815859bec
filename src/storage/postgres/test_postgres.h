#pragma once
// A PostgreSQL for tests: started from Debian's packages in a temporary folder, on a socket of its
// own, and ended with the test program. One for all tests of a program.

#include <string>

namespace pawl {

class TestPostgres {
 public:
  // The running server; null when PostgreSQL is not installed or does not start.
  static TestPostgres* running();
  // A connection string with a new, empty schema: a store of its own.
  std::string new_store();
  void restart_immediately();  // as after a crash of the server
  void stop();
  void start();
  std::string url() const;  // of the database itself
  int port() const { return port_; }
  // The same store, reached through another port.
  std::string through(int port, std::string store) const;
  ~TestPostgres();

 private:
  bool make();
  bool control(const std::string& what) const;
  std::string folder_;
  int port_ = 0, stores_ = 0;
};

}  // namespace pawl
