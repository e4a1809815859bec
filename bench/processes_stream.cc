// Three service tasks with one streaming worker and batched starts: jobs are pushed over
// pawl.v1.Workers/Work, results return on the same stream, and instances start a hundred at a time.

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <processes/workers.grpc.pb.h>

#include <atomic>
#include <thread>

#include "bench/site.h"

namespace pawl::bench {

namespace {

// A worker that completes every job at once, all jobs of a message in one message.
class StreamWorker {
 public:
  StreamWorker(const std::string& address, int credit)
      : stub_(pawl::v1::Workers::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    stream_ = stub_->Work(&context_);
    pawl::v1::FromWorker hello;
    hello.mutable_hello()->set_worker_id("w");
    hello.mutable_hello()->add_job_types("work");
    hello.mutable_hello()->set_credit(credit);
    CHECK(stream_->Write(hello));
    thread_ = std::thread([this] { read(); });
  }
  ~StreamWorker() {
    context_.TryCancel();
    thread_.join();
  }
  uint64_t settled() const { return settled_; }

 private:
  void read() {
    pawl::v1::ToWorker in;
    while (stream_->Read(&in)) {
      if (in.has_settled())
        for (const auto& one : in.settled().results())
          CHECK(one.error().empty());
      settled_ += static_cast<uint64_t>(in.settled().results_size());
      if (!in.has_jobs()) continue;
      pawl::v1::FromWorker out;
      for (const auto& job : in.jobs().jobs()) {
        auto* result = out.mutable_results()->add_results();
        result->set_job_id(job.id());
        result->set_variables(R"({"x":1})");
      }
      if (!stream_->Write(out)) break;
    }
    // The stream was cancelled, which is how the worker ends.
    (void)stream_->Finish().ok();
  }

  std::unique_ptr<pawl::v1::Workers::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<pawl::v1::FromWorker, pawl::v1::ToWorker>> stream_;
  std::atomic<uint64_t> settled_{0};
  std::thread thread_;
};

}  // namespace

double linear_by_stream(Site& site, double for_seconds) {
  static constexpr size_t kBatch = 100;
  std::string body = R"({"brief":true,"items":[)";
  for (size_t i = 0; i < kBatch; ++i)
    body += std::string(i ? "," : "") +
            R"({"definitionId":"linear","variables":{"order":17,"name":"somebody"}})";
  std::string text = request("POST", "/pawl/v1/processes/start-batch", body + "]}");
  StreamWorker worker(site.grpc(), 2000);
  std::atomic<uint64_t> started{0};
  Load clients{site.address(), 4, for_seconds,
               [&](size_t) {
                 // Three jobs an instance. At most 2,000 instances are in progress, so that starts
                 // do not run away from the worker.
                 return started * 3 < worker.settled() + 6000 ? (started += kBatch, text)
                                                              : std::string();
               },
               [&](size_t, int status, std::string_view) { CHECK(status == 200); }};
  double begin = seconds();
  uint64_t before = worker.settled();
  run(clients);
  return static_cast<double>(worker.settled() - before) / 3 / (seconds() - begin);
}

}  // namespace pawl::bench
