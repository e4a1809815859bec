#pragma once
// Before the system's, in builds with the thread sanitizer: under it this header gives maps two
// more members, which the library as Debian builds it does not know. Its maps would be looked for
// where they are not.

#include <memory>  // which must see the sanitizer

#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
