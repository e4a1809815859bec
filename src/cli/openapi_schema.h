#pragma once
// JSON Schemas and examples printed from the shapes of requests and answers.

#include <map>
#include <set>

#include "json/value.h"
#include "wire/member.h"

namespace pawl::cli {

// Collects the schemas that a document refers to, each once, by the names of their shapes.
class SchemaPrinter {
 public:
  // The schema of a value. A shape with a name is a reference to components/schemas.
  json::Value of(const wire::Type& type);
  // The schema of a row, with its documentation and default.
  json::Value of(const wire::Member& row);
  // components/schemas: every schema that was referred to.
  json::Value components();
  // Names that two shapes have, and documents that have no file. Empty in a program without
  // mistakes.
  const std::set<std::string>& mistakes() const { return mistakes_; }

 private:
  json::Value refer(const wire::AnyShape& shape);
  json::Value refer_document(std::string_view name);
  void follow(const json::Value& schema);
  json::Value object_of(const wire::AnyShape& shape);
  json::Value element_of(const wire::Type& type);
  json::Value plain(const wire::Type& type);

  std::map<std::string, const wire::AnyShape*> shapes_;
  std::map<std::string, json::Value> schemas_;
  std::set<std::string> mistakes_;
};

bool is_required(const wire::AnyShape& shape, const wire::Member& row);
// An example of a value, made of the examples of its rows; nothing for one that is not JSON.
std::optional<json::Value> example_of(const wire::Type& type);
std::optional<json::Value> example_of(const wire::Member& row);
std::optional<json::Value> default_of(const wire::Member& row);

}  // namespace pawl::cli
