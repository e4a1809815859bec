// The archive in a bucket, against tests/bucket_server.py: a server of its own that checks each
// signature with its own code.

#include "bucket/bucket_archive.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "storage/test_folder.h"

namespace pawl {
namespace {

// Runs the server as a child; it prints its port.
class BucketServer {
 public:
  BucketServer() {
    int out[2];
    if (::pipe(out) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out[1], 1);
      ::close(out[0]);
      ::execlp("python3", "python3", "tests/bucket_server.py", nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    std::string line;
    for (char c; ::read(out[0], &c, 1) == 1 && c != '\n';)
      line.push_back(c);
    ::close(out[0]);
    port_ = std::atoi(line.c_str());
  }
  ~BucketServer() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  bool running() const { return port_ > 0; }

 private:
  pid_t child_ = -1;
  int port_ = 0;
};

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

class BucketPromise : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(server.running()); }
  Result<std::unique_ptr<Archive>> open(const std::string& path, std::string secret = "secret/+key",
                                        int64_t offset = 0) {
    return open_bucket_archive({.url = server.url(path),
                                .keys = {"test-id", std::move(secret), "eu-test-1"},
                                .now = [offset] { return now_seconds() + offset; }});
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder.sub(name), std::ios::binary) << text;
    return folder.sub(name);
  }
  static std::string text_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  BucketServer server;
  TestFolder folder;
};

TEST_F(BucketPromise, a_file_comes_back_as_it_was) {
  for (const char* path : {"/bucket", "/bucket/prefix/deep/"}) {
    auto archive = open(path);
    ASSERT_TRUE(archive) << archive.error().message;
    std::string large(3 << 20, 'x');
    large[5] = '\0';
    ASSERT_TRUE((*archive)->put("0001/checkpoint-7", file("a", large)));
    ASSERT_TRUE((*archive)->get("0001/checkpoint-7", folder.sub("b")));
    EXPECT_EQ(text_of(folder.sub("b")), large);
    EXPECT_EQ((*archive)->get("0001/checkpoint-8", folder.sub("c")).error().code, Code::not_found);
    auto again = (*archive)->put("0001/checkpoint-7", file("d", "other"));
    ASSERT_FALSE(again);
    EXPECT_TRUE(again.error().is(kArchived));
    EXPECT_EQ((*archive)->put("../x", file("d", "x")).error().reason, "BAD_ARCHIVE_NAME");
  }
}

TEST_F(BucketPromise, of_many_writers_of_a_name_one_succeeds) {
  auto archive = *open("/bucket");
  std::atomic<int> succeeded = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 6; ++i)
    writers.emplace_back([&, i] {
      if (archive->put("one", file(std::to_string(i), std::to_string(i)))) ++succeeded;
    });
  for (std::thread& writer : writers)
    writer.join();
  EXPECT_EQ(succeeded, 1);
}

// The server lists three names a page.
TEST_F(BucketPromise, names_are_listed_in_order_and_removed) {
  auto archive = *open("/bucket/pre");
  auto other = *open("/bucket/other");
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("0002/checkpoint-" + std::to_string(i));
    ASSERT_TRUE(archive->put(names.back(), file("f", "x")));
  }
  ASSERT_TRUE(other->put("0002/checkpoint-0", file("f", "y")));
  ASSERT_TRUE(archive->put("0003/a", file("f", "x")));
  EXPECT_EQ(archive->list("0002/").value(), names);
  ASSERT_TRUE(archive->remove("0003/a"));
  ASSERT_TRUE(archive->remove("0003/a"));
  EXPECT_EQ(archive->list("").value(), names);
}

TEST_F(BucketPromise, wrong_keys_and_wrong_clocks_are_refused_at_the_start) {
  auto wrong = open("/bucket", "another");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::denied);
  EXPECT_NE(wrong.error().message.find("SignatureDoesNotMatch"), std::string::npos)
      << wrong.error().message;
  auto late = open("/bucket", "secret/+key", 3600);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("RequestTimeTooSkewed"), std::string::npos);
  EXPECT_FALSE(open("/"));
}

// The server fails the first two attempts of names that begin with "flaky", and carries out the
// first attempt of "lost" names without an answer.
TEST_F(BucketPromise, failures_that_pass_are_tried_again) {
  auto archive = *open("/bucket");
  ASSERT_TRUE(archive->put("flaky-1", file("a", "text")));
  ASSERT_TRUE(archive->get("flaky-1", folder.sub("b")));
  EXPECT_EQ(text_of(folder.sub("b")), "text");
  ASSERT_TRUE(archive->put("lost-1", file("a", "mine")));
  ASSERT_TRUE(archive->get("lost-1", folder.sub("c")));
  EXPECT_EQ(text_of(folder.sub("c")), "mine");
}

// The example of the description of the signature ("GET Object").
TEST(bucket_signature, the_published_example_gives_the_published_signature) {
  bucket::Plain request{"GET", "examplebucket.s3.amazonaws.com", "/test.txt",
                        {},    {{"Range", "bytes=0-9"}},         ""};
  const wire::Headers headers = bucket::sign(
      request, {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1"},
      1369353600);
  EXPECT_EQ(*wire::find_header(headers, "Authorization"),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(bucket::percent_encode("a b/ü~", true), "a%20b/%C3%BC~");
  EXPECT_EQ(bucket::percent_encode("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace pawl
