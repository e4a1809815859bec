#pragma once
// Reading durable state: types, instances, lists, history, links. Nothing here waits for the
// kernel; the routes and the library both read through this.

#include "faces/lifecycle/read/views.h"
#include "faces/lifecycle/rule/substitute.h"
#include "faces/lifecycle/run/held.h"
#include "faces/lifecycle/type/values.h"
#include "kernel/access.h"

namespace pawl::lifecycle {

// An instance that was read, kept alive by what it was read from.
struct Found {
  std::shared_ptr<const void> keep;
  std::string id;
  Seq version = 0;
  Held held;
};

struct Listed {
  std::vector<Found> items;
  size_t skipped = 0;
  std::string cursor;
};

struct Linked {
  TypePtr type;
  Found found;
};

class Reads {
 public:
  explicit Reads(const KernelAccess& kernel) : kernel_(kernel) {}

  Result<TypePtr> type(std::string_view tenant, std::string_view name) const;
  Result<std::vector<TypePtr>> types(std::string_view tenant) const;  // sorted by name
  Result<Found> get(std::string_view tenant, std::string_view type, std::string_view id) const;

  // In creation order; filters, then offset, then limit. A match on a trusted index, or else the
  // phase, says where to look; everything else is a scan of the encoded bytes.
  Result<Listed> list(std::string_view tenant, const Type& type, const any_query& query) const;

  Result<history_log> history(std::string_view tenant, const Type& type, std::string_view id) const;

  // `skipped` counts those that cannot be read. Without an id: those that have no parent.
  Result<std::vector<Linked>> children(std::string_view tenant, std::string_view parent_id,
                                       size_t& skipped) const;
  // Parent first, root last. A parent that is not there ends the walk with a warning.
  Result<std::vector<Linked>> ancestors(std::string_view tenant, std::string_view id,
                                        std::string& warning) const;
  Result<Linked> lookup(std::string_view tenant, std::string_view id) const;
  Result<std::string> substitute(std::string_view tenant, std::string_view id,
                                 std::string_view text, Variables variables) const;

  const KernelAccess& kernel() const { return kernel_; }

 private:
  Result<Linked> linked(std::string_view tenant, std::string_view type, std::string_view id) const;
  Result<std::vector<Linked>> roots(std::string_view tenant, size_t& skipped) const;
  const KernelAccess& kernel_;
};

// Every match key must be a field; an error names the one that is not.
Result<void> check_match(const Type& type, const any_query& query);

// Tests one encoded instance against a query, without building anything.
class Filter {
 public:
  Filter(const Type& type, const any_query& query);
  enum class Verdict { yes, no, unreadable };
  // `bytes` is a cell; `out` is filled when it can be read.
  Verdict test(BytesView bytes, Held& out) const;

 private:
  struct Want {
    std::string_view name;
    const value* v;
    bool zero;                        // an absent field fits
    bool possible;                    // of the field's kind
    std::optional<js::Value> tree{};  // of a json field: its value counts, not its spelling
  };
  static bool holds(const record::walk& at, const Want& want);

  const Type& type_;
  const any_query& query_;
  std::vector<Want> wants_;
  Bytes needle_;  // one entry that a fitting record must hold, byte for byte
  Time after_ = 0;
};

}  // namespace pawl::lifecycle
