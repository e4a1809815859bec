#include "bucket/bucket_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "net/http_client.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;
using bucket::Plain;
using net::HttpAnswer;

constexpr std::chrono::milliseconds kFirstPause(100), kLongestPause(3000);

std::unexpected<Error> file_error(std::string_view verb, const std::string& path) {
  return fail(Code::unavailable, "ARCHIVE_IO",
              fmt::format("cannot {} {}: {}; check that the disk has space", verb, path,
                          std::strerror(errno)));
}

// The text of an element of an XML answer; these answers have no attributes or nested names that
// could be mistaken. Empty: there is none after `from`, which is moved behind it.
std::optional<std::string> element(BytesView xml, std::string_view name, size_t& from) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const size_t begin = xml.find(open, from);
  if (begin == BytesView::npos) return {};
  const size_t end = xml.find(close, begin);
  if (end == BytesView::npos) return {};
  from = end + close.size();
  std::string out(xml.substr(begin + open.size(), end - begin - open.size()));
  // Names of the archive have no character that XML escapes, but tokens may have.
  for (auto [escaped, plain] :
       {std::pair("&lt;", "<"), {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}})
    for (size_t at = 0; (at = out.find(escaped, at)) != std::string::npos; ++at)
      out.replace(at, std::strlen(escaped), plain);
  return out;
}

class BucketArchive final : public Archive {
 public:
  BucketArchive(BucketOptions options, net::Url url)
      : options_(std::move(options)),
        url_(std::move(url)),
        client_({.base_url = url_.origin(),
                 .timeout = options_.timeout,
                 .ca_file = options_.ca_file,
                 .max_answer_bytes = kMaxBucketFileBytes}) {
    const size_t slash = url_.target.find('/', 1);
    bucket_ = url_.target.substr(0, slash);
    if (slash != std::string::npos) prefix_ = url_.target.substr(slash + 1);
    while (prefix_.ends_with('/'))
      prefix_.pop_back();
    if (!prefix_.empty()) prefix_ += '/';
  }

  Result<void> put(const std::string& name, const std::string& file) override {
    TRY_OK(check_archive_name(name));
    TRY(Bytes body, read_whole(file));
    Plain request = plain("PUT", name);
    request.headers = {{"If-None-Match", "*"}, {"Content-Type", "application/octet-stream"}};
    request.body = body;
    bool repeated = false;
    TRY(HttpAnswer answer, send(request, body, &repeated));
    if (answer.status == 200) return {};
    if (answer.status != 412 && answer.status != 409) return refused(answer, "store " + name);
    // The answer to an attempt before may have been lost: then the file there is ours.
    if (repeated) {
      TRY(HttpAnswer there, send(plain("GET", name), {}));
      if (there.status == 200 && there.body == body) return {};
    }
    return fail(Code::conflict, kArchived, fmt::format("the archive has {} already", name));
  }

  Result<void> get(const std::string& name, const std::string& file) const override {
    TRY_OK(check_archive_name(name));
    TRY(HttpAnswer answer, send(plain("GET", name), {}));
    if (answer.status == 404)
      return fail(Code::not_found, "NOT_ARCHIVED", fmt::format("the archive has no {}", name));
    if (answer.status != 200) return refused(answer, "read " + name);
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(answer.body.data(), static_cast<std::streamsize>(answer.body.size()));
    out.close();
    if (!out) return file_error("write", file);
    return {};
  }

  Result<std::vector<std::string>> list(const std::string& prefix) const override {
    std::vector<std::string> names;
    for (std::string token;;) {
      Plain request = plain("GET", "");
      request.path = bucket_;
      request.query = {{"list-type", "2"}, {"prefix", prefix_ + prefix}};
      if (!token.empty()) request.query.emplace_back("continuation-token", token);
      TRY(HttpAnswer answer, send(request, {}));
      if (answer.status != 200) return refused(answer, "list the files");
      size_t at = 0;
      while (auto name = element(answer.body, "Key", at))
        if (name->starts_with(prefix_)) names.push_back(name->substr(prefix_.size()));
      size_t from = 0;
      auto next = element(answer.body, "NextContinuationToken", from);
      if (!next || next->empty()) break;
      token = *std::move(next);
    }
    std::ranges::sort(names);
    return names;
  }

  Result<void> remove(const std::string& name) override {
    TRY_OK(check_archive_name(name));
    TRY(HttpAnswer answer, send(plain("DELETE", name), {}));
    if (answer.status == 204 || answer.status == 200 || answer.status == 404) return {};
    return refused(answer, "remove " + name);
  }

 private:
  Plain plain(std::string method, const std::string& name) const {
    Plain out;
    out.method = std::move(method);
    const bool standard = url_.port == (url_.tls ? "443" : "80");
    out.host = standard ? url_.host : url_.host + ":" + url_.port;
    out.path = bucket_ + "/" + prefix_ + name;
    return out;
  }

  static Result<Bytes> read_whole(const std::string& file) {
    std::error_code ec;
    const uint64_t size = fs::file_size(file, ec);
    if (ec) return file_error("read", file);
    if (size > kMaxBucketFileBytes)
      return fail(Code::too_large, "ARCHIVE_FILE_TOO_LARGE",
                  fmt::format("{} has {} bytes; a bucket takes files of {} at most: use a folder "
                              "as the archive, or more shards",
                              file, size, kMaxBucketFileBytes));
    Bytes body(size, '\0');
    std::ifstream in(file, std::ios::binary);
    if (!in.read(body.data(), static_cast<std::streamsize>(size))) return file_error("read", file);
    return body;
  }

  // Sends again what did not arrive, and what the service could not serve at that moment.
  Result<HttpAnswer> send(const Plain& request, BytesView body, bool* repeated = nullptr) const {
    auto pause = kFirstPause;
    for (int attempt = 1;; ++attempt, pause = std::min(pause * 2, kLongestPause)) {
      wire::Headers headers = bucket::sign(request, options_.keys, options_.now());
      std::erase_if(headers, [](const auto& header) { return header.first == "Host"; });
      Result<HttpAnswer> answer = client_.send(
          {request.method, bucket::target_of(request), std::move(headers), Bytes(body)});
      const bool passes = answer ? answer->status >= 500 || answer->status == 429
                                 : answer.error().code == Code::unavailable;
      if (!passes || attempt >= options_.attempts) return answer;
      if (repeated) *repeated = true;
      std::this_thread::sleep_for(pause);
    }
  }

  static std::unexpected<Error> refused(const HttpAnswer& answer, const std::string& what) {
    size_t at = 0;
    const std::string code = element(answer.body, "Code", at).value_or("no reason");
    const bool denied = answer.status == 401 || answer.status == 403;
    return fail(
        denied ? Code::denied : Code::unavailable, "ARCHIVE_REFUSED",
        fmt::format("the bucket refused to {}: status {}, {}; {}", what, answer.status, code,
                    denied ? "check the keys and the clock of this machine"
                           : "check the service and the name of the bucket"));
  }

  const BucketOptions options_;
  const net::Url url_;
  std::string bucket_;  // "/bucket"
  std::string prefix_;  // empty, or with a slash at its end
  mutable net::HttpClient client_;
};

}  // namespace

Result<std::unique_ptr<Archive>> open_bucket_archive(BucketOptions options) {
  TRY(net::Url url, net::parse_url(options.url));
  if (url.target.size() < 2 || url.target.find('?') != std::string::npos)
    return fail(Code::invalid, "BAD_ARCHIVE",
                fmt::format("'{}' names no bucket: write https://host/bucket/prefix", options.url));
  auto archive = std::make_unique<BucketArchive>(std::move(options), std::move(url));
  TRY_OK(archive->list("~none"));
  return archive;
}

}  // namespace pawl
