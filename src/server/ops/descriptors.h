#pragma once
// File descriptors are shared by connections and files. Connections have fixed shares, so that
// callers cannot take the descriptors that the journal and the rows need.

#include <cstddef>

namespace pawl::server {

// Connections that each listener may hold at the same time.
struct ConnectionShares {
  size_t http = 0;
  size_t grpc = 0;
  size_t admin = 0;
};

// Raises the process's limit of descriptors as far as the system allows, and returns it.
size_t raise_descriptor_limit();

// Divides the descriptors. `http` is the number that the settings ask for.
ConnectionShares share_descriptors(size_t limit, size_t http);

}  // namespace pawl::server
