#pragma once
// Visits the hashes in a value: the places where its type says `hash`. Garbage collection follows
// these to find the blobs that a state or an event refers to. Text that merely looks like a hash is
// not visited, and a part of the value that does not fit its type is skipped.

#include <functional>

#include "cbor/cbor.h"
#include "faces/worlds/air/type.h"

namespace pawl::worlds {

void each_hash(const cbor::Value& value, const Type& type, const Schemas& schemas,
               const std::function<void(const std::string& hash)>& visit);

}  // namespace pawl::worlds
