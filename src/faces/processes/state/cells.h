#pragma once
// The keys of the cells of the processes face and of the rows of its view.
//
//   processes\0 tenant \0 d \0 id              head of a definition: its versions
//   processes\0 tenant \0 v \0 id \0 version   one version: its document
//   processes\0 tenant \0 i \0 id              an instance
//   processes\0 tenant \0 w \0 id \0 instance  the chain of this instance waits for definition id
//   processes\0 tenant \0 c \0 id              a schedule
//   processes\0 tenant \0 h \0 id \0 slot      one of the last runs of a schedule
//   processes\0 tenant \0 y \0 instance        a queued run of a schedule waits for this instance
//   processes\0 tenant \0 u \0 id \0 key      the instance that has a unique business key
//   processes\0 tenant \0 m \0 signal         a kept signal
//   processes\0 tenant \0 s \0 name \0 key    the kept signals of a name and correlation key
//   processes\0 tenant \0 k \0 name \0 key \0 since \0 execution    a WAIT for such signals
//   processes\0 tenant \0 o \0 retention      the tenant's default retention, as JSON
//   processes\0 ~paused \0 tenant \0 job type  a paused job type

#include "faces/processes/state/instance.h"
#include "kernel/cell.h"

namespace pawl::processes {

Key head_key(std::string_view tenant, std::string_view definition_id);
Key head_prefix(std::string_view tenant);
Key version_key(std::string_view tenant, std::string_view definition_id, uint32_t version);
Key instance_key(std::string_view tenant, std::string_view instance_id);
Key awaited_key(std::string_view tenant, std::string_view definition_id,
                std::string_view instance_id);
Key awaited_prefix(std::string_view tenant, std::string_view definition_id);
Key unique_key(std::string_view tenant, std::string_view definition_id,
               std::string_view business_key);
Key retention_key(std::string_view tenant);
Key kept_signal_key(std::string_view tenant, std::string_view signal_id);
Key kept_signal_prefix(std::string_view tenant);
Key mailbox_key(std::string_view tenant, std::string_view name, std::string_view correlation_key);
Key waiter_key(std::string_view tenant, const Subscription& subscription,
               std::string_view execution_id);
Key waiter_prefix(std::string_view tenant, std::string_view name, std::string_view correlation_key);
Key paused_type_key(std::string_view tenant, std::string_view job_type);
Key paused_prefix();  // of all tenants

// The cell of a definition without its documents: its versions, and whether it is paused.
struct DefinitionHead {
  struct Version {
    std::string digest, name;
    Time uploaded = 0;
  };
  std::vector<Version> versions;  // the first is version 1
  bool paused = false;
  std::string pause_reason;
  uint32_t active = 0;   // the version that starts use; 0: the last one
  bool retired = false;  // no instance starts until a version is activated
  std::string retire_reason;
  // Hidden, and nothing starts. The documents stay for the instances that ran on them.
  bool deleted = false;

  // The version that a start without a version uses.
  uint32_t current() const { return active ? active : static_cast<uint32_t>(versions.size()); }
};
Bytes encode(const DefinitionHead& head);
Result<DefinitionHead> decode_head(BytesView bytes);

// Rows. Their keys contain times in byte order: rows are oldest first, and lists read them
// backwards. A list over all definitions reads the rows of each definition.
namespace rows {
Bytes definition_prefix(std::string_view tenant, std::string_view definition_id, Status status);
Bytes business_prefix(std::string_view tenant, std::string_view business_key);
// The part of a row's key after its prefix: when the instance started, and its id.
inline constexpr size_t kPositionBytes = 8 + 26;
Bytes position(Time started, std::string_view instance_id);
std::string_view instance_of(BytesView row_key);
std::string_view position_of(BytesView row_key);

Bytes history_prefix(std::string_view tenant, std::string_view instance_id);
Bytes history(std::string_view tenant, std::string_view instance_id, Seq seq);
Seq history_seq(BytesView row_key);

Bytes task_prefix(std::string_view tenant);
Bytes task(std::string_view tenant, Time entered, std::string_view instance_id, uint32_t ordinal);
}  // namespace rows

// An open user task, as its row holds it.
struct UserTask {
  std::string instance_id, definition_id, business_key, step_id, form;
  uint32_t ordinal = 0;
  Time entered = 0;
};
Bytes encode(const UserTask& task);
Result<UserTask> decode_user_task(BytesView bytes);

}  // namespace pawl::processes
