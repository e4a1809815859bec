#pragma once
// The store of an engine in this process. Reads go to the memory of the engine; a write returns
// when it is durable.

#include "embed/engine_parts.h"
#include "pawl/lifecycle/store.h"

namespace pawl::lifecycle {

std::shared_ptr<store> open_local_store(Engine::Parts& parts);

// One part of a rule's context as JSON; an empty object when the text is not an object.
js::Value object_or_empty(std::string_view text);
instance to_instance(const FoundInstance& found);
result<snapshot> to_snapshot(const dynamic_type& def, const instance& from);

}  // namespace pawl::lifecycle
