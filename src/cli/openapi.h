#pragma once
// The OpenAPI document, printed from the routes, and the refusals of paths that belong to no face.

#include "server/auth/operations.h"
#include "wire/route.h"

namespace pawl::cli {

// Fails when the tables have a mistake: an id or the name of a shape that is used twice, a path
// parameter that is not in the pattern, a document without a file, an operation without an answer.
Result<std::string> openapi(const wire::Router& router, const server::RoutePermissions& permissions,
                            std::string_view title = "Pawl");
wire::Response docs_page(const wire::Router& router);  // the same as an HTML page
// The form of the refusals of paths that belong to no face.
extern const wire::ErrorForm kPlainErrors;
wire::Response plain_refusal(const wire::Request& request, const Error& error,
                             std::string_view allow);

}  // namespace pawl::cli
