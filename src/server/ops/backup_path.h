#pragma once
// The folder of a backup that a caller asks for over the network.

#include <string>
#include <string_view>

#include "base/result.h"

namespace pawl::server {

// Returns the path of a new folder directly or indirectly below `root`. `asked` is a path relative
// to the root, or an absolute path inside it. The root is made if it is missing, with access for
// the owner only. Fails when the path leaves the root, by ".." or by a symbolic link, when the
// folder above it does not exist, or when something has the path already.
Result<std::string> backup_path(const std::string& root, std::string_view asked);

}  // namespace pawl::server
