// SHA-256 (FIPS 180-4) and HMAC-SHA256 (RFC 2104), to prove that another process knows a secret. Checksums of files use
// xxh3 instead: it is faster, but does not protect against deliberate collisions.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::string_view bytes);
Sha256 hmac_sha256(std::string_view key, std::string_view message);
std::string hex(const Sha256& digest);

// The time of the comparison depends on the lengths only. An attacker cannot learn from it how much of a guess is right.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace megalith
