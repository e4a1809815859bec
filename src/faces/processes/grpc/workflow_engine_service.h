#pragma once
// The gRPC service workflow.v1.WorkflowEngine. Each call runs a verb of the service and turns its
// answer into the message.

#include <processes/workflow.grpc.pb.h>
#include "faces/processes/grpc/services.h"

namespace pawl::processes {

namespace wf = workflow::v1;

class WorkflowEngineService final : public wf::WorkflowEngine::CallbackService {
 public:
  WorkflowEngineService(Verbs& verbs, wire::Admit admit, LongReads long_reads)
      : verbs_(verbs), admit_(std::move(admit)), long_reads_(std::move(long_reads)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  Reactor* UploadDefinition(Context*, const wf::UploadDefinitionRequest*,
                            wf::UploadDefinitionResponse*) override;
  Reactor* GetDefinition(Context*, const wf::GetDefinitionRequest*,
                         wf::GetDefinitionResponse*) override;
  Reactor* ListDefinitions(Context*, const wf::ListDefinitionsRequest*,
                           wf::ListDefinitionsResponse*) override;
  Reactor* StartInstance(Context*, const wf::StartInstanceRequest*,
                         wf::StartInstanceResponse*) override;
  Reactor* GetInstance(Context*, const wf::GetInstanceRequest*, wf::GetInstanceResponse*) override;
  Reactor* GetInstanceHistory(Context*, const wf::GetInstanceHistoryRequest*,
                              wf::GetInstanceHistoryResponse*) override;
  Reactor* CancelInstance(Context*, const wf::CancelInstanceRequest*,
                          wf::CancelInstanceResponse*) override;
  Reactor* ListInstances(Context*, const wf::ListInstancesRequest*,
                         wf::ListInstancesResponse*) override;
  Reactor* PollJobs(Context*, const wf::PollJobsRequest*, wf::PollJobsResponse*) override;
  Reactor* ExtendJobLease(Context*, const wf::ExtendJobLeaseRequest*,
                          wf::ExtendJobLeaseResponse*) override;
  Reactor* CompleteJob(Context*, const wf::CompleteJobRequest*, wf::CompleteJobResponse*) override;
  Reactor* FailJob(Context*, const wf::FailJobRequest*, wf::FailJobResponse*) override;
  Reactor* CompleteUserTask(Context*, const wf::CompleteUserTaskRequest*,
                            wf::CompleteUserTaskResponse*) override;
  Reactor* SignalWait(Context*, const wf::SignalWaitRequest*, wf::SignalWaitResponse*) override;
  Reactor* RetryStep(Context*, const wf::RetryStepRequest*, wf::RetryStepResponse*) override;

 private:
  // The caller of a method, if it may call it.
  Result<Caller> caller_of(const Context& context, std::string_view method) const;
  // Answers a read at once. `method` is the name of the call.
  template <class Read>
  Reactor* read(Context* context, std::string_view method, Read&& read);
  // Answers a read that may take long. `read` is copied: request and response stay valid until
  // Finish(), as gRPC promises.
  template <class Read>
  Reactor* read_aside(Context* context, std::string_view method, Read read);
  // Sends a command; `filled` fills the message from its answer.
  template <class Send, class Filled>
  Reactor* command(Context* context, std::string_view method, Send&& send, Filled&& filled);

  Verbs& verbs_;
  const wire::Admit admit_;
  const LongReads long_reads_;  // may be empty
};

// The value of a metadata key; empty when absent.
std::string metadata(const grpc::ServerContextBase& context, const char* key);

}  // namespace pawl::processes
