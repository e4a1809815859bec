#pragma once
// Visits the hashes in a value: the places where its type says `hash`.

#include <functional>

#include "cbor/cbor.h"
#include "faces/worlds/air/type.h"

namespace pawl::worlds {

void each_hash(const cbor::Value& value, const Type& type, const Schemas& schemas,
               const std::function<void(const std::string& hash)>& visit);

}  // namespace pawl::worlds
