#include "base/result.h"

namespace pawl {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::invalid: return "invalid";
    case Code::unauthenticated: return "unauthenticated";
    case Code::denied: return "denied";
    case Code::not_found: return "not_found";
    case Code::conflict: return "conflict";
    case Code::precondition: return "precondition";
    case Code::too_large: return "too_large";
    case Code::unprocessable: return "unprocessable";
    case Code::unsupported: return "unsupported";
    case Code::exhausted: return "exhausted";
    case Code::unavailable: return "unavailable";
    case Code::corrupt: return "corrupt";
    case Code::internal: return "internal";
  }
  return "internal";
}

// Bypasses the log, so the message appears at every log level.
void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, what);
  std::abort();
}

}  // namespace pawl
