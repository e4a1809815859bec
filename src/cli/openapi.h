#pragma once
// The OpenAPI document, printed from the routes, and the refusals of paths that belong to no face.

#include "wire/route.h"

namespace pawl::cli {

std::string openapi(const wire::Router& router);
wire::Response docs_page(const wire::Router& router);  // the same as an HTML page
wire::Response plain_refusal(const wire::Request& request, const Error& error,
                             std::string_view allow);

}  // namespace pawl::cli
