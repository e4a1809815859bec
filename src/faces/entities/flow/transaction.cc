#include "faces/entities/flow/transaction.h"

#include "json/text.h"

namespace pawl::entities {

namespace {

void write_progress(Writer& w, const Progress& p) {
  w.u8(static_cast<uint8_t>(p.stage));
  w.str(encode(p.entity));
  w.u8(static_cast<uint8_t>(p.change));
  w.str(p.old_data);
  w.str(p.workflow);
  w.uint(p.candidate);
  w.uint(p.transition);
  w.uint(p.processor);
  w.u8(static_cast<uint8_t>(p.named | p.due << 1 | p.asked << 2));
  w.sint(p.rounds);
  w.uint(p.visits.size());
  for (const auto& [state, count] : p.visits) {
    w.str(state);
    w.sint(count);
  }
}

Result<Progress> read_progress(Reader& r) {
  Progress p;
  p.stage = static_cast<Stage>(r.u8());
  TRY(p.entity, decode_entity(r.str()));
  p.change = static_cast<ChangeKind>(r.u8());
  p.old_data = r.str();
  p.workflow = r.str();
  p.candidate = r.uint();
  p.transition = r.uint();
  p.processor = r.uint();
  uint8_t bits = r.u8();
  p.named = bits & 1;
  p.due = bits & 2;
  p.asked = bits & 4;
  p.rounds = static_cast<int>(r.sint());
  for (size_t n = r.count(); n > 0 && r.ok(); --n) {
    std::string state(r.str());
    p.visits.emplace_back(std::move(state), static_cast<int>(r.sint()));
  }
  return p;
}

}  // namespace

// Events are not kept: what was recorded so far is in the first transaction's own trail.
Trail trail_of(const Job& job, Time now, std::vector<Event> events) {
  return {job.tenant,   job.p.entity.id, job.entry_tx, now,
          job.p.change, job.tx,          job.user,     std::move(events)};
}

Bytes encode(const Job& job) {
  Bytes out;
  Writer w(out);
  w.str(encode(*job.command));
  w.uint(job.at);
  w.str(job.tenant);
  w.str(job.user);
  w.str(job.roles);
  w.str(job.tx);
  w.str(job.entry_tx);
  w.uint(job.ids.size());
  for (const std::string& id : job.ids)
    w.str(id);
  w.str(json::print(job.failed));
  w.uint(job.warnings.size());
  for (const std::string& warning : job.warnings)
    w.str(warning);
  write_progress(w, job.p);
  return out;
}

Result<Job> decode_job(BytesView bytes) {
  Reader r(bytes);
  Job job;
  TRY(Command command, decode_command(r.str()));
  job.command = std::make_shared<const Command>(std::move(command));
  job.at = r.uint();
  job.tenant = r.str();
  job.user = r.str();
  job.roles = r.str();
  job.tx = r.str();
  job.entry_tx = r.str();
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    job.ids.emplace_back(r.str());
  TRY(json::Value failed, json::parse(r.str()));
  if (failed.is_array()) job.failed = std::move(failed.array());
  for (size_t n = r.count(); n > 0 && r.ok(); --n)
    job.warnings.emplace_back(r.str());
  TRY(job.p, read_progress(r));
  if (!r.ok())
    return fail(Code::corrupt, "BAD_JOB",
                "a waiting transaction cannot be read; run `pawl verify`");
  return job;
}

}  // namespace pawl::entities
