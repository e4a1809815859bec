#pragma once
// The document of a workflow type: the members that its objects may have. The same rows read it and
// describe it in the OpenAPI document.

#include "wire/member.h"

namespace pawl::lifecycle::document {

inline constexpr wire::RequestShape kField{
    "LifecycleField",
    {wire::row::text("name").required(),
     wire::row::choice(
         "type", {"string", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                  "uint64", "double", "string_list", "json", "int", "uint", "float", "boolean"})
         .required(),
     wire::row::any("tags",
                    "id, phase, readonly, operator_writable, indexable: a list, or one "
                    "text with commas."),
     wire::row::flag("omitempty", "Left out of answers while it is empty."),
     wire::row::any("doc")}};

inline constexpr wire::RequestShape kType{
    "LifecycleType",
    {wire::row::text("bucket").required(), wire::row::text("key_prefix"),
     wire::row::text("parent_field", "The field with the id of the parent."),
     wire::row::list("fields", "", kField).required(),
     wire::row::map("transitions",
                    "The phases that follow each phase; a phase without any is terminal.",
                    wire::Kind::list)
         .required(),
     wire::row::any("success", "Terminal phases that count as success: one, or a list."),
     wire::row::text("workflow", "The name; must be that of the path."),
     wire::row::text("name", "The same.")}};

inline constexpr wire::Type kTypeExample = wire::Type(kType).with(R"({
  "bucket": "missions",
  "fields": [{"name": "id", "type": "string", "tags": ["id"]},
             {"name": "phase", "type": "string", "tags": ["phase"]}],
  "transitions": {"planned": ["flying"], "flying": ["landed"], "landed": []}})");

}  // namespace pawl::lifecycle::document
