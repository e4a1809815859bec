#include "faces/processes/state/signal.h"

#include "base/codec.h"

namespace pawl::processes {

namespace {
constexpr std::string_view kTimer = "signal:";
}  // namespace

template <class F, FieldsOf<KeptSignal> T>
void fields(F& f, T& signal) {
  f.format(1);
  f(signal.name);
  f(signal.key);
  f(signal.at);
  f(signal.until);
  f(signal.user);
  f(signal.variables);
}

template <class F, FieldsOf<Mailbox> T>
void fields(F& f, T& mailbox) {
  f.format(1);
  f(mailbox.signal_ids);
}

Bytes encode(const KeptSignal& signal) { return encode_fields(signal); }
Result<KeptSignal> decode_kept_signal(BytesView bytes) {
  return decode_fields<KeptSignal>(bytes, "a kept signal");
}
Bytes encode(const Mailbox& mailbox) { return encode_fields(mailbox); }
Result<Mailbox> decode_mailbox(BytesView bytes) {
  return decode_fields<Mailbox>(bytes, "a stored mailbox");
}

std::string signal_timer_id(std::string_view tenant, std::string_view signal_id) {
  return std::string(kTimer) + std::string(signal_id) + ":" + std::string(tenant);
}

std::optional<SignalTimer> parse_signal_timer(std::string_view id) {
  if (!id.starts_with(kTimer)) return std::nullopt;
  id.remove_prefix(kTimer.size());
  size_t cut = id.find(':');
  if (cut == std::string_view::npos) return std::nullopt;
  return SignalTimer{std::string(id.substr(cut + 1)), std::string(id.substr(0, cut))};
}

}  // namespace pawl::processes
