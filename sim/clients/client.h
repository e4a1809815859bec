#pragma once
// A client of one face: it does random things and knows, from the contract of the face, what the
// answers may be. It knows nothing of the code behind the wire.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/session.h"

namespace pawl::sim {

class Client {
 public:
  virtual ~Client() = default;
  virtual std::string_view name() const = 0;
  // Sends its definitions and begins to act. Actions go on until the world is calm.
  virtual void begin() = 0;
  // The world is calm: brings everything that is open to its end.
  virtual void finish() = 0;
  // Some time later: asks the server for everything that it was told.
  virtual void ask_everything() = 0;
  // When all answers have come: checks what must hold in the end.
  virtual void check() = 0;
};

std::unique_ptr<Client> make_processes_client(Session& world);
std::unique_ptr<Client> make_lifecycle_client(Session& world);
std::unique_ptr<Client> make_entities_client(Session& world);
std::unique_ptr<Client> make_worlds_client(Session& world);
std::unique_ptr<Client> make_tickets_client(Session& world);
std::unique_ptr<Client> make_operations_client(Session& world);
std::unique_ptr<Client> make_ledger_client(Session& world);
std::unique_ptr<Client> make_spy_client(Session& world);

// Sends the request again and again, with the same Idempotency-Key, until an answer tells what
// happened to it: a client that wants its order carried out once.
void call_until_answered(Session& world, Sent sent, std::function<void(wire::Response)> answered);
// The same under a new key, with a body in JSON. `busy` is set until the answer has come.
void call_once(Session& world, std::string key, Sent sent, bool& busy,
               std::function<void(const wire::Response&)> answered);

// Puts the pieces of a stream of Server-Sent Events together.
class EventLines {
 public:
  struct Event {
    std::string name, id, data;
  };
  // Events that are whole now. Comments are left out.
  std::vector<Event> take(std::string_view piece);
  void clear() { unread_.clear(); }  // a new stream begins

 private:
  std::string unread_;
};

// A body as JSON; null when it is not JSON.
json::Value body_of(const wire::Response& response);

}  // namespace pawl::sim
