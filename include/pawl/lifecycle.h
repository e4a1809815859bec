#pragma once
// Phases for C++ structs. A struct declares its fields and its transitions once. It gets durable
// instances, checked transitions, history, watches, and an operator API that denies by default.
//
//   namespace lc = pawl::lifecycle;
//   lc::manager missions(engine);
//   missions.register_type<Mission>();
//   missions.create(Mission{.entity_id = "m1"});
//   missions.transition<Mission>("m1", "flying", {lc::source::op, "cleared by tower"});
//
// docs/guide/lifecycle.md is the guide, docs/reference/lifecycle.md describes every call.

#include "pawl/engine.h"
#include "pawl/lifecycle/error.h"
#include "pawl/lifecycle/fields.h"
#include "pawl/lifecycle/manager.h"
#include "pawl/lifecycle/table.h"
#include "pawl/lifecycle/types.h"
#include "pawl/lifecycle/watch.h"
