#pragma once
// The limits of the lifecycle face, each with its reason. A test reaches each one.

#include <cstddef>
#include <cstdint>

namespace pawl::lifecycle::limits {

// An operator's patch is a form, not a document. The original API has the same limit.
inline constexpr size_t kOperatorBodyBytes = 1024 * 1024;
// An id is part of keys, rows and paths.
inline constexpr size_t kIdBytes = 1024;
inline constexpr size_t kNameBytes = 256;
// Every turn of a type reads its definition.
inline constexpr size_t kFields = 512;
inline constexpr size_t kPhases = 512;
inline constexpr size_t kRulesOfType = 256;
// Index rows hold values up to this size; longer values are indexed by their digest.
inline constexpr size_t kIndexedBytes = 128;
// One rule may trigger another. A cycle of rules ends at this depth.
inline constexpr size_t kRuleDepth = 64;
// Instances that a schedule visits in one turn, and counts that the removal of a rule erases in one
// turn. Turns stay short so that other commands are not delayed.
inline constexpr size_t kSweepPage = 256;
// Ancestors of one instance: no real tree is that deep.
inline constexpr size_t kAncestors = 1'000;
// Field filters of one list: the scan keeps one bit for each.
inline constexpr size_t kMatches = 64;
// Changes queued for a watcher in this process before they are merged by instance.
inline constexpr size_t kWatchQueue = 1'024;
// Changes queued for a watch over HTTP while it catches up. When the queue is full the watch is
// ended and its client resumes.
inline constexpr size_t kWatchWaiting = 16'384;
// Instances, or frames of the journal, read at once while a watch catches up.
inline constexpr size_t kWatchPage = 256;
// A watch catches up only while fewer bytes than this are buffered for its client.
inline constexpr size_t kWatchBufferedBytes = 1024 * 1024;
// Drift warnings remembered as logged. When the set is full it is cleared and warnings repeat.
inline constexpr size_t kRememberedDrifts = 100'000;
// Work of the variables and conditions of all actions in one turn: bytes that are read, copied and
// made. A text may name a large variable a million times.
inline constexpr size_t kRuleWork = 64 * 1024 * 1024;
// Actions of one rule: all of them run in one turn.
inline constexpr size_t kActions = 64;

}  // namespace pawl::lifecycle::limits
