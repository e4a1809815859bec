// The example that `pawl dev` loads: compiled in from examples/loan. The definitions go through the
// HTTP API like any other upload.

#include "cli/client.h"
#include "cli/example_files.h"

namespace pawl::cli {

Result<void> load_example(const std::string& server) {
  Client client(server);
  for (const ExampleFile& file : example_files()) {
    TRY(wire::Response response, client.send("POST", "/v1/definitions", file.text));
    if (response.status >= 300)
      return fail(Code::internal, "EXAMPLE", "the example was refused: " + response.body);
  }
  return {};
}

}  // namespace pawl::cli
