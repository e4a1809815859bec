#pragma once
// The cells of the processes face and the rows of its views: how each is named, and the head of a
// definition.
//
//   processes\0 tenant \0 d \0 id             head of a definition: its versions
//   processes\0 tenant \0 v \0 id \0 version  one version: its document
//   processes\0 tenant \0 i \0 id             an instance
//   processes\0 tenant \0 w \0 id \0 instance an ended instance whose chain waits for definition id
//   processes\0 ~paused \0 tenant \0 job type a paused job type

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
Key paused_type_key(std::string_view tenant, std::string_view job_type);
Key paused_prefix();  // of all tenants

struct Head {
  struct Version {
    std::string digest, name;
    Time uploaded = 0;
  };
  std::vector<Version> versions;  // the first is version 1
  bool paused = false;
  std::string pause_reason;
};
Bytes encode(const Head& head);
Result<Head> decode_head(BytesView bytes);

// Rows. Times are ordered, so that lists come oldest first and are read from their end. Lists over
// all definitions are read from the rows of each.
namespace rows {
Bytes definition_prefix(std::string_view tenant, std::string_view definition_id, Status status);
Bytes business_prefix(std::string_view tenant, std::string_view business_key);
// What follows a prefix: when the instance started, and its id.
Bytes place(Time started, std::string_view instance_id);
std::string_view instance_of(BytesView row_key);
std::string_view place_of(BytesView row_key);

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
