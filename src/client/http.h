#pragma once
// How the client library reaches its server over HTTP, and what it reports when no answer comes.

#include <memory>
#include <string>

#include "net/http_client.h"
#include "pawl/client.h"

namespace pawl::client {

// `server` is "127.0.0.1:8080", "http://127.0.0.1:8080" or "https://pawl.example:8443".
std::unique_ptr<net::HttpClient> open_http(std::string_view server, int timeout_ms);
// The refusal for a request that got no answer. One without a valid certificate on the other side
// is not worth repeating; all others are `unavailable()`.
Refusal no_answer(const net::HttpClient& http, const Error& error);

}  // namespace pawl::client
