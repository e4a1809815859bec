#pragma once
// A kept signal came before anybody waited for it. It stays until a WAIT takes it or its time is
// over. A mailbox lists the kept signals of one name and correlation key.

#include "faces/processes/state/instance.h"

namespace pawl::processes {

struct KeptSignal {
  std::string name, key;
  Time at = 0, until = 0;
  std::string user;
  std::string variables;  // JSON text
};
Bytes encode(const KeptSignal& signal);
Result<KeptSignal> decode_kept_signal(BytesView bytes);

struct Mailbox {
  std::vector<std::string> signal_ids;  // oldest first
};
Bytes encode(const Mailbox& mailbox);
Result<Mailbox> decode_mailbox(BytesView bytes);

// The id of the timer that ends the time of a kept signal.
std::string signal_timer_id(std::string_view tenant, std::string_view signal_id);
struct SignalTimer {
  std::string tenant, signal_id;
};
// Nothing when it is the id of another effect.
std::optional<SignalTimer> parse_signal_timer(std::string_view id);

}  // namespace pawl::processes
