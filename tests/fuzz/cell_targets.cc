// Fuzz targets for the cells and commands of the faces. Checksums in the journal find damaged bytes
// first; the decoders must still refuse bytes that get past them.

#include "faces/entities/audit/audit.h"
#include "faces/entities/flow/call.h"
#include "faces/entities/flow/command.h"
#include "faces/entities/flow/transaction.h"
#include "faces/entities/model/model.h"
#include "faces/entities/store/entity.h"
#include "faces/entities/store/store.h"
#include "faces/lifecycle/run/command.h"
#include "faces/lifecycle/run/stored_instance.h"
#include "faces/processes/run/commands.h"
#include "faces/processes/state/cells.h"
#include "faces/processes/state/instance.h"
#include "faces/processes/state/job.h"
#include "faces/processes/state/note.h"
#include "faces/worlds/program.h"
#include "faces/worlds/step/abi.h"
#include "faces/worlds/store/model.h"
#include "fuzz.h"

namespace pawl::fuzz {

namespace {

// Where the decoded value is encoded again, the decoder must accept the result. The other decoders
// are only run: they must not crash or read past the end.
void processes_cells(BytesView bytes) {
  if (auto instance = processes::decode_instance(bytes))
    CHECK(processes::decode_instance(processes::encode(*instance)));
  if (auto job = processes::decode_job(bytes))
    CHECK(processes::decode_job(processes::encode(*job)));
  if (auto command = processes::decode_start(bytes))
    CHECK(processes::decode_start(processes::encode(*command)));
  (void)processes::decode_head(bytes).has_value();
  (void)processes::decode_user_task(bytes).has_value();
  (void)processes::decode_note_head(bytes).has_value();
  (void)processes::decode_note_tail(bytes).has_value();
  (void)processes::decode_version(bytes).has_value();
  (void)processes::decode_result(bytes).has_value();
  (void)processes::decode_fail(bytes).has_value();
  (void)processes::decode_cancel(bytes).has_value();
  (void)processes::parse_timer_effect_id(bytes).has_value();
  (void)processes::parse_ordinal_id(bytes).has_value();
}

void entities_cells(BytesView bytes) {
  if (auto entity = entities::decode_entity(bytes))
    CHECK(entities::decode_entity(entities::encode(*entity)));
  if (auto model = entities::decode_model(bytes))
    CHECK(entities::decode_model(entities::encode(*model)));
  if (auto command = entities::decode_command(bytes))
    CHECK(entities::decode_command(entities::encode(*command)));
  (void)entities::decode_trail(bytes).has_value();
  (void)entities::decode_state_change(bytes).has_value();
  (void)entities::decode_call(bytes).has_value();
  (void)entities::decode_call_result(bytes).has_value();
  (void)entities::decode_transaction(bytes).has_value();
  (void)entities::parse_timer_id(bytes).has_value();
}

void lifecycle_cells(BytesView bytes) {
  (void)lifecycle::decode_command(bytes).has_value();
  (void)lifecycle::decode_outcome(bytes).has_value();
  (void)lifecycle::decode_instance(bytes).has_value();
}

void worlds_cells(BytesView bytes) {
  (void)worlds::decode_create(bytes).has_value();
  (void)worlds::decode_send(bytes).has_value();
  (void)worlds::decode_send_all(bytes).has_value();
  (void)worlds::decode_receipt(bytes).has_value();
  (void)worlds::decode_frame_body(bytes).has_value();
  (void)worlds::decode_govern(bytes).has_value();
  (void)worlds::decode_fork(bytes).has_value();
  (void)worlds::decode_put_secret(bytes).has_value();
  (void)worlds::decode_secret(bytes).has_value();
  (void)worlds::decode_world(bytes).has_value();
  (void)worlds::decode_head(bytes).has_value();
  (void)worlds::decode_instance(bytes).has_value();
  (void)worlds::decode_pending(bytes).has_value();
  (void)worlds::decode_proposal(bytes).has_value();
  (void)worlds::decode_queued(bytes).has_value();
  (void)worlds::decode_command(bytes).has_value();
}

}  // namespace

std::vector<Target> cell_targets() {
  using namespace std::string_literals;
  // A few bytes in the form of Writer: a format byte, strings with their length, counts. The fuzzer
  // grows from there.
  auto words = [] {
    return std::vector<std::string>{
        "\1\3abc\4\0\0\0\0"s, "\3tid\4name\1{}\2[]\0\1\2"s,
        R"({"name":"m","version":1,"locked":true,"level":0,"updated":1,"indexes":[],"unique":[],"shape":{"o":{"a":{"t":[0]}}}})"s};
  };
  return {
      {"cells.processes", processes_cells, words},
      {"cells.entities", entities_cells, words},
      {"cells.lifecycle", lifecycle_cells, words},
      {"cells.worlds", worlds_cells, words},
  };
}

}  // namespace pawl::fuzz
