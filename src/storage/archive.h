#pragma once
// An archive keeps files for other nodes and later days: checkpoints of rows, and journals that
// were trimmed. A file is written once and never changed.

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace pawl {

// The archive has a file with this name already; it was not changed.
inline constexpr Reason kArchived{"ARCHIVED_ALREADY"};

class Archive {
 public:
  virtual ~Archive() = default;
  // Stores the file under a name such as "0003/checkpoint-1200/rows.tar", all or nothing.
  // ARCHIVED_ALREADY (`conflict`) when the name is taken.
  virtual Result<void> put(const std::string& name, const std::string& file) = 0;
  // Copies the archived file to a new file. `not_found` when there is none.
  virtual Result<void> get(const std::string& name, const std::string& file) const = 0;
  // The names that begin with `prefix`, in order.
  virtual Result<std::vector<std::string>> list(const std::string& prefix) const = 0;
  virtual Result<void> remove(const std::string& name) = 0;
};

// Names have parts of letters, digits, '.', '_' and '-' between slashes; no part begins with a dot.
Result<void> check_archive_name(const std::string& name);

// An archive in a folder, which all nodes must see.
Result<std::unique_ptr<Archive>> open_folder_archive(const std::string& folder);

}  // namespace pawl
