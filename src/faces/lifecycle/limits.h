#pragma once
// The limits of this face, each with its reason. A test reaches each one.

#include <cstddef>
#include <cstdint>

namespace pawl::lifecycle::limits {

// An operator's patch is a form, not a document; the original took as much.
inline constexpr size_t kOperatorBodyBytes = 1024 * 1024;
// An id is part of keys, rows and paths.
inline constexpr size_t kIdBytes = 1024;
inline constexpr size_t kNameBytes = 256;
// A definition is read with every turn of its type.
inline constexpr size_t kFields = 512;
inline constexpr size_t kPhases = 512;
inline constexpr size_t kRulesOfType = 256;
// Index rows hold values up to this; longer ones are kept by their digest.
inline constexpr size_t kIndexedBytes = 128;
// One rule may set off another; a ring of rules ends here.
inline constexpr size_t kRuleDepth = 64;
// Instances that a schedule, or counts that the end of a rule, looks at in one turn: a turn is
// short, so that others get theirs.
inline constexpr size_t kSweepPage = 256;
// Parents of parents: deeper than any honest tree.
inline constexpr size_t kAncestors = 1'000;
// Filters of one list: the scan keeps a bit for each.
inline constexpr size_t kMatches = 64;
// Changes a watcher may be behind before they are merged by instance.
inline constexpr size_t kWatchQueue = 1'024;
// Changes that wait while a watch over HTTP still tells what was there; past this it is cut and
// resumes.
inline constexpr size_t kWatchWaiting = 16'384;
// Instances, or frames of the journal, read at once while a watch tells what is there.
inline constexpr size_t kWatchPage = 256;
// Bytes under way to a watcher before it is told more of what was there.
inline constexpr size_t kWatchEasyBytes = 1024 * 1024;
// Warnings of drift that were told; past this they are told again rather than memory grow.
inline constexpr size_t kRememberedDrifts = 100'000;
// Actions of one rule: they run in one turn.
inline constexpr size_t kActions = 64;

}  // namespace pawl::lifecycle::limits
