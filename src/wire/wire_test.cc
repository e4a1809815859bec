#include <gtest/gtest.h>

#include "wire/route.h"

namespace pawl::wire {
namespace {

// Answers with the name of the route and its parameters, so that a test sees which row was chosen.
Handler echo(std::string name) {
  return [name](Request request, Respond respond) {
    std::string text = name;
    for (const auto& param : request.params)
      text += "|" + param;
    respond(text_response(200, text));
  };
}

std::string ask(const Router& router, std::string method, std::string path, int* status = nullptr,
                Headers* headers = nullptr) {
  Request request;
  request.method = std::move(method);
  request.path = std::move(path);
  std::string body;
  router.dispatch(std::move(request), [&](Response response) {
    body = response.body;
    if (status) *status = response.status;
    if (headers) *headers = response.headers;
  });
  return body;
}

// A dialect whose refusals begin with `accent`.
Dialect speaking(std::string prefix, std::string accent) {
  return {prefix, [accent](const Request&, const Error& error, std::string_view allow) {
            Response response = text_response(allow.empty() ? code_status(error.code).http : 405,
                                              accent + error.reason);
            if (!allow.empty()) response.headers.emplace_back("Allow", allow);
            return response;
          }};
}

Router sample() {
  Router router;
  router.add({{"GET", "/v1/jobs/{id}", echo("job"), ""},
              {"POST", "/v1/jobs/{id}/complete", echo("complete"), ""},
              {"GET", "/v1/jobs/stats", echo("stats"), ""},
              {"GET", "/v1/files/{rest...}", echo("file"), ""},
              {"GET", "/v1/model/", echo("models"), ""},
              {"DELETE", "/v1/jobs/{id}", echo("delete"), ""}},
             speaking("/v1/", "one:"));
  router.add({{"GET", "/v1/worlds/{w}", echo("world"), ""}},
             std::vector<Dialect>{speaking("/v1/worlds", "two:"), speaking("/web", "three:")});
  return router;
}

TEST(router, a_literal_wins_over_a_parameter) {
  Router router = sample();
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/stats"), "stats");
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/7"), "job|7");
  // The literal has no DELETE, the parameter has: the search steps back.
  EXPECT_EQ(ask(router, "DELETE", "/v1/jobs/stats"), "delete|stats");
}

TEST(router, parameters_are_decoded_and_may_hold_a_slash) {
  Router router = sample();
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/a%2Fb%20c"), "job|a/b c");
  EXPECT_EQ(ask(router, "GET", "/v1/files/a/b%20c/d"), "file|a/b c/d");
  EXPECT_EQ(ask(router, "GET", "/v1/%6Aobs/7"), "job|7");
}

TEST(router, unknown_paths_get_404_and_wrong_methods_405) {
  Router router = sample();
  int status = 0;
  Headers headers;
  EXPECT_EQ(ask(router, "GET", "/v1/nothing", &status), "one:NOT_FOUND");
  EXPECT_EQ(status, 404);
  EXPECT_EQ(ask(router, "PUT", "/v1/jobs/7", &status, &headers), "one:METHOD_NOT_ALLOWED");
  EXPECT_EQ(status, 405);
  ASSERT_NE(find_header(headers, "allow"), nullptr);
  EXPECT_EQ(*find_header(headers, "allow"), "DELETE, GET, HEAD");
  EXPECT_EQ(ask(router, "GET", "/v1/jobs//complete", &status), "one:NOT_FOUND");
}

TEST(router, a_trailing_slash_is_part_of_the_path) {
  Router router = sample();
  int status = 0;
  EXPECT_EQ(ask(router, "GET", "/v1/model/"), "models");
  ask(router, "GET", "/v1/model", &status);
  EXPECT_EQ(status, 404);
  ask(router, "GET", "/v1/jobs/7/", &status);
  EXPECT_EQ(status, 404);
}

TEST(router, head_is_get) {
  EXPECT_EQ(ask(sample(), "HEAD", "/v1/jobs/7"), "job|7");
  int status = 0;
  ask(sample(), "HEAD", "/v1/jobs/7/complete", &status);
  EXPECT_EQ(status, 405);
}

TEST(router, the_dialect_of_the_longest_prefix_words_the_refusal) {
  Router router = sample();
  EXPECT_EQ(ask(router, "GET", "/v1/worlds/a/b"), "two:NOT_FOUND");
  EXPECT_EQ(ask(router, "GET", "/v1/worldsx"), "one:NOT_FOUND");
  EXPECT_EQ(ask(router, "GET", "/web/x"), "three:NOT_FOUND");
  EXPECT_EQ(ask(router, "GET", "/v1"), "one:NOT_FOUND");
  EXPECT_EQ(ask(router, "GET", "//v1/worlds/a"), "two:NOT_FOUND");
  int status = 0;
  EXPECT_EQ(ask(router, "GET", "/elsewhere", &status), "404 page not found\n");
  EXPECT_EQ(status, 404);
}

TEST(router, each_prefix_has_its_own_cors_policy) {
  Router router;
  Dialect open = speaking("/v1/", "");
  open.cors = [](std::string_view) {
    return Cors{"*", "GET, POST, OPTIONS", "Accept", 300, 200, false};
  };
  router.add({}, open);
  router.add({}, speaking("/workflows", ""));
  Request request;
  request.path = "/v1/jobs";
  ASSERT_TRUE(router.cors(request));
  EXPECT_EQ(router.cors(request)->allow_origin, "*");
  request.path = "/workflows/x";
  EXPECT_FALSE(router.cors(request));
}

TEST(message, headers_ignore_case_and_absence_differs_from_empty) {
  Request request;
  request.headers = {{"Content-Type", "text/plain"}, {"X-Empty", ""}};
  EXPECT_EQ(request.header("content-TYPE"), "text/plain");
  EXPECT_TRUE(request.has_header("x-empty"));
  EXPECT_FALSE(request.has_header("x-other"));
  EXPECT_TRUE(lists_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_FALSE(lists_token("upgraded", "upgrade"));
}

TEST(status, a_client_reads_every_status_as_a_code) {
  EXPECT_EQ(code_of_http(404), Code::not_found);
  EXPECT_EQ(code_of_http(410), Code::not_found);
  EXPECT_EQ(code_of_http(418), Code::invalid);
  EXPECT_EQ(code_of_http(500), Code::internal);
  EXPECT_EQ(code_of_http(502), Code::unavailable);
  EXPECT_EQ(code_of_http(503), Code::unavailable);
  EXPECT_EQ(code_of_http(504), Code::unavailable);
  EXPECT_EQ(code_of_http(507), Code::internal);
}

TEST(message, form_parameters_are_decoded) {
  Request request;
  request.body = "grant_type=client+credentials&scope=a%26b&empty";
  EXPECT_EQ(request.form_param("grant_type"), "client credentials");
  EXPECT_EQ(request.form_param("scope"), "a&b");
  EXPECT_EQ(request.form_param("empty"), "");
  EXPECT_EQ(request.form_param("b"), std::nullopt);
}

TEST(message, query_parameters_are_decoded) {
  Request request;
  request.query = "a=1&b=x%20y+z&a=2&flag&&=odd";
  EXPECT_EQ(request.query_param("a"), "1");
  EXPECT_EQ(request.query_param("b"), "x y z");
  EXPECT_EQ(request.query_param("flag"), "");
  EXPECT_EQ(request.query_param("c"), std::nullopt);
  EXPECT_EQ(request.query_params("a"), (std::vector<std::string>{"1", "2"}));
}

TEST(message, bad_escapes_stay_as_they_are) {
  EXPECT_EQ(percent_decode("%41%4", false), "A%4");
  EXPECT_EQ(percent_decode("%zz+%", true), "%zz %");
  EXPECT_EQ(percent_encode("a b/ü~"), "a%20b%2F%C3%BC~");
  EXPECT_EQ(percent_decode(percent_encode("a b/ü~"), false), "a b/ü~");
  EXPECT_EQ(percent_encode(".."), "%2E%2E");
  EXPECT_EQ(percent_encode("..."), "...");
}

TEST(message, an_authority_is_a_host_and_a_port) {
  for (auto [text, host, port] : {std::array{"a.example:81", "a.example", "81"},
                                  {"a.example", "a.example", "80"},
                                  {"[::1]:81", "::1", "81"},
                                  {"[::1]", "::1", "80"},
                                  {"", "", "80"},
                                  {":9", "", "9"}}) {
    HostPort got = host_and_port(text, "80");
    EXPECT_EQ(got.host, host) << text;
    EXPECT_EQ(got.port, port) << text;
  }
}

TEST(message, every_code_has_a_status_with_a_phrase) {
  for (int code = 0; code <= static_cast<int>(Code::internal); ++code) {
    EXPECT_NE(reason_phrase(code_status(static_cast<Code>(code)).http), "Unknown");
  }
}

}  // namespace
}  // namespace pawl::wire
