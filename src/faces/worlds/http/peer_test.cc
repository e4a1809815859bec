// Requests as the peer's own client sends them, and the members that it reads.

#include <gtest/gtest.h>

#include "faces/worlds/air/normalize.h"
#include "faces/worlds/http/peer_forms.h"
#include "faces/worlds/stage_test.h"

namespace pawl::worlds {
namespace {

struct Peer : Served {
  std::string put(const Bytes& bytes) {
    const std::string hash = hash_text(sha256(bytes));
    EXPECT_EQ(call("PUT", "/v1/cas/blobs/" + hash, bytes, 201).string_or("hash"), hash);
    return hash;
  }
  // Puts definitions and manifest into the store and creates the world by the manifest's hash.
  std::string upload() {
    auto authored = author(test_air(), stage.program->worlds.builtins(), {});
    EXPECT_TRUE(authored);
    for (const Node& node : authored->nodes)
      EXPECT_EQ(put(cbor::canonical(to_value(node, true))), node_hash(node));
    return put(cbor::canonical(to_value(authored->manifest, false)));
  }
  static Bytes octets(const json::Value& list) {
    Bytes out;
    for (const json::Value& n : list.array())
      out.push_back(static_cast<char>(n.as_uint64().value()));
    return out;
  }
  // A command as a poll returns it, with the receipt inside.
  cbor::Value command(const std::string& action, const std::string& body) {
    auto sent = post("/v1/worlds/w/governance/" + action, body, 200);
    auto record = get(std::string(sent.string_or("poll_url")));
    EXPECT_EQ(record.string_or("status"), "succeeded") << json::print(record);
    EXPECT_EQ(record.string_or("command"), "gov-" + action);
    EXPECT_TRUE(record.find("submitted_at_ns") && record.find("finished_at_ns") &&
                record.find("journal_height"));
    return *cbor::decode(octets(*record.find("result_payload")->find("inline_cbor")));
  }
};

TEST_F(Peer, creates_a_world_from_the_store_and_reads_it) {
  const std::string hash = upload();
  auto made = post(
      "/v1/worlds",
      R"({"world_id":"w","universe_id":"00000000-0000-0000-0000-000000000000","created_at_ns":1,"source":{"kind":"manifest","manifest_hash":")" +
          hash + "\"}}",
      201);
  EXPECT_EQ(made.string_or("world_id"), "w");
  EXPECT_TRUE(made.find("submission_id")->is_string() &&
              made.find("submission_offset")->is_number());
  post("/v1/worlds",
       R"({"world_id":null,"source":{"kind":"manifest","manifest_hash":")" + hash + "\"}}", 201);
  auto page = get("/v1/worlds/w");
  EXPECT_EQ(page.find("runtime")->string_or("world_id"), "w");
  EXPECT_FALSE(page.find("runtime")->find("has_pending_effects")->boolean());
  EXPECT_EQ(page.find("active_baseline")->find("height")->as_int64(), 1);
  EXPECT_EQ(page.find("active_baseline")->string_or("manifest_hash"), hash);
  EXPECT_EQ(get("/v1/worlds/w/runtime").string_or("universe_id"), kUniverse);
  auto manifest = get("/v1/worlds/w/manifest");
  EXPECT_EQ(manifest.find("journal_head")->as_int64(), 2);
  EXPECT_EQ(manifest.find("summary")->find("workflow_count")->as_int64(), 5);
  EXPECT_FALSE(manifest.find("manifest")->find("$kind"))
      << "the peer's manifest knows no member of that name";
  EXPECT_EQ(manifest.find("summary")->find("routes")->array()[0].string_or("key_field"), "id");
  EXPECT_EQ(get("/v1/worlds/w/defs?kinds=workflow").find("journal_head")->as_int64(), 2);
  EXPECT_EQ(get("/v1/worlds/w/defs/workflow/t%2Fmain%401").find("def")->string_or("$kind"),
            "defworkflow");
  EXPECT_EQ(get("/v1/worlds/w/journal/head").string_or("manifest_hash"), hash);
  auto taken = post("/v1/worlds/w/checkpoint", "", 200);
  EXPECT_EQ(taken.find("active_baseline")->string_or("snapshot_ref"),
            taken.string_or("snapshot_ref"));
  EXPECT_FALSE(get("/v1/health").string_or("service").empty());
}

TEST_F(Peer, lists_worlds_page_by_page) {
  const std::string hash = upload();
  for (const char* id : {"b", "a", "c"})
    post("/v1/worlds",
         R"({"world_id":")" + std::string(id) + R"(","manifest_hash":")" + hash + "\"}", 201);
  auto first = get("/v1/worlds?limit=1");
  ASSERT_EQ(first.array().size(), 1u);
  EXPECT_EQ(first.array()[0].string_or("world_id"), "a");
  auto rest = get("/v1/worlds?after=a&limit=10");
  ASSERT_EQ(rest.array().size(), 2u);
  EXPECT_EQ(rest.array()[1].string_or("world_id"), "c");
  EXPECT_TRUE(get("/v1/worlds?after=c").array().empty());
}

TEST_F(Peer, sends_an_event_with_members_that_are_null_and_reads_cell_and_record) {
  make();
  auto sent = post(
      "/v1/worlds/w/events?wait_for_flush=true",
      R"({"schema":"t/Do@1","value_json":{"id":"a","word":"hi"},"value_b64":null,"key_b64":null})",
      202);
  EXPECT_TRUE(sent.find("submission_id")->is_string() &&
              sent.find("submission_offset")->is_number());
  EXPECT_EQ(sent.find("world_epoch")->as_int64(), 1);
  const Bytes raw = cbor::encode(cbor::Map{{"id", "a"}, {"word", "ho"}});
  EXPECT_EQ(post("/v1/worlds/w/events",
                 R"({"schema":"t/Do@1","value_json":null,"value_b64":")" + base64(raw) +
                     R"(","submission_id":"mine"})",
                 202)
                .string_or("submission_id"),
            "mine");
  auto state =
      get("/v1/worlds/w/state/t%2Fmain%401?key_b64=" + wire::percent_encode(base64(key_of("a"))));
  EXPECT_EQ(state.find("journal_head")->as_int64(), 4);
  EXPECT_EQ(octets(*state.find("cell")->find("key_bytes")), key_of("a"));
  EXPECT_EQ(octets(*state.find("cell")->find("key_hash")), view(sha256(key_of("a"))));
  EXPECT_EQ(state.find("cell")->find("last_active_ns")->as_int64(), 3);
  auto cells = get("/v1/worlds/w/state/t%2Fmain%401/cells");
  EXPECT_EQ(cells.find("cells")->array()[0].string_or("state_hash"), state.string_or("state_hash"));
  EXPECT_EQ(cells.find("journal_head")->as_int64(), 4);
  auto journal = get("/v1/worlds/w/journal?from=0&kinds=domain_event,snapshot");
  EXPECT_EQ(journal.find("next_from")->as_int64(), 4);
  ASSERT_EQ(journal.find("entries")->array().size(), 3u);
  const json::Value& entry = journal.find("entries")->array()[1];
  EXPECT_EQ(entry.string_or("kind"), "domain_event");
  EXPECT_EQ(cbor::decode(octets(*entry.find("record")->find("value")))->text_or("word"), "hi");
  EXPECT_EQ(octets(*entry.find("record")->find("entropy")).size(), 64u);
}

TEST_F(Peer, reads_records_as_cbor) {
  make();
  event("a");
  auto answer = stage.http("GET", "/v1/worlds/w/journal?from=1&limit=2", {},
                           {{"Accept", "application/cbor, */*"}});
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at(0).second, "application/cbor");
  auto page = cbor::decode(answer.body);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->find("from")->as_uint64(), 1u);
  EXPECT_EQ(page->find("retained_from")->as_uint64(), 0u);
  EXPECT_EQ(page->find("next_from")->as_uint64(), 3u);
  const cbor::Array& entries = page->find("entries")->array();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].find("seq")->as_uint64(), 2u);
  auto entry = cbor::decode(entries[1].find("entry_cbor")->bytes());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->find("seq")->as_uint64(), 2u);
  EXPECT_EQ(entry->text_or("kind"), "domain_event");
  EXPECT_EQ(*cbor::decode(entry->find("payload")->bytes()), stage.records("w").at(2));
}

TEST_F(Peer, a_page_of_large_records_ends_early_and_says_where_to_go_on) {
  make();
  const std::string large = R"({"schema":"t/Do@1","value_json":{"id":"a","word":")" +
                            std::string(100 * 1024, 'x') + "\"}}";
  for (int i = 0; i < 12; ++i)
    post("/v1/worlds/w/events", large, 202);
  auto first = get("/v1/worlds/w/journal?from=2&limit=1000&kinds=domain_event");
  EXPECT_EQ(first.find("entries")->array().size(), 11u);
  const auto next = first.find("next_from")->as_int64();
  ASSERT_TRUE(next && *next < *first.find("head")->as_int64());
  auto rest =
      get("/v1/worlds/w/journal?limit=1000&kinds=domain_event&from=" + std::to_string(*next));
  EXPECT_EQ(rest.find("entries")->array().size(), 1u);
  const std::string root(first.find("entries")->array()[0].find("record")->string_or("event_hash"));
  for (const std::string& by :
       {"event_hash=" + wire::percent_encode(root),
        "workflow=t%2Fmain%401&key_b64=" + wire::percent_encode(base64(key_of("a")))}) {
    auto trace = get("/v1/worlds/w/trace?window_limit=10000&" + by);
    ASSERT_TRUE(trace.find("journal_window")) << by;
    const json::Array& shown = trace.find("journal_window")->find("entries")->array();
    // The trace of an event begins with the event; that of a cell ends with the newest record.
    const auto begins = *shown.front().find("seq")->as_int64(),
               at = *first.find("entries")->array()[0].find("seq")->as_int64();
    if (by.starts_with("workflow")) {
      EXPECT_GT(begins, at);
      EXPECT_EQ(*shown.back().find("seq")->as_int64(), *first.find("head")->as_int64() - 1);
    } else {
      EXPECT_EQ(begins, at);
      EXPECT_EQ(shown.size(), 11u);
    }
  }
}

TEST_F(Peer, settles_an_intent_by_lists_of_numbers) {
  make();
  event_with("a", output({"s"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 7}}), {}, {}},
                                 {"t/charge@1", cbor::encode(cbor::Map{{"amount", 8}}), {}, {}}}));
  auto open = stage.pending("w");
  ASSERT_EQ(open.size(), 2u);
  EXPECT_TRUE(get("/v1/worlds/w").find("runtime")->find("has_pending_effects")->boolean());
  const Bytes payload = cbor::encode(cbor::Map{{"code", 4}});
  auto receipt = [&](const Bytes& intent, const json::Value& envelope) {
    return json::print(json::object({{"intent_hash", octets_json(intent)},
                                     {"effect", "t/charge@1"},
                                     {"status", "ok"},
                                     {"payload", envelope},
                                     {"cost_cents", json::Value()},
                                     {"signature", octets_json(Bytes(64, '\0'))},
                                     {"correlation_id", json::Value()}}));
  };
  auto taken =
      post("/v1/worlds/w/receipts", receipt(open[0].intent, payload_envelope(payload)), 202);
  EXPECT_TRUE(taken.find("submission_id")->is_string() &&
              taken.find("submission_offset")->is_number());
  EXPECT_EQ(taken.find("world_epoch")->as_int64(), 1);
  EXPECT_EQ(taken.string_or("status"), "settled");
  const std::string ref = put(payload);
  post("/v1/worlds/w/receipts",
       receipt(open[1].intent,
               json::object({{"cbor_ref", kNoHash}, {"cbor_size", 1}, {"cbor_sha256", kNoHash}})),
       404);
  post("/v1/worlds/w/receipts",
       receipt(open[1].intent, json::object({{"cbor_ref", ref},
                                             {"cbor_size", uint64_t{payload.size()}},
                                             {"cbor_sha256", ref}})),
       202);
  EXPECT_EQ(stage.log("w", "t/main@1", key_of("a")),
            (std::vector<std::string>{"s", "Receipt", "Receipt"}));
  EXPECT_EQ(
      post("/v1/worlds/w/receipts", R"({"intent_hash":[1,2],"payload":{}})", 400).string_or("code"),
      "invalid_request");
  EXPECT_EQ(
      post("/v1/worlds/w/receipts", R"({"intent_hash":[256],"payload":{}})", 400).string_or("code"),
      "invalid_request");
  auto intents = get("/v1/worlds/w/journal?kinds=effect_intent").find("entries")->array();
  EXPECT_EQ(hash_text(octets(*intents[0].find("record")->find("intent_hash"))),
            intents[0].find("record")->string_or("intent_id"));
}

TEST_F(Peer, applies_a_patch_from_the_store) {
  make();
  const std::string base(get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  const std::string document =
      R"({"version":"2","base_manifest_hash":")" + base +
      R"(","patches":[{"add_def":{"kind":"defschema","node":{"$kind":"defschema","name":"t/New@1","type":{"text":{}}}}}]})";
  for (const char* tag : {"PatchBlobRef", "patch_blob_ref"}) {
    auto proposed = command(
        "propose",
        R"({"patch":{"$tag":")" + std::string(tag) + R"(","$value":{"blob_ref":")" + put(document) +
            R"(","format":"patch_doc_json"}},"summary":null,"manifest_base":null,"description":"more","actor":null})");
    EXPECT_EQ(proposed.text_or("manifest_base"), base);
  }
  auto listed = command(
      "propose",
      json::print(json::object({{"patch", json::object({{"$tag", "patch_doc_json"},
                                                        {"$value", octets_json(document)}})}})));
  EXPECT_EQ(listed.find("proposal_id")->as_int64(), 2);
  auto shadowed = command("shadow", R"({"proposal_id":2,"actor":null})");
  EXPECT_TRUE(shadowed.find("workflow_instances")->is_array() &&
              shadowed.find("predicted_effects")->is_array() &&
              shadowed.find("module_effect_allowlists")->is_array());
  auto approved =
      command("approve",
              R"({"proposal_id":2,"decision":{"$tag":"Approve"},"approver":"me","reason":null})");
  EXPECT_EQ(approved.find("decision")->text_or("$tag"), "approve");
  auto applied = command("apply", R"({"proposal_id":2})");
  EXPECT_EQ(applied.text_or("manifest_hash_new"),
            get("/v1/worlds/w/manifest").string_or("manifest_hash"));
  EXPECT_EQ(get("/v1/worlds/w/defs/schema/t%2FNew%401").find("def")->string_or("name"), "t/New@1");
  // The compiled form, by its hash.
  auto again = command("propose", R"({"patch":{"$tag":"Hash","$value":")" +
                                      std::string(approved.text_or("patch_hash")) + "\"}}");
  EXPECT_EQ(again.text_or("patch_hash"), approved.text_or("patch_hash"));
  EXPECT_EQ(post("/v1/worlds/w/governance/propose",
                 R"({"patch":{"$tag":"Hash","$value":")" + kNoHash + "\"}}", 404)
                .string_or("code"),
            "not_found");
  EXPECT_EQ(post("/v1/worlds/w/governance/propose", R"({"patch":{"$tag":"Nothing"}})", 400)
                .string_or("code"),
            "effect.manager");
  EXPECT_EQ(post("/v1/worlds/w/governance/approve",
                 R"({"proposal_id":0,"decision":{"$tag":"Maybe"}})", 400)
                .string_or("code"),
            "invalid_request");
  auto failed = get(std::string(
      post("/v1/worlds/w/governance/shadow", R"({"command_id":"mine","proposal_id":999})", 200)
          .string_or("poll_url")));
  EXPECT_EQ(failed.string_or("status"), "failed");
  EXPECT_EQ(failed.find("error")->string_or("code"), "governance.proposal_missing");
}

// Every member of `wanted` is in `got`, with a value of the same kind. Of lists the first items are
// compared.
void expect_members(const json::Value& wanted, const json::Value& got, const std::string& at) {
  if (wanted.is_object()) {
    ASSERT_TRUE(got.is_object()) << at;
    for (const json::Member& m : wanted.object()) {
      const json::Value* there = got.find(m.name);
      ASSERT_TRUE(there) << at << "." << m.name;
      expect_members(m.value, *there, at + "." + m.name);
    }
  } else if (wanted.is_array()) {
    ASSERT_TRUE(got.is_array()) << at;
    if (!wanted.array().empty() && !got.array().empty())
      expect_members(wanted.array()[0], got.array()[0], at + "[]");
  } else if (!wanted.is_null() && !got.is_null()) {
    EXPECT_EQ(wanted.is_string(), got.is_string()) << at;
    EXPECT_EQ(wanted.is_number(), got.is_number()) << at;
  }
}

TEST_F(Peer, reads_traces_with_the_members_of_the_vectors) {
  make();
  event_with("a", output({"s"}, {{"t/charge@1", cbor::encode(cbor::Map{{"amount", 7}}), {}, {}}}));
  json::Value vectors = vector_file("world_basic.json");
  json::Value trace = *vectors.find("trace_get");
  trace.object().find("root")->object().set("value", json::Value());  // of another schema
  expect_members(trace, get("/v1/worlds/w/trace?schema=t/Do@1&correlate_by=id&value=a"), "trace");
  expect_members(*vectors.find("trace_summary"), get("/v1/worlds/w/trace-summary"), "summary");
}

TEST_F(Peer, forks_from_a_snapshot) {
  make();
  event("a");
  const auto taken = post("/v1/worlds/w/checkpoint", "", 200);
  event("b");
  auto fork = [&](const std::string& which, int status) {
    return post("/v1/worlds/w/fork", R"({"src_snapshot":)" + which + R"(,"new_world_id":null})",
                status);
  };
  for (const std::string& which :
       {std::string(R"({"kind":"active_baseline"})"),
        R"({"kind":"by_ref","snapshot_ref":")" + std::string(taken.string_or("snapshot_ref")) +
            "\"}",
        R"({"kind":"by_height","height":)" + json::print(*taken.find("height")) + "}"}) {
    const std::string id(fork(which, 201).string_or("world_id"));
    EXPECT_EQ(get("/v1/worlds/" + id + "/state/t/main@1/cells").find("cells")->array().size(), 1u)
        << which;
    EXPECT_EQ(get("/v1/worlds/" + id).find("height")->as_int64(), 4);
  }
  EXPECT_EQ(fork(R"({"kind":"by_height","height":2})", 404).string_or("code"), "not_found");
  EXPECT_EQ(fork(R"({"kind":"by_ref","snapshot_ref":"x"})", 404).string_or("code"), "not_found");
  EXPECT_EQ(fork(R"({"kind":"newest"})", 400).string_or("code"), "invalid_request");
}

TEST_F(Peer, manages_secret_bindings) {
  stage.face = std::make_unique<Face>(
      stage, stage, stage.program->worlds, stage.background,
      FaceOptions{.secret_key = Bytes(32, 'k'),
                  .environment = [](const std::string& tenant, const std::string& n) {
                    return tenant == "t" && n == "TOKEN" ? std::optional<std::string>("t0ken")
                                                         : std::nullopt;
                  }});
  const std::string digest = hash_text(sha256("key"));
  auto binding =
      call("PUT", "/v1/secrets/bindings/llm%2Fapi?universe_id=00000000-0000-0000-0000-000000000000",
           R"({"source_kind":"node_secret_store","actor":null})", 200);
  EXPECT_EQ(binding.string_or("binding_id"), "llm/api");
  EXPECT_FALSE(binding.find("latest_version"));
  auto version = post("/v1/secrets/bindings/llm%2Fapi/versions",
                      R"({"plaintext_b64":")" + base64("key") + R"(","expected_digest":")" +
                          digest + R"(","actor":"me"})",
                      200);
  EXPECT_EQ(version.find("version")->as_int64(), 1);
  EXPECT_EQ(version.string_or("digest"), digest);
  EXPECT_EQ(post("/v1/secrets/bindings/llm%2Fapi/versions",
                 R"({"plaintext":"other","expected_digest":")" + digest + "\"}", 400)
                .string_or("code"),
            "validation_failed");
  post("/v1/secrets/bindings/llm%2Fapi/versions", R"({"plaintext":"newer"})", 200);
  EXPECT_EQ(get("/v1/secrets/bindings").array()[0].find("latest_version")->as_int64(), 2);
  EXPECT_EQ(get("/v1/secrets/bindings/llm%2Fapi/versions").array()[0].string_or("status"),
            "superseded");
  EXPECT_EQ(get("/v1/secrets/bindings/llm%2Fapi/versions/1").string_or("digest"), digest);
  call("PUT", "/v1/secrets/bindings/env", R"({"source_kind":"worker_env","env_var":"TOKEN"})", 200);
  EXPECT_EQ(*stage.face->service().reveal("t", {"a/b@1", "env", {}}, 0), "t0ken");
  call("PUT", "/v1/secrets/bindings/env", R"({"source_kind":"worker_env"})", 400);
  call("PUT", "/v1/secrets/bindings/env",
       R"({"source_kind":"worker_env","env_var":"TOKEN","status":"disabled"})", 200);
  EXPECT_EQ(stage.face->service().reveal("t", {"a/b@1", "env", {}}, 0).error().reason,
            "secret.resolve_error");
  EXPECT_EQ(
      call("DELETE", "/v1/secrets/bindings/llm%2Fapi", "", 200).find("latest_version")->as_int64(),
      2);
  get("/v1/secrets/bindings/llm%2Fapi", 404);
}

}  // namespace
}  // namespace pawl::worlds
