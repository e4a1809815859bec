#pragma once
// What the client of worlds knows of one world: the accounts that it added to, the effects that it
// was offered, and the records that it read. Three parts use it: the client, the executors and the
// readers of the world's journal.

#include <map>
#include <string>

#include "json/value.h"
#include "sim/clients/client.h"

namespace pawl::sim {

inline constexpr std::string_view kAccountWorkflow = "sim/account@1";
inline constexpr std::string_view kTotalWorkflow = "sim/total@1";
inline constexpr std::string_view kPayEffect = "sim/pay@1";

// The definitions of a world, for POST /v1/worlds.
json::Value bank_air();
// The workflow of the accounts under another entrypoint, for a proposal.
json::Value account_workflow(std::string_view entrypoint);
// The module in base64.
std::string account_module();
// The key of a cell as the routes take it.
std::string key_b64(std::string_view id);

// The name tells what may happen to an account: a: everything but the rest; e: it is erased;
// t: its step traps; c: its step completes it.
struct Account {
  std::string id;
  bool busy = false;
  // Since it was erased last, of events that were acknowledged:
  uint64_t balance = 0, adds = 0, told = 0, pays = 0, timers = 0;
  uint64_t frames_sent = 0, frames_accepted = 0;
  bool exists = false;
  uint64_t version = 0;  // of the workflow that ran last; 0: not known
  uint64_t tellers = 0;  // additions under way that tell this account something
  uint64_t erased_by = 0;
  Time erased = 0;  // when the client heard of it
  json::Value last;
};

struct Payment {
  std::string account;
  uint64_t n = 0;
  uint64_t life = 0;      // of the server that gave the lease
  Time told = 0;          // when the client heard of the lease
  Time ends = 0;          // the end of the lease, by the server's clock
  Time settled = 0;       // when the client heard that it is settled; 0: not yet
  bool released = false;  // it was given back: it may be offered again at once
};

struct Bank {
  std::string id;
  std::map<std::string, Account> accounts;
  std::map<std::string, Payment> payments;     // by intent
  std::map<std::string, std::string> intents;  // by account, addition and index
  uint64_t additions = 0, sum = 0, traps = 0;  // acknowledged
  uint64_t height = 0;                         // records that were acknowledged
  bool compacted = false;                      // a compaction was asked for
  std::string path(std::string_view rest) const { return "/v1/worlds/" + id + std::string(rest); }
};

// A number of a JSON object; 0 when it is not there.
uint64_t number_in(const json::Value& value, std::string_view name);

// Executors of the payments: they poll, settle, repeat, come late and vanish.
class Executors {
 public:
  Executors(Session& world, std::map<std::string, Bank>& banks) : world_(world), banks_(banks) {}
  void poll();

 private:
  void take(const json::Value& work, Time asked, uint64_t life, uint64_t lease_ms);
  void check_offer(Bank& bank, const json::Value& work, Payment& payment, Time asked, uint64_t life,
                   uint64_t lease_ms);
  void carry_out(Bank& bank, const json::Value& work);
  void send_frame(Bank& bank, const json::Value& work);
  void release(Bank& bank, const std::string& intent);
  void settle(Bank& bank, const std::string& intent, bool good);

  Session& world_;
  std::map<std::string, Bank>& banks_;
};

// Readers of the records of one world: pages, long polls and a stream. A record never changes, and
// no reader misses one.
class RecordReaders {
 public:
  RecordReaders(Session& world, Bank& bank) : world_(world), bank_(bank) {}
  void begin();               // the stream, which goes on for the whole life
  void read_page();           // from somewhere
  void wait();                // for the next record
  void read_all();            // every page from the first record on
  void check(uint64_t head);  // when everything was read

 private:
  void stream();
  void take_event(const EventLines::Event& event);
  void take_page(const json::Value& page, uint64_t from);
  void saw(const json::Value& entry, const char* reader);

  Session& world_;
  Bank& bank_;
  std::map<uint64_t, std::string> payloads_;  // by seq
  uint64_t next_ = 0;                         // the record that the stream gives next
  uint64_t read_to_ = 0;                      // by read_all()
  EventLines lines_;
};

}  // namespace pawl::sim
