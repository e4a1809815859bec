#pragma once
// Random values that need no seed.

#include <string>

namespace pawl::client {

// 32 random hex digits: an id that no other caller makes.
std::string fresh_key();
// A random time around `ms`, from half of it to one and a half. Clients that were cut off together
// then do not reconnect together.
int jittered(int ms);

}  // namespace pawl::client
