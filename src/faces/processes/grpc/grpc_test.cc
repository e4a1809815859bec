// The gRPC services of the processes face, on memory stores.

#include <grpcpp/grpcpp.h>

#include <cmath>
#include <limits>
#include <mutex>
#include <thread>

#include <processes/workers.grpc.pb.h>
#include <processes/workflow.grpc.pb.h>
#include "faces/processes/face_fixture_test.h"
#include "faces/processes/grpc/services.h"

namespace pawl::processes {
namespace {

namespace wf = workflow::v1;

// The queues of the fixture, where a poll without jobs waits until it is cancelled.
class WaitingPolls final : public WorkQueue {
 public:
  explicit WaitingPolls(WorkQueue& queue) : queue_(queue) {}
  uint64_t poll(Poll poll, Polled done) override {
    const bool waits = poll.wait > 0;
    std::vector<Leased> found;
    queue_.poll(std::move(poll), [&](std::vector<Leased> leased) { found = std::move(leased); });
    if (!found.empty() || !waits) {
      done(std::move(found));
      return 0;
    }
    std::lock_guard lock(mutex_);
    waiting_[++last_] = std::move(done);
    return last_;
  }
  void cancel(uint64_t poll) override {
    Polled dropped;  // destroyed after the lock is released
    std::lock_guard lock(mutex_);
    auto it = waiting_.find(poll);
    if (it == waiting_.end()) return;
    dropped = std::move(it->second);
    waiting_.erase(it);
  }
  void give_up(uint64_t poll) override { cancel(poll); }
  void release(std::string_view effect_id) override { queue_.release(effect_id); }
  std::optional<Time> extend(std::string_view id, std::string_view worker, Time until) override {
    return queue_.extend(id, worker, until);
  }
  void pause(std::string_view program, std::string_view tenant, std::string_view queue,
             bool paused) override {
    queue_.pause(program, tenant, queue, paused);
  }
  std::vector<Depth> depths() const override { return queue_.depths(); }
  size_t waiting() const {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  WorkQueue& queue_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Polled> waiting_;
  uint64_t last_ = 0;
};

// The fixture runs commands on the calling thread. gRPC has its own threads, but each test makes
// one call at a time.
struct Wire {
  FaceFixture fixture;
  WaitingPolls polls{fixture};
  Service service{fixture, polls};
  GrpcServices services{service, [](const wire::Call& call) -> Result<wire::AdmittedCall> {
                          if (call.authorization == "bad")
                            return fail(Code::unauthenticated, "NO", "who are you?");
                          return wire::AdmittedCall{{FaceFixture::kTenant, "grpc", ""}};
                        }};
  int port = 0;
  std::unique_ptr<grpc::Server> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<wf::WorkflowEngine::Stub> engine;

  Wire() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    for (grpc::Service* s : services.all())
      builder.RegisterService(s);
    server = builder.BuildAndStart();
    channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                  grpc::InsecureChannelCredentials());
    engine = wf::WorkflowEngine::NewStub(channel);
  }
  ~Wire() { server->Shutdown(); }

  void upload() {
    wf::UploadDefinitionRequest request;
    auto* d = request.mutable_definition();
    d->set_id("a");
    d->set_name("n");
    auto* x = d->add_steps();
    x->set_id("x");
    x->set_name("x");
    x->set_type(wf::STEP_TYPE_SERVICE_TASK);
    x->set_job_type("j");
    x->set_next_step("u");
    x->set_retry_count(-1);
    auto* u = d->add_steps();
    u->set_id("u");
    u->set_name("u");
    u->set_type(wf::STEP_TYPE_USER_TASK);
    u->set_next_step("w");
    auto* w = d->add_steps();
    w->set_id("w");
    w->set_name("w");
    w->set_type(wf::STEP_TYPE_WAIT);
    w->set_next_step("end");
    auto* e = d->add_steps();
    e->set_id("end");
    e->set_name("e");
    e->set_type(wf::STEP_TYPE_END);
    (*d->mutable_metadata()->mutable_fields())["k"].set_string_value("v");
    wf::UploadDefinitionResponse response;
    grpc::ClientContext context;
    grpc::Status status = engine->UploadDefinition(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.version(), 1);
  }
  std::string start() {
    wf::StartInstanceRequest request;
    request.set_definition_id("a");
    request.set_business_key("bk");
    (*request.mutable_variables()->mutable_fields())["n"].set_number_value(5);
    wf::StartInstanceResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(engine->StartInstance(&context, request, &response).ok());
    EXPECT_EQ(response.instance().status(), wf::INSTANCE_STATUS_ACTIVE);
    return response.instance().id();
  }
};

template <class Request, class Response, class Call>
grpc::StatusCode call(Wire& wire, Call method, const Request& request, Response* response) {
  grpc::ClientContext context;
  return ((*wire.engine).*method)(&context, request, response).error_code();
}

// Completes the job, the user task and the WAIT of the instance.
void run_to_end(Wire& wire, const std::string& id) {
  using Stub = wf::WorkflowEngine::Stub;

  wf::PollJobsRequest poll;
  poll.set_worker_id("w");
  poll.add_job_types("j");
  poll.set_max_jobs(5);
  wf::PollJobsResponse jobs;
  ASSERT_EQ(call(wire, &Stub::PollJobs, poll, &jobs), grpc::OK);
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).step_id(), "x");
  EXPECT_EQ(jobs.jobs(0).variables().fields().at("n").number_value(), 5);

  wf::CompleteJobRequest complete;
  complete.set_job_id(jobs.jobs(0).id());
  complete.set_worker_id("w");
  (*complete.mutable_variables_to_set()->mutable_fields())["r"].set_bool_value(true);
  wf::CompleteJobResponse completed;
  EXPECT_EQ(call(wire, &Stub::CompleteJob, complete, &completed), grpc::OK);

  wf::SignalWaitRequest signal;
  signal.set_instance_id(id);
  signal.set_wait_step_id("w");
  wf::SignalWaitResponse signalled;
  EXPECT_EQ(call(wire, &Stub::SignalWait, signal, &signalled), grpc::FAILED_PRECONDITION)
      << "not parked yet";
  wf::CompleteUserTaskRequest task;
  task.set_instance_id(id);
  task.set_user_task_step_id("u");
  task.set_completed_by("ann");
  wf::CompleteUserTaskResponse done;
  EXPECT_EQ(call(wire, &Stub::CompleteUserTask, task, &done), grpc::OK);
  EXPECT_EQ(call(wire, &Stub::SignalWait, signal, &signalled), grpc::OK);
}

// The shapes of the published SDK 1.1.0.
TEST(processes_grpc, decision_tables_and_schemas_travel_as_messages) {
  Wire wire;
  wf::UploadDefinitionRequest request;
  auto* d = request.mutable_definition();
  d->set_id("t");
  d->set_name("n");
  (*d->mutable_input_schema()->mutable_fields())["type"].set_string_value("object");
  auto* t = d->add_steps();
  t->set_id("t");
  t->set_name("t");
  t->set_type(wf::STEP_TYPE_DECISION_TABLE);
  t->set_next_step("end");
  t->set_hit_policy("F");
  auto* rule = t->mutable_decision_table()->add_rules();
  (*rule->mutable_when())["n"] = "n > 3";
  (*rule->mutable_outputs())["size"].set_string_value("large");
  auto* fallback = t->mutable_decision_table()->add_rules();
  (*fallback->mutable_outputs())["size"].set_string_value("small");
  auto* e = d->add_steps();
  e->set_id("end");
  e->set_name("e");
  e->set_type(wf::STEP_TYPE_END);
  wf::UploadDefinitionResponse uploaded;
  grpc::ClientContext context;
  grpc::Status status = wire.engine->UploadDefinition(&context, request, &uploaded);
  ASSERT_TRUE(status.ok()) << status.error_message();
  wf::GetDefinitionRequest get;
  get.set_id("t");
  wf::GetDefinitionResponse got;
  ASSERT_EQ(call(wire, &wf::WorkflowEngine::Stub::GetDefinition, get, &got), grpc::OK);
  const wf::WorkflowStep& step = got.definition().steps(0);
  EXPECT_EQ(step.hit_policy(), "F");
  ASSERT_EQ(step.decision_table().rules_size(), 2);
  EXPECT_EQ(step.decision_table().rules(0).when().at("n"), "n > 3");
  EXPECT_EQ(step.decision_table().rules(1).outputs().at("size").string_value(), "small");
  EXPECT_EQ(got.definition().input_schema().fields().at("type").string_value(), "object");
  std::string id = wire.fixture.start("t", R"({"n":5})");
  EXPECT_EQ(wire.fixture.variables(id), R"({"n":5,"size":"large"})");
  rule->set_then("end");
  EXPECT_EQ(call(wire, &wf::WorkflowEngine::Stub::UploadDefinition, request, &uploaded),
            grpc::INVALID_ARGUMENT);
}

TEST(processes_grpc, a_lease_is_extended_by_its_worker_only) {
  Wire wire;
  wire.upload();
  wire.start();
  wf::PollJobsRequest poll;
  poll.set_worker_id("w");
  poll.add_job_types("j");
  wf::PollJobsResponse jobs;
  ASSERT_EQ(call(wire, &wf::WorkflowEngine::Stub::PollJobs, poll, &jobs), grpc::OK);
  ASSERT_EQ(jobs.jobs_size(), 1);
  wf::ExtendJobLeaseRequest extend;
  extend.set_job_id(jobs.jobs(0).id());
  extend.set_worker_id("w");
  extend.set_lease_seconds(60);
  wf::ExtendJobLeaseResponse extended;
  auto send = [&] {
    return call(wire, &wf::WorkflowEngine::Stub::ExtendJobLease, extend, &extended);
  };
  EXPECT_EQ(send(), grpc::OK);
  EXPECT_TRUE(extended.accepted());
  EXPECT_EQ(extended.lock_expires_at().seconds(), wire.fixture.time / kSecond + 60);
  extend.set_worker_id("other");
  EXPECT_EQ(send(), grpc::FAILED_PRECONDITION);
  extend.set_job_id("nope");
  EXPECT_EQ(send(), grpc::NOT_FOUND);
}

// Clients of earlier versions send the wait as field 5.
TEST(processes_grpc, the_wait_of_a_poll_is_read_under_both_numbers) {
  for (bool early : {false, true}) {
    Wire wire;
    wf::PollJobsRequest poll;
    poll.set_worker_id("w");
    poll.add_job_types("j");
    if (early)
      poll.set_early_max_wait_ms(5'000);
    else
      poll.set_max_wait_ms(5'000);
    wf::PollJobsResponse jobs;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
    EXPECT_EQ(wire.engine->PollJobs(&context, poll, &jobs).error_code(), grpc::DEADLINE_EXCEEDED)
        << "the poll waits";
  }
}

TEST(processes_grpc, a_start_may_set_priority_and_fairness_key) {
  Wire wire;
  wire.upload();
  auto start = [&](std::optional<int> priority, std::optional<std::string> fairness_key,
                   wf::WorkflowInstance* out = nullptr) {
    wf::StartInstanceRequest request;
    request.set_definition_id("a");
    if (priority) request.set_priority(*priority);
    if (fairness_key) request.set_fairness_key(*fairness_key);
    wf::StartInstanceResponse response;
    grpc::ClientContext context;
    grpc::StatusCode code = wire.engine->StartInstance(&context, request, &response).error_code();
    if (out) *out = response.instance();
    return code;
  };
  wf::WorkflowInstance made;
  ASSERT_EQ(start(7, "customer", &made), grpc::OK);
  EXPECT_EQ(made.priority(), 7);
  EXPECT_EQ(made.fairness_key(), "customer");
  wf::GetInstanceRequest request;
  request.set_id(made.id());
  wf::GetInstanceResponse read;
  grpc::ClientContext context;
  ASSERT_TRUE(wire.engine->GetInstance(&context, request, &read).ok());
  EXPECT_EQ(read.instance().priority(), 7);
  EXPECT_EQ(start(1001, {}), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(start(-1001, {}), grpc::INVALID_ARGUMENT);
  EXPECT_EQ(start({}, std::string(257, 'x')), grpc::INVALID_ARGUMENT);
  ASSERT_EQ(start({}, {}, &made), grpc::OK);
  EXPECT_EQ(made.priority(), 0);
  wire.fixture.verify();
}

TEST(processes_grpc, an_instance_runs_through_all_calls) {
  Wire wire;
  wire.upload();
  std::string id = wire.start();
  run_to_end(wire, id);
  if (testing::Test::HasFatalFailure()) return;
  using Stub = wf::WorkflowEngine::Stub;
  wf::GetInstanceRequest get;
  get.set_id(id);
  wf::GetInstanceResponse got;
  EXPECT_EQ(call(wire, &Stub::GetInstance, get, &got), grpc::OK);
  EXPECT_EQ(got.instance().status(), wf::INSTANCE_STATUS_COMPLETED);
  EXPECT_TRUE(got.instance().variables().fields().at("r").bool_value());
  EXPECT_TRUE(got.instance().has_completed_at());

  wf::GetInstanceHistoryRequest history;
  history.set_id(id);
  wf::GetInstanceHistoryResponse rows;
  EXPECT_EQ(call(wire, &Stub::GetInstanceHistory, history, &rows), grpc::OK);
  EXPECT_EQ(rows.executions_size(), 4);

  wf::ListInstancesRequest list;
  list.set_status(wf::INSTANCE_STATUS_COMPLETED);
  list.set_business_key("bk");
  wf::ListInstancesResponse listed;
  EXPECT_EQ(call(wire, &Stub::ListInstances, list, &listed), grpc::OK);
  EXPECT_EQ(listed.total(), 1);

  wf::GetDefinitionRequest definition;
  definition.set_id("a");
  wf::GetDefinitionResponse stored;
  EXPECT_EQ(call(wire, &Stub::GetDefinition, definition, &stored), grpc::OK);
  EXPECT_EQ(stored.definition().steps_size(), 4);
  EXPECT_EQ(stored.definition().steps(0).retry_count(), -1) << "kept as it was given";
  EXPECT_EQ(stored.definition().metadata().fields().at("k").string_value(), "v");
  wf::ListDefinitionsRequest definitions;
  wf::ListDefinitionsResponse all;
  EXPECT_EQ(call(wire, &Stub::ListDefinitions, definitions, &all), grpc::OK);
  EXPECT_EQ(all.total(), 1);
}

TEST(processes_grpc, errors_have_their_codes) {
  Wire wire;
  wire.upload();
  using Stub = wf::WorkflowEngine::Stub;
  wf::CancelInstanceRequest cancel;
  cancel.set_id("nope");
  wf::CancelInstanceResponse cancelled;
  EXPECT_EQ(call(wire, &Stub::CancelInstance, wf::CancelInstanceRequest(), &cancelled),
            grpc::INVALID_ARGUMENT)
      << "a missing id";
  EXPECT_EQ(call(wire, &Stub::CancelInstance, cancel, &cancelled), grpc::NOT_FOUND);
  cancel.set_id(wire.start());
  EXPECT_EQ(call(wire, &Stub::CancelInstance, cancel, &cancelled), grpc::OK);
  EXPECT_EQ(call(wire, &Stub::CancelInstance, cancel, &cancelled), grpc::FAILED_PRECONDITION);
  wf::FailJobRequest fail;
  fail.set_job_id("nope");
  wf::FailJobResponse failed;
  EXPECT_EQ(call(wire, &Stub::FailJob, wf::FailJobRequest(), &failed), grpc::INVALID_ARGUMENT);
  wf::CompleteJobResponse completed;
  EXPECT_EQ(call(wire, &Stub::CompleteJob, wf::CompleteJobRequest(), &completed),
            grpc::INVALID_ARGUMENT);
  EXPECT_EQ(call(wire, &Stub::FailJob, fail, &failed), grpc::NOT_FOUND);
  wf::UploadDefinitionRequest upload;
  wf::UploadDefinitionResponse uploaded;
  EXPECT_EQ(call(wire, &Stub::UploadDefinition, upload, &uploaded), grpc::INVALID_ARGUMENT);
  grpc::ClientContext context;
  context.AddMetadata("authorization", "bad");
  EXPECT_EQ(wire.engine->UploadDefinition(&context, upload, &uploaded).error_code(),
            grpc::UNAUTHENTICATED);
}

TEST(processes_grpc, empty_lists_stay_lists_and_non_json_numbers_are_refused) {
  Wire wire;
  wire.upload();
  using Stub = wf::WorkflowEngine::Stub;
  wf::StartInstanceRequest start;
  start.set_definition_id("a");
  auto& fields = *start.mutable_variables()->mutable_fields();
  fields["none"].mutable_list_value();
  fields["deep"].mutable_list_value()->add_values()->mutable_list_value();
  wf::StartInstanceResponse started;
  ASSERT_EQ(call(wire, &Stub::StartInstance, start, &started), grpc::OK);
  EXPECT_TRUE(started.instance().variables().fields().at("none").has_list_value());
  EXPECT_TRUE(
      started.instance().variables().fields().at("deep").list_value().values(0).has_list_value());
  fields["deep"].mutable_list_value()->add_values()->set_number_value(
      std::numeric_limits<double>::infinity());
  EXPECT_EQ(call(wire, &Stub::StartInstance, start, &started), grpc::INVALID_ARGUMENT);
  wf::SignalWaitRequest signal;
  signal.set_instance_id("i");
  signal.set_wait_step_id("w");
  (*signal.mutable_variables()->mutable_fields())["x"].set_number_value(std::nan(""));
  wf::SignalWaitResponse signalled;
  EXPECT_EQ(call(wire, &Stub::SignalWait, signal, &signalled), grpc::INVALID_ARGUMENT);
  wf::UploadDefinitionRequest upload;
  (*upload.mutable_definition()->add_steps()->mutable_transformations())["x"].set_number_value(
      std::nan(""));
  wf::UploadDefinitionResponse uploaded;
  grpc::ClientContext context;
  EXPECT_NE(wire.engine->UploadDefinition(&context, upload, &uploaded)
                .error_message()
                .find("not a number"),
            std::string::npos);
}

// A worker's stream after its hello.
struct Work {
  Work(Wire& wire, int credit)
      : stub(pawl::v1::Workers::NewStub(wire.channel)), stream(stub->Work(&context)) {
    pawl::v1::FromWorker hello;
    hello.mutable_hello()->set_worker_id("w");
    hello.mutable_hello()->add_job_types("j");
    hello.mutable_hello()->set_credit(credit);
    EXPECT_TRUE(stream->Write(hello));
  }
  std::unique_ptr<pawl::v1::Workers::Stub> stub;
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<pawl::v1::FromWorker, pawl::v1::ToWorker>> stream;
};

TEST(processes_grpc, a_stream_pushes_jobs_within_its_credit) {
  Wire wire;
  wire.upload();
  for (int i = 0; i < 3; ++i)
    wire.start();
  Work work(wire, 2);
  auto& stream = work.stream;
  pawl::v1::ToWorker message;
  ASSERT_TRUE(stream->Read(&message));
  ASSERT_TRUE(message.has_jobs());
  pawl::v1::FromWorker unknown;
  unknown.mutable_result()->set_job_id("nope");
  ASSERT_TRUE(stream->Write(unknown));
  pawl::v1::ToWorker answer;
  ASSERT_TRUE(stream->Read(&answer));
  ASSERT_TRUE(answer.has_settled()) << "a job that never was gives no credit for another";
  EXPECT_EQ(answer.settled().results(0).error(), "not-found");
  EXPECT_EQ(message.jobs().jobs_size(), 2) << "no more than the credit";
  pawl::v1::FromWorker results;
  results.mutable_results()->add_results()->set_job_id(message.jobs().jobs(0).id());
  auto* second = results.mutable_results()->add_results();
  second->set_job_id(message.jobs().jobs(1).id());
  second->set_variables("{\"r\":1}");
  results.mutable_results()->add_results()->set_job_id("nope");
  ASSERT_TRUE(stream->Write(results));
  int settled = 0, refused = 0, pushed = 0;
  while (settled + refused < 3 || pushed < 1) {
    ASSERT_TRUE(stream->Read(&message));
    pushed += message.jobs().jobs_size();
    for (const auto& one : message.settled().results())
      ++(one.error().empty() ? settled : refused);
  }
  EXPECT_EQ(settled, 2);
  EXPECT_EQ(refused, 1);
  stream->WritesDone();
  while (stream->Read(&message))
    continue;
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_FALSE(wire.fixture.take("j").empty())
      << "the job without a result is offered again at once";
}

TEST(processes_grpc, a_pushed_job_returns_its_credit_after_its_instance_ended) {
  Wire wire;
  wire.upload();
  wire.start();
  wire.start();
  Work work(wire, 1);
  auto& stream = work.stream;
  pawl::v1::ToWorker message;
  ASSERT_TRUE(stream->Read(&message));
  wf::CancelInstanceRequest cancel;
  cancel.set_id(message.jobs().jobs(0).instance_id());
  wf::CancelInstanceResponse cancelled;
  ASSERT_EQ(call(wire, &wf::WorkflowEngine::Stub::CancelInstance, cancel, &cancelled), grpc::OK);
  pawl::v1::FromWorker result;
  result.mutable_result()->set_job_id(message.jobs().jobs(0).id());
  ASSERT_TRUE(stream->Write(result));
  bool told = false, pushed = false;
  while (!told || !pushed) {
    ASSERT_TRUE(stream->Read(&message));
    told = told || message.has_settled();
    pushed = pushed || message.has_jobs();
  }
  work.context.TryCancel();
  (void)stream->Finish().ok();
}

TEST(processes_grpc, a_repeated_result_returns_no_credit) {
  Wire wire;
  wire.upload();
  for (int i = 0; i < 5; ++i)
    wire.start();
  Work work(wire, 1);
  auto& stream = work.stream;
  pawl::v1::ToWorker message;
  ASSERT_TRUE(stream->Read(&message));
  pawl::v1::FromWorker results;
  for (int i = 0; i < 3; ++i)
    results.mutable_results()->add_results()->set_job_id(message.jobs().jobs(0).id());
  ASSERT_TRUE(stream->Write(results));
  stream->WritesDone();
  int settled = 0, pushed = 0;
  while (stream->Read(&message)) {
    settled += message.settled().results_size();
    pushed += message.jobs().jobs_size();
  }
  EXPECT_EQ(settled, 3);
  EXPECT_LE(pushed, 1);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST(processes_grpc, large_jobs_are_split_over_messages) {
  Wire wire;
  wire.upload();
  for (int i = 0; i < 5; ++i)
    wire.fixture.start("a", "{\"x\":\"" + std::string(600'000, 'x') + "\"}");
  Work work(wire, 10);
  auto& stream = work.stream;
  pawl::v1::ToWorker message;
  for (int jobs = 0; jobs < 5; jobs += message.jobs().jobs_size()) {
    ASSERT_TRUE(stream->Read(&message));
    EXPECT_EQ(message.jobs().jobs_size(), 1);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A poll that is answered at once starts the next poll before its own number is known. The number
// of the later poll must not be lost: its wait would go on after the stream has ended.
TEST(processes_grpc, the_last_poll_of_a_stream_is_cancelled_at_its_end) {
  Wire wire;
  wire.upload();
  wire.start();
  Work work(wire, 5);
  pawl::v1::ToWorker message;
  ASSERT_TRUE(work.stream->Read(&message));
  EXPECT_EQ(message.jobs().jobs_size(), 1);
  for (int tries = 0; wire.polls.waiting() == 0 && tries < 5'000; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(wire.polls.waiting(), 1u) << "the stream has credit for four more jobs";
  work.stream->WritesDone();
  while (work.stream->Read(&message))
    continue;
  EXPECT_TRUE(work.stream->Finish().ok());
  EXPECT_EQ(wire.polls.waiting(), 0u);
}

TEST(processes_grpc, a_stream_begins_with_a_hello) {
  Wire wire;
  auto stub = pawl::v1::Workers::NewStub(wire.channel);
  grpc::ClientContext context;
  auto stream = stub->Work(&context);
  pawl::v1::FromWorker credit;
  credit.mutable_credit()->set_more(1);
  stream->Write(credit);
  pawl::v1::ToWorker message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), grpc::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace pawl::processes
