// The verbs of definitions: a text becomes a version, and versions are activated, retired and
// deleted.

#include "faces/processes/run/program.h"
#include "json/text.h"

namespace pawl::processes {

namespace {

std::string summary(const std::string& id, uint32_t version, const DefinitionHead::Version& v) {
  std::string out = "{\"id\":\"" + id + "\",\"version\":" + std::to_string(version) + ",\"name\":";
  json::append_string(out, v.name);
  append_time(out += ",\"uploadedAt\":", v.uploaded);
  return out += '}';
}

// Makes a version the one that starts use, and opens the definition again. Returns whether anything
// changed.
Result<bool> activate(TurnContext& context, const std::string& id, DefinitionHead head,
                      uint32_t version) {
  bool was_closed = head.retired || head.deleted;
  if (head.current() == version && !was_closed) return false;
  head.active = version == head.versions.size() ? 0 : version;
  head.retired = head.deleted = false;
  head.retire_reason.clear();
  Bytes bytes = encode(head);
  context.turn.write(head_key(context.tenant, id), std::move(bytes),
                     std::make_shared<const DefinitionHead>(std::move(head)));
  if (was_closed) TRY_OK(context.start_awaited(id));
  return true;
}

Result<UploadCommand> decode_upload(BytesView body) {
  TRY(json::Value document, json::parse(body));
  return UploadCommand{std::move(document), nullptr};
}

// What the upload of an earlier version's text does.
enum class OldText : uint8_t { activate, keep };

Result<Bytes> store(TurnContext& context, OldText old_text) {
  TRY(auto command, command<UploadCommand>(context.input, decode_upload));
  std::shared_ptr<const Definition> definition = command->definition;
  if (!definition) {
    TRY(Definition made, make_definition(command->document));
    definition = std::make_shared<const Definition>(std::move(made));
  }
  Key key = head_key(context.tenant, definition->id);
  TRY(auto before, context.turn.read_as<DefinitionHead>(key, decode_head));
  std::string digest = content_digest(definition->document);
  DefinitionHead head;
  if (before) {
    head = *before;
    for (size_t i = 0; i < head.versions.size(); ++i) {
      if (head.versions[i].digest != digest) continue;
      uint32_t version = static_cast<uint32_t>(i + 1);
      std::string answer = summary(definition->id, version, head.versions[i]);
      if (old_text == OldText::keep) return answer;
      TRY(bool changed, activate(context, definition->id, head, version));
      if (!changed) return answer;
      answer.pop_back();
      return answer += ",\"activated\":true}";
    }
  }
  bool was_closed = head.retired || head.deleted;
  head.active = 0;
  head.retired = head.deleted = false;
  head.retire_reason.clear();
  head.versions.push_back({digest, definition->name, context.turn.now()});
  uint32_t version = static_cast<uint32_t>(head.versions.size());
  auto stored = std::make_shared<Definition>(*definition);
  stored->version = version;
  stored->uploaded = context.turn.now();
  context.turn.write(version_key(context.tenant, definition->id, version),
                     encode_version(version, context.turn.now(), definition->document), stored);
  Bytes bytes = encode(head);
  std::string answer = summary(definition->id, version, head.versions.back());
  context.turn.write(key, std::move(bytes),
                     std::make_shared<const DefinitionHead>(std::move(head)));
  if (version == 1 || was_closed) TRY_OK(context.start_awaited(definition->id));
  return answer;
}

}  // namespace

Result<Bytes> upload(TurnContext& context) { return store(context, OldText::keep); }
Result<Bytes> deploy(TurnContext& context) { return store(context, OldText::activate); }

Result<Bytes> manage_definition(TurnContext& context) {
  TRY(json::Value body, json::parse(context.input.body));
  std::string id(body.string_or("definitionId"));
  std::string_view operation = body.string_or("operation");
  TRY(auto before, context.head(id));
  DefinitionHead head = *before;
  if (operation == "activate") {
    const json::Value* wanted = body.find("version");
    int64_t version = wanted && wanted->is_number() ? wanted->as_int64().value_or(0) : 0;
    if (version < 1 || static_cast<size_t>(version) > head.versions.size())
      return fail(Code::not_found, "NO_DEFINITION",
                  "version " + std::to_string(version) + " of definition \"" + id +
                      "\" not found: it has versions 1 to " + std::to_string(head.versions.size()));
    TRY(bool changed, activate(context, id, head, static_cast<uint32_t>(version)));
    return Bytes(json::print(
        json::object({{"definitionId", id}, {"version", version}, {"activated", changed}})));
  }
  bool retires = operation == "retire";
  (retires ? head.retired : head.deleted) = true;
  if (retires) head.retire_reason = body.string_or("reason");
  Bytes bytes = encode(head);
  context.turn.write(head_key(context.tenant, id), std::move(bytes),
                     std::make_shared<const DefinitionHead>(std::move(head)));
  return Bytes(
      json::print(json::object({{"definitionId", id}, {retires ? "retired" : "deleted", true}})));
}

}  // namespace pawl::processes
