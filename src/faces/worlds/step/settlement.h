#pragma once
// Settlement takes the receipt of an intent and queues it for the cell that asked, whatever the
// routes say now. A receipt that does not fit is a fault: it is recorded, and the cell either gets
// a rejection event or fails.

#include "faces/worlds/step/intents.h"

namespace pawl::worlds {

class Settlement {
 public:
  Settlement(WorldTurn& turn, Intents& intents) : turn_(turn), intents_(intents) {}

  Result<void> settle(const PendingIntent& intent, IntentReceipt receipt);

 private:
  Result<void> check_receipt(const PendingIntent& intent, IntentReceipt& receipt) const;
  Result<void> check_signature(const PendingIntent& intent, const IntentReceipt& receipt) const;
  Result<Moment> record(const PendingIntent& intent, const IntentReceipt& receipt, bool fits);
  Result<std::optional<Event>> receipt_event(const Workflow& workflow, const PendingIntent& intent,
                                             const IntentReceipt& receipt) const;
  Result<void> fault(const PendingIntent& intent, const IntentReceipt& receipt,
                     const Moment& moment, const Error& why);

  WorldTurn& turn_;
  Intents& intents_;
};

// The fields that receipts, rejections and stream frames of an intent begin with.
cbor::Map intent_envelope(const PendingIntent& intent);
// The event as the workflow takes it: as it is, or wrapped in the arm that names its schema.
// Nothing when the workflow takes no such event.
std::optional<Event> fit_event(const LoadedManifest& loaded, const Workflow& workflow,
                               std::string_view schema, const cbor::Value& value);

// The signature of a receipt covers this: SHA-256 of the canonical {intent_hash, status, payload}.
Bytes signed_bytes(const IntentReceipt& receipt);
bool verify_ed25519(BytesView public_key, BytesView message, BytesView signature);

}  // namespace pawl::worlds
