// Watches whose rows cannot be read any more end with an error.

#include "embed/remote_store.h"
#include "embed/subscription.h"
#include "faces/lifecycle/limits.h"
#include "faces/lifecycle/routes_test.h"

namespace pawl::lifecycle {

namespace {

class NoRows final : public RowsSnapshot {
 public:
  Result<std::optional<Bytes>> get(BytesView) const override { return broken(); }
  Result<void> scan(BytesView, BytesView, const Visit&) const override { return broken(); }
  Result<void> scan_back(BytesView, BytesView, const Visit&) const override { return broken(); }
  Seq applied() const override { return 0; }

 private:
  static std::unexpected<Error> broken() {
    return fail(Code::unavailable, "DISK", "the disk is gone");
  }
};

// A KernelAccess whose reads can be made to fail.
class Flaky final : public KernelAccess {
 public:
  explicit Flaky(KernelAccess& inner) : inner_(inner) {}
  void submit(Input input, Reply reply) override {
    inner_.submit(std::move(input), std::move(reply));
  }
  Result<Cell> read(BytesView key) const override { return inner_.read(key); }
  ReadSnapshot snapshot() const override {
    return broken ? ReadSnapshot(std::make_unique<NoRows>()) : inner_.snapshot();
  }
  Seq durable() const override { return inner_.durable(); }
  Result<void> frames(Seq from,
                      const std::function<Result<bool>(const Frame&)>& visit) const override {
    if (from < first) return fail(trimmed(from, first));
    return inner_.frames(from, visit);
  }
  uint64_t watch(Watcher watcher) override { return inner_.watch(std::move(watcher)); }
  void unwatch(uint64_t id) override { inner_.unwatch(id); }
  Time now() const override { return inner_.now(); }
  std::atomic<bool> broken{false};
  std::atomic<Seq> first{0};  // frames before it are gone

 private:
  KernelAccess& inner_;
};

}  // namespace

struct broken_watches : Missions {
  Flaky kernel{*engine->parts().shard};
  std::shared_ptr<WatchHub> hub = std::make_shared<WatchHub>(kernel);
  Reads reads{kernel};
  const std::string& tenant = engine->options().tenant;
};

TEST_F(broken_watches, a_page_that_cannot_be_read_ends_the_watch_with_its_error) {
  const size_t many = limits::kWatchPage + 3;
  for (size_t i = 0; i < many; ++i)
    make("m" + std::to_string(i));
  LocalSubscription w(hub, reads, tenant, *reads.type(tenant, "drone-survey"));
  ASSERT_TRUE(w.begin({}));
  ASSERT_TRUE(w.next({}));
  kernel.broken = true;
  for (size_t i = 1; i < limits::kWatchPage; ++i)
    ASSERT_TRUE(w.next({}));
  EXPECT_FALSE(w.failed());
  make("new");  // must not be sent in place of the missing page
  EXPECT_FALSE(w.next(deadline::in(std::chrono::seconds(10))));
  ASSERT_TRUE(w.failed());
  EXPECT_TRUE(*w.failed() == errc::storage) << w.failed()->message();
  EXPECT_NE(w.failed()->message().find("the disk is gone"), std::string::npos);
  EXPECT_EQ(hub->watchers(), 0u);
}

struct broken_routes : broken_watches {
  BackgroundThreads background;
  Face face{kernel, background};
  wire::Router router;
  void SetUp() override {
    broken_watches::SetUp();
    router.add(face.routes(), face.dialects());
    make("m1");
  }
  wire::Response watch(wire::Headers headers, std::string more = {}) {
    wire::Response out;
    router.dispatch({"GET",
                     "/workflows/drone-survey",
                     "stream=true" + more,
                     std::move(headers),
                     {},
                     {tenant, "ann", "operator"}},
                    [&](wire::Response r) { out = std::move(r); });
    return out;
  }
};

TEST_F(broken_routes, a_failed_snapshot_is_reported_to_websockets_and_ends_event_streams) {
  kernel.broken = true;
  auto socket = std::make_shared<Recorder>(), events = std::make_shared<Recorder>();
  watch({{"Upgrade", "websocket"}}).socket(socket);
  EXPECT_TRUE(socket->ended);
  EXPECT_NE(socket->text().find("\"error\":\"watch: "), std::string::npos) << socket->text();
  watch({{"Accept", "text/event-stream"}}).stream(events);
  EXPECT_TRUE(events->ended);
  EXPECT_EQ(events->text(), "");
  socket->close();
  events->close();
}

TEST_F(broken_routes, a_trimmed_revision_is_reported_in_process_and_over_http) {
  make("m2");
  kernel.first = kernel.durable();
  LocalSubscription w(hub, reads, tenant, *reads.type(tenant, "drone-survey"));
  auto begun = w.begin(1);
  ASSERT_FALSE(begun);
  EXPECT_EQ(errc_of(begun.error()), errc::revision_gone);
  auto events = std::make_shared<Recorder>();
  watch({{"Accept", "text/event-stream"}}, "&after=1").stream(events);
  EXPECT_TRUE(events->ended);
  std::string said = events->text();
  EXPECT_NE(said.find("event: error\n"), std::string::npos) << said;
  size_t data = said.find("data: ");
  ASSERT_NE(data, std::string::npos);
  EXPECT_TRUE(error_of(503, said.substr(data + 6)) == errc::revision_gone) << said;
  events->close();
}

}  // namespace pawl::lifecycle
