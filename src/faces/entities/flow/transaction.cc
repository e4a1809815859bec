#include "faces/entities/flow/transaction.h"

#include "base/codec.h"
#include "json/text.h"

namespace pawl::entities {

namespace {

// The flags of a Progress in one byte.
enum class ProgressBits : uint8_t {};

ProgressBits bits_of(const Progress& p) {
  return static_cast<ProgressBits>(p.named | p.due << 1 | p.asked << 2);
}

void set_bits(Progress& p, ProgressBits given) {
  const auto bits = static_cast<uint8_t>(given);
  p.named = bits & 1;
  p.due = bits & 2;
  p.asked = bits & 4;
}

// A Transaction whose command, entity and failed items are encoded already: they have formats of
// their own.
struct StoredTransaction {
  Transaction plain;
  Bytes command;
  Bytes failed;
  Bytes entity;
};

template <class F, FieldsOf<StoredTransaction> T>
void fields(F& f, T& stored) {
  auto& transaction = stored.plain;
  f(stored.command);
  f(transaction.at);
  f(transaction.tenant);
  f(transaction.user);
  f(transaction.roles);
  f(transaction.tx);
  f(transaction.entry_tx);
  f(transaction.ids);
  f(stored.failed);
  f(transaction.warnings);
  auto& progress = transaction.progress;
  f(progress.stage);
  f(stored.entity);
  f(progress.change);
  f(progress.old_data);
  f(progress.workflow);
  f(progress.candidate);
  f(progress.transition);
  f(progress.processor);
  ProgressBits bits = bits_of(progress);
  f(bits);
  if constexpr (!std::is_const_v<T>) set_bits(progress, bits);
  f(progress.rounds);
  f(progress.visits);
}

}  // namespace

template <class F, FieldsOf<StateVisits> T>
void fields(F& f, T& visits) {
  f(visits.state);
  f(visits.count);
}

Trail trail_of(const Transaction& transaction, Time now, std::vector<Event> events) {
  return {transaction.tenant,
          transaction.progress.entity.id,
          transaction.entry_tx,
          now,
          transaction.progress.change,
          transaction.tx,
          transaction.user,
          std::move(events)};
}

Bytes encode(const Transaction& transaction) {
  return encode_fields(StoredTransaction{transaction, encode(*transaction.command),
                                         json::print(transaction.failed),
                                         encode(transaction.progress.entity)});
}

Result<Transaction> decode_transaction(BytesView bytes) {
  TRY(StoredTransaction stored, decode_fields<StoredTransaction>(bytes, "a waiting transaction"));
  Transaction& transaction = stored.plain;
  TRY(Command command, decode_command(stored.command));
  transaction.command = std::make_shared<const Command>(std::move(command));
  TRY(json::Value failed, json::parse(stored.failed));
  if (failed.is_array()) transaction.failed = std::move(failed.array());
  TRY(transaction.progress.entity, decode_entity(stored.entity));
  return std::move(transaction);
}

}  // namespace pawl::entities
