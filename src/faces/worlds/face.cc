#include "faces/worlds/face.h"

#include "faces/worlds/http/operations.h"

namespace pawl::worlds {

std::vector<wire::Dialect> Face::dialects() const {
  std::vector<wire::Dialect> out;
  for (std::string_view prefix :
       {"/v1/worlds", "/v1/cas", "/v1/secrets", "/v1/workspace", "/v1/effects"}) {
    wire::Dialect dialect;
    dialect.prefix = prefix;
    dialect.refuse = [](const wire::Request&, const Error& error, std::string_view allow) {
      wire::Response response = HttpRoutes::refuse(error);
      if (!allow.empty()) {
        response.status = 405;
        response.headers.emplace_back("Allow", std::string(allow));
      }
      return response;
    };
    dialect.errors = {.shape = &http::kError, .tag = "worlds"};
    out.push_back(std::move(dialect));
  }
  return out;
}

}  // namespace pawl::worlds
