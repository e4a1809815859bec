#pragma once
// How the client library reaches its server over HTTP, and what it reports when no answer comes.

#include <memory>
#include <string>

#include "net/http_client.h"
#include "pawl/client.h"

namespace pawl::client {

// `server` is "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example:8443".
std::unique_ptr<net::HttpClient> open_http(std::string_view server, int timeout_ms);
// The error of a request that got no answer, from the HTTP client's error. It is retryable, unless
// the request is malformed or the server has no valid certificate.
Error no_answer(const net::HttpClient& http, const Error& why);

}  // namespace pawl::client
