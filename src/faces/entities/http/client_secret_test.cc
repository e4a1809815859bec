#include "faces/entities/http/client_secret.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace pawl::entities {
namespace {

TEST(client_secret, only_the_same_secret_matches) {
  const std::string stored = hash_client_secret("s3cret", "0123456789abcdef");
  EXPECT_TRUE(is_client_secret("s3cret", stored));
  EXPECT_FALSE(is_client_secret("s3cre", stored));
  EXPECT_FALSE(is_client_secret("", stored));
  EXPECT_EQ(stored.find("s3cret"), std::string::npos);
}

TEST(client_secret, the_same_secret_is_stored_differently_with_another_salt) {
  EXPECT_NE(hash_client_secret("s3cret", "0123456789abcdef"),
            hash_client_secret("s3cret", "0123456789abcdeX"));
}

TEST(client_secret, secrets_that_earlier_versions_stored_still_match) {
  EXPECT_TRUE(is_client_secret("s3cret", hex(view(sha256("s3cret")))));
  EXPECT_FALSE(is_client_secret("other", hex(view(sha256("s3cret")))));
}

TEST(client_secret, damaged_and_missing_hashes_match_nothing) {
  for (const char* stored : {"", "scrypt$", "scrypt$zz$00", "scrypt$00", "scrypt$00$"})
    EXPECT_FALSE(is_client_secret("", stored)) << stored;
}

}  // namespace
}  // namespace pawl::entities
