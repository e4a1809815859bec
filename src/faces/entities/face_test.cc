#include "faces/entities/face_fixture_test.h"

namespace pawl::entities {
namespace {

TEST(tenancy, entities_of_another_tenant_are_invisible) {
  FaceFixture s;
  s.add_model();
  std::string id = s.create(), never = "00000000-0000-1000-8000-000000000000";
  auto same = [&](const std::string& method, const std::string& before, const std::string& after,
                  const std::string& body = "") {
    TestResponse theirs = s.send(method, before + id + after, body, {}, "other"),
                 nobodys = s.send(method, before + never + after, body, {}, "other");
    EXPECT_EQ(theirs.status, 404) << method << before;
    EXPECT_EQ(theirs.status, nobodys.status);
    std::string text = theirs.text;
    for (size_t at; (at = text.find(id)) != std::string::npos;)
      text.replace(at, id.size(), never);
    EXPECT_EQ(text, nobodys.text);
  };
  same("GET", "/entity/", "");
  same("GET", "/entity/", "/changes");
  same("GET", "/entity/", "/transitions");
  same("GET", "/audit/entity/", "");
  same("DELETE", "/entity/", "");
  same("PUT", "/entity/JSON/", "", R"({"n":2})");
  same("PUT", "/entity/JSON/", "/UPDATE", R"({"n":2})");
  EXPECT_EQ(s.send("GET", "/model/export/SIMPLE_VIEW/m/1", "", {}, "other").status, 404);
  EXPECT_EQ(s.send("GET", "/model/", "", {}, "other").text, "[]");
  s.add_model("other");
  EXPECT_EQ(s.send("GET", "/entity/stats/m/1", "", {}, "other").body.find("count")->as_int64(), 0);
  EXPECT_EQ(s.send("GET", "/entity/m/1", "", {}, "other").text, "[]");
  EXPECT_EQ(s.send("POST", "/search/direct/m/1",
                   R"({"type":"group","operator":"AND","conditions":[]})", {}, "other")
                .text,
            "");
  EXPECT_EQ(s.send("DELETE", "/entity/m/1", "", {}, "other")
                .body.find("deleteResult")
                ->find("numberOfEntitites")
                ->as_int64(),
            0);
  EXPECT_EQ(s.state(id), "CREATED");
}

TEST(http, problems_have_the_shape_of_the_contract) {
  FaceFixture s;
  TestResponse h = s.send("PUT", "/model/x/1/lock");
  EXPECT_EQ(
      h.text,
      R"({"type":"about:blank","title":"Not Found","status":404,"detail":"MODEL_NOT_FOUND: cannot find model entityName=x, version=1","instance":"/model/x/1/lock","properties":{"errorCode":"MODEL_NOT_FOUND","entityName":"x","entityVersion":1}})");
  EXPECT_EQ(s.send("GET", "/no-such-route").status, 404);
  EXPECT_EQ(s.send("DELETE", "/search/direct/x/1").status, 405);
  EXPECT_EQ(s.send("GET", "/account/subscriptions").status, 501);
}

TEST(http, validation_uses_the_current_model) {
  FaceFixture s;
  s.add_model();
  EXPECT_EQ(s.send("POST", "/model/m/1/changeLevel/STRUCTURAL").status, 200);
  for (const char* body : {R"({"new":1})", R"({"n":"text"})"}) {
    EXPECT_EQ(json::print(*s.send("POST", "/model/validate/m/1", body).body.find("success")),
              "false")
        << body;
    EXPECT_EQ(s.send("POST", "/entity/JSON/m/1", body).status, 200) << body;
    EXPECT_EQ(json::print(*s.send("POST", "/model/validate/m/1", body).body.find("success")),
              "true")
        << body;
  }
}

TEST(http, an_unknown_model_is_reported_before_a_bad_change_level) {
  FaceFixture s;
  EXPECT_EQ(s.send("POST", "/model/nope/1/changeLevel/BAD").code(), "MODEL_NOT_FOUND");
  s.add_model();
  EXPECT_EQ(s.send("POST", "/model/m/1/changeLevel/BAD").code(), "INVALID_CHANGE_LEVEL");
}

TEST(messages, a_batch_delete_ignores_missing_messages) {
  FaceFixture s;
  wire::Headers headers{{"Content-Type", "application/json"}, {"Content-Length", "13"}};
  std::string id = s.send("POST", "/message/new/s", R"({"payload":1})", headers)
                       .body.array()[0]
                       .find("entityIds")
                       ->array()[0]
                       .string();
  std::string gone = "00000000-0000-1000-8000-000000000000";
  EXPECT_EQ(s.send("DELETE", "/message", "[\"" + gone + "\",\"" + id + "\"]").text,
            R"([{"entityIds":[")" + gone + R"(",")" + id + R"("],"success":true}])");
  EXPECT_EQ(s.send("GET", "/message/" + id).status, 404);
  TestResponse again = s.send("DELETE", "/message/" + id);
  EXPECT_EQ(again.code(), "ENTITY_NOT_FOUND");
  EXPECT_EQ(again.body.find("properties")->string_or("messageId"), id);
}

TEST(http, cors_allows_loopback_and_listed_origins) {
  FaceFixture s;
  wire::Dialect own = s.face->dialect();
  EXPECT_EQ(own.cors("http://localhost:3000").allow_origin, "http://localhost:3000");
  EXPECT_EQ(own.cors("http://[::1]:3000").allow_origin, "http://[::1]:3000");
  EXPECT_EQ(own.cors("http://localhost.evil.example").allow_origin, "");
  EXPECT_EQ(own.cors("https://evil.example").allow_origin, "");
  FaceOptions listed;
  listed.cors_origins = "https://a.example,https://b.example";
  Face face(s.kernel, s.background, listed);
  EXPECT_EQ(face.dialect().cors("https://b.example").allow_origin, "https://b.example");
}

}  // namespace
}  // namespace pawl::entities
